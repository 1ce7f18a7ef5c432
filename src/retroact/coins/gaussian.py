"""The discrete Gaussian law, P(X = k) proportional to exp(-k^2 / (2 sigma^2)), with sigma^2 a rational number.

Up to sigma = 512 the magnitude comes from one exact table. Beyond that, X = X1 + 64 X2 with X1 of parameter 256 and X2
of parameter sqrt(sigma^2 - 256^2) / 64, repeated as often as needed. Completing the square, the probability of x under
that sum is exp(-x^2 / (2 sigma^2)) times a theta function of parameter s = 256 * sigma2 / sigma >= 3.46, which is
constant up to a factor 1 +- 2 exp(-2 pi^2 s^2) < 1 +- 2^-338. So every probability, and with it every likelihood
ratio, is right up to a factor exp(+-2^-336): over 2^64 samples the guarantee moves by less than 2^-270 in epsilon and
not at all in delta, far below the rounding of the calibration, which is upwards.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import I64
from .coins import RandomWords
from .exact_cdf import exp_minus
from .inverse_cdf import Inverse
from .law import WIDEST, Law, check_width, in_parts, signed

DIRECT = 512
BASE = 256
STEP = 64


def magnitude_cdf(variance: Fraction, bits: int, precision: int) -> tuple[list[int], int]:
    """P(|X| <= k), from w_k = exp(-k^2 / (2 variance)) by w_(k+1) = w_k r_k, r_(k+1) = r_k exp(-1 / variance)."""
    one = 1 << precision
    ratio, shrink = exp_minus(1 / (2 * variance), precision), exp_minus(1 / variance, precision)
    weight, sums = one, [one]
    while weight:
        weight = weight * ratio >> precision
        ratio = ratio * shrink >> precision
        sums.append(sums[-1] + 2 * weight)
    # r_k is off by 2k + 1 units, w_k by (k + 1)^2, a sum by twice their sum; the weights left out are below
    # (k + 1)^2 units and fall at least geometrically, by a factor of at most 1 + variance in all.
    steps = len(sums) + 1
    error = 2 * steps**3 + 2 * steps**2 * (2 + int(variance))
    total = sums[-1]
    values = []
    for so_far in sums:
        values.append((so_far << precision) // total)
        if (one - values[-1]) >> (precision - bits) == 0:
            break
    return values, 4 * error + 8


class DiscreteGaussian(Law):
    """
    >>> DiscreteGaussian(Fraction(400)).variance
    400.0
    """

    def __init__(self, variance: Fraction | int, *, bits: int = 64) -> None:
        self.parameter = check_width(Fraction(variance), WIDEST**2, "variance")
        self._bits = bits

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), bits=self._bits), (self.parameter,)

    @cached_property
    def _parts(self) -> list[tuple[int, Inverse]]:
        """Built when the first sample is drawn: most laws are only compared."""
        return _tables(self.parameter, self._bits)

    @cached_property
    def variance(self) -> float:
        if self.parameter >= 4:
            return float(self.parameter)  # here the theta function is constant to 34 digits
        weights = [exp_minus(k * k / (2 * self.parameter), 200) for k in range(60)]
        return float(Fraction(2 * sum(k * k * w for k, w in enumerate(weights)), 2 * sum(weights) - weights[0]))

    def sample(self, words: RandomWords) -> I64:
        return in_parts(words, self._sample)

    def _sample(self, words: RandomWords) -> I64:
        (_, lowest), *higher = self._parts
        total = signed(*lowest.sample(words, 0))
        for stream, (multiplier, inverse) in enumerate(higher, start=1):
            total += multiplier * signed(*inverse.sample(words, stream))
        return total

    @property
    def transform_limit(self) -> float:
        return float("inf")

    def log_transform(self, s: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
        return np.asarray(s * s * (self.variance / 2))

    def __repr__(self) -> str:
        return f"DiscreteGaussian(sigma={float(self.parameter) ** 0.5:.6g})"


@lru_cache(maxsize=64)
def _tables(variance: Fraction, bits: int) -> list[tuple[int, Inverse]]:
    parts = []
    multiplier = 1
    while variance > DIRECT**2:
        parts.append((multiplier, _table(Fraction(BASE**2), bits)))
        variance = (variance - BASE**2) / STEP**2
        multiplier *= STEP
    return [*parts, (multiplier, _table(variance, bits))]


@lru_cache(maxsize=64)
def _table(variance: Fraction, bits: int) -> Inverse:
    return Inverse(partial(magnitude_cdf, variance), bits=bits)
