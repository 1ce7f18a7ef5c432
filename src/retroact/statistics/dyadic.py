"""The noisy tree over the values of a field: dyadic intervals of offsets 0 .. 2^b - 1, in the Haar basis.

It holds the number of records (the root) and, for every interval at depth d < b, d_v = left half minus right half.
Counts follow on the way down, left = (c + d_v) / 2, so the number of records below x is
  root * x / 2^b + sum over depths of d_v * s(x / 2^(b - d)),   s(y) = distance from y to the nearest integer.
Each s^2 is at most 1/9 + h(y) - h(2y) with h = 4s/9 - s^2/3 (equality for s >= 1/4, and 4s/9 <= 1/9 below), so the sum
of the squares over b depths is at most b/9 + 5/36, whatever x.

All ranks are integers over one denominator times 2^depth: nothing is rounded on the way down.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..noise import Mechanism, Tail
from .noisy import NoisyTotals
from .ranks import Ranks, increasing
from .tally import Tally

U64 = npt.NDArray[np.uint64]
Node = tuple[int, int]
"""(prefix, number): number 0 is the root, number d + 1 stands for the difference at depth d."""

# A descent looks at this many depths at once: names are cheap, calls are not.
AHEAD = 3
# It ends at an interval whose noisy count is below so many deviations of its noise, and goes on proportionally.
SHALLOW = 2


def nodes_of(tally: Tally, bits: int) -> dict[Hashable, int]:
    """Every node that is not zero, as ((prefix, number), 0)."""
    out: dict[Hashable, int] = {}
    for offset, amount in zip(tally.words[0].tolist(), tally.amounts[:, 0].tolist(), strict=True):
        for depth in range(bits + 1):
            if depth == 0:
                node, sign = (0, 0), 1
            else:
                # The difference at depth d - 1, in which bit d decides the sign.
                node, sign = (offset >> (bits - depth + 1), depth), 1 - 2 * (offset >> (bits - depth) & 1)
            out[node, 0] = out.get((node, 0), 0) + sign * amount
    return {node: amount for node, amount in out.items() if amount}


class Tree:
    """The tree of one release: nodes are drawn when asked for, and kept until it is published."""

    def __init__(self, tally: Tally, bits: int, noise: Mechanism, index: int) -> None:
        self._tally, self._bits = tally, bits
        self._noise, self._index = noise, index
        self._known: dict[Node, int] = {}
        self.denominator = 1
        self._draw([(0, 0)])
        self.total = self._known[0, 0]

    # Nodes -----------------------------------------------------------------------------------------------------------

    def _draw(self, nodes: Sequence[Node]) -> None:
        """The true value of each node with its noise on."""
        fresh = sorted({node for node in nodes if node not in self._known})
        if not fresh:
            return
        prefixes = np.array([prefix for prefix, _ in fresh], dtype=np.uint64)
        numbers = np.array([number for _, number in fresh], dtype=np.uint64)
        noise, self.denominator = self._noise.sample(self._index, np.stack([prefixes, numbers], axis=1))
        truth = self._truth(prefixes, numbers.astype(np.int64))
        for node, exact, drawn in zip(fresh, truth.tolist(), noise[:, 0].tolist(), strict=True):
            self._known[node] = exact * self.denominator + drawn

    def noisy(self) -> NoisyTotals:
        """All that was drawn."""
        return {(0, node, 0): total for node, total in self._known.items()}

    def _truth(self, prefixes: U64, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        depth = np.maximum(numbers - 1, 0)
        # The last offset of the interval and of its left half: first offsets of the next may not fit 64 bits.
        shift = (self._bits - depth).astype(np.uint64)
        width = np.where(shift >= 64, ~np.uint64(0), (np.uint64(1) << np.minimum(shift, np.uint64(63))) - np.uint64(1))
        first = np.where(shift >= 64, np.uint64(0), prefixes << np.minimum(shift, np.uint64(63)))
        below = self._tally.below
        words = self._tally.words[0]
        start = below[np.searchsorted(words, first)]
        stop = below[np.searchsorted(words, first + width, side="right")]
        middle = below[np.searchsorted(words, first + (width >> np.uint64(1)), side="right")]
        return np.where(numbers == 0, stop - start, 2 * middle - start - stop)

    # What is known of the noise --------------------------------------------------------------------------------------

    @cached_property
    def deviation(self) -> float:
        """Of the noise of one node."""
        return self._noise.deviation_of(0, self._index)

    @cached_property
    def _tail(self) -> Tail:
        return self._noise.tail(self._index, 0)

    @staticmethod
    def worst_of(bits: int, p: float) -> float:
        """The variance, in nodes, of the noise of (records below x) - p * (records), at most."""
        return bits / 9 + 5 / 36 + max(p, 1 - p) ** 2

    def worst(self, p: float) -> float:
        return self.worst_of(self._bits, p)

    def rank_reaches(self, levels: Sequence[float]) -> list[float]:
        """For each level, how far in ranks both ends of an interval lie from the quantile's own rank.

        Let v be the true quantile. A descent to rank r - h that takes the first offset of the interval it ends at ends
        above v only if at one of the b splits on the way to v it went right, so that the noise of the records below
        that split, less p times that of all records, was -h or lower (and likewise above, with the last offset): the
        union bound over b splits on both sides.
        """
        # Of all weights s <= 1/2 with these squares, few large ones have the heaviest tail.
        weights = [(0.5, math.ceil(4 * (self._bits / 9 + 5 / 36))), (1.0, 1)]
        chances = [(1 - level) / (2 * max(1, self._bits)) for level in levels]
        return self._tail.combined(weights).reaches(chances)

    @property
    def above_zero(self) -> bool:
        """Whether the number of records can be told from zero at the 95 % level."""
        records = self.total / self.denominator
        # By Chebyshev the half-width is below 4.48 deviations, which settles most cases without a tail.
        return records > 4.5 * self.deviation or records > self._noise.half_width(self._index, 0, 0.95)

    # Ranks and values ------------------------------------------------------------------------------------------------

    def rank(self, p: float, beyond: float = 0.0) -> int:
        """p times the noisy number of records, plus so many ranks, over the denominator."""
        numerator, denominator = p.as_integer_ratio() if isinstance(p, float) else (p, 1)
        return numerator * self.total // denominator + round(beyond * self.denominator)

    def descend(self, targets: Sequence[int], sides: Sequence[int] | None = None) -> list[int]:
        """The offset at each rank. Targets on the same path share it; a larger one never ends lower. Within the
        interval where the descent ends it is the first offset (side -1), the last (1) or in proportion (0)."""
        # Of the count of an interval, whose noise converges to 1/sqrt(3) of a node's; in integers, as it decides.
        shallow = math.isqrt(SHALLOW**2 * self._noise.square_of(0, self._index) // 3)
        # (depth, prefix, count, rank) of each target, the last two over denominator * 2^depth.
        places = [(0, 0, self.total, target) for target in targets]
        ends: dict[int, int] = {}
        for depth in range(self._bits):
            open_ = [i for i in range(len(places)) if i not in ends]
            for i in open_:
                _, prefix, size, rank = places[i]
                if size <= shallow << depth:
                    ends[i] = self._within(prefix, depth, size, rank, sides[i] if sides else 0)
            open_ = [i for i in open_ if i not in ends]
            if not open_:
                break
            self._look_ahead({places[i][1] for i in open_}, depth)
            for i in open_:
                places[i] = self._step(*places[i])
        return [ends.get(i, places[i][1]) for i in range(len(places))]

    def _step(self, depth: int, prefix: int, size: int, rank: int) -> tuple[int, int, int, int]:
        left = self._left(depth, prefix, size)
        if 2 * rank < left:
            return depth + 1, 2 * prefix, left, 2 * rank
        return depth + 1, 2 * prefix + 1, 2 * size - left, 2 * rank - left

    def _left(self, depth: int, prefix: int, size: int) -> int:
        """The noisy count of the left half, over denominator * 2^(depth + 1)."""
        return size + (self._known[prefix, depth + 1] << depth)

    def _look_ahead(self, prefixes: set[int], depth: int) -> None:
        """Draw what the next steps from these intervals may need."""
        if all((prefix, depth + 1) in self._known for prefix in prefixes):
            return
        ahead = AHEAD if len(prefixes) <= 64 else 1
        self._draw(
            [
                ((prefix << step) + k, depth + step + 1)
                for prefix in prefixes
                for step in range(min(ahead, self._bits - depth))
                for k in range(1 << step)
            ]
        )

    def _within(self, prefix: int, depth: int, size: int, rank: int, side: int) -> int:
        """In an interval that holds hardly more than noise: an end of it, or as if its records were spread evenly."""
        width = 1 << (self._bits - depth)
        if side or size <= 0:
            inside = width - 1 if side > 0 or (not side and rank > 0) else 0
        else:
            inside = min(max(rank, 0) * width // size, width - 1)
        return prefix * width + inside

    def below(self, offset: int) -> tuple[int, dict[Node, float]]:
        """The noisy number of records under an offset, over denominator * 2^bits, and the weight of each node in it."""
        if offset >> self._bits:
            return self.total << self._bits, {(0, 0): 1.0}
        path = [(offset >> (self._bits - depth)) for depth in range(self._bits)]
        self._draw([(prefix, depth + 1) for depth, prefix in enumerate(path)])
        total, size = 0, self.total
        for depth, prefix in enumerate(path):
            left = self._left(depth, prefix, size)
            if offset >> (self._bits - depth - 1) & 1:
                total, size = 2 * total + left, 2 * size - left
            else:
                total, size = 2 * total, left
        return total, self._weights(offset, path)

    def _weights(self, offset: int, path: list[int]) -> dict[Node, float]:
        out: dict[Node, float] = {(0, 0): offset / 2**self._bits}
        for depth, prefix in enumerate(path):
            width = 1 << (self._bits - depth)
            inside = offset % width
            out[prefix, depth + 1] = min(inside, width - inside) / width
        return out

    # What is published -----------------------------------------------------------------------------------------------

    def ranks(
        self,
        values: Mapping[float, Any],
        points: Mapping[Any, int],
        spans: Mapping[tuple[Any, Any], tuple[int, int]],
        unknown: bool,
    ) -> Ranks:
        """The quantiles, with the distribution function and the counts that were asked for."""
        full = self.denominator << self._bits
        counts, reaches = {}, {}
        for span, (first, last) in spans.items():
            (high, above), (low, under) = self.below(last + 1), self.below(first)
            weights = {node: above.get(node, 0.0) - under.get(node, 0.0) for node in above.keys() | under.keys()}
            counts[span] = (high - low) / full
            reaches[span] = self._combined(weights)
        records = self.total / self.denominator
        raw, spread = {}, {}
        for point, offset in points.items():
            below, weights = self.below(offset + 1)
            raw[point] = 0.0 if unknown else below / full / records
            spread[point] = self._combined(weights | {(0, 0): 1.0})
        order = sorted(points, key=points.__getitem__)
        risen = dict(zip(order, increasing([raw[point] for point in order]), strict=True))
        cdf = {point: None if unknown else min(1.0, max(0.0, risen[point])) for point in points}
        return Ranks(values, cdf=cdf, counts=counts, records=records, raw=raw,
                     noise={"counts": reaches, "cdf": spread})  # fmt: skip

    def _combined(self, weights: Mapping[Node, float]) -> Tail:
        used = [abs(weight) for weight in weights.values() if weight]
        return self._tail.combined([(weight, 1) for weight in used])
