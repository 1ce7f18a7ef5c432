"""How far a combination of independent noises reaches: enough of its law for a half-width at any level.

Noise is a sum of independent discrete Laplace or Gaussian variables, and so is every linear combination of it. Its
variance and its fourth cumulant are sums. A sum of m equal Laplace variables has the same ratio of the two if
m = 3 variance^2 / fourth (Gaussian noise: infinite m), and approximates the combination. Its upper tail, in units of
one scale, is
  P(Z >= x) = exp(-x) * sum over i < m of x^i / i! * sum over j < m - i of C(m + j - 1, j) / 2^(m + j)
(one gamma variable exceeds another by x; every term is positive). Quantiles in deviations are nearly linear in 1/m, so
they are tabulated for some whole m. A lattice adds half its spacing. Laplace variables of unequal size can reach up to
2.6 % further than equal ones, so 3 % / sqrt(m) is added. Compared with exact laws (tests/noise/test_spread.py): never
less, and at most 5 % more.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from ..privacy.halving import halved
from ..privacy.normal import quantile as normal_quantile

# Tabulated are sums of these numbers of equal Laplace variables; in between, and up to the Gaussian, quantiles are
# linear in 1/m.
COPIES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
# Added per 1/sqrt(m), for variables of unequal size.
UNEQUAL = 0.03


class Spread(msgspec.Struct, frozen=True):
    """
    >>> laplace = Spread(variance=2.0, fourth=12.0, spacing=0.0)
    >>> round(laplace.half_width(0.95) / (1 + UNEQUAL), 5), round(-math.log(0.05), 5)
    (2.99573, 2.99573)
    >>> Spread.combined([(3.0, laplace), (-4.0, laplace)]).deviation == 5 * laplace.deviation
    True
    """

    variance: float
    fourth: float
    """The fourth cumulant: 0 for Gaussian noise."""
    spacing: float
    """The spacing of the lattice of values."""

    @classmethod
    def combined(cls, parts: Iterable[tuple[float, Spread]]) -> Spread:
        """The spread of the sum of weight * noise, for independent noises."""
        variance = fourth = spacing = 0.0
        for weight, part in parts:
            square = weight * weight
            variance += square * part.variance
            fourth += square * square * part.fourth
            spacing = max(spacing, abs(weight) * part.spacing)
        return cls(variance, fourth, spacing)

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)

    def half_width(self, level: float) -> float:
        """The absolute value that noise does not exceed with probability ``level``."""
        if not self.variance:
            return 0.0
        return _deviations(level, self.fourth / 3 / self.variance**2) * self.deviation + self.spacing / 2


def _deviations(level: float, inverse: float) -> float:
    """A half-width in deviations, given 1 / m."""
    places, heights = _table(level)
    at = min(max(1, bisect_left(places, inverse)), len(places) - 1)
    share = min(1.0, (inverse - places[at - 1]) / (places[at] - places[at - 1]))
    return (heights[at - 1] + share * (heights[at] - heights[at - 1])) * (1 + UNEQUAL * math.sqrt(min(1.0, inverse)))


@lru_cache(maxsize=256)
def _table(level: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    places, heights = [0.0], [normal_quantile((1 + level) / 2)]
    for copies in reversed(COPIES):
        places.append(1 / copies)
        heights.append(_quantile(copies, (1 - level) / 2))
    return tuple(places), tuple(heights)


def _quantile(copies: int, chance: float) -> float:
    """The x with P(Z >= x) = chance, in deviations, rounded to 9 digits so that the last bit of exp does not show."""
    sums, total = [], 0.0
    for j in range(copies):
        total += math.comb(copies + j - 1, j) / 2 ** (copies + j)
        sums.append(total)
    _, high = halved(lambda x: _upper(sums, x) > chance, 0.0, 2.0 * copies, grow=2, relative=1e-12)
    return float(f"{high / math.sqrt(2 * copies):.9g}")


def _upper(sums: list[float], x: float) -> float:
    total, term = 0.0, math.exp(-x)
    for i in range(len(sums)):
        total += term * sums[-1 - i]
        term *= x / (i + 1)
    return total
