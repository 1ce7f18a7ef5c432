"""What one record adds to the totals of each kind of statistic, by its definition, in Python integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..schema import Schema
from ..schema.field import Field
from ..statistics import (
    Count,
    Distances,
    Distinct,
    GroupBy,
    Histogram,
    KMeans,
    Linear,
    Mean,
    Quantiles,
    Ratio,
    Sum,
    Variance,
)
from ..statistics.bound import Bound
from ..statistics.clusters.ball import RADIUS, Space
from ..statistics.clusters.grid import GridRegions
from ..statistics.clusters.kmeans import KMeansBound
from ..statistics.statistic import Statistic
from ..statistics.value_tree import NUMBERS
from .records import Record, code, holds, lattice, many, numbers, rows_of

Name = Hashable
"""The name of a cell: the encoded parts of a bin, the (prefix, number) of an interval, the (region, axis) of a cluster;
None where coordinates are a list."""
Part = tuple[Name, int, int]
"""What a record adds: (name, place, amount)."""
Map = Callable[[Mapping[str, Any]], Iterator[Part]]


def contribution(statistic: Statistic, schema: Schema, drawn: Bound) -> Map:
    """What one record adds to the totals; ``drawn`` has the regions that were drawn from the key."""
    fields = schema.fields
    match statistic:
        case GroupBy():
            return _grouped(statistic, schema, drawn)
        case Histogram():
            return lambda v: _binned(statistic, fields, v)
        case Quantiles():
            return lambda v: _path(*_offset(statistic, schema, v), NUMBERS * group_of(schema, statistic.by, v))
        case KMeans():
            return _clustered(statistic, schema, drawn)
        case Ratio():
            return _divided(statistic, schema, drawn)
    if _shipped(statistic, Count):
        return lambda v: iter([(None, 0, 1)])
    if _shipped(statistic, Sum):
        return lambda v: ((None, i, k) for i, k in enumerate(numbers(fields[statistic.field], v[statistic.field])))  # type: ignore[attr-defined]
    if _shipped(statistic, Mean, Variance):
        highest = 2 if isinstance(statistic, Variance) else 1
        return lambda v: _powers(fields[statistic.field], v[statistic.field], highest)  # type: ignore[attr-defined]
    assert isinstance(statistic, Linear)
    return lambda v: _contributed(statistic, schema, v)


def group_of(schema: Schema, by: Sequence[str], value: Mapping[str, Any]) -> int:
    """The number of the group that a record is in."""
    group = 0
    for name in by:
        group = group * many(schema.fields[name]) + code(schema.fields[name], value[name])
    return group


def meets(schema: Schema, value: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Whether all conditions hold; none does where the value is missing."""
    return all(value[n] is not None and holds(schema.fields[n], value[n], wanted) for n, wanted in where.items())


def reads(statistic: Statistic, schema: Schema) -> tuple[str, ...]:
    """The fields without which a record does not count; for a user's map, those it declares."""
    match statistic:
        case GroupBy():
            return (*statistic.by, *reads(statistic.of, schema))
        case Histogram():
            return (*statistic.by, *([statistic.sum] if statistic.sum else []))
        case Distinct():
            return (*statistic.by, *statistic.fields)
        case Distances():
            return (*statistic.by, *statistic.ball.fields)
        case KMeans():
            return statistic.ball.fields
        case Ratio():
            parts = (statistic.top, statistic.bottom)
            return tuple(name for part in parts for name in (*part.where, *reads(part, schema)))
    if _shipped(statistic, Count):
        return ()
    return (statistic.field,) if _shipped(statistic, Sum, Mean, Variance) else statistic.reads(schema)  # type: ignore[attr-defined]


def _shipped(statistic: Statistic, *kinds: type[Linear]) -> bool:
    """Whether it is one of these kinds with its original map, not an overridden one."""
    return any(isinstance(statistic, k) and type(statistic).contribute is k.contribute for k in kinds)


def _grouped(statistic: GroupBy, schema: Schema, drawn: Bound) -> Map:
    inner, size = contribution(statistic.of, schema, drawn), statistic.of.layout(schema).size

    def added(value: Mapping[str, Any]) -> Iterator[Part]:
        group = group_of(schema, statistic.by, value)
        return ((None, group * size + place, amount) for _, place, amount in inner(value))

    return added


def _divided(statistic: Ratio, schema: Schema, drawn: Bound) -> Map:
    maps = [(part.where, contribution(part, schema, drawn)) for part in (statistic.top, statistic.bottom)]

    def added(value: Mapping[str, Any]) -> Iterator[Part]:
        for place, (where, inner) in enumerate(maps):
            if meets(schema, value, where):
                yield from ((None, place, amount) for _, _, amount in inner(value))

    return added


def _clustered(statistic: KMeans, schema: Schema, drawn: Bound) -> Map:
    space = statistic.ball.space(schema)
    assert isinstance(drawn, KMeansBound)
    family = drawn.family
    if isinstance(family, GridRegions):
        return lambda v: _cells(_point(space, schema, v), family.depths)

    def added(value: Mapping[str, Any]) -> Iterator[Part]:
        point = np.array([_point(space, schema, value)], dtype=np.int64)
        found = family.coordinates(family.gather(point, np.ones(1, dtype=np.int64)))
        named: list[tuple[Any, int]] = list(found.items())
        return ((name, kind, amount) for (name, kind), amount in named)

    return added


def _powers(field: Field, value: Any, highest: int) -> Iterator[Part]:
    """1, c, c^2, ... of the value centred on the middle of its bounds, in half steps."""
    centred = 2 * code(field, value) - field.lower - field.upper
    return ((None, i, centred**i) for i in range(highest + 1))


def _contributed(statistic: Linear, schema: Schema, value: Mapping[str, Any]) -> Iterator[Part]:
    rows, _ = rows_of(schema, [Record(value, 1, 1)])
    parts = statistic.contribute(rows, schema)
    amounts = zip(np.asarray(parts.coordinate).tolist(), np.asarray(parts.amount).tolist(), strict=True)
    return ((None, place, amount) for place, amount in amounts)


def _binned(statistic: Histogram, fields: Mapping[str, Field], value: Mapping[str, Any]) -> Iterator[Part]:
    name = tuple(lattice(fields[field], value[field]) for field in statistic.by)
    yield name, 0, 1
    if statistic.sum is not None:
        yield name, 1, code(fields[statistic.sum], value[statistic.sum])


def _offset(statistic: Quantiles, schema: Schema, value: Mapping[str, Any]) -> tuple[int, int]:
    """The value as an offset from the lowest, and the number of bits of such offsets."""
    if isinstance(statistic, Distances):
        point = _point(statistic.ball.space(schema), schema, value)
        return math.isqrt(sum(k * k for k in point)), RADIUS.bit_length()
    field = schema.fields[statistic.field]
    return code(field, value[statistic.field]) - field.lower, (field.upper - field.lower).bit_length()


def _point(space: Space, schema: Schema, value: Mapping[str, Any]) -> tuple[int, ...]:
    """In steps of the ball, each coordinate rounded towards zero."""
    read = [value[name] for name in space.columns]
    fields = [schema.fields[name] for name in space.columns]
    steps = [Fraction(k) * f.step for f, v in zip(fields, read, strict=True) for k in numbers(f, v)]
    scaled = zip(steps, space.centre, space.scale, strict=True)
    point = tuple(int((x - c) / s / space.radius * RADIUS) for x, c, s in scaled)
    if sum(k * k for k in point) > RADIUS**2:
        (row,) = space.points(rows_of(schema, [Record(value, 1, 1)])[0]).tolist()
        return tuple(row)
    return point


def _path(offset: int, bits: int, first: int) -> Iterator[Part]:
    """1 at the root, and at every depth 1 in the left half of the interval or -1 in the right one. The nodes of a tree
    are numbered from ``first`` on."""
    yield (0, first), 0, 1
    for depth in range(bits):
        right = offset >> (bits - depth - 1) & 1
        yield (offset >> (bits - depth), first + depth + 1), 0, 1 - 2 * right


def _cells(point: tuple[int, ...], depths: Sequence[int]) -> Iterator[Part]:
    """A quadtree: the box of the ball is halved along one axis after the other. A cell has a count, and a sum around
    its middle."""
    yield (0, 0), 0, 1
    low, high, cell = [-RADIUS] * len(point), [RADIUS] * len(point), 0
    for depth in range(1, depths[-1] + 1):
        axis = (depth - 1) % len(point)
        middle = (low[axis] + high[axis]) // 2
        right = min(point[axis], RADIUS - 1) >= middle
        cell = 2 * cell + right
        low[axis], high[axis] = (middle, high[axis]) if right else (low[axis], middle)
        if depth in depths:
            kind = 1 + 2 * depths.index(depth)
            yield (cell, 0), kind, 1
            for i, x in enumerate(point):
                yield (cell, i), kind + 1, x - (low[i] + high[i]) // 2
