"""What a row's own words and weights say is to be done with it."""

from __future__ import annotations

from typing import Any

from retroact.checks import is_int
from retroact.errors import InputError
from retroact.feeds.batch import ADD, CLOSE, DELETE, ERASE, UPDATE
from retroact.messages import mismatch, show

OPS = {"add": ADD, "delete": DELETE, "erase": ERASE, "close": CLOSE}
"""The words of Retroact itself."""
_WORDS = {
    ADD: "add insert c r +I +U update_postimage",
    UPDATE: "update upsert u",
    DELETE: "delete d -D -U update_preimage",
    ERASE: "erase",
    CLOSE: "close",
}
CODES = {word: code for code, words in _WORDS.items() for word in words.split()}
"""Of Retroact itself, of Debezium, of Flink's changelogs and of Delta's change data feed."""
OPERATION_COLUMNS = ("op", "_change_type")
WEIGHT_COLUMNS = ("mz_diff", "diff", "weight")
PROGRESS = "mz_progressed"
"""The column that says that a row with a weight tells progress alone."""

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


def code_of(word: Any, place: str) -> int:
    """
    >>> code_of("+U", "op") == ADD, code_of("update_preimage", "_change_type") == DELETE
    (True, True)
    """
    code = CODES.get(word) if isinstance(word, str) else None
    if code is None:
        others = ", ".join(known for known in CODES if known not in OPS)
        raise mismatch(f"one of {', '.join(OPS)} (or {others})", word, place)
    return code


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
    if not is_int(weight):
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
