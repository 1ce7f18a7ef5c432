"""The schema encodes records in any usual form as rows, or raises an error that names the field and the row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from ..errors import InputError, Place
from ..messages import Named, hint, mismatch, show
from .arrow import columns_of
from .field import Encoded, Field, Record
from .rows import Rows
from .text_fields import check_utf8
from .vector import Vector, is_sequence

__all__ = ["Rows", "Schema", "field_of"]


class Schema:
    """The fields of a record, by name, in declared order.

    >>> from retroact.schema import Number, Text
    >>> schema = Schema({"country": Text(), "amount": Number(0, 500)})
    >>> rows, single = schema.encode({"country": "DE", "amount": 12.5})
    >>> rows.columns["amount"], single
    (array([1250]), True)
    >>> rows, single = schema.encode({"country": ["DE", "FR"], "amount": [1, 2]})
    >>> rows.count, single
    (2, False)
    >>> schema.encode([{"country": "DE", "amount": 1}, {"country": "DE", "amount": 501}])
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected a number between 0 and 500, got 501 - at amount, row 2
    """

    def __init__(self, fields: Mapping[str, Field]) -> None:
        if not isinstance(fields, Mapping) or not fields:
            raise mismatch("at least one field", fields, "schema")
        for name, field in fields.items():
            if not isinstance(name, str) or not name:
                raise mismatch("a name for every field", name, "schema")
            check_utf8(name, "schema")
            if not isinstance(field, Field):
                raise mismatch("a field such as Number(0, 500)", field, f"schema.{name}")
        self.fields: dict[str, Field] = Named(fields)
        self._plain = tuple(name for name, field in fields.items() if not isinstance(field, Vector))
        self._plan = tuple((name, field, field.encode, field.missing == "skip") for name, field in fields.items())
        self.optional = tuple(name for name, field in fields.items() if field.missing == "skip")
        """The fields that a record may lack."""

    @classmethod
    def from_spec(cls, mapping: Mapping[str, Any], *, place: str = "schema") -> Schema:
        """Read the `[schema]` table of a specification."""
        if not isinstance(mapping, Mapping):
            raise mismatch("a table of fields", mapping, place)
        return cls({name: Field.from_spec(table, f"{place}.{name}") for name, table in mapping.items()})

    def spec(self) -> dict[str, dict[str, object]]:
        return {name: field.spec() for name, field in self.fields.items()}

    def __eq__(self, other: object) -> bool:
        # in the same order, which encoded records have too
        return isinstance(other, Schema) and list(self.fields.items()) == list(other.fields.items())

    def __hash__(self) -> int:
        return hash(tuple(self.fields.items()))

    def __repr__(self) -> str:
        return f"Schema({self.fields!r})"

    def encode(self, data: Any) -> tuple[Rows, bool]:
        """The rows of a record, columns, a list of records or an Arrow table; and whether it was a single record."""
        if type(data) is dict or isinstance(data, Mapping):
            if not self.is_record(data):
                return self._encode_columns(data), False
            return Rows.from_tuples(self, [self.encode_record(data)]), True
        if hasattr(data, "__arrow_c_stream__"):
            columns = columns_of(data)
            if columns.keys() != self.fields.keys():
                self._refuse_names(columns, None)
            return self._encode_columns(columns), False
        if isinstance(data, list | tuple):
            return self._encode_columns(self._transpose(data)), False
        raise mismatch("a record, a mapping of columns, a list of records or an Arrow table", data, None)

    def encode_record(self, record: Mapping[str, Any]) -> Record:
        """The encoded values of one record in the order of the fields, None for those that are missing."""
        if type(record) is not dict and not isinstance(record, Mapping):
            raise mismatch("a record", record, None)
        if record.keys() != self.fields.keys():
            record = self._completed(record, None)
        values: list[Encoded | None] = []
        for name, field, encode, may_lack in self._plan:
            value = record[name]
            values.append(None if may_lack and field.is_missing(value) else encode(value, name))
        return tuple(values)

    def _encode_columns(self, columns: Mapping[str, Any]) -> Rows:
        lengths = {name: _length(columns[name], name) for name in self.fields}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} with {length}" for name, length in lengths.items())
            raise InputError(f"expected columns of equal length, got {counts}")
        count = next(iter(lengths.values()))
        encoded = {name: field.encode_column(columns[name], name) for name, field in self.fields.items()}
        missing = {name: mask for name, (_, mask) in encoded.items() if mask is not None}
        return Rows({name: column for name, (column, _) in encoded.items()}, count, missing=missing)

    def _transpose(self, records: list[Any] | tuple[Any, ...]) -> dict[str, list[Any]]:
        for row, record in enumerate(records):
            if type(record) is not dict and not isinstance(record, Mapping):
                raise mismatch("a record", record, Place("", row + 1))
            if record.keys() != self.fields.keys():
                self._completed(record, Place("", row + 1))
        return {
            name: [record.get(name) for record in records] if may_lack else [record[name] for record in records]
            for name, _, _, may_lack in self._plan
        }

    def _completed(self, record: Mapping[str, Any], place: str | None) -> Mapping[str, Any]:
        """Complete a record with None for optional fields that it lacks."""
        whole = {**dict.fromkeys(self.optional), **record}
        if whole.keys() != self.fields.keys():
            self._refuse_names(record, place)
        return whole

    def _refuse_names(self, given: Mapping[Any, Any], place: str | None) -> NoReturn:
        missing = [f"no {show(name)}" for name in self.fields if name not in given]
        free = [name for name in self.fields if name not in given]
        unknown = [f"an unknown field {show(name)}{hint(name, free)}" for name in given if name not in self.fields]
        got = " and ".join(missing + unknown)
        raise InputError(f"expected the fields {', '.join(self.fields)}, got {got}", place=place)

    def is_record(self, data: Mapping[str, Any]) -> bool:
        """Whether a mapping is one record rather than columns; unknown and missing names are refused."""
        whole = data.keys() == self.fields.keys()
        if not whole:
            self._completed(data, None)
        plain = [name for name in self._plain if name in data]
        single = [name for name in plain if not _is_many(data[name])]
        if 0 < len(single) < len(plain):
            several = next(name for name in plain if name not in single)
            raise InputError(
                "expected one record (a single value for every field) or columns (several for every field), "
                f"got several for {several} and one for {single[0]}"
            )
        one = bool(single) if plain else not any(_is_table(value) for value in data.values())
        if not one and not whole:
            self._refuse_names(data, None)  # a record may lack a field; a missing column is more likely a typo
        return one


def _is_many(value: object) -> bool:
    if value is None or isinstance(value, (str, int, float, bytes, np.generic)):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return is_sequence(value) or (hasattr(value, "__array__") and hasattr(value, "__len__"))


def _is_table(value: object) -> bool:
    """Whether the value of a vector field is a column of vectors: two-dimensional, or empty."""
    if not _is_many(value):
        return False
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return True
    items: list[object] = list(value)  # type: ignore[call-overload]
    return not items or any(map(_is_many, items))


def _length(column: object, place: str) -> int:
    if (isinstance(column, np.ndarray) and column.ndim == 0) or not hasattr(column, "__len__"):
        raise mismatch("a column", column, place)
    return len(column)


def field_of(schema: Schema, name: str, *kinds: type[Field], place: str = "field") -> Field:
    """The field, if it exists and is of one of these kinds (any kind, if none is given)."""
    if not isinstance(name, str) or name not in schema.fields:
        meant = hint(name, schema.fields)
        raise InputError(f"expected one of the fields {', '.join(schema.fields)}, got {name!r}{meant}", place=place)
    field = schema.fields[name]
    if kinds and not isinstance(field, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise InputError(f"expected a field of type {expected}, got {type(field).__name__} ({name!r})", place=place)
    return field
