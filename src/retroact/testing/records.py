"""Records as people write them, and their values by the definitions of their fields, one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..arrays import I64
from ..ledger.definition import Point
from ..schema import Boolean, Category, Integer, Number, Rows, Schema, Text, Vector
from ..schema.field import Field


class Record(NamedTuple):
    """Copies of one record, with its values by field as people write them."""

    value: Mapping[str, Any]
    stamp: int
    copies: int


def lattice(field: Field, value: Any) -> Any:
    """The integer (for a vector: integers) or the text that represents a value, by the definition of its field.

    >>> lattice(Number(0, 500, step="0.01"), 12.345), lattice(Category(["DE", "FR"]), "FR"), lattice(Boolean(), True)
    (1234, 1, 1)
    """
    if isinstance(field, Text):
        return value
    if isinstance(field, Boolean):
        return int(value)
    if isinstance(field, Category):
        return field.values.index(value) if value in field.values else len(field.values) - 1
    if isinstance(field, Number | Integer):
        nearest = round(Fraction(str(value)) / field.step)  # half to even
        return min(max(nearest, field.lower), field.upper)
    if isinstance(field, Vector):
        point = tuple(round(Fraction(str(x)) / field.step) for x in value)
        return point if sum(k * k for k in point) <= field.norm2_bound else field.encode(value, "")
    return field.encode(value, "")


def records_of(schema: Schema, data: Mapping[Point, int]) -> list[Record]:
    """The records of surviving data."""
    return [
        Record(dict(zip(schema.fields, point.value, strict=True)), point.stamp, copies)  # type: ignore[call-overload]
        for point, copies in data.items()
    ]


def rows_of(schema: Schema, records: Sequence[Record]) -> tuple[Rows, I64]:
    """Encoded records with their stamps, and the number of copies of each, as a stream passes them on."""
    bare = Rows.from_tuples(schema, [schema.encode_record(dict(record.value)) for record in records])
    stamps = np.array([record.stamp for record in records], dtype=np.int64)
    return msgspec.structs.replace(bare, stamps=stamps), np.array([record.copies for record in records], dtype=np.int64)


def code(field: Field, value: Any) -> int:
    return int(lattice(field, value))


def many(field: Field) -> int:
    return len(field.values) if isinstance(field, Category) else 2


def numbers(field: Field, value: Any) -> tuple[int, ...]:
    found = lattice(field, value)
    return found if isinstance(found, tuple) else (found,)


def holds(field: Field, value: Any, condition: Any) -> bool:
    mine = lattice(field, value)
    if isinstance(condition, Mapping):
        low, high = condition.get("min"), condition.get("max")
        return (low is None or lattice(field, low) <= mine) and (high is None or mine <= lattice(field, high))
    wanted = condition if isinstance(condition, list | tuple) else [condition]
    return any(lattice(field, one) == mine for one in wanted)
