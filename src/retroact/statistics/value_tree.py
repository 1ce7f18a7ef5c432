"""The noisy tree over the values of a field: dyadic intervals of offsets 0 .. 2^b - 1, in the Haar basis.

It holds the number of records (the root) and, for every interval at depth d < b, d_v = left half minus right half.
Counts follow on the way down, left = (c + d_v) / 2, so the number of records below x is
  root * x / 2^b + sum over depths of d_v * s(x / 2^(b - d)),   s(y) = distance from y to the nearest integer.
Each s^2 is at most 1/9 + h(y) - h(2y) with h = 4s/9 - s^2/3 (equality for s >= 1/4, and 4s/9 <= 1/9 below), so the sum
of the squares over b depths is at most b/9 + 5/36, whatever x.

All ranks are integers over one denominator times 2^depth, so nothing is rounded on the way down.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import I64, U64
from ..noise import Mechanism, Spread
from .answer import NoisyTotals
from .quantile_answer import Height, Ranks, increasing
from .tally import Tally

Node = tuple[int, int]
"""(prefix, number): number 0 is the root, number d + 1 the difference at depth d."""

ROOT: Node = (0, 0)
# A descent draws this many depths at once: names are cheap, calls are not.
AHEAD = 3
# In deviations: a descent ends at an interval with a noisy count below this, and interpolates in it.
SHALLOW = 2
# Node numbers of one tree: the root, and the differences at no more than 64 depths. Trees of several groups have the
# numbers of the first, then those of the second, and so on.
NUMBERS = 65


def nodes_of(tally: Tally, bits: int, first: int = 0) -> dict[Hashable, int]:
    """Every node that is not zero, as ((prefix, first + number), 0)."""
    out: dict[Hashable, int] = {}
    for offset, amount in zip(tally.words[0].tolist(), tally.amounts[:, 0].tolist(), strict=True):
        for depth in range(bits + 1):
            if depth == 0:
                node, sign = (0, first), 1
            else:
                # The difference at depth d - 1, in which bit d decides the sign.
                node, sign = (offset >> (bits - depth + 1), first + depth), 1 - 2 * (offset >> (bits - depth) & 1)
            out[node, 0] = out.get((node, 0), 0) + sign * amount
    return {node: amount for node, amount in out.items() if amount}


class ValueTree:
    """The tree of one release. Nodes are drawn on demand, by numbers from ``first`` on, and kept until it is
    published."""

    def __init__(self, tally: Tally, bits: int, noise: Mechanism, index: int, first: int = 0) -> None:
        self._tally, self.bits, self._first = tally, bits, first
        self._noise, self._index = noise, index
        self._known: dict[Node, int] = {}
        self._weights_at: dict[Node, tuple[float, float, float]] = {}
        self._noises: dict[tuple[int, int, float], Spread] = {}
        self.denominator = 1
        self._draw([ROOT])
        self.total = self._known[ROOT]

    def _draw(self, nodes: Sequence[Node]) -> None:
        """Draws the noise of these nodes, and adds it to their true values."""
        fresh = sorted({node for node in nodes if node not in self._known})
        if not fresh:
            return
        prefixes = np.array([prefix for prefix, _ in fresh], dtype=np.uint64)
        numbers = np.array([number for _, number in fresh], dtype=np.uint64)
        names = np.stack([prefixes, numbers + np.uint64(self._first)], axis=1)
        noise, self.denominator = self._noise.sample(self._index, names)
        truth = self._truth(prefixes, numbers.astype(np.int64))
        for node, exact, drawn in zip(fresh, truth.tolist(), noise[:, 0].tolist(), strict=True):
            self._known[node] = exact * self.denominator + drawn

    def noisy(self) -> NoisyTotals:
        return {(0, (prefix, self._first + number), 0): total for (prefix, number), total in self._known.items()}

    def _truth(self, prefixes: U64, numbers: I64) -> I64:
        depth = np.maximum(numbers - 1, 0)
        # By last offsets of the interval and of its left half: the first offset after them may not fit 64 bits.
        shift = (self.bits - depth).astype(np.uint64)
        width = np.where(shift >= 64, ~np.uint64(0), (np.uint64(1) << np.minimum(shift, np.uint64(63))) - np.uint64(1))
        first = np.where(shift >= 64, np.uint64(0), prefixes << np.minimum(shift, np.uint64(63)))
        below = self._tally.below
        words = self._tally.words[0]
        start = below[np.searchsorted(words, first)]
        stop = below[np.searchsorted(words, first + width, side="right")]
        middle = below[np.searchsorted(words, first + (width >> np.uint64(1)), side="right")]
        return np.where(numbers == 0, stop - start, 2 * middle - start - stop)

    @cached_property
    def deviation(self) -> float:
        return self.spread.deviation

    @cached_property
    def spread(self) -> Spread:
        """The noise of one node."""
        spread = self._noise.spread(self._index, 0)
        assert spread is not None
        return spread

    @staticmethod
    def worst_of(bits: float, p: float) -> float:
        """The largest variance, in nodes, of the noise of (records below x) - p * (records)."""
        return bits / 9 + 5 / 36 + max(p, 1 - p) ** 2

    def noise_at_middle(self, depth: int, prefix: int, p: float) -> Spread:
        """The noise of (records below x) - p * (records) for x in the middle of an interval."""
        key = depth, prefix, p
        if key not in self._noises:
            if (depth, prefix) not in self._weights_at:
                self._weights_at[depth, prefix] = _weights_at_middle(depth, prefix)
            second, fourth, place = self._weights_at[depth, prefix]
            root = (place - p) ** 2
            self._noises[key] = Spread(
                self.spread.variance * (second + root),
                self.spread.fourth * (fourth + root**2),
                self.spread.spacing * max(0.5, abs(place - p)),
            )
        return self._noises[key]

    def most_noise(self, p: float, level: float) -> tuple[float, float]:
        """The largest deviation and half-width of that noise over all x: of all sums, one Laplace variable or a
        Gaussian is the widest, depending on the level."""
        variance = self.spread.variance * self.worst_of(self.bits, p)
        laws = [Spread(variance, fourth, self.spread.spacing) for fourth in (0.0, 3 * variance**2)]
        return math.sqrt(variance), max(law.half_width(level) for law in laws)

    @property
    def above_zero(self) -> bool:
        """Whether the number of records is significantly above zero, at the 95 % level."""
        records = self.total / self.denominator
        # By Chebyshev the half-width is below 4.48 deviations, which settles most cases without a tail.
        return records > 4.5 * self.deviation or records > self._noise.half_width(self._index, 0, 0.95)

    def rank(self, p: float) -> int:
        """p times the noisy number of records, over the denominator."""
        numerator, denominator = p.as_integer_ratio()
        return numerator * self.total // denominator

    def descend(self, targets: Sequence[int]) -> list[int]:
        """The offset at each rank; a larger rank never ends lower. Where a descent ends at an interval, the offset in
        it is interpolated."""
        # The noise of an interval's count converges to 1/sqrt(3) of a node's. In integers, since it decides.
        shallow = math.isqrt(SHALLOW**2 * self._noise.square_of(0, self._index) // 3)
        # For each target (depth, prefix, count, rank), the last two over denominator * 2^depth.
        places = [(0, 0, self.total, target) for target in targets]
        ends: dict[int, int] = {}
        for depth in range(self.bits):
            open_ = [i for i in range(len(places)) if i not in ends]
            for i in open_:
                _, prefix, size, rank = places[i]
                if size <= shallow << depth:
                    ends[i] = self._within(prefix, depth, size, rank)
            open_ = [i for i in open_ if i not in ends]
            if not open_:
                break
            self.look_ahead({places[i][1] for i in open_}, depth)
            for i in open_:
                places[i] = self._step(*places[i])
        return [ends.get(i, places[i][1]) for i in range(len(places))]

    def _step(self, depth: int, prefix: int, size: int, rank: int) -> tuple[int, int, int, int]:
        left = self.left(depth, prefix, size)
        if 2 * rank < left:
            return depth + 1, 2 * prefix, left, 2 * rank
        return depth + 1, 2 * prefix + 1, 2 * size - left, 2 * rank - left

    def left(self, depth: int, prefix: int, size: int) -> int:
        """The noisy count of the left half, over denominator * 2^(depth + 1)."""
        return size + (self._known[prefix, depth + 1] << depth)

    def look_ahead(self, prefixes: set[int], depth: int) -> None:
        """Draws what the next steps from these intervals may need."""
        if all((prefix, depth + 1) in self._known for prefix in prefixes):
            return
        ahead = AHEAD if len(prefixes) <= 64 else 1
        self._draw(
            [
                ((prefix << step) + k, depth + step + 1)
                for prefix in prefixes
                for step in range(min(ahead, self.bits - depth))
                for k in range(1 << step)
            ]
        )

    def _within(self, prefix: int, depth: int, size: int, rank: int) -> int:
        """The position in an interval that holds hardly more than noise: as if its records were spread evenly, or at
        one of its ends if it has none."""
        width = 1 << (self.bits - depth)
        inside = max(rank, 0) * width // size if size > 0 else width * (rank > 0)
        return prefix * width + min(inside, width - 1)

    def below(self, offset: int) -> tuple[int, dict[Node, float]]:
        """The noisy number of records under an offset, over denominator * 2^bits, and the weight of each node in it."""
        if offset >> self.bits:
            return self.total << self.bits, {ROOT: 1.0}
        path = [(offset >> (self.bits - depth)) for depth in range(self.bits)]
        self._draw([(prefix, depth + 1) for depth, prefix in enumerate(path)])
        total, size = 0, self.total
        for depth, prefix in enumerate(path):
            left = self.left(depth, prefix, size)
            if offset >> (self.bits - depth - 1) & 1:
                total, size = 2 * total + left, 2 * size - left
            else:
                total, size = 2 * total, left
        return total, self._weights(offset, path)

    def _weights(self, offset: int, path: list[int]) -> dict[Node, float]:
        out: dict[Node, float] = {ROOT: offset / 2**self.bits}
        for depth, prefix in enumerate(path):
            width = 1 << (self.bits - depth)
            inside = offset % width
            out[prefix, depth + 1] = min(inside, width - inside) / width
        return out

    def ranks(
        self,
        values: Mapping[float, Any],
        points: Mapping[Any, int],
        spans: Mapping[tuple[Any, Any], tuple[int, int]],
        unknown: bool,
    ) -> Ranks:
        """The quantiles, with the requested distribution function and counts."""
        full = self.denominator << self.bits
        counts, noise = {}, {}
        for span, (first, last) in spans.items():
            (high, above), (low, under) = self.below(last + 1), self.below(first)
            weights = {node: above.get(node, 0.0) - under.get(node, 0.0) for node in above.keys() | under.keys()}
            counts[span] = (high - low) / full
            noise[span] = self._combined(weights)
        records = self.total / self.denominator
        raw = {}
        for point, offset in points.items():
            below, weights = self.below(offset + 1)
            share = weights.pop(ROOT, 0.0)
            raw[point] = Height(below / full, records, share, self._combined(weights), self.spread)
        order = sorted(points, key=points.__getitem__)
        risen = increasing([0.0 if unknown else raw[point].value for point in order])
        cdf = {
            point: None if unknown else min(1.0, max(0.0, height)) for point, height in zip(order, risen, strict=True)
        }
        return Ranks(
            values, cdf={point: cdf[point] for point in points}, counts=counts, records=records, raw=raw, noise=noise
        )

    def _combined(self, weights: Mapping[Node, float]) -> Spread:
        return Spread.combined((weight, self.spread) for weight in weights.values())


def _weights_at_middle(depth: int, prefix: int) -> tuple[float, float, float]:
    """For the middle of an interval: the sums of the squared and of the fourth powers of the weights that differences
    have in the number of records below it; and its position in the domain."""
    odd, second, fourth, width = 2 * prefix + 1, 0.0, 0.0, 1
    for _ in range(depth + 1):
        width *= 2
        inside = odd % width
        square = (min(inside, width - inside) / width) ** 2
        second += square
        fourth += square * square
    return second, fourth, odd / width
