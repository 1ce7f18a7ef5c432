"""The weights e^(-unit * deficit) of an exponential mechanism, as integers.

Write E(d) = 2^F e^(-rate d), with rate = unit (1 - 2^-40). A weight is E(min(d, cap)) (1 + error) with |error| <= k,
where k <= unit 2^-44 and cap is a function of ``unit`` and ``size`` alone.

**Privacy** (the lemma that every mechanism here rests on). Let neighbouring data move the scores of all outcomes by
amounts in an interval of length R >= 1, in units. Then the deficits, counted from the best score of the data, move by
amounts in an interval of length R that holds zero; so do deficits cut off at cap, since cutting off is monotone and
1-Lipschitz. So the logarithms of the weights move by amounts in an interval of length R rate + 4.1 k, and so do those
of the probabilities: the two totals differ by a mean of the factors. The interval holds zero. And
R rate + 4.1 k <= R unit - R unit 2^-40 + unit 2^-41 < R unit: the mechanism has a range bounded by R unit, and
R unit-privacy, **exactly**, with nothing left over for rounding. The outcomes cut off share less than 2^-64 of the
probability as long as there are at most ``size`` of them.

Error of a weight: the scale F leaves every weight above 2^g, with 2^g > 2^78 / unit. ``exp_minus`` is off by less than
one unit of 2^-F where its result is above 2^(g - F), and a product that is cut off loses less than one: both are
relative errors below 2^-g, and with at most 2^32 products k <= 2^(34 - g).
"""

from __future__ import annotations

import math
from fractions import Fraction

from ..coins.exact_cdf import exp_minus

# Above the natural logarithm of two by less than 2^-33 of it: for spreads below 2^32 bits that is less than one bit.
LOG_TWO = Fraction(6931471806, 10**10)
# Outcomes that are cut off have a share below 2^-SPARE in all.
SPARE = 64
GUARD = 78
SHRINK = 1 - Fraction(1, 2**40)


class Weights:
    """
    >>> weights = Weights(Fraction(1), size=2)
    >>> weights.at(0) == 1 << weights.precision, round(math.log(weights.at(0) / weights.at(3)), 9)
    (True, 3.0)
    >>> weights.at(weights.cap) == weights.at(weights.cap + 10**30)
    True
    """

    def __init__(self, unit: Fraction, size: int) -> None:
        """``size`` bounds the number of outcomes. It must be public: data must not have a say in it."""
        self.rate = unit * SHRINK
        spread = size.bit_length() + SPARE
        self.cap = math.ceil(spread * LOG_TWO / self.rate)
        # Rounded up, the cap may lie one unit farther than the spread, which is less than 3/2 rate bits.
        self.precision = spread + math.ceil(self.rate * 3 / 2) + GUARD + math.ceil(1 / unit).bit_length() + 1

    def at(self, deficit: int) -> int:
        return exp_minus(self.rate * min(deficit, self.cap), self.precision)

    def progression(self, start: int, stride: int, count: int) -> list[int]:
        """The weights at start, start + stride, ...: so many of them, none beyond the cap."""
        if not count:
            return []
        ratio, weight, found = exp_minus(self.rate * stride, self.precision), self.at(start), []
        for _ in range(count):
            found.append(weight)
            weight = weight * ratio >> self.precision
        return found

    def of(self, deficits: list[int]) -> list[int]:
        """The weights at any deficits."""
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
