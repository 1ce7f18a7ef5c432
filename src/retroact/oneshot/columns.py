"""Records as algorithms from outside want them: decoded, column by column, in an order that only the values decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import I64
from ..errors import InputError
from ..schema import Boolean, Field, Integer, Number, Rows, Schema, Vector

Column = npt.NDArray[Any] | list[Any]


def canonical(rows: Rows, schema: Schema) -> Rows:
    """The rows sorted by their fields, in the order of the schema; texts by code points, as their bytes in
    UTF-8 would be.

    >>> from retroact.schema import Text
    >>> schema = Schema({"name": Text(), "age": Integer(0, 120)})
    >>> canonical(Rows.from_tuples(schema, [("é", 3), ("b", 5), ("b", 4)]), schema).columns["age"].tolist()
    [4, 5, 3]
    """
    keys: list[I64] = []
    for name, field in schema.fields.items():
        if name not in rows.columns:
            continue
        column = rows.columns[name]
        if field.interned:
            place = {text: i for i, text in enumerate(sorted(set(column.tolist())))}
            keys.append(np.array([place[text] for text in column.tolist()], dtype=np.int64))
        else:
            keys += [column] if column.ndim == 1 else list(column.T)
    return rows.take(np.lexsort(keys[::-1]))


def decoded(column: npt.NDArray[Any], field: Field) -> Column:
    """An array for numbers, truth values and vectors (a row each), a list for everything else."""
    if isinstance(field, Vector):
        flat = decoded(column.reshape(-1), Number(field.lower * field.step, field.upper * field.step, step=field.step))
        return np.asarray(flat).reshape(column.shape)
    if field.interned:
        return [field.decode(text) for text in column.tolist()]
    codes, inverse = np.unique(column, return_inverse=True)
    values = [field.decode(code) for code in codes.tolist()]
    if isinstance(field, Number | Integer | Boolean):
        dtype = {Number: np.float64, Integer: np.int64, Boolean: np.bool_}[type(field)]
        found: npt.NDArray[Any] = np.array(values, dtype=dtype)[inverse]
        return found
    return [values[i] for i in inverse.tolist()]


def columns_of(rows: Rows, schema: Schema, names: Sequence[str] | None = None) -> dict[str, Column]:
    """Decoded columns in canonical order."""
    ordered = canonical(rows, schema)
    chosen = rows.columns if names is None else names
    return {name: decoded(ordered.columns[name], schema.fields[name]) for name in chosen}


def known_field(schema: Schema, name: str, place: str) -> Field:
    if name not in schema.fields:
        raise InputError(f"expected one of the fields {', '.join(schema.fields)}, got {name!r}", place=place)
    return schema.fields[name]
