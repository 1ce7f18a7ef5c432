"""Records in their encoded form, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retroact.errors import InputError

if TYPE_CHECKING:
    from retroact.schema.field import Encoded, Field
    from retroact.schema.schema import Schema


@dataclass(frozen=True, eq=False)
class Rows:
    """Encoded records: for each field an array of shape (count,), or (count, d) for a vector.

    `kept` and `skipped` speak of the input that the rows were encoded from; rows made from other rows forget them, and
    keep their stamps.

    >>> from retroact.schema import Integer, Schema, Text
    >>> schema = Schema({"country": Text(), "age": Integer(0, 120)})
    >>> rows = Rows.from_tuples(schema, [("DE", 31), ("FR", 44)])
    >>> rows.take([1, 1]).columns["age"]
    array([44, 44])
    """

    columns: dict[str, NDArray[Any]]
    count: int
    kept: NDArray[np.int64] | None = None
    """Which input rows are here, when some were skipped for want of a value."""
    skipped: int = 0
    stamps: NDArray[np.int64] | None = None
    """The round that each record counts from, where the rows come out of a ledger."""

    @classmethod
    def from_tuples(cls, schema: Schema, tuples: Sequence[tuple[Encoded, ...]]) -> Rows:
        """Rows of what `Schema.encode_record` returned."""
        if not tuples:
            return cls.empty(schema)
        by_field = zip(schema.fields, schema.fields.values(), zip(*tuples, strict=True), strict=True)
        return cls({name: _array(field, values) for name, field, values in by_field}, len(tuples))

    @classmethod
    def empty(cls, schema: Schema) -> Rows:
        return cls({name: _array(field, ()) for name, field in schema.fields.items()}, 0)

    @classmethod
    def concatenate(cls, parts: Sequence[Rows]) -> Rows:
        """The rows of all parts, in order; all of one schema."""
        if not parts:
            raise InputError("expected at least one batch of rows, got none")
        names = parts[0].columns
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in names}
        return cls(columns, sum(part.count for part in parts))

    def take(self, indices: Any) -> Rows:
        """The rows at these positions (or where a mask is true), in this order."""
        chosen = np.asarray(indices)
        if chosen.dtype != np.bool_:
            chosen = chosen.astype(np.int64)
        columns = {name: column[chosen] for name, column in self.columns.items()}
        count = int(np.count_nonzero(chosen)) if chosen.dtype == np.bool_ else len(chosen)
        return Rows(columns, count, stamps=None if self.stamps is None else self.stamps[chosen])


def _array(field: Field, values: Sequence[Any]) -> NDArray[Any]:
    if field.interned:
        return np.array(values, dtype=object)
    array = np.array(values, np.int64)
    return array.reshape(len(values), field.width) if field.kind == "vector" else array
