"""The algorithm of Theorem "kmeans" as the paper describes it, and of its corollary "kmedian": for reference.

An **instance** projects the points at random to about log k dimensions and lays nested grids over them, from one cell
for the whole space down to the finest level, each cell cut in half along every axis. A cell of any level counts its
records, sums their points (in the original space) and sums their squares. A release takes from each instance: greedy
centres from the counts, pieces of space that are fine around these (`greedy`), a weighted search on the pieces, and,
since every cluster is a union of pieces, its mean from their sums and its cost from their squares. The instance with
the smallest estimated cost is released. For k-median there is one instance, without projection and with counts only: a
median is not a function of sums.

**Privacy.** A record is in one cell of every level, so it moves the counts of an instance by 1, its sums by at most
sqrt(d) R in the first norm and R in the second, and its squares by R^2, each in levels + 1 regions. The budget is
divided evenly over instances and over the three (`regions`). The paper runs its source with epsilon / 2, since
neighbours are defined differently there; here the sensitivity of the noise process is for the paper's neighbours.
**Retroactivity.** Projections and grids depend on the key alone (P1); which cells are examined, and all that is made of
them, depends on noisy counters of the round alone (P2). Without a horizon there are 16 instances from the start, enough
for 2^16 releases, where the paper starts the i-th one in round 2^i: none has to be filled with survivors later.
**Not as in the paper**, apart from constants: directions have one length; regions are cells of a shifted grid, not
balls of a net; there are at most 8 levels below the first unless more are requested, and not log n; costs are corrected
for centres that follow their own noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Self

import numpy as np

from ..arrays import F64, I64, U64
from ..coins import Coins, integer_cells
from ..errors import InputError
from ..statistics.clusters.ball import RADIUS, inside
from ..statistics.clusters.directions import LENGTH, independent, seed_of
from ..statistics.clusters.lloyd import Objective, search
from ..statistics.clusters.regions import KEEP, Found, Kind, Reader, RegionScheme, Sums, counters, joined, moments
from ..statistics.tally import Tally
from .greedy import GridCells, Groups, exclusive, greedy, refined, within

Exact = Callable[[U64, int | I64], I64]
"""The totals of cells of a level."""
# Without a horizon.
INSTANCES = 16
MOST_CENTRES, MOST_MEDIAN_DIMENSIONS = 128, 8
# The paper has log n levels, so that moving all records within their finest cells costs next to nothing. But each level
# takes its part of the budget, and cells of the eighth are already a 32nd or a 64th of the radius wide.
MOST_LEVELS = 8
# The first one of a cell's word, which is below 2^63, marks its level.
WORD_BITS = 62
SCALE_BITS = 12
# The kinds of an instance, in order.
COUNTS, SQUARES, SUMS = range(3)
# Greedy centres for each centre.
GREEDY = 3
# In each level this many cells per centre are opened, or as many as give this many cells to examine.
OPENED, LOOKED_AT = 4, 1 << 10


class Theorem(RegionScheme):
    """
    >>> family = Theorem(10, 5, 6, None, 10_000, "means")
    >>> family.width, family.levels, len(family.kinds), family.kinds[-1].name
    (5, 8, 18, 'sums')
    """

    counts = COUNTS
    loose = 1 / 5
    _directions: list[F64]
    _shifts: list[I64]

    def __init__(
        self, dimension: int, k: int, instances: int, levels: int | None, expected: int, objective: Objective
    ) -> None:
        if k > MOST_CENTRES:
            raise InputError(f"expected at most {MOST_CENTRES} centres in mode 'theorem', got {k}", place="k")
        self.means = objective == "means"
        if not self.means and dimension > MOST_MEDIAN_DIMENSIONS:
            raise InputError(
                f"expected at most {MOST_MEDIAN_DIMENSIONS} dimensions for k-median in mode 'theorem', got {dimension}:"
                " a cell has 2^dimensions cells in it",
                place="mode",
            )
        self.dimension, self.instances = dimension, instances if self.means else 1
        self.width = min(dimension, (k - 1).bit_length() + 2) if self.means else dimension
        # Projected points may be longer than before, and are clipped beyond twice the radius. The widest cell has room
        # for the points and for a shift of the grid by as much.
        self.reach = RADIUS if self.width == dimension else 2 * RADIUS
        self.side_bits = self.reach.bit_length() + 1
        most = min(WORD_BITS // self.width, self.side_bits)
        if levels is not None and levels > most:
            raise InputError(f"expected at most {most} levels for {self.width} axes, got {levels}", place="levels")
        self.levels = levels or max(1, min((expected - 1).bit_length(), MOST_LEVELS, most))
        self.kinds = self._kinds()
        several = f"{self.instances} instances of " if self.instances > 1 else ""
        projected = f", projected from {dimension}" if self.width < dimension else ""
        self.text = f"{several}a grid of {self.levels + 1} levels in {self.width} dimensions{projected}"
        self.shape = {"mode": "theorem", "levels": self.levels, "width": self.width, "instances": self.instances}

    def _kinds(self) -> tuple[Kind, ...]:
        regions, one, square = self.levels + 1, math.isqrt(self.dimension * RADIUS**2), RADIUS**2
        if not self.means:
            return (Kind("counts", regions, regions, 1.0),)
        share = 1 / (3 * self.instances)
        return (
            Kind("counts", regions, regions, share),
            Kind("squares", regions * square, regions * square**2, share),
            Kind("sums", regions * one, regions * square, share, self.dimension),
        ) * self.instances

    @classmethod
    def most_instances(cls, releases: int | None, objective: Objective) -> int:
        """As many as make it likely that one of them is good in all rounds.

        >>> Theorem.most_instances(1000, "means"), Theorem.most_instances(1000, "medians")
        (9, 1)
        """
        if objective == "medians":
            return 1
        return INSTANCES if releases is None else max(1, releases.bit_length() - 1)

    def notes(self, objective: Objective) -> tuple[str, ...]:
        statement = 'Theorem "kmeans"' if self.means else 'corollary "kmedian"'
        levels = f"{self.levels + 1} levels"
        return (
            f"the accuracy in {statement} is cited from its source, whose algorithm was reconstructed: privacy and "
            "retroactivity are checked, the bound on the cost is not, and with few levels it does not apply",
            f"the budget is divided over {self.instances} x 3 x {levels}: good centres take hundreds of thousands of "
            "records, where other modes do with ten thousand"
            if self.means
            else f"the budget is divided over {levels}",
        )

    def error(self, deviations: F64, k: int) -> float:
        """As if a cluster were all the cells inside one. For k-median, a miscounted record is a radius away."""
        return math.sqrt(2**self.width) * float(deviations[-1]) * (1 if self.means else RADIUS)

    def drawn(self, coins: Coins) -> Self:
        seeds = [seed_of(coins, f"theorem {i}") for i in range(self.instances)]
        mine = copy(self)
        if self.width < self.dimension:
            vars(mine)["_directions"] = [independent(seed, self.width, self.dimension) for seed in seeds]
        vars(mine)["_shifts"] = [_shift(seed, self.width, self.side_bits - 1) for seed in seeds]
        return mine

    def tallies(self, points: I64, weights: I64, *first: U64) -> list[Tally]:
        amounts = moments(points, weights) if self.means else weights[:, None]
        if not len(points):
            return [Tally((*first, np.zeros(0, dtype=np.uint64)), amounts)] * self.instances
        return [Tally.of((*first, self.words(points, i)), amounts) for i in range(self.instances)]

    def words(self, points: I64, instance: int) -> U64:
        """The finest cell of each point: a one, then a bit for each axis, level by level. No float decides it."""
        offsets = self._projected(points, instance) + self.reach + self._shifts[instance]
        axes = np.int64(1) << np.arange(self.width - 1, -1, -1, dtype=np.int64)
        word = np.ones(len(points), dtype=np.int64)
        for level in range(1, self.levels + 1):
            word = word << self.width | (offsets >> (self.side_bits - level) & 1) @ axes
        return word.astype(np.uint64)

    def _projected(self, points: I64, instance: int) -> I64:
        """Preserves squared lengths in expectation."""
        if self.width == self.dimension:
            return points
        # Sums of integers below 2^38 (`directions`), exact in floats; times a scale of at most 2^19, below 2^57.
        along = (points.astype(np.float64) @ self._directions[instance]).astype(np.int64)
        scale = math.isqrt((self.dimension << 2 * SCALE_BITS) // self.width)
        return np.clip(along * scale // (LENGTH << SCALE_BITS), -self.reach, self.reach - 1)

    def coordinates(self, totals: Sums) -> dict[Hashable, int]:
        out: dict[Hashable, int] = {}
        for kind, finest in zip(range(0, 3 * self.instances, 3), totals, strict=True):
            if not len(finest):
                continue
            for below in range(self.levels + 1):
                cells = Tally.of((finest.words[0] >> np.uint64(self.width * below),), finest.amounts)
                out |= counters(kind + COUNTS, cells.words[0], cells.amounts[:, :1])
                if self.means:
                    out |= counters(kind + SQUARES, cells.words[0], cells.amounts[:, -1:])
                    out |= counters(kind + SUMS, cells.words[0], cells.amounts[:, 1:-1])
        return out

    def _exact(self, finest: U64, sums: I64, words: U64, level: int | I64) -> I64:
        """The totals of some cells, from running sums over the finest ones."""
        below = np.asarray(self.width * (self.levels - level)).astype(np.uint64)
        first, last = words << below, (words + np.uint64(1)) << below
        return sums[np.searchsorted(finest, last)] - sums[np.searchsorted(finest, first)]

    def cluster(self, totals: Sums, reader: Reader, k: int, objective: Objective) -> Found:
        records, candidates = self.candidates(totals, reader, k, objective)
        if not candidates:
            return Found.nothing(self.dimension, records, reader.deviation(COUNTS))
        best = min(candidates, key=lambda candidate: candidate.cost or 0.0)
        part = max(records, 0.0) / float(best.weights.sum())
        cost = None if best.cost is None else max(best.cost, 0.0)
        weights, errors = best.weights * part, best.weight_errors * part
        return replace(best, weights=weights, weight_errors=errors, records=records, cost=cost)

    def candidates(self, totals: Sums, reader: Reader, k: int, objective: Objective) -> tuple[float, list[Found]]:
        """The number of records by the count of the first instance, and the candidates of all instances that see any
        records, with weights and costs as estimated from noisy counters."""
        # Of the three kinds, the same in every instance.
        noise = tuple(reader.deviation(kind) for kind in range(min(3, len(self.kinds))))
        out, records = [], []
        for instance, tally in enumerate(totals):
            sums = np.vstack([np.zeros((1, tally.amounts.shape[1]), np.int64), np.cumsum(tally.amounts, axis=0)])
            exact = partial(self._exact, tally.words[0], sums)
            cells = self._standing_out(exact, reader, instance, noise[COUNTS], k)
            records.append(float(cells.counts[0]))
            if records[-1] < _least(noise[COUNTS]):
                continue
            _, nearest = greedy(cells, 2 if objective == "means" else 1, GREEDY * k)
            cells = refined(cells, nearest)
            left = exclusive(cells.counts, cells.parents)
            kept = left >= _least(noise[COUNTS], 1 + within(cells.parents))
            found = search(cells.middles[kept], left[kept], k, objective, reader.coins)
            labels = np.full(len(left), -1)
            labels[kept] = found.labels
            groups = Groups(labels, cells.parents, len(found.centres))
            if objective == "means":
                out.append(self._lifted(cells, groups, exact, reader, instance, noise))
            else:
                centres = inside(found.centres - self.reach - self._shifts[instance])
                errors = np.sqrt(groups.noises) * noise[COUNTS]
                out.append(Found(centres, groups.sums(cells.counts), errors, records[-1], None, None, None))
        return records[0], out

    def _standing_out(self, exact: Exact, reader: Reader, instance: int, noise: float, k: int) -> GridCells:
        """Starts with the cell for the whole space. Level by level, a cell is opened if it would be seen even with its
        records spread evenly over the cells inside it, and the cells that stand out are kept. At most a fixed number,
        the largest, are opened."""
        fan = 1 << self.width
        most = max(OPENED * k, LOOKED_AT >> self.width)
        halves = np.arange(fan)[:, None] >> np.arange(self.width - 1, -1, -1) & 1
        words, corners = np.ones(1, dtype=np.uint64), np.zeros((1, self.width), dtype=np.int64)
        counts = reader.read(3 * instance + COUNTS, words, exact(words, 0)[:, :1])[:, 0]
        parts = [GridCells(words, corners, np.array([1 << self.side_bits]), np.array([-1]), counts)]
        before = 0
        for level in range(1, self.levels + 1):
            around = parts[-1]
            largest = np.lexsort((around.words, -around.counts))[:most]
            opened = np.sort(largest[around.counts[largest] >= _least(noise, fan)])
            if not opened.size:
                break
            words = (around.words[opened, None] << np.uint64(self.width) | np.arange(fan, dtype=np.uint64)).ravel()
            counts = reader.read(3 * instance + COUNTS, words, exact(words, level)[:, :1])[:, 0]
            kept = np.flatnonzero(counts >= _least(noise))
            parents = opened[kept >> self.width]
            side = 1 << (self.side_bits - level)
            corners = around.corners[parents] + halves[kept & (fan - 1)] * side
            parts.append(GridCells(words[kept], corners, np.full(len(kept), side), before + parents, counts[kept]))
            before += len(around.words)
        return joined(parts)

    def _lifted(
        self, cells: GridCells, groups: Groups, exact: Exact, reader: Reader, instance: int, noise: tuple[float, ...]
    ) -> Found:
        """In the original space: means from sums, and their costs from squares."""
        totals = exact(cells.words, self.side_bits + 1 - np.frexp(cells.sides)[1].astype(np.int64))
        counts = groups.sums(cells.counts)
        sums = groups.sums(reader.read(3 * instance + SUMS, cells.words, totals[:, 1:-1]))
        squares = groups.sums(reader.read(3 * instance + SQUARES, cells.words, totals[:, -1:]))[:, 0]
        variances = [deviation**2 * groups.noises for deviation in noise]
        means = sums / np.maximum(counts, 1.0)[:, None]
        centres = inside(means)
        lengths = (centres**2).sum(axis=1)
        # The centres follow the noise of their own sums: that much of what they save is not real.
        pulled = np.sqrt(lengths / np.maximum((means**2).sum(axis=1), 1e-300))
        optimism = 2 * self.dimension * pulled * variances[SUMS] / np.maximum(counts, 1.0)
        costs = squares - 2 * (sums * centres).sum(axis=1) + counts * lengths + optimism
        variance = variances[SQUARES] + 4 * lengths * variances[SUMS] + lengths**2 * variances[COUNTS]
        # As if what does not stand out were like the rest, so that no instance looks good by seeing little.
        whole, records = float(counts.sum()), float(cells.counts[0])
        part = records / whole
        cost, error = float(costs.sum()) * part, math.sqrt(float(variance.sum())) * part
        length = math.sqrt(max(float(squares.sum()), 0.0) / whole)
        return Found(centres, counts, np.sqrt(variances[COUNTS]), records, cost, error, length)


def _least(noise: float, counters: int | I64 = 1) -> F64:
    """The least sum of this many noisy counts that stands out, and rounds to one record or more."""
    return np.maximum(KEEP * noise * np.sqrt(counters), 0.5)


def _shift(seed: bytes, width: int, bits: int) -> I64:
    """A random shift of a grid along each axis, below 2^bits."""
    high, _ = Coins(seed).branch("shift").words([0], [0], integer_cells(width)).block(0)
    shift = np.asarray(high[0] >> np.uint64(64 - bits)).astype(np.int64)
    shift.flags.writeable = False
    return shift
