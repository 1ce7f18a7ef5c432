"""What a statistic counts, by its definition: record by record, in Python integers.

The checks compare what is published with these totals. Nothing here uses `gather`, `coordinates` or `release`, columns,
tallies, or sums kept from round to round. Three things are taken as given, since they *define* a statistic: a user's
map (`contribute`, a query's function), applied to one record at a time; the regions of hashed and theorem clusters,
which are drawn from the key; and the encoding of dates, times and vectors that are too long. Any other kind of
statistic has no definition but its code: what it gathers is taken as given, and what it publishes of that is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..arrays import I64, U64
from ..coins import Coins, name_bytes
from ..compilers import WindowSample
from ..schema import Rows
from ..statistics import Distinct, Histogram, KMeans, Linear, Quantiles, Restated
from ..statistics.bound import Bound
from ..statistics.clusters.grid import GridRegions
from ..statistics.clusters.kmeans import KMeansBound
from ..statistics.distinct import DistinctBound
from ..statistics.wrapper import core, layers
from ..stream import Specification
from .contributions import Map, Name, Part, contribution, group_of, meets, reads
from .records import Record, lattice, rows_of


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
            return [(group_of(self.schema, self.inner.by, value), 1)]
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
                    seen[group_of(self.schema, self.inner.by, r.value)].add(value)
            fresh = (self.inner.additions or 0) * (round - last) if self.block else 0
            return {(None, group): len(values) + Fraction(fresh, 2) for group, values in enumerate(seen)}
        out: dict[tuple[Name, int], Any] = {}
        if isinstance(self.inner, WindowSample):
            return self._live(records)
        if not self.known:
            return self._own(records, coins)
        added = contribution(self.inner, self.schema, self._drawn(coins))
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
        return meets(self.schema, value, self.statistic.where)
