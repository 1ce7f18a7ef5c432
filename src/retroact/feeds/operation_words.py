"""What a row's own words and weights say is to be done with it."""

from __future__ import annotations

from typing import Any, Literal

from retroact.errors import InputError
from retroact.feeds.events import OPS, Event, Moment, Name
from retroact.messages import mismatch, show

Kind = Literal["add", "update", "delete", "erase", "close"]
_KINDS: dict[Kind, str] = {
    "add": "add insert c r +I +U update_postimage",
    "update": "update upsert u",
    "delete": "delete d -D -U update_preimage",
    "erase": "erase",
    "close": "close",
}
WORDS: dict[str, Kind] = {word: kind for kind, words in _KINDS.items() for word in words.split()}
"""Of Retroact itself, of Debezium, of Flink's changelogs and of Delta's change data feed."""
OPERATION_COLUMNS = ("op", "_change_type")
WEIGHT_COLUMNS = ("mz_diff", "diff", "weight")

NEEDS_STAMP = (
    "a deletion without id names the round that its record was added in: name the column of the id (--id), or of the "
    "stamp (--stamp)"
)
NEEDS_ID = "an update replaces what an id holds: name the column of the id (--id)"
ONE_ON_AN_ID = "-1, 0 or 1 for a record with an id, which holds one"
_AGGREGATED = (
    "this is aggregated input, where one event stands for many records and the guarantee for one record says little; "
    "with --contribution C, the most that one event stands for, it is taken as that many records"
)


def kind_of(word: Any, place: str) -> Kind:
    """
    >>> kind_of("+U", "op"), kind_of("update_preimage", "_change_type")
    ('add', 'delete')
    """
    kind = WORDS.get(word) if isinstance(word, str) else None
    if kind is None:
        others = ", ".join(known for known in WORDS if known not in OPS)
        raise mismatch(f"one of {', '.join(OPS)} (or {others})", word, place)
    return kind


def weigh(weight: Any, place: str, contribution: int | None) -> int:
    """How many copies are added or, below zero, deleted.

    >>> weigh(-3, "diff", 5)
    -3
    >>> weigh(3, "diff", None)
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected -1, 0 or 1, got 3: this is aggregated input, where one event stands for many
    records and the guarantee for one record says little; with --contribution C, the most that one event stands for, it
    is taken as that many records - at diff
    """
    if isinstance(weight, bool) or not isinstance(weight, int):
        raise mismatch("a whole number", weight, place)
    if abs(weight) > 1:
        if contribution is None:
            raise InputError(f"expected -1, 0 or 1, got {show(weight)}: {_AGGREGATED}", place=place)
        if abs(weight) > contribution:
            raise InputError(
                f"expected at most {contribution:,} records in one event (contribution), got {show(weight)}",
                place=place,
            )
    return weight


def copied(event: Event, weight: int, place: str) -> list[Event]:
    """An event as often as its weight says; an id holds one record, whatever its weight."""
    if event.id is not None and abs(weight) > 1:
        raise InputError(expected=ONE_ON_AN_ID, found=str(weight), place=place)
    return [event] * abs(weight)


def deletion(row: Any, id: Name | None, subject: Name | None, stamp: int | Moment | None) -> Event:
    """By id alone where there is one; otherwise by value, with its stamp."""
    if id is not None:
        return Event("delete", None, id)
    if stamp is None:
        raise InputError(NEEDS_STAMP, place="delete")
    return Event("delete", row, None, subject, stamp)  # type: ignore[arg-type]  # a grid makes a round of a time


def update(event: Event) -> Event:
    """An addition that must have an id."""
    if event.id is None:
        raise InputError(NEEDS_ID, place="update")
    return event
