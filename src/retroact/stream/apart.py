"""Data as people hand them to `add`, taken apart: the fields of records, and the columns that have a role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InputError
from ..messages import show
from ..schema import Schema
from ..schema.arrow import columns_of
from .columns import Columns

TAKEN = ("id", "subject", "stamp")


class Apart:
    """
    >>> from retroact.schema import Number
    >>> columns = Columns.from_spec({"subject": "customer", "ignore": ["note"]})
    >>> apart = Apart(Schema({"amount": Number(0, 500)}), columns)
    >>> apart.of({"amount": [12.5, 3], "customer": ["u17", "u18"], "note": ["", ""]}, {})
    ({'amount': [12.5, 3]}, {'subject': ['u17', 'u18']})
    >>> apart.of([{"amount": 12.5, "customer": "u17"}, {"amount": 3}], {})
    ([{'amount': 12.5}, {'amount': 3}], {'subject': ['u17', None]})
    """

    def __init__(self, schema: Schema, columns: Columns) -> None:
        self._columns = columns.without(schema.fields)
        self._fields = schema.fields.keys()
        self._roles = {role: own.column for role, own in self._columns.items()}
        self.asks = columns.subject is None or not columns.subject.optional
        """Whether subjects are looked at: there must be none, or none must be missing."""
        self._plain = not any(column in schema.fields for role, column in self._roles.items() if role in TAKEN)

    def nothing(self, data: Any) -> bool:
        """Whether there is nothing to take apart, which is seen quickly."""
        return self._plain and type(data) is dict and data.keys() == self._fields

    def of(self, data: Any, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The data without the columns that are no fields, and the ids, subjects and stamps: as ``given`` or as they
        stand in columns. Unknown columns stay, for the schema to refuse."""
        found = {role: value for role, value in given.items() if value is not None}
        if isinstance(data, Mapping):
            if self._plain and data.keys() == self._fields:
                return data, found
            self._only_taken(data)
            return self._fields_of(data), found | self._beside(data, found)
        if hasattr(data, "__arrow_c_stream__"):
            return self.of(columns_of(data), given)
        if isinstance(data, list | tuple) and all(isinstance(record, Mapping) for record in data):
            if self._plain and all(record.keys() == self._fields for record in data):
                return data, found
            parts = [self.of(record, {}) for record in data]
            for role in TAKEN:
                if any(role in own for _, own in parts):
                    column = {self._roles[role]: [own.get(role) for _, own in parts]}
                    found |= self._beside(column, found)
            return [record for record, _ in parts], found
        return data, found

    def _fields_of(self, data: Mapping[str, Any]) -> dict[str, Any]:
        beside = {*self._roles.values()} - self._fields
        return {
            name: column
            for name, column in data.items()
            if name in self._fields or not (name in beside or self._columns.ignores(name))
        }

    def _beside(self, data: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
        taken: dict[str, Any] = {}
        for role, column in self._roles.items():
            if role in TAKEN and column in data:
                if role not in found:
                    taken[role] = data[column]
                elif column not in self._fields:
                    raise InputError(f"expected {role}= or the column {show(column)}, got both", place=role)
        return taken

    def _only_taken(self, data: Mapping[str, Any]) -> None:
        for role, column in self._roles.items():
            if role not in TAKEN and column in data and column not in self._fields:
                raise InputError(
                    f"expected records to add, got the column {show(column)}, the {role} of events: "
                    "retroact.feeds.play(stream, data) does what it says",
                    place=column,
                )
