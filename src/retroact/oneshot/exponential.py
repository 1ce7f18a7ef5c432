"""The exponential mechanism on an ordered domain of any size, exact: quantiles, interior points, any step function.

Scores of a quantile are constant between records, so an outcome is drawn as a piece and a position in it, from one
uniform integer below the sum of (length x weight). Weights are those of `Weights`; no float is involved.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import index, mul
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ..arrays import I64, U64
from ..coins import Coins
from ..coins.exact_cdf import exp_minus
from ..coins.uniform import integer
from ..errors import InputError

Values = Sequence[int] | npt.NDArray[Any]
HALF = Fraction(1, 2)
# Above the natural logarithm of two by less than 2^-33 of it: for spreads below 2^32 bits that is less than one bit.
LOG_TWO = Fraction(6931471806, 10**10)
# Outcomes that are cut off have a total share below 2^-SPARE.
SPARE = 64
GUARD = 78
SHRINK = 1 - Fraction(1, 2**40)


class Ranked(Sequence[int]):
    """Values in ascending order, each as often as it counts, without a copy of them: distinct ``words``, and how many
    values are ``below`` each of them (and below the end).

    >>> values = Ranked(np.array([3, 9], dtype=np.uint64), np.array([0, 2, 3]))
    >>> len(values), values[1], values[1:3].tolist(), bisect_left(values, 9)
    (3, 3, [3, 9], 2)
    """

    def __init__(self, words: U64, below: I64) -> None:
        self._words, self._below = words, below

    def __len__(self) -> int:
        return int(self._below[-1])

    @overload
    def __getitem__(self, rank: int) -> int: ...

    @overload
    def __getitem__(self, rank: slice) -> Any: ...

    def __getitem__(self, rank: int | slice) -> Any:
        if isinstance(rank, slice):
            return self._words[self._places(np.arange(*rank.indices(len(self))))]
        return int(self._words[self._places(rank if rank >= 0 else len(self) + rank)])

    def _places(self, ranks: Any) -> Any:
        return np.searchsorted(self._below, ranks, side="right") - 1


class Weights:
    """The weights e^(-unit * deficit) of an exponential mechanism, as integers.

    Write E(d) = 2^F e^(-rate d), with rate = unit (1 - 2^-40). A weight is E(min(d, cap)) (1 + error) with |error| <=
    k, where k <= unit 2^-44 and cap is a function of ``unit`` and ``size`` alone.

    **Privacy** (the lemma that every mechanism here rests on). Let neighbouring data move the scores of all outcomes by
    amounts in an interval of length R >= 1, in units. Then the deficits, counted from the best score of the data, move
    by amounts in an interval of length R that holds zero; so do deficits cut off at cap, since cutting off is monotone
    and 1-Lipschitz. So the logarithms of the weights move by amounts in an interval of length R rate + 4.1 k, and so do
    those of the probabilities: the two totals differ by a mean of the factors. The interval holds zero. And R rate +
    4.1 k <= R unit - R unit 2^-40 + unit 2^-41 < R unit: the mechanism has a range bounded by R unit, and R
    unit-privacy, **exactly**, with nothing left over for rounding. The outcomes cut off share less than 2^-64 of the
    probability as long as there are at most ``size`` of them.

    Error of a weight: the scale F leaves every weight above 2^g, with 2^g > 2^78 / unit. ``exp_minus`` is off by less
    than one unit of 2^-F where its result is above 2^(g - F), and a product that is cut off loses less than one: both
    are relative errors below 2^-g, and with at most 2^32 products k <= 2^(34 - g).

    >>> weights = Weights(Fraction(1), size=2)
    >>> weights.at(0) == 1 << weights.precision, round(math.log(weights.at(0) / weights.at(3)), 9)
    (True, 3.0)
    >>> weights.at(weights.cap) == weights.at(weights.cap + 10**30)
    True
    """

    def __init__(self, unit: Fraction, size: int) -> None:
        """``size`` bounds the number of outcomes. It must be public, not a function of the data."""
        self.rate = unit * SHRINK
        spread = size.bit_length() + SPARE
        self.cap = math.ceil(spread * LOG_TWO / self.rate)
        # Rounded up, the cap may be one unit beyond the spread, which is less than 3/2 rate bits.
        self.precision = spread + math.ceil(self.rate * 3 / 2) + GUARD + math.ceil(1 / unit).bit_length() + 1

    def at(self, deficit: int) -> int:
        return exp_minus(self.rate * min(deficit, self.cap), self.precision)

    def progression(self, start: int, stride: int, count: int) -> list[int]:
        """The ``count`` weights at start, start + stride, ..., none beyond the cap."""
        if not count:
            return []
        ratio, weight, found = exp_minus(self.rate * stride, self.precision), self.at(start), []
        for _ in range(count):
            found.append(weight)
            weight = weight * ratio >> self.precision
        return found

    def of(self, deficits: list[int]) -> list[int]:
        known: dict[int, int] = {}
        ratios: dict[int, int] = {}
        last, weight = 0, 1 << self.precision
        for deficit in sorted({min(deficit, self.cap) for deficit in deficits}):
            gap = deficit - last
            if gap not in ratios:
                ratios[gap] = exp_minus(self.rate * gap, self.precision)
            weight = weight * ratios[gap] >> self.precision
            known[deficit] = weight
            last = deficit
        return [known[min(deficit, self.cap)] for deficit in deficits]


class Steps:
    """A law that is constant on pieces: from ``starts[i]`` on, ``lengths[i]`` outcomes of weight ``weights[i]`` each.

    >>> Steps([10, 20], [1, 3], [5, 1]).probability(20)
    Fraction(1, 8)
    """

    def __init__(self, starts: Sequence[int], lengths: Sequence[int], weights: Sequence[int]) -> None:
        self.starts, self.lengths, self.weights = starts, lengths, weights
        self._sums = list(accumulate(map(mul, lengths, weights)))

    def sample(self, coins: Coins) -> int:
        drawn = integer(coins, self._sums[-1])
        piece = bisect_right(self._sums, drawn)
        before = self._sums[piece - 1] if piece else 0
        return int(self.starts[piece] + (drawn - before) // self.weights[piece])

    def probability(self, outcome: int) -> Fraction:
        there = zip(self.starts, self.lengths, self.weights, strict=True)
        mass = sum(weight for start, length, weight in there if start <= outcome < start + length)
        return Fraction(mass, self._sums[-1])


def ordered(values: Values, lower: int, upper: int) -> Values:
    """Sorted and checked against the bounds. Arrays of 64-bit integers stay arrays."""
    if lower > upper:
        raise InputError(f"expected a lower bound up to the upper, got {lower} and {upper}", place="lower")
    if isinstance(values, Ranked):
        found: Values = values
    elif isinstance(values, np.ndarray) and values.dtype in (np.int64, np.uint64):
        found = values if bool((values[:-1] <= values[1:]).all()) else np.sort(values)
    else:
        try:
            found = sorted(index(value) for value in values)
        except TypeError as error:
            raise InputError(f"expected whole numbers, got others ({error})", place="values") from None
    if len(found) and not lower <= int(found[0]) <= int(found[-1]) <= upper:
        raise InputError(f"expected values between {lower} and {upper}, got others", place="values")
    return found


def unit_of(probability: Fraction, epsilon: Fraction) -> Fraction:
    """The weight of one unit of the score of `quantile_law`, for a range bounded by epsilon."""
    a, c = probability.numerator, probability.denominator
    # The smallest and the largest value have one-sided scores: L or G alone.
    return epsilon / (c if probability in (0, 1) else 2 * max(a, c - a))


def quantile_law(values: Values, lower: int, upper: int, probability: Fraction, epsilon: Fraction) -> Steps:
    """The law of `quantile_point`.

    The score of o is the larger of c L(o) - a n and c G(o) - (c - a) n, for probability a/c, n records, L(o) of them
    below o and G(o) above: c times the number of ranks that o is off, negative where ties cover the quantile.

    **Privacy.** For one record more or less the range is bounded by epsilon, hence epsilon-privacy. A record more below
    o moves the two terms by c - a and a - c, one above o by -a and a, one at o by -a and a - c: all within
    +-max(a, c - a), a range of R = 2 max(a, c - a) units; for a = 0 the score is c L(o), which moves by 0 or c, and
    likewise for a = c. A unit weighs epsilon / R; `Weights` has the rest.

    With k records at or below o, where k <= an/c, the score is an - ck, whether o is a record or lies between two; with
    k records below o, where k > an/c, it is ck - an; and one value covers the quantile itself and scores lowest.
    """
    found, n = ordered(values, lower, upper), len(values)
    a, c = probability.numerator, probability.denominator
    weights = Weights(unit_of(probability, epsilon), upper - lower + 1)
    middle = a * n // c
    if middle < n:
        centre = int(found[middle])
        best = max(c * bisect_left(found, centre) - a * n, a * n - c * bisect_right(found, centre))
    else:
        centre, best = upper + 1, 0
    # Ranks whose pieces are not cut off.
    low = max(0, -((weights.cap + best - a * n) // c))
    high = min(n, (weights.cap + best + a * n) // c)
    # Left: from the record of rank k to before the next, one of which is the centre.
    starts = [] if low == 0 else [lower]
    masses = [] if low == 0 else [weights.at(weights.cap)]
    if low <= middle:
        starts += [lower] if low == 0 else []
        starts += _plain(found, max(low - 1, 0), middle)
        masses += weights.progression(a * n - c * middle - best, c, middle - low + 1)[::-1]
    if middle < n:
        starts.append(centre)
        masses.append(1 << weights.precision)
        # Right: from after the record of rank k to the next.
        if high > middle:
            starts += [value + 1 for value in _plain(found, middle, high)]
            masses += weights.progression(c * (middle + 1) - a * n - best, c, high - middle)
        if high < n:
            starts.append(int(found[max(high, middle)]) + 1)
            masses.append(weights.at(weights.cap))
    lengths = [after - start for start, after in pairwise([*starts, upper + 1])]
    return Steps(starts, lengths, masses)


def quantile_point(
    values: Values, lower: int, upper: int, probability: Fraction, epsilon: Fraction, coins: Coins
) -> int:
    """A value of the domain lower .. upper near the quantile of the values, which need not be sorted; a uniform value
    of the domain if there are none.

    **Privacy.** epsilon, with the range bounded by it, for one value more or less: `quantile_law`.

    >>> quantile_point([3, 5, 5, 5, 9] * 20, 0, 10**30, Fraction(1, 2), Fraction(1), Coins(bytes(32)))
    5
    """
    return quantile_law(values, lower, upper, probability, epsilon).sample(coins)


def interior_point(values: Values, lower: int, upper: int, epsilon: Fraction, coins: Coins) -> int:
    """A value of the domain lower .. upper that is neither below nor above all of the values, if there are enough
    (`quantiles.interior_records`): the median, whose score min(#{x <= o}, #{x >= o}) is the best possible.

    **Privacy.** epsilon, with the range bounded by it, for one value more or less: `quantile_law`.

    >>> 7 <= interior_point([7] * 50 + [8] * 50, 0, 2**64 - 1, Fraction(1), Coins(bytes(32))) <= 8
    True
    """
    return quantile_point(values, lower, upper, HALF, epsilon, coins)


def step_law(pieces: Sequence[tuple[int, int, int]], unit: Fraction, size: int) -> Steps:
    """The law of `choose`."""
    best = min(deficit for _, length, deficit in pieces if length)
    weights = Weights(unit, size).of([max(deficit - best, 0) for _, _, deficit in pieces])
    return Steps([start for start, _, _ in pieces], [length for _, length, _ in pieces], weights)


def choose(pieces: Sequence[tuple[int, int, int]], unit: Fraction, coins: Coins, *, size: int = 2**64) -> int:
    """An outcome, with probability proportional to e^(-unit * deficit): of pieces (start, length, deficit), which do
    not overlap and are not all empty.

    **Privacy.** Let one record more or less move all deficits by amounts in an interval of length R >= 1, with the same
    outcomes: the range is bounded by R unit, hence R unit-privacy (`Weights`). ``size`` bounds the sum of the lengths
    and must be public; beyond it the answer is as private but less useful.

    >>> choose([(0, 10, 50), (10, 1, 0), (11, 10**6, 70)], Fraction(1), Coins(bytes(32)))
    10
    """
    return step_law(pieces, unit, size).sample(coins)


def _plain(values: Values, start: int, stop: int) -> list[int]:
    part = values[start:stop]
    return part.tolist() if isinstance(part, np.ndarray) else list(part)
