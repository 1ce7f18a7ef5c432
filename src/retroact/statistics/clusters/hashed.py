"""Hash mode, above three dimensions: one flat partition by the sides of a few random hyperplanes.

A point is in one of 2^bits cells, each with a count and a sum. There are also the number of records, their sum and the
sum of their squares, and from 30 dimensions on the **range finder**: for 32 random directions u the sum of
sign(<u, x>) x. It is near the covariance times u, and so points into the space spanned by the cluster means much more
clearly than noisy sums of cells do.

A release merges cells if there are too few records to fill them all, keeps those that stand out, finds the directions
of the noisy sums that rise above noise (a random matrix of the same size has no singular value above
sqrt(rows) + sqrt(columns)), smooths the cell means in them, clusters the cells, and takes the mean of each cluster from
the sums of its cells, shrunk (James and Stein) towards the mean of all records.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np

from ...arrays import F64, I64, U64
from ...coins import Coins
from ...messages import mismatch
from ..by_round import Pick, places_of
from ..tally import Tally
from .ball import RADIUS, inside
from .borrowed_means import smoothed
from .directions import LENGTH, independent, orthogonal, seed_of
from .lloyd import Clustering, Objective, search
from .regions import KEEP, MODEL_ERROR, ROOT, Found, Kind, Reader, RegionScheme, Sums, counters, moments

MANY_DIMENSIONS, FINDERS = 30, 32
MOST_BITS = 11
# Until the stream is known.
PROVISIONAL_BITS = 8
# Parts of the budget: the number of records, their squares, their sum; and of the rest of the sums, the range finder.
RECORDS, SQUARES, MEAN, FINDER = 0.02, 0.02, 0.05, 0.3
# A point is far from a hyperplane beyond this part of the radius over the root of the dimension.
FAR = 0.3
# Records in a typical cell, in multiples of the noise of its sums in radii: below the first, cells are merged; the
# second decides how many cells there are for the expected number of records.
CLEAR, WANTED = 0.5, 2.6


@dataclass(frozen=True)
class HashCells:
    """The cells that stand out: counts, sums around the mean of all records, the noise of both, and their bits."""

    counts: F64
    sums: F64
    count_variance: float
    variance: float
    signs: F64


class Hashed(RegionScheme):
    """
    >>> Hashed(10, 9).kinds[-1].name, len(Hashed(50, 8).kinds)
    ('sums', 6)
    """

    loose = 1 / 5
    planes: F64
    directions: F64

    def __init__(self, dimension: int, bits: int | None = None) -> None:
        most = min(MOST_BITS, 2 * dimension)
        if bits is not None and bits > most:
            raise mismatch(f"at most {most} bits in {dimension} dimensions", bits, "bits")
        self.dimension, self.bits = dimension, bits or min(PROVISIONAL_BITS, most)
        self.finders = FINDERS if dimension >= MANY_DIMENSIONS else 0
        ranged = f" and a range finder of {self.finders} directions" if self.finders else ""
        self.text = f"{1 << self.bits:,} cells by {self.bits} random hyperplanes{ranged}"
        self.shape = {"mode": "hash", "bits": self.bits, "finders": self.finders}
        one, square = math.isqrt(dimension * RADIUS**2) + 1, RADIUS**2
        # count : sum = 1 : sqrt(d) minimises the error of a cell's mean.
        counts = max(1 / (1 + math.sqrt(dimension)), 0.1)
        whole = 1 - RECORDS - SQUARES
        sums = whole * (1 - counts)
        finder = sums * (1 - MEAN) * FINDER if self.finders else 0.0
        self.kinds = (
            Kind("records", 1, 1, RECORDS),
            Kind("squares", square, square**2, SQUARES),
            Kind("sum", one, square, sums * MEAN, dimension),
            *([Kind("finder", self.finders * one, self.finders * square, finder, dimension)] if self.finders else []),
            Kind("counts", 1, 1, whole * counts),
            Kind("sums", one, square, sums * (1 - MEAN) - finder, dimension),
        )
        self.counts = len(self.kinds) - 2

    def error(self, deviations: F64, k: int) -> float:
        return math.sqrt(max(1.0, (1 << self.bits) / k)) * float(deviations[-1])

    @classmethod
    def best_bits(cls, dimension: int, k: int, records: int, deviation: float) -> int:
        """The most bits that leave the sum of a typical cell clear of its noise (a deviation, in steps of the ball)."""
        clear = WANTED * deviation / RADIUS * max(1.0, dimension / 50)
        wanted = math.floor(math.log2(max(1.0, records / max(clear, 1e-9))))
        return min(max(wanted, math.ceil(math.log2(max(k, 2)))), MOST_BITS, 2 * dimension)

    # Counters ------------------------------------------------------------------------------------------------------

    def drawn(self, coins: Coins) -> Self:
        mine = copy(self)
        mine.planes = orthogonal(seed_of(coins, "planes"), min(self.bits, self.dimension), self.dimension)
        if self.finders:
            mine.directions = independent(seed_of(coins, "finder"), self.finders, self.dimension)
        return mine

    def tallies(self, points: I64, weights: I64, *first: U64) -> list[Tally]:
        return [Tally.of((*first, self.codes(points.astype(np.float64))), moments(points, weights))]

    def gather(self, points: I64, weights: I64) -> Sums:
        found = super().gather(points, weights)
        return Sums((*found, self._finder(points, weights))) if self.finders else found

    def gather_by(self, points: I64, weights: I64, group: I64, count: int) -> Pick:
        tallies = super().gather_by(points, weights, group, count)
        if not self.finders:
            return tallies
        # The directions of a round are many more numbers than its points: they are made when they are asked for.
        order = np.argsort(group, kind="stable")
        points, weights, where = points[order], weights[order], places_of(group[order], count)
        return lambda place: Sums((*tallies(place), self._finder(points[where(place)], weights[where(place)])))

    def codes(self, points: F64) -> U64:
        """A bit for each hyperplane; with more bits than dimensions, also whether a point is far from a hyperplane."""
        sides = points @ self.planes
        bits = sides > 0
        if self.bits > self.dimension:
            far = math.floor(FAR * RADIUS * LENGTH / math.sqrt(self.dimension))
            bits = np.hstack([bits, np.abs(sides[:, : self.bits - self.dimension]) > far])
        return bits @ (np.uint64(1) << np.arange(self.bits - 1, -1, -1, dtype=np.uint64))

    def _finder(self, points: I64, weights: I64) -> I64:
        floats = points.astype(np.float64)
        signs = np.sign(floats @ self.directions)
        # Exact in floats, whatever the order: at most 2^30 records come and as many go, with coordinates up to 2^16, so
        # all partial sums are integers up to 2^47.
        return ((signs * weights[:, None]).T @ floats).astype(np.int64)

    def coordinates(self, totals: Sums) -> dict[Hashable, int]:
        tally: Tally = totals[0]
        whole = tally.amounts.sum(axis=0)[None]
        out = counters(0, ROOT, whole[:, :1]) | counters(1, ROOT, whole[:, -1:]) | counters(2, ROOT, whole[:, 1:-1])
        if self.finders:
            out |= counters(3, np.arange(self.finders, dtype=np.uint64), np.asarray(totals[1]))
        out |= counters(self.counts, tally.words[0], tally.amounts[:, :1])
        out |= counters(self.counts + 1, tally.words[0], tally.amounts[:, 1:-1])
        return out

    # A release -----------------------------------------------------------------------------------------------------

    def cluster(self, totals: Sums, reader: Reader, k: int, objective: Objective) -> Found:
        tally: Tally = totals[0]
        whole = tally.amounts.sum(axis=0)[None]
        records = float(reader.read(0, ROOT, whole[:, :1])[0, 0])
        squares = float(reader.read(1, ROOT, whole[:, -1:])[0, 0])
        there = max(records, 1.0)
        mean = inside(reader.read(2, ROOT, whole[:, 1:-1])[0] / there)
        length = math.sqrt(max(squares, 0.0) / there)
        if records < KEEP * reader.deviation(0):
            return Found.nothing(self.dimension, records, reader.deviation(0))
        cells = self._standing_out(tally, reader, records, mean)
        basis = self._basis(cells, totals, reader, k)
        if not len(basis):
            spread = max(squares - there * float(mean @ mean), 0.0) if objective == "means" else None
            one = np.array([records]), np.array([reader.deviation(0)])
            error = None if spread is None else self._cost_error(reader, mean, 0.0)
            return Found(mean[None], *one, records, spread, error, length)
        seen = cells.sums @ basis.T
        means = smoothed(seen, cells.counts, cells.variance, cells.signs)
        means = (self._within(mean + means @ basis, cells.signs, reader) - mean) @ basis.T
        found = search(means, cells.counts, k, objective, reader.coins)
        return self._lifted(cells, seen, found, basis, mean, objective, reader, (records, squares, length))

    def _standing_out(self, tally: Tally, reader: Reader, records: float, mean: F64) -> HashCells:
        kind = self.counts
        cells = np.arange(1 << self.bits, dtype=np.uint64)
        counts = reader.read(kind, cells, tally.find((cells,))[:, :1])[:, 0]
        noise, count_noise = reader.deviation(kind + 1), reader.deviation(kind)
        bits, fan = self.bits, 1
        clear = CLEAR * noise / RADIUS * max(1.0, self.dimension / 50)
        while bits > 0 and records / 2**bits < clear * math.sqrt(fan):
            bits, fan = bits - 1, fan * 2
        merged = counts.reshape(-1, fan).sum(axis=1)
        kept = np.flatnonzero(merged >= KEEP * count_noise * math.sqrt(fan))
        # The noise of sums is drawn only now, for the cells that are used.
        inner = cells.reshape(-1, fan)[kept].ravel()
        sums = reader.read(kind + 1, inner, tally.find((inner,))[:, 1:-1])
        sums = sums.reshape(len(kept), fan, self.dimension).sum(axis=1) - merged[kept, None] * mean
        signs = (kept[:, None] >> np.arange(bits - 1, -1, -1) & 1).astype(np.float64) * 2 - 1
        return HashCells(merged[kept], sums, count_noise**2 * fan, noise**2 * fan, signs)

    def _basis(self, cells: HashCells, totals: Sums, reader: Reader, k: int) -> F64:
        """The directions in which cells differ by more than their noise, at most 2k of them."""
        if len(cells.counts) < 2:
            return np.zeros((0, self.dimension))
        rows = [cells.sums / math.sqrt(cells.variance)]
        if self.finders:
            finders = np.arange(self.finders, dtype=np.uint64)
            rows.append(reader.read(3, finders, np.asarray(totals[1])) / reader.deviation(3))
        table = np.vstack(rows)
        _, sizes, directions = np.linalg.svd(table, full_matrices=False)
        edge = math.sqrt(self.dimension) + math.sqrt(len(table))
        return np.asarray(directions[: min(int((sizes > edge).sum()), 2 * k)])

    def _within(self, means: F64, signs: F64, reader: Reader) -> F64:
        """Moves the mean of a cell into the cell: to its side of every hyperplane, and to its distance from it."""
        known = min(signs.shape[1], self.dimension)
        far, side = signs[:, known:] > 0, signs[:, :known] > 0
        nearest, farthest = np.zeros(side.shape), np.full(side.shape, float(RADIUS))
        nearest[:, : far.shape[1]] = np.where(far, FAR * RADIUS / math.sqrt(self.dimension), 0.0)
        farthest[:, : far.shape[1]] = np.where(far, RADIUS, FAR * RADIUS / math.sqrt(self.dimension))
        planes = self.planes[:, :known] / LENGTH
        along = means @ planes
        inner = np.clip(along, np.where(side, nearest, -farthest), np.where(side, farthest, -nearest))
        return np.asarray(means + (inner - along) @ planes.T)

    def _lifted(
        self,
        cells: HashCells,
        seen: F64,
        found: Clustering,
        basis: F64,
        mean: F64,
        objective: Objective,
        reader: Reader,
        root: tuple[float, float, float],
    ) -> Found:
        """Centres in the whole space, weights that add up to the number of records, and the cost."""
        records, squares, length = root
        size, width = len(found.centres), basis.shape[0]
        # A direction fitted to noisy rows takes in the noise of all its coordinates as well as that of the rows.
        freedom = width * (1 + self.dimension / (len(cells.counts) + self.finders))
        own = (found.labels[:, None] == np.arange(size)).astype(np.float64)
        members, counts, sums = own.sum(axis=0), own.T @ cells.counts, own.T @ seen
        noise = members * cells.variance
        away = found.centres
        if objective == "means":
            strength = np.einsum("ij,ij->i", sums, sums)
            shrunk = np.clip(1 - max(freedom - 2, 0.0) * noise / np.maximum(strength, 1e-300), 0.0, 1.0)
            away = sums / counts[:, None] * shrunk[:, None]
        part = records / float(counts.sum())
        cost = error = None
        if objective == "means":
            gain = (2 * (sums * away).sum(axis=1) - counts * (away**2).sum(axis=1)).sum()
            # The centres follow the noise of their own sums: that much of the gain is not real.
            optimism = float((2 * freedom * noise / counts).sum())
            cost = max(squares - records * float(mean @ mean) - part * (float(gain) - optimism), 0.0)
            others = float((4 * (away**2).sum(axis=1) * noise).sum()) * part**2
            error = self._cost_error(reader, mean, others + (MODEL_ERROR * cost) ** 2)
        centres = inside(mean + away @ basis)
        # Records that no cell shows may belong to any centre.
        unseen = counts * max(part - 1, 0.0) / 2
        errors = np.hypot(np.sqrt(members * cells.count_variance) * part, unseen)
        return Found(centres, counts * part, errors, records, cost, error, length)

    def _cost_error(self, reader: Reader, mean: F64, others: float) -> float:
        length = float(mean @ mean)
        own = reader.deviation(1) ** 2 + (length * reader.deviation(0)) ** 2 + 4 * length * reader.deviation(2) ** 2
        return math.sqrt(own + others)
