"""A distribution function from interior points of blocks of the sorted records; the number of blocks costs nothing."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..arrays import U64
from ..checks import from_text, integer, number, positive_int
from ..coins import Coins
from ..errors import InputError
from ..schema import Schema
from .base import Bottom, Contract
from .exponential import HALF, Values, interior_point, ordered
from .ordered_domain import LEAST_BETA, Decode, Ordered, check_beta, laplace, log_up
from .quantiles import interior_records, rank_bound

Point = Callable[[Values, int, int, Fraction, Coins], int | Bottom]
# The points, the lengths of the gaps, the number of blocks.
POINTS, GAPS, COUNT = Fraction(7, 10), Fraction(2, 10), Fraction(1, 10)


def gap_length(epsilon: Fraction, delta: Fraction) -> int:
    """The median of the random gap lengths, which are zero or less with probability below delta."""
    if not 0 < delta < 1:
        raise InputError(f"expected a number above 0 and below 1, got {float(delta)!r}", place="delta")
    return math.ceil(log_up(1 / delta) / (GAPS * epsilon))


def lengths(block: int, epsilon: Fraction, delta: Fraction) -> tuple[int, int]:
    """How many records of a block give its point, and how many separate it from the next on average."""
    gap = gap_length(epsilon, delta)
    expected = f"blocks of more than {gap} records, the length of a gap"
    return integer(block, "block", least=gap + 1, expected=expected) - gap, gap


def block_cdf(
    values: Values,
    lower: int,
    upper: int,
    block: int,
    epsilon: Fraction,
    coins: Coins,
    *,
    delta: Fraction = Fraction(1, 10**9),
    point: Point = interior_point,
) -> list[tuple[int, int]]:
    """Ascending pairs (value, rank): about ``rank`` values are at or below the value. `estimate` interpolates.

    The sorted values, followed by ``upper`` without end, are cut into blocks: ``used`` values, of which a point is
    released, then a gap of g_j = max(0, gap + Z_j) values, of which nothing is, with Z_j discrete Laplace noise. There
    are floor((n + noise) / block) + 1 blocks for n values, and block = used + gap.

    **Privacy.** (epsilon, delta) for one value more or less, if ``point`` is e-private for one value more or less (then
    2e for one in the place of another) with 2e = 7/10 epsilon; epsilon / 10 goes to the number of blocks, and
    epsilon / 5 to the gaps. Let D' be D with x more, at rank r. Gaps of D' are matched with gaps of D that differ in
    one place: if x is in the used part of block j, g_j is one shorter in D; if x is in gap j, g_(j+1) is. All starts of
    blocks up to the one after x then keep their ranks, and all later blocks keep their values. In the first case the
    used part j has the next value in the place of x; in the second the used part j + 1 has the value after it in the
    place of its first one; every other used part is the same. So the points cost 2e, and the one Z that differs by 1
    costs epsilon / 5. Given gaps of D, the starts up to x determine which gap differs: the matching is one to one, so
    no outcome is counted twice. It fails only if the gap to be shortened (in D') is zero, or the one to be lengthened
    (in D) was cut off at zero; which gap that is depends on earlier ones alone, so the probability is at most that of
    gap + Z <= 0, which is below delta. (Taking x out of the block it is in would not be one to one: a block that x
    begins and a preceding block that x ends leave the same blocks of D, a factor of 2 that no epsilon pays for.) If
    ``point`` is (e, d)-private, (1 + exp(e)) d is added, once.

    >>> block_cdf(range(10_000), 0, 2**20, 1000, Fraction(4), Coins(bytes(32)))[:3]
    [(486, 487), (1486, 1487), (2485, 2487)]
    """
    found = ordered(values, lower, upper)
    used, gap = lengths(block, epsilon, delta)
    count = len(found) + int(laplace(COUNT * epsilon, coins.branch("count"))[0])
    blocks = max(0, count) // block + 1
    gaps = np.maximum(laplace(GAPS * epsilon, coins.branch("gaps"), blocks) + gap, 0)
    points = [
        point(part, lower, upper, POINTS * epsilon / 2, coins.branch("point", number))
        for number, part in enumerate(used_parts(found, upper, used, gaps.tolist()))
    ]
    known = sorted(value for value in points if not isinstance(value, Bottom))
    ranks = [number * block + used // 2 for number, value in enumerate(points) if not isinstance(value, Bottom)]
    return list(zip(known, ranks, strict=True))


def used_parts(found: Values, upper: int, used: int, gaps: Sequence[int]) -> list[Values]:
    """The used part of each block of sorted values, followed by ``upper`` without end.

    >>> used_parts([1, 2, 3, 4, 5, 6], 9, 2, [1, 0, 0])
    [[1, 2], [4, 5], [6, 9]]
    """
    parts, start = [], 0
    for gap in gaps:
        parts.append(_padded(found[start : start + used], upper, used))
        start += used + gap
    return parts


def _padded(part: Values, upper: int, used: int) -> Values:
    missing = used - len(part)
    if not missing:
        return part
    if isinstance(part, np.ndarray) and upper <= np.iinfo(part.dtype).max:
        return np.concatenate([part, np.full(missing, upper, dtype=part.dtype)])
    return [*(int(value) for value in part), *[upper] * missing]


def estimate(pairs: Sequence[tuple[Any, int]], block: int, value: Any) -> int:
    """How many records are at or below the value, by pairs of `block_cdf`: between two, the middle of what is possible.

    >>> [estimate([(5, 40), (9, 140)], 100, value) for value in (4, 5, 8, 9)]
    [0, 90, 90, 150]
    """
    below = bisect_right(pairs, value, key=lambda pair: pair[0])
    if not below:
        return 0
    rank = pairs[below - 1][1]
    return rank + block // 2 if below < len(pairs) else rank // block * block + block // 2


def walk_bound(steps: int, scale: float, beta: float) -> float:
    """A bound that max |Z_1 + .. + Z_i|, i <= steps, exceeds with probability at most beta, for discrete Laplace Z.

    Z is symmetric, so by Lévy's inequality P(max |S_i| >= t) <= 2 P(|S| >= t) <= 4 E[e^(s Z)]^steps e^(-s t) for every
    s below 1/scale; here the best s of a grid.

    >>> 40 < walk_bound(1, 10.0, 0.05) < 70
    True
    """
    rate = 1 / scale
    grid = (rate * i / 200 for i in range(1, 200))

    def log_transform(s: float) -> float:
        return 2 * math.log(-math.expm1(-rate)) - math.log(-math.expm1(s - rate)) - math.log(-math.expm1(-s - rate))

    return min((steps * log_transform(s) + math.log(4 / beta)) / s for s in grid) * (1 + 1e-9)


def block_error(size: int, records: int, block: int, epsilon: Fraction, delta: Fraction, beta: float) -> float:
    """The largest error of `estimate` for ``records`` records, over all values of a domain of ``size``, with
    probability 1 - beta; infinite where the blocks are too small for a promise.

    Let M = block, m = used, W_j the sum of the first j noises of gaps and e the bound on the ranks by which a point is
    off the middle of its part: `rank_bound`, or m/2 where that is less and all points are interior. If no gap is cut
    off, block j begins after rank (j-1) M + W_(j-1), so a value with exactly j points at or below it, of K, has a rank
    from (j-1) M + W_(j-1) + m/2 - e to, for j < K, jM + W_j + m/2 + e. The estimate is in the middle: off by M/2 + e +
    max |W|. For j = K the rank is at most n, and n is off (K - 1/2) M by M/2 + |noise of the count|. Rounding adds 1 to
    both. The four events share beta evenly.

    >>> block_error(2**64, 10**6, 1000, Fraction(1), Fraction(1, 10**9), 0.05)
    1419.7...
    """
    check_beta(beta)
    used, _ = lengths(block, epsilon, delta)
    count = math.log(8 / beta) / float(COUNT * epsilon)
    blocks = math.floor((records + count) / block) + 1
    share, spent = beta / 4 / blocks, POINTS * epsilon / 2
    if share < max(LEAST_BETA, float(delta)) or used < interior_records(size, spent, share):
        return math.inf
    off = min(rank_bound(size, HALF, spent, share), used / 2)
    return block / 2 + off + max(walk_bound(blocks, 1 / float(GAPS * epsilon), beta / 4), count) + 1


class BlockCDF(Ordered):
    """The distribution function of a field, as pairs (value, rank): about ``rank`` records are at or below the value.

    **Privacy.** (epsilon, delta) for one record more or less, however many blocks there are: `block_cdf`.

    >>> BlockCDF("age", 500, epsilon=1).contract.delta
    Fraction(1, 1000000000)
    """

    kind: ClassVar[str] = "block_cdf"

    def __init__(
        self,
        field: str,
        block: int,
        *,
        delta: float | Fraction = Fraction(1, 10**9),
        epsilon: float | Fraction | None = None,
    ) -> None:
        super().__init__(field, epsilon=epsilon)
        positive_int(block, "block", expected="a whole number of records from 1 on")
        given = number(from_text(delta), "delta", "a number above 0 and below 1", above=0, below=1)
        self.block, self.delta = block, Fraction(str(given))
        if self.epsilon is not None:
            lengths(block, self.epsilon, self.delta)

    def promised(self, epsilon: Fraction) -> Contract:
        return Contract(epsilon, self.delta)

    def answer(self, values: U64, last: int, decode: Decode, coins: Coins) -> list[tuple[Any, int]]:
        pairs = block_cdf(values, 0, last, self.block, self.spent, coins, delta=self.delta)
        return [(decode(value), rank) for value, rank in pairs]

    def error(self, schema: Schema, records: int, beta: float) -> float:
        """The largest error in ranks, over all values, with probability 1 - beta: `block_error`."""
        return block_error(self.size(schema), records, self.block, self.spent, self.delta, beta)
