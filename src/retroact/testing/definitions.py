"""What a statistic counts, by its definition: record by record, in Python integers.

The checks compare what is published with these totals. Nothing here uses `gather`, `coordinates` or `release`, columns,
tallies, or sums kept from round to round. Three things are taken as given, since they *define* a statistic: a user's
map (`contribute`, a query's function), applied to one record at a time; the regions of hashed and theorem clusters,
which are drawn from the key; and the encoding of dates, times and vectors that are too long. Any other kind of
statistic has no definition but its code: what it gathers is taken as given, and what it publishes of that is checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..arrays import I64, U64
from ..coins import Coins, name_bytes
from ..compilers import WindowSample
from ..schema import Rows, Schema
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
    Restated,
    Sum,
    Variance,
)
from ..statistics.bound import Bound
from ..statistics.clusters.ball import RADIUS, Space
from ..statistics.clusters.grid import GridRegions
from ..statistics.clusters.kmeans import KMeansBound
from ..statistics.distinct import DistinctBound
from ..statistics.statistic import Statistic
from ..statistics.wrapper import core, layers
from ..stream import Specification
from .records import Record, code, holds, lattice, many, numbers, rows_of

Name = Hashable
"""The name of a cell: the encoded parts of a bin, the (prefix, number) of an interval, the (region, axis) of a cluster;
None where coordinates are a list."""
Part = tuple[Name, int, int]
"""What a record adds: (name, place, amount)."""
Map = Callable[[Mapping[str, Any]], Iterator[Part]]


class Coordinate(NamedTuple):
    """One number that gets noise: its view, its cell, and its place among the coordinates of the cell."""

    view: int
    name: Name
    place: int


Totals = dict[Coordinate, Fraction]


class Definition:
    """
    >>> import retroact as ra
    >>> spec = ra.Specification({"age": ra.Integer(0, 9)}, {"s": ra.Sum("age", window=2)}, epsilon=1.0, horizon=8)
    >>> Definition(spec, "s").totals([Record({"age": 3}, 1, 1), Record({"age": 4}, 2, 2)], 3, Coins(bytes(32)))
    {Coordinate(view=0, name=None, place=0): Fraction(8, 1)}
    """

    def __init__(self, spec: Specification, name: str) -> None:
        self.schema, self.bound = spec.schema, spec.bounds[name]
        self.grant, self.statistic = self.bound.grant, self.bound.statistic
        self._core = core(self.bound)
        self.inner = self._core.statistic
        restated = next((one for one in layers(self.statistic) if isinstance(one, Restated)), None)
        self.lags: tuple[int, ...] = (0,) if restated is None else restated.lags
        self._kept: tuple[Coins | None, dict[tuple[Any, ...], list[Part]]] = None, {}
        self._under: tuple[Coins | None, Bound] = None, self._core
        self.block = 0
        if isinstance(self._core, DistinctBound) and self._core.design.form == "blocks":
            self.block = self._core.design.rounds

    @property
    def dense(self) -> bool:
        """Whether coordinates are a list, rather than cells by name."""
        return isinstance(self.inner, Linear | Distinct)

    @property
    def known(self) -> bool:
        """Whether the totals are computed here, not by the statistic."""
        return isinstance(self.inner, Linear | Distinct | Histogram | Quantiles | KMeans)

    @property
    def by_key(self) -> bool:
        """Whether totals depend on the key: they do for regions drawn from it, and may for other kinds."""
        grid = isinstance(self._core, KMeansBound) and isinstance(self._core.family, GridRegions)
        return not self.known or (isinstance(self.inner, KMeans) and not grid)

    def span(self, round: int, lag: int = 0) -> tuple[int, int]:
        """The first and the last stamp that count."""
        if self.block:
            return 1, (round - 1) // self.block * self.block
        window = self.grant.window
        return (1 if window is None else max(1, round - lag - window + 1)), round - lag

    def totals(self, records: Sequence[Record], round: int, coins: Coins) -> Totals:
        """The totals of every view in a round; zeros may be left out. The coins are those of the statistic."""
        out: Totals = {}
        for view, lag in enumerate(self.lags):
            first, last = self.span(round, lag)
            counted = [r for r in records if first <= r.stamp <= last and self.counts(r.value)]
            for (name, place), amount in self._view(counted, round, last, coins).items():
                if amount:
                    out[Coordinate(view, name, place)] = Fraction(amount)
        return out

    def seen(self, records: Sequence[Record], round: int) -> list[tuple[Rows, I64]]:
        """The records that each view counts by their stamps, encoded, with the number of copies of each."""
        rows, copies = rows_of(self.schema, records)
        assert rows.stamps is not None
        spans = [self.span(round, lag) for lag in self.lags]
        chosen = [np.flatnonzero((rows.stamps >= first) & (rows.stamps <= last)) for first, last in spans]
        return [(rows.take(seen), copies[seen]) for seen in chosen]

    def amounts(self, value: Mapping[str, Any], coins: Coins) -> list[tuple[int, int]]:
        """How far one record moves each coordinate: (place, amount), listed separately for each cell."""
        if not self.counts(value):
            return []
        if isinstance(self.inner, Distinct):
            return [(self._group(self.inner.by, value), 1)]
        found = self._view([Record(value, 1, 1)], 1, 1, coins)
        return [(place, int(amount)) for (_, place), amount in found.items() if amount]

    def cells(self, names: Sequence[Name], coins: Coins) -> U64:
        """The cells that the noise of each name is drawn for."""
        if isinstance(self.inner, Histogram):
            return coins.cells(name_bytes(*name) for name in names)  # type: ignore[misc]
        return np.array(names, dtype=np.uint64).astype("<u8").reshape(-1, 2)

    def _view(self, records: list[Record], round: int, last: int, coins: Coins) -> dict[tuple[Name, int], Any]:
        if isinstance(self.inner, Distinct):
            seen: list[set[Any]] = [set() for _ in range(self._core.layout.size)]
            for r in records:
                if r.copies:
                    value = tuple(lattice(self.schema.fields[f], r.value[f]) for f in self.inner.fields)
                    seen[self._group(self.inner.by, r.value)].add(value)
            fresh = (self.inner.additions or 0) * (round - last) if self.block else 0
            return {(None, group): len(values) + Fraction(fresh, 2) for group, values in enumerate(seen)}
        out: dict[tuple[Name, int], Any] = {}
        if isinstance(self.inner, WindowSample):
            return self._live(records)
        if not self.known:
            return self._own(records, coins)
        added = self._map(self.inner, coins)
        for record in records:
            for name, place, amount in self._known(added, record, coins):
                out[name, place] = out.get((name, place), 0) + amount * record.copies
        return out

    def _known(self, added: Map, record: Record, coins: Coins) -> list[Part]:
        """What a record adds, computed once for equal records."""
        if self._kept[0] is not coins and self.by_key:
            self._kept = coins, {}
        key = tuple(record.value.values())
        if key not in self._kept[1]:
            self._kept[1][key] = list(added(record.value))
        return self._kept[1][key]

    def _live(self, records: list[Record]) -> dict[tuple[Name, int], Any]:
        """For a sample: the live records that it is drawn from, by the fields that are read."""
        assert isinstance(self.inner, WindowSample)
        read, out = self.inner.of.reads(self.schema), dict[tuple[Name, int], Any]()
        for record in records:
            name = record.stamp, *(lattice(self.schema.fields[field], record.value[field]) for field in read)
            out[name, 0] = out.get((name, 0), 0) + record.copies
        return out

    def _drawn(self, coins: Coins) -> Bound:
        """The bound with what is drawn from the key; cached for the latest coins."""
        if self._under[0] is not coins:
            self._under = coins, self._core.drawn(coins)
        return self._under[1]

    def _own(self, records: list[Record], coins: Coins) -> dict[tuple[Name, int], Any]:
        """For any other kind of statistic: what it gathers."""
        rows, copies = rows_of(self.schema, records)
        found = self._core.coordinates(self._drawn(coins).gather(rows, copies))
        named = {(key if isinstance(key, tuple) else (None, key)): amount for key, amount in found.items()}
        return {(name, place): amount for (name, place), amount in named.items()}

    def counts(self, value: Mapping[str, Any]) -> bool:
        """Whether the conditions hold and no field that is read is missing."""
        if any(value[name] is None for name in reads(self.inner, self.schema)):
            return False
        return self._meets(value, self.statistic.where)

    def _map(self, statistic: Statistic, coins: Coins) -> Map:
        """What one record adds to the totals."""
        fields = self.schema.fields
        match statistic:
            case GroupBy():
                return self._grouped(statistic, coins)
            case Histogram():
                return lambda v: _binned(statistic, fields, v)
            case Quantiles():
                return lambda v: _path(*self._offset(statistic, v), 65 * self._group(statistic.by, v))
            case KMeans():
                return self._clustered(statistic, coins)
            case Ratio():
                return self._divided(statistic, coins)
        if _shipped(statistic, Count):
            return lambda v: iter([(None, 0, 1)])
        if _shipped(statistic, Sum):
            return lambda v: ((None, i, k) for i, k in enumerate(numbers(fields[statistic.field], v[statistic.field])))  # type: ignore[attr-defined]
        if _shipped(statistic, Mean, Variance):
            highest = 2 if isinstance(statistic, Variance) else 1
            return lambda v: _powers(fields[statistic.field], v[statistic.field], highest)  # type: ignore[attr-defined]
        assert isinstance(statistic, Linear)
        return lambda v: _contributed(statistic, self.schema, v)

    def _grouped(self, statistic: GroupBy, coins: Coins) -> Map:
        inner, size = self._map(statistic.of, coins), statistic.of.layout(self.schema).size

        def added(value: Mapping[str, Any]) -> Iterator[Part]:
            group = self._group(statistic.by, value)
            return ((None, group * size + place, amount) for _, place, amount in inner(value))

        return added

    def _divided(self, statistic: Ratio, coins: Coins) -> Map:
        maps = [(part.where, self._map(part, coins)) for part in (statistic.top, statistic.bottom)]

        def added(value: Mapping[str, Any]) -> Iterator[Part]:
            for place, (where, inner) in enumerate(maps):
                if self._meets(value, where):
                    yield from ((None, place, amount) for _, _, amount in inner(value))

        return added

    def _meets(self, value: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
        """Whether all conditions hold; none does where the value is missing."""
        fields = self.schema.fields
        return all(value[n] is not None and holds(fields[n], value[n], wanted) for n, wanted in where.items())

    def _group(self, by: Sequence[str], value: Mapping[str, Any]) -> int:
        """The number of the group that a record is in."""
        group = 0
        for name in by:
            group = group * many(self.schema.fields[name]) + code(self.schema.fields[name], value[name])
        return group

    def _offset(self, statistic: Quantiles, value: Mapping[str, Any]) -> tuple[int, int]:
        """The value as an offset from the lowest, and the number of bits of such offsets."""
        if isinstance(statistic, Distances):
            point = self._point(statistic.ball.space(self.schema), value)
            return math.isqrt(sum(k * k for k in point)), RADIUS.bit_length()
        field = self.schema.fields[statistic.field]
        return code(field, value[statistic.field]) - field.lower, (field.upper - field.lower).bit_length()

    def _clustered(self, statistic: KMeans, coins: Coins) -> Map:
        space, drawn = statistic.ball.space(self.schema), self._drawn(coins)
        assert isinstance(drawn, KMeansBound)
        family = drawn.family
        if isinstance(family, GridRegions):
            return lambda v: _cells(self._point(space, v), family.depths)

        def added(value: Mapping[str, Any]) -> Iterator[Part]:
            point = np.array([self._point(space, value)], dtype=np.int64)
            found = family.coordinates(family.gather(point, np.ones(1, dtype=np.int64)))
            named: list[tuple[Any, int]] = list(found.items())
            return ((name, kind, amount) for (name, kind), amount in named)

        return added

    def _point(self, space: Space, value: Mapping[str, Any]) -> tuple[int, ...]:
        """In steps of the ball, each coordinate rounded towards zero."""
        read = [value[name] for name in space.columns]
        fields = [self.schema.fields[name] for name in space.columns]
        steps = [Fraction(k) * f.step for f, v in zip(fields, read, strict=True) for k in numbers(f, v)]
        scaled = zip(steps, space.centre, space.scale, strict=True)
        point = tuple(int((x - c) / s / space.radius * RADIUS) for x, c, s in scaled)
        if sum(k * k for k in point) > RADIUS**2:
            (row,) = space.points(rows_of(self.schema, [Record(value, 1, 1)])[0]).tolist()
            return tuple(row)
        return point


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
