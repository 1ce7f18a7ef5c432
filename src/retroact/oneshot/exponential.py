"""The exponential mechanism on an ordered domain of any size, exact: quantiles, interior points, any step function.

Scores of a quantile are constant between the records, so an outcome is drawn as a piece and a place in it, from one
uniform integer below the sum of (length x weight). Weights are those of `Weights`; no float is involved.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import index, mul
from typing import Any

import numpy as np
import numpy.typing as npt

from ..coins import Coins
from ..coins.uniform import integer
from ..errors import InputError
from .exponential_weights import Weights

Values = Sequence[int] | npt.NDArray[Any]
HALF = Fraction(1, 2)


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
    """Sorted, and held against the bounds. Arrays of 64-bit integers stay arrays."""
    if lower > upper:
        raise InputError(f"expected a lower bound up to the upper, got {lower} and {upper}", place="lower")
    if isinstance(values, np.ndarray) and values.dtype in (np.int64, np.uint64):
        found: Values = values if bool((values[:-1] <= values[1:]).all()) else np.sort(values)
    else:
        try:
            found = sorted(index(value) for value in values)
        except TypeError as error:
            raise InputError(f"expected whole numbers, got others ({error})", place="values") from None
    if len(found) and not lower <= int(found[0]) <= int(found[-1]) <= upper:
        raise InputError(f"expected values between {lower} and {upper}, got others", place="values")
    return found


def unit_of(probability: Fraction, epsilon: Fraction) -> Fraction:
    """What one unit of the score of `quantile_law` may weigh, for a range bounded by epsilon."""
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
        # Right: from behind the record of rank k to the next.
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
    """A value of the domain lower .. upper near the quantile of the values, which need not be sorted; any value of the
    domain, all alike, for no values at all.

    **Privacy.** epsilon, with the range bounded by it, for one value more or less: `quantile_law`.

    >>> quantile_point([3, 5, 5, 5, 9] * 20, 0, 10**30, Fraction(1, 2), Fraction(1), Coins(bytes(32)))
    5
    """
    return quantile_law(values, lower, upper, probability, epsilon).sample(coins)


def interior_point(values: Values, lower: int, upper: int, epsilon: Fraction, coins: Coins) -> int:
    """A value of the domain lower .. upper that is neither below all of the values nor above all of them, where there
    are enough (`points.interior_records`): the median, whose score min(#{x <= o}, #{x >= o}) is the best there is.

    **Privacy.** epsilon, with the range bounded by it, for one value more or less: `quantile_law`.

    >>> 7 <= interior_point([7] * 50 + [8] * 50, 0, 2**64 - 1, Fraction(1), Coins(bytes(32))) <= 8
    True
    """
    return quantile_point(values, lower, upper, HALF, epsilon, coins)


def probabilities(values: Values, lower: int, upper: int, probability: Fraction, epsilon: Fraction) -> list[Fraction]:
    """The exact probability of every value of a small domain.

    >>> probabilities([], 0, 3, Fraction(1, 2), Fraction(1))
    [Fraction(1, 4), Fraction(1, 4), Fraction(1, 4), Fraction(1, 4)]
    """
    law = quantile_law(values, lower, upper, probability, epsilon)
    return [law.probability(outcome) for outcome in range(lower, upper + 1)]


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
    and must be public; beyond it the answer is as private and less useful.

    >>> choose([(0, 10, 50), (10, 1, 0), (11, 10**6, 70)], Fraction(1), Coins(bytes(32)))
    10
    """
    return step_law(pieces, unit, size).sample(coins)


def _plain(values: Values, start: int, stop: int) -> list[int]:
    part = values[start:stop]
    return part.tolist() if isinstance(part, np.ndarray) else list(part)
