"""Rows of JSON objects: what one must have to be added or deleted, and what is wrong with one that has not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retroact.checks import is_int
from retroact.errors import InputError
from retroact.feeds.batch import ADD, DELETE, EVERY_RECORD
from retroact.feeds.operation_words import NEEDS_ID, NEEDS_STAMP
from retroact.feeds.roles import METADATA, ROLES, refuse
from retroact.messages import mismatch, show
from retroact.schema import Schema
from retroact.stream.columns import Columns

Row = dict[str, Any]
Step = tuple[int, Any]
"""What is done, and with which row."""


@dataclass
class StepColumns:
    """What some lines say is done, in columns."""

    places: Sequence[int]
    """Of each step, that of its line among them."""
    codes: list[int]
    fields: dict[str, list[Any]]
    roles: dict[str, list[Any]]
    """Those of ``ROLES``; and ``born``, see `Changes`."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Lines that are no events, by what they are."""


class RowForm:
    """Columns of roles that must be there, and others that may be: in each row for itself.

    >>> from retroact.schema import Number
    >>> form = RowForm(Schema({"amount": Number(0, 500)}), Columns.from_spec({"id": "order"}))
    >>> form.removed({"amount": 3, "order": "o1"})
    (2, {'order': 'o1'})
    """

    def __init__(
        self,
        schema: Schema,
        columns: Columns,
        mark: str | None = None,
        time: str | None = None,
        *,
        numbered: bool = True,
    ) -> None:
        """``mark`` is the column that says what is done, ``time`` that of the time of a row; a row may have the number
        of its round where it must, and elsewhere if it is ``numbered``."""
        self.schema, self.columns, self.time = schema, columns, time
        self.fields = tuple(name for name in schema.fields if name != EVERY_RECORD)
        self.required = {*self.fields}.difference(schema.optional)
        four = [(role, own) for role, own in columns.items() if role in ROLES]
        four = [(role, own) for role, own in four if numbered or role != "round" or not own.optional]
        self.known = {role: own.column for role, own in four}
        """The columns of the roles, whether or not a row has them."""
        self.named = {role: own.column for role, own in four if not own.optional}
        """Those that every row must have."""
        self.listed = () if isinstance(columns.ignore, bool) else columns.ignore
        self.strict = columns.ignore is not True
        self.tops = [path.split(".")[0] for path in map(columns.column, ("time", "position")) if path]
        """The first parts of the paths of times and positions."""
        others = (*self.tops, *self.listed, *METADATA.get(mark or "", ()), *([mark] if mark else []))
        self.taken = {*schema.fields, *(own.column for _, own in columns.items()), *others}
        """Every key that a row may have, if that is looked at."""

    def updated(self, row: Any) -> Step:
        if not self.has_id(row):
            raise InputError(NEEDS_ID, place="update")
        return ADD, row

    def removed(self, row: Any) -> Step:
        """By id alone where there is one; otherwise by value, with its stamp."""
        if self.has_id(row):
            kept = (self.known["id"], self.known.get("round"))
            return DELETE, {column: row[column] for column in kept if column in row}
        if self.time is None and isinstance(row, dict) and row.get(self.known.get("stamp")) is None:
            raise InputError(NEEDS_STAMP, place="delete")
        return DELETE, row

    def deleted(self, row: Any) -> Step:
        """The same, of an event that names what is gone: by id alone where every record has one."""
        if "id" in self.named and not self.has_id(row):
            raise InputError("expected an id")
        return self.removed(row)

    def has_id(self, row: Any) -> bool:
        return "id" in self.known and isinstance(row, dict) and row.get(self.known["id"]) is not None

    def require_whole(self, rows: Iterable[Row], *, strict: bool = True) -> None:
        """That rows have all that they must have and, if that is ``strict``, no key that is nothing."""
        needed = self.required.union(self.named.values())
        for keys in {*map(tuple, rows)}:
            if not needed.issubset(keys) or (strict and self.strict and not self.taken.issuperset(keys)):
                raise InputError("expected a whole row")

    def check(self, row: Any, *, brief: bool = False) -> None:
        """Say what is wrong with a row that does not fit, which is ``brief`` where it is deleted."""
        if not isinstance(row, dict):
            raise mismatch("an object", row, None)
        alone = brief and ("id" in self.named or self.has_id(row))
        if not alone:
            unknown = [key for key in row if key not in self.taken] if self.strict else []
            if unknown:
                refuse([*row, *self.schema.optional], self.fields, self.columns, unknown)
            self.check_fields({name: row[name] for name in self.fields if name in row})
        for role, column in self.known.items():
            if column not in row and role in self.named and (role == "id" or not alone):
                raise InputError(f"expected {show(column)}, the {role} of the record, got none")
            if brief and role == "id" and role in self.named and row[column] is None:
                raise mismatch("text or a whole number", None, column)
            check_role(role, row.get(column), column)

    def check_fields(self, record: Mapping[str, Any]) -> None:
        constant = {name: 0 for name in self.schema.fields if name == EVERY_RECORD}
        self.schema.encode_record({**record, **constant})


def check_role(role: str, value: Any, place: str) -> None:
    if role in ("id", "subject"):
        if value is not None and not isinstance(value, str) and not is_int(value):
            raise mismatch("text or a whole number", value, place)
    elif value is not None and not is_int(value):
        raise mismatch("a whole number", value, place)
