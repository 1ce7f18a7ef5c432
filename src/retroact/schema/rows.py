"""Records in their encoded form, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..arrays import I64, Mask
from ..errors import InputError

if TYPE_CHECKING:
    from .field import Field, Record
    from .schema import Schema


class Rows(msgspec.Struct, frozen=True, eq=False):
    """Encoded records: for each field an array of shape (count,), or (count, d) for a vector.

    Where a value is missing the array holds the field's `blank`, and `missing` is true.

    >>> from retroact.schema import Integer, Schema, Text
    >>> schema = Schema({"country": Text(), "age": Integer(0, 120)})
    >>> rows = Rows.from_tuples(schema, [("DE", 31), ("FR", 44)])
    >>> rows.take([1, 1]).columns["age"]
    array([44, 44])
    >>> schema = Schema({"age": Integer(18, 120, missing="skip")})
    >>> rows = Rows.from_tuples(schema, [(31,), (None,)])
    >>> rows.columns["age"], rows.missing["age"]
    (array([31, 18]), array([False,  True]))
    """

    columns: dict[str, NDArray[Any]]
    count: int
    stamps: I64 | None = None
    """The round from which each record counts, if the rows come from a ledger."""
    missing: dict[str, Mask] = msgspec.field(default_factory=dict)
    """For each field with missing values: the rows in which it is missing."""

    @classmethod
    def from_tuples(cls, schema: Schema, tuples: Sequence[Record]) -> Rows:
        """Rows of what `Schema.encode_record` returned."""
        if not tuples:
            return cls.empty(schema)
        columns, missing = {}, {}
        for (name, field), values in zip(schema.fields.items(), zip(*tuples, strict=True), strict=True):
            if field.missing == "skip" and any(value is None for value in values):
                missing[name] = np.array([value is None for value in values], np.bool_)
                values = tuple(field.blank if value is None else value for value in values)
            columns[name] = _array(field, values)
        return cls(columns, len(tuples), missing=missing)

    @classmethod
    def empty(cls, schema: Schema) -> Rows:
        return cls({name: _array(field, ()) for name, field in schema.fields.items()}, 0)

    @classmethod
    def concatenate(cls, parts: Sequence[Rows]) -> Rows:
        """The rows of all parts, in order."""
        if not parts:
            raise InputError("expected at least one batch of rows, got none")
        names = parts[0].columns
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in names}
        missing = {
            name: np.concatenate([part.missing.get(name, np.zeros(part.count, np.bool_)) for part in parts])
            for name in names
            if any(name in part.missing for part in parts)
        }
        return cls(columns, sum(part.count for part in parts), missing=missing)

    def take(self, indices: Any) -> Rows:
        """The rows at these positions in this order, or those where a mask is true."""
        chosen = np.asarray(indices)
        if chosen.dtype != np.bool_:
            chosen = chosen.astype(np.int64)
        columns = {name: column[chosen] for name, column in self.columns.items()}
        count = int(np.count_nonzero(chosen)) if chosen.dtype == np.bool_ else len(chosen)
        missing = {name: mask[chosen] for name, mask in self.missing.items()}
        return Rows(columns, count, None if self.stamps is None else self.stamps[chosen], missing)

    def lacking(self, names: Iterable[str]) -> Mask | None:
        """The rows in which any of these fields is missing; None if there are none."""
        masks = [self.missing[name] for name in names if name in self.missing]
        if not masks:
            return None
        lacking = np.logical_or.reduce(masks)
        return lacking if lacking.any() else None


def _array(field: Field, values: Sequence[Any]) -> NDArray[Any]:
    if field.interned:
        return np.array(values, dtype=object)
    return np.array(values, np.int64).reshape(len(values), *field.shape)
