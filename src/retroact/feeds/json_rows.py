"""Rows of JSON objects: which keys they need, their cells, and what is wrong with one that does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

from ..errors import InputError, Place
from ..messages import mismatch, show
from ..schema import Schema
from ..stream.columns import Columns
from .batch import ADD, DELETE, EVERY_RECORD, UPDATE
from .roles import METADATA, ROLES, refuse

Row = dict[str, Any]
Step = tuple[int, Any, str, Any]
"""The operation; its row; the path of the row in its line; and the whole line, if it is a native event."""
Cells = dict[str, list[Any]]
TYPES: dict[str, tuple[set[type], str]] = {
    **dict.fromkeys(("id", "subject"), ({str, int, NoneType}, "text or a whole number")),
    **dict.fromkeys(("stamp", "round"), ({int, NoneType}, "a whole number")),
}


class RowForm:
    """Which keys a row must have, and which it may have.

    >>> from retroact.schema import Number
    >>> form = RowForm(Schema({"amount": Number(0, 500)}), Columns.from_spec({"id": "order"}))
    >>> form.by_id({"amount": 3, "order": "o1"})
    {'order': 'o1'}
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
        """``mark`` is the column of the operation, ``time`` that of the time of a row. Unless they are ``numbered``,
        rows have round numbers only where every row must."""
        self.schema, self.columns, self.time = schema, columns, time
        self.fields = tuple(name for name in schema.fields if name != EVERY_RECORD)
        self.required = {*self.fields}.difference(schema.optional)
        own = [(role, own) for role, own in columns.items() if role in ROLES]
        own = [(role, own) for role, own in own if numbered or role != "round" or not own.optional]
        self.known = {role: each.column for role, each in own}
        """The columns of the roles, whether or not a row has them."""
        self.named = {role: each.column for role, each in own if not each.optional}
        """Those that every row must have."""
        self.listed = () if isinstance(columns.ignore, bool) else columns.ignore
        self.strict = columns.ignore is not True
        self.tops = [path.split(".")[0] for path in map(columns.column, ("time", "position")) if path]
        """The first parts of the paths of times and positions."""
        others = (*self.tops, *self.listed, *METADATA.get(mark or "", ()), *([mark] if mark else []))
        self.taken = {*schema.fields, *(own.column for _, own in columns.items()), *others}
        """Every key that a row may have in a strict feed."""

    def id_of(self, row: Any) -> Any:
        return row.get(self.known["id"]) if "id" in self.known and isinstance(row, dict) else None

    def has_id(self, row: Any) -> bool:
        return self.id_of(row) is not None

    def by_id(self, row: Any) -> Any:
        """A row that is deleted: only its id and round, if it has an id."""
        if not self.has_id(row):
            return row
        return {column: row[column] for column in (self.known["id"], self.known.get("round")) if column in row}

    def require_id(self, row: Any, part: str) -> Any:
        """Return a deleted row as `by_id` does. It must have an id if every record has one."""
        if "id" in self.named and not self.has_id(row):
            self.check(row, part, deleted=True)
        return self.by_id(row)

    def cells(self, steps: Sequence[Step]) -> tuple[Cells, Cells]:
        """Fields and roles of rows. An error names a row that is refused; native events were checked before."""
        rows = [row for _, row, _, _ in steps]
        self._require(steps, [type(row) is dict for row in rows])
        roles: Cells = {}
        for role in ROLES:
            column, (types, _) = self.known.get(role), TYPES[role]
            roles[role] = [row.get(column) if event is None else event.get(role) for _, row, _, event in steps]
            self._require(steps, [type(cell) in types for cell in roles[role]])
        by_value = [step[0] == DELETE and id is None for step, id in zip(steps, roles["id"], strict=True)]
        found = [
            (tuple(row), value) if event is None and (value or code in (ADD, UPDATE)) else None
            for value, (code, row, _, event) in zip(by_value, steps, strict=True)
        ]
        whole = {each: each is None or self.is_whole(each[0], deleted=each[1]) for each in {*found}}
        self._require(steps, [whole[each] for each in found])
        if self.time is not None:
            # a grid turns the times of records that are deleted by value into stamps
            timed = zip(rows, by_value, roles["stamp"], strict=True)
            roles["born"] = [(row.get(self.time),) if value and stamp is None else None for row, value, stamp in timed]
        return {name: [row.get(name) for row in rows] for name in self.fields}, roles

    def is_whole(self, keys: Sequence[str], *, deleted: bool = False) -> bool:
        """Whether a row has all keys that it needs and, in a strict feed, no unknown one."""
        strict = self.strict and not (deleted and "id" in self.known)
        return self.required.union(self.named.values()).issubset(keys) and not (
            strict and not self.taken.issuperset(keys)
        )

    def _require(self, steps: Sequence[Step], fine: list[bool]) -> None:
        if not all(fine):
            row = fine.index(False)
            self.refuse(steps, InputError("expected another row", row=row + 1))

    def refuse(self, steps: Sequence[Step], error: InputError) -> None:
        """Refuse a step for what is wrong with its row or, if that is fine, with the error."""
        place = (error.row or 1) - 1
        code, row, part, _ = steps[place]
        try:
            self.check(row, part, deleted=code == DELETE)
        except InputError as found:
            error = found
        raise error.moved(Place(error.path or "", place + 1)) from None

    def check(self, row: Any, part: str = "", *, deleted: bool = False) -> None:
        """Raise what is wrong with a row that does not fit; ``part`` is its path in the line."""
        if not isinstance(row, dict):
            raise mismatch("an object", row, part)
        try:
            self._check(row, deleted)
        except InputError as error:
            if part not in ("before", "after"):
                raise
            if deleted and "id" not in self.named and not self.has_id(row):
                advice = "with the column of the id (--id) a deletion needs nothing else"
                error = InputError(f"{error.message}; {advice}", place=error.path)
            raise error.under(part) from None

    def _check(self, row: Row, deleted: bool) -> None:
        alone = deleted and ("id" in self.named or self.has_id(row))
        if not alone:
            unknown = [key for key in row if key not in self.taken] if self.strict else []
            if unknown:
                refuse([*row, *self.schema.optional], self.fields, self.columns, unknown)
            self.check_fields({name: row[name] for name in self.fields if name in row})
        for role, column in self.known.items():
            if column not in row and role in self.named and (role == "id" or not alone):
                raise InputError(f"expected {show(column)}, the {role} of the record, got none")
            if deleted and role == "id" and role in self.named and row[column] is None:
                raise mismatch("text or a whole number", None, column)
            check_role(role, row.get(column), column)

    def check_fields(self, record: Mapping[str, Any]) -> None:
        constant = {name: 0 for name in self.schema.fields if name == EVERY_RECORD}
        self.schema.encode_record({**record, **constant})


def check_role(role: str, value: Any, place: str) -> None:
    types, expected = TYPES[role]
    if type(value) not in types:
        raise mismatch(expected, value, place)
