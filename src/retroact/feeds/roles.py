"""The roles of columns, as sources of all formats are read by them: who is who, and what nobody knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from retroact.errors import InputError
from retroact.feeds.batch import EVERY_RECORD
from retroact.feeds.operation_words import OPERATION_COLUMNS, WEIGHT_COLUMNS
from retroact.messages import meant, show
from retroact.schema import Schema
from retroact.stream.columns import Columns

ROLES = ("id", "subject", "stamp", "round")
VERSION = "_commit_version"
# What comes with a column that says what is done with a row.
METADATA = {
    "_change_type": (VERSION, "_commit_timestamp"),
    **dict.fromkeys(WEIGHT_COLUMNS, ("mz_timestamp", "mz_progressed")),
}


@dataclass(frozen=True)
class Heading:
    """The columns of a source, by what they are for."""

    fields: tuple[str, ...]
    roles: dict[str, str]
    operation: str | None
    """The column that says what to do; None when all rows are additions."""
    time: str | None
    position: str | None
    ignored: tuple[str, ...]
    version: str | None
    """The column of the version of a Delta table."""

    @property
    def weighted(self) -> bool:
        return self.operation in WEIGHT_COLUMNS

    @property
    def needed(self) -> set[str]:
        """Every column that is read."""
        others = (self.operation, self.time, self.position, self.version)
        return {*self.fields, *self.roles.values(), *(name for name in others if name)}

    @property
    def words(self) -> set[str]:
        """Those whose texts are likely to repeat."""
        return {*self.fields, *((self.operation,) if self.operation else ())}


def heading(names: Sequence[str], schema: Schema, columns: Columns, *, by_number: bool, timed: bool) -> Heading:
    """Who is who among the columns of a file or a frame.

    >>> from retroact.schema import Number
    >>> schema, columns = Schema({"amount": Number(0, 500)}), Columns.from_spec({"id": "order", "ignore": True})
    >>> found = heading(["order", "op", "amount", "note"], schema, columns, by_number=True, timed=False)
    >>> found.roles["id"], found.operation, found.ignored
    ('order', 'op', ('note',))
    """
    columns = columns.without(schema.fields)
    there: dict[str, str] = {}
    for role, own in columns.items():
        if own.column in names:
            there[role] = own.column
        elif not own.optional or (timed and role == "time"):
            raise InputError(
                f"expected a column {show(own.column)} for the {role}, got {', '.join(names)}{meant(own.column, names)}"
            )
    fields = tuple(name for name in schema.fields if name != EVERY_RECORD)
    operation = _operation(names, {*fields, *there.values()} - {there.get("op", "")}, columns)
    free = [name for name in names if name not in (*fields, *there.values(), operation)]
    ignored = tuple(name for name in free if columns.ignores(name) or name in METADATA.get(operation or "", ()))
    refuse(names, fields, columns, [name for name in free if name not in ignored])
    # a grid says the round of every row, and the end says it of all
    roles = {role: column for role, column in there.items() if role in ROLES and (by_number or role != "round")}
    version = VERSION if VERSION in ignored else None
    time = there.get("time") if timed else None
    return Heading(fields, roles, operation, time, there.get("position"), ignored, version)


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
    """A source without a field, or with a column that is nothing."""
    missing = [name for name in fields if name not in names]
    if not missing and not unknown:
        return
    others = [own.column for _, own in columns.items() if own.column not in fields]
    free = [name for name in (*fields, *others) if name not in names]
    got = [f"no {show(name)}" for name in missing]
    got += [f"an unknown column {show(name)}{meant(name, free)}" for name in unknown]
    may = f" (and {', '.join(others)})" if others and unknown and fields else ""
    mark = next((name for name in unknown if name in (*OPERATION_COLUMNS, *WEIGHT_COLUMNS)), None)
    hint = "; [columns] may ignore others" if unknown else ""
    hint = hint if mark is None else f'; if it says what is done with a row: op = "{mark}" in [columns]'
    raise InputError(f"expected the columns {', '.join(fields or others)}{may}, got {' and '.join(got)}{hint}")
