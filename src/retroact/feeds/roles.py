"""What the columns of a source are for, and what their words, weights and positions mean, in every format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..checks import is_int
from ..errors import InputError, Place
from ..messages import hint, mismatch, show
from ..schema import Schema
from ..stream.columns import Columns
from ..stream.open_round import LARGEST
from .batch import ADD, CLOSE, DELETE, ERASE, EVERY_RECORD, UPDATE

OPS = {"add": ADD, "delete": DELETE, "erase": ERASE, "close": CLOSE}
"""Retroact's own words."""
_WORDS = {
    ADD: "add insert c r +I +U update_postimage",
    UPDATE: "update upsert u",
    DELETE: "delete d -D -U update_preimage",
    ERASE: "erase",
    CLOSE: "close",
}
CODES = {word: code for code, words in _WORDS.items() for word in words.split()}
"""Words of Retroact, Debezium, Flink's changelogs and Delta's change data feed."""
OPERATION_COLUMNS = ("op", "_change_type")
WEIGHT_COLUMNS = ("mz_diff", "diff", "weight")
PROGRESS = "mz_progressed"
"""The column that marks progress messages among rows with weights."""

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
ROLES = ("id", "subject", "stamp", "round")
VERSION = "_commit_version"
METADATA = {
    "_change_type": (VERSION, "_commit_timestamp"),
    **dict.fromkeys(WEIGHT_COLUMNS, ("mz_timestamp", "mz_progressed")),
}
"""Columns that come with a column of operations."""


@dataclass(frozen=True)
class Heading:
    """What the columns of a source are for."""

    fields: tuple[str, ...]
    roles: dict[str, str]
    """With ``version``, the column of the version of a Delta table."""
    operation: str | None
    """The column of operations or weights; None if all rows are additions."""
    ignored: tuple[str, ...]

    @property
    def weighted(self) -> bool:
        return self.operation in WEIGHT_COLUMNS

    @property
    def needed(self) -> set[str]:
        """Every column that is read."""
        return {*self.fields, *self.roles.values(), *((self.operation,) if self.operation else ())}

    @property
    def words(self) -> set[str]:
        """Columns whose texts are likely to repeat."""
        return {*self.fields, *((self.operation,) if self.operation else ())}


def heading(names: Sequence[str], schema: Schema, columns: Columns, *, by_number: bool, timed: bool) -> Heading:
    """Find out what the columns of a file or a frame are for.

    >>> from retroact.schema import Number
    >>> schema, columns = Schema({"amount": Number(0, 500)}), Columns.from_spec({"id": "order", "ignore": True})
    >>> found = heading(["order", "op", "amount", "note"], schema, columns, by_number=True, timed=False)
    >>> found.roles["id"], found.operation, found.ignored
    ('order', 'op', ('note',))
    """
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(f"expected different columns, got {name!r} twice")
    columns = columns.without(schema.fields)
    there: dict[str, str] = {}
    for role, own in columns.items():
        if own.column in names:
            there[role] = own.column
        elif not own.optional or (timed and role == "time"):
            raise InputError(
                f"expected a column {show(own.column)} for the {role}, got {', '.join(names)}{hint(own.column, names)}"
            )
    fields = tuple(name for name in schema.fields if name != EVERY_RECORD)
    operation = _operation(names, {*fields, *there.values()} - {there.get("op", "")}, columns)
    free = [name for name in names if name not in (*fields, *there.values(), operation)]
    ignored = tuple(name for name in free if columns.ignores(name) or name in METADATA.get(operation or "", ()))
    refuse(names, fields, columns, [name for name in free if name not in ignored])
    # on a grid, or with one round for all, round numbers are not read; without a grid, times are not
    unread = {"op"} | ({"round"} if not by_number else set()) | ({"time"} if not timed else set())
    roles = {role: column for role, column in there.items() if role not in unread}
    return Heading(fields, roles | ({"version": VERSION} if VERSION in ignored else {}), operation, ignored)


def _operation(names: Sequence[str], taken: Collection[str], columns: Columns) -> str | None:
    own = columns.column("op")
    marks = [own] if own is not None and own in names else []
    if columns.marked:
        listed = () if isinstance(columns.ignore, bool) else columns.ignore
        every = [name for name in (*OPERATION_COLUMNS, *WEIGHT_COLUMNS) if name in names]
        marks += [name for name in every if name not in (*taken, *listed, *marks)]
    if len(marks) > 1:
        raise InputError(f"expected one column that says what is done with a row, got {' and '.join(marks)}")
    return marks[0] if marks else None


def refuse(names: Iterable[str], fields: Sequence[str], columns: Columns, unknown: Sequence[str]) -> None:
    """Refuse a source that lacks a field or has an unknown column."""
    missing = [name for name in fields if name not in names]
    if not missing and not unknown:
        return
    others = [own.column for _, own in columns.items() if own.column not in fields]
    free = [name for name in (*fields, *others) if name not in names]
    spare = [name for name in names if name not in fields]
    got = [f"no {show(name)}{hint(name, spare)}" for name in missing]
    if missing and not unknown:
        got[-1] += f" among {', '.join(map(show, names))}"
    known = [f"{show(name)}{hint(name, free)}" for name in unknown]
    got += (
        [f"an unknown column {known[0]}"] if len(known) == 1 else [f"unknown columns {', '.join(known)}"] * bool(known)
    )
    may = f" (and {', '.join(others)})" if others and unknown and fields else ""
    mark = next((name for name in unknown if name in (*OPERATION_COLUMNS, *WEIGHT_COLUMNS)), None)
    ignoring = "; to ignore columns: ignore = true, or a list, in [columns]" if unknown else ""
    ignoring = ignoring if mark is None else f'; if it says what is done with a row: op = "{mark}" in [columns]'
    raise InputError(f"expected the columns {', '.join(fields or others)}{may}, got {' and '.join(got)}{ignoring}")


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
    """A weight: how many copies are added or, if negative, deleted.

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


def position_of(value: Any, column: str, row: int) -> int:
    """A position as a whole number."""
    number = value
    if isinstance(value, str) and len(value) < 30 and value.isascii() and value.removeprefix("-").isdigit():
        number = int(value)
    if type(number) is not int:
        raise mismatch("a whole number, the position of the event", value, Place(column, row + 1))
    if not -LARGEST < number < LARGEST:
        raise mismatch("a whole number below 2^62, the position of the event", value, Place(column, row + 1))
    return number
