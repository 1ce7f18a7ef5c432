"""``where=``: a predicate on the record, written as data so that it has a digest.

A condition on a field is a value, a list of values, or bounds {"min": .., "max": ..}, of which one may be left out. All
conditions must hold, and none holds where the value is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays import Mask
from ..errors import InputError
from ..schema import Rows, Schema, field_of

Condition = Any
Where = Mapping[str, Condition]
_BOUNDS = {"min", "max"}


def plain(where: Where) -> dict[str, Condition]:
    """The conditions as plain Python values, which have one spelling each."""

    def value(condition: Condition) -> Condition:
        if isinstance(condition, Mapping):
            return {key: value(bound) for key, bound in condition.items()}
        if isinstance(condition, list | tuple):
            return [value(one) for one in condition]
        return condition.item() if isinstance(condition, np.generic) else condition

    if not isinstance(where, Mapping):
        raise InputError(f"expected a table of conditions, got {where!r}", place="where")
    return {name: value(condition) for name, condition in where.items()}


def check(where: Where, schema: Schema, place: str) -> None:
    """Every field exists and can encode its values."""
    for name, condition in where.items():
        field_of(schema, name, place=place)
        _encoded(condition, name, schema, f"{place}.{name}")


def select(where: Where, rows: Rows, schema: Schema) -> Mask:
    """The records for which all conditions hold.

    >>> from retroact.schema import Integer
    >>> schema = Schema({"age": Integer(0, 120)})
    >>> rows, _ = schema.encode({"age": [17, 18, 40, 70]})
    >>> select({"age": {"min": 18, "max": 65}}, rows, schema).tolist()
    [False, True, True, False]
    """
    chosen = np.ones(rows.count, dtype=bool)
    for name, condition in where.items():
        column = rows.columns[name]
        encoded = _encoded(condition, name, schema, name)
        if isinstance(encoded, dict):
            if "min" in encoded:
                chosen &= column >= encoded["min"]
            if "max" in encoded:
                chosen &= column <= encoded["max"]
        else:
            # As arrays of the column's type: other arrays of texts drop trailing NULs.
            same = [column == np.array(value, dtype=column.dtype) for value in encoded]
            chosen &= np.logical_or.reduce(same, initial=False)
        if name in rows.missing:
            chosen &= ~rows.missing[name]
    return chosen


def _encoded(condition: Condition, name: str, schema: Schema, place: str) -> dict[str, Any] | list[Any]:
    field = schema.fields[name]
    if field.width != 1:
        raise InputError("expected a field with one value, got a vector", place=place)
    if isinstance(condition, Mapping):
        if not condition or set(condition) - _BOUNDS or field.interned:
            expected = "a value or a list of values" if field.interned else "min and max"
            raise InputError(f"expected {expected}, got {dict(condition)!r}", place=place)
        return {bound: field.encode(value, f"{place}.{bound}") for bound, value in condition.items()}
    values = condition if isinstance(condition, list | tuple) else [condition]
    return [field.encode(value, place) for value in values]
