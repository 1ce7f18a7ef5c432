"""Grid mode, for up to three dimensions: a quadtree over the ball's box, binary splits with the axes in turn.

There are three levels of cells (6, 9 and 12 splits by default). A cell has a count and a sum **around its own middle**,
which a record moves by at most half the cell's diagonal: finer cells have finer sums at next to no cost. A release goes
down from the first level and opens only cells whose noisy count is large, so noise is drawn for a few hundred of
thousands of cells, by name. Whether a cell is opened depends on noisy counts alone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from ...arrays import F64, I64, U64, Mask
from ...messages import mismatch
from ..tally import Tally
from .ball import BITS, RADIUS
from .lloyd import Clustering, Objective, search
from .regions import KEEP, MODEL_ERROR, ROOT, Found, Kind, Reader, RegionScheme, Sums, counters, joined, sums

# In up to this many dimensions a grid does better than hyperplanes.
MOST_DIMENSIONS = 3
FIRST, STEP = 6, 3
# Parts of the budget: the number of records; of the rest, the counts of all levels (the remainder is for sums).
RECORDS, COUNTS = 0.02, 0.7
LOOSE = 1 / 25
# In deviations of the noise: from here on a cell below the first level is kept, and the rest of an opened cell. A cell
# is opened if it would stand out even with its records spread evenly over the cells in it.
KEEP_BELOW, REST, OPEN = 2.0, 2.0, 3.0


@dataclass(frozen=True)
class Level:
    """The cells of one level that a release examined."""

    cells: U64
    counts: F64
    means: F64
    noise: float
    spread: F64
    """The mean square of the records around the noisy mean, less what noise has moved that by."""
    depth: int


@dataclass(frozen=True)
class Leaves:
    """Cells as points, with their weights, the variances of these, and the mean square of the records around each."""

    points: F64
    weights: F64
    variances: F64
    spreads: F64


class GridRegions(RegionScheme):
    """
    >>> GridRegions(2, 3).depths
    (6, 9, 12)
    """

    counts = 1

    def __init__(self, dimension: int, levels: int) -> None:
        if dimension > MOST_DIMENSIONS:
            raise mismatch(f"at most {MOST_DIMENSIONS} dimensions in mode 'grid'", dimension, "mode")
        most = (BITS * dimension - FIRST) // STEP + 1
        if levels > most:
            raise mismatch(f"at most {most} levels in {dimension} dimensions", levels, "levels")
        self.dimension = dimension
        self.depths = tuple(FIRST + STEP * level for level in range(levels))
        self.text = f"a grid with {', '.join(f'{1 << depth:,}' for depth in self.depths)} cells"
        self.shape = {"mode": "grid", "depths": list(self.depths)}
        each = (1 - RECORDS) / levels
        parts = [Kind("records", 1, 1, RECORDS)]
        for depth in self.depths:
            half = self.half(depth)
            parts.append(Kind("counts", 1, 1, COUNTS * each))
            parts.append(Kind("sums", int(half.sum()), int((half * half).sum()), (1 - COUNTS) * each, dimension))
        self.kinds = tuple(parts)
        # A loose radius costs resolution here, and in the end the counts that would be needed to go deeper.
        self.loose = max(16 * float(self.half(self.depths[-1]).max()) / RADIUS, LOOSE)

    def error(self, deviations: F64, k: int) -> float:
        """Centres are off mainly by cells of the first level: by their sums, and by miscounting them."""
        cells = max(1.0, (1 << self.depths[0]) / k)
        across = float(self.half(self.depths[0]).max())
        return math.sqrt(cells) * math.hypot(float(deviations[2]), across * float(deviations[1]))

    def half(self, depth: int) -> I64:
        """Half the width of a cell along each axis."""
        return RADIUS >> np.array([len(range(axis, depth, self.dimension)) for axis in range(self.dimension)])

    def tallies(self, points: I64, weights: I64, *first: U64) -> list[Tally]:
        return [Tally.of((*first, self.codes(points)), sums(points, weights))]

    def codes(self, points: I64) -> U64:
        """The finest cell of each point: the bits of its coordinates, axes in turn, coarsest first."""
        offsets = np.minimum(points + RADIUS, 2 * RADIUS - 1)
        code = np.zeros(len(points), dtype=np.int64)
        for split in range(self.depths[-1]):
            level, axis = divmod(split, self.dimension)
            code = code << 1 | offsets[:, axis] >> (BITS - level) & 1
        return code.astype(np.uint64)

    def middles(self, cells: U64, depth: int) -> I64:
        """The middles of cells at a depth, in steps of the ball."""
        corner = np.full((len(cells), self.dimension), -RADIUS, dtype=np.int64)
        for split in range(depth):
            level, axis = divmod(split, self.dimension)
            corner[:, axis] += (cells.astype(np.int64) >> (depth - 1 - split) & 1) << (BITS - level)
        return corner + self.half(depth)

    def at_depth(self, tally: Tally, depth: int) -> Tally:
        """Counts, and sums around the middles of the cells, at a depth."""
        cells = tally.words[0] >> np.uint64(self.depths[-1] - depth)
        merged = Tally.of((cells,), tally.amounts)
        amounts = merged.amounts.copy()
        amounts[:, 1:] -= amounts[:, :1] * self.middles(merged.words[0], depth)
        return Tally(merged.words, amounts)

    def coordinates(self, totals: Sums) -> dict[Hashable, int]:
        tally: Tally = totals[0]
        out = counters(0, ROOT, tally.amounts[:, :1].sum(axis=0)[None])
        for level, depth in enumerate(self.depths):
            cells = self.at_depth(tally, depth)
            out |= counters(1 + 2 * level, cells.words[0], cells.amounts[:, :1])
            out |= counters(2 + 2 * level, cells.words[0], cells.amounts[:, 1:])
        return out

    def cluster(self, totals: Sums, reader: Reader, k: int, objective: Objective) -> Found:
        tally: Tally = totals[0]
        records = float(reader.read(0, ROOT, tally.amounts[:, :1].sum(axis=0)[None])[0, 0])
        kept, thin = self._leaves(tally, reader, records)
        if not len(kept.points):
            return Found.nothing(self.dimension, records, reader.deviation(0))
        found = search(kept.points, kept.weights, k, objective, reader.coins)
        size, whole = len(found.centres), float(kept.weights.sum())
        part = max(records, 0.0) / whole
        weights = np.asarray(np.bincount(found.labels, kept.weights, size) * part)
        noise = np.sqrt(np.bincount(found.labels, kept.variances, size)) * part
        cost, error = self._cost(kept, thin, found, records, reader.deviation(0))
        length = kept.weights @ ((kept.points**2).sum(axis=1) + kept.spreads) / whole
        return Found(
            found.centres,
            weights,
            # Records that no cell shows may belong to any centre.
            np.hypot(noise, weights * (1 - 1 / part if part > 1 else 0.0) / 2),
            records,
            cost,
            error,
            math.sqrt(float(length)),
        )

    def _cost(self, kept: Leaves, thin: Leaves, found: Clustering, records: float, noise: float) -> tuple[float, float]:
        """Squared distances of cells to their centres, and of the records that no cell shows. These are assumed to lie
        in cells that are not kept; that is a guess, and its full amount is part of the error."""
        squares = ((kept.points - found.centres[found.labels]) ** 2).sum(axis=1) + kept.spreads
        whole = float(kept.weights.sum())
        seen = float(squares @ kept.weights) * min(1.0, max(records, 0.0) / whole)
        far = ((thin.points[:, None] - found.centres) ** 2).sum(axis=2).min(axis=1, initial=np.inf) + thin.spreads
        unseen = max(records - whole, 0.0) * float(far @ thin.weights) / max(float(thin.weights.sum()), 1.0)
        errors = (
            math.sqrt(float((squares * squares) @ kept.variances)),
            float(kept.spreads @ kept.weights) / 2,
            unseen + noise * seen / whole,
            MODEL_ERROR * seen,
        )
        return seen + unseen, math.hypot(*errors)

    def _leaves(self, tally: Tally, reader: Reader, records: float) -> tuple[Leaves, Leaves]:
        """Top down: the cells that are kept, and those that are not."""
        level = self._read(tally, reader, 0, np.arange(1 << self.depths[0], dtype=np.uint64))
        merged = self._merged(level, records)
        if merged is not None:
            clear = merged.counts >= KEEP * merged.noise
            return self._kept(merged, clear), self._thin(merged, ~clear)
        kept, thin = [], []
        keep = KEEP
        for number, depth in enumerate(self.depths):
            clear = level.counts >= keep * level.noise
            keep = KEEP_BELOW
            opened = np.zeros_like(clear)
            splits = 0
            if number + 1 < len(self.depths):
                splits = self.depths[number + 1] - depth
                below = reader.deviation(3 + 2 * number)
                opened = level.counts >= OPEN * max(level.noise, below * math.sqrt(1 << splits))
            kept.append(self._kept(level, clear & ~opened))
            thin.append(self._thin(level, ~clear & ~opened))
            if not opened.any():
                break
            fan = np.arange(1 << splits, dtype=np.uint64)
            inner = (level.cells[opened][:, None] << np.uint64(splits) | fan).ravel()
            finer = self._read(tally, reader, number + 1, inner)
            kept.append(self._rest(level, opened, finer, len(fan)))
            level = finer
        return joined(kept), joined(thin)

    def _read(self, tally: Tally, reader: Reader, level: int, cells: U64) -> Level:
        depth = self.depths[level]
        exact = self.at_depth(tally, depth).find((cells,))
        counts = reader.read(1 + 2 * level, cells, exact[:, :1])[:, 0]
        around = reader.read(2 + 2 * level, cells, exact[:, 1:])
        noise, sum_noise = reader.deviation(1 + 2 * level), reader.deviation(2 + 2 * level)
        return self._level(cells, depth, counts, around, noise, sum_noise)

    def _level(self, cells: U64, depth: int, counts: F64, around: F64, noise: float, sum_noise: float) -> Level:
        """A noisy mean is within its cell. Records are taken to be spread evenly over it; what noise has already moved
        the mean by is not counted twice."""
        half, there = self.half(depth), np.maximum(counts, 1.0)[:, None]
        means = self.middles(cells, depth).astype(np.float64) + np.clip(around / there, -half, half)
        spread = np.maximum(half * half / 3 - (sum_noise / there) ** 2, 0.0).sum(axis=1)
        return Level(cells, counts, means, noise, spread, depth)

    def _kept(self, level: Level, which: Mask) -> Leaves:
        variances = np.full(int(which.sum()), level.noise**2)
        return Leaves(level.means[which], level.counts[which], variances, level.spread[which])

    def _thin(self, level: Level, which: Mask) -> Leaves:
        """Cells that are not kept, at their middles."""
        middles, counts = self.middles(level.cells[which], level.depth), np.maximum(level.counts[which], 0.0)
        spread = float((self.half(level.depth) ** 2).sum()) / 3
        even = np.full(len(counts), spread)
        return Leaves(middles.astype(np.float64), counts, np.full(len(counts), level.noise**2), even)

    def _rest(self, level: Level, opened: Mask, finer: Level, fan: int) -> Leaves:
        """What an opened cell has beyond its kept cells, placed at its own mean: no mass is lost."""
        counts = finer.counts.reshape(-1, fan)
        inside = counts >= KEEP_BELOW * finer.noise
        left = level.counts[opened] - np.where(inside, counts, 0.0).sum(axis=1)
        variance = level.noise**2 + inside.sum(axis=1) * finer.noise**2
        much = left > REST * np.sqrt(variance)
        return Leaves(level.means[opened][much], left[much], variance[much], level.spread[opened][much])

    def _merged(self, level: Level, records: float) -> Level | None:
        """Merge, if records are few, the cells of the first level until a typical one stands out."""
        depth, fan = level.depth, 1
        while depth > 0 and records / 2**depth < KEEP * level.noise * math.sqrt(fan):
            depth, fan = depth - 1, fan * 2
        if fan == 1:
            return None
        counts = level.counts.reshape(-1, fan)
        whole = (level.means * level.counts[:, None]).reshape(len(counts), fan, -1).sum(axis=1)
        cells = np.arange(len(counts), dtype=np.uint64)
        total = counts.sum(axis=1)
        around = whole - total[:, None] * self.middles(cells, depth)
        return self._level(cells, depth, total, around, level.noise * math.sqrt(fan), 0.0)
