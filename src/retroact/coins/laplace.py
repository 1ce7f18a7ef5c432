"""The discrete Laplace law, P(X = k) proportional to exp(-|k| / scale), sampled exactly.

A shift of X by an integer y changes the probability of any value by a factor of at most exp(|y| / scale): noise for
pure privacy.

Up to scale 512 the magnitude comes from one table. Beyond that, the magnitude minus one is geometric, and the digits of
a geometric variable in base B are independent: the low digit is a truncated geometric with ratio q = exp(-1 / scale),
the rest a geometric with ratio q^B. One table per digit, still exact.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import I64
from .coins import RandomWords
from .exact_cdf import exp_minus, geometric_tail
from .inverse_cdf import Inverse
from .law import WIDEST, Law, check_width, in_parts, signed

DIRECT = 512
DIGIT = 4096


def magnitude_cdf(scale: Fraction, bits: int, precision: int) -> tuple[list[int], int]:
    """P(|X| <= k) = 1 - 2 q^(k+1) / (1 + q)."""
    one = 1 << precision
    start = (2 << 2 * precision) // (one + exp_minus(1 / scale, precision))
    tail, error = geometric_tail(1 / scale, start, precision, bits)
    return [one - t for t in tail], error


def zero_cdf(scale: Fraction, bits: int, precision: int) -> tuple[list[int], int]:
    """P(X = 0) = (1 - q) / (1 + q); 0 stands for "zero", 1 for "not zero"."""
    one, q = 1 << precision, exp_minus(1 / scale, precision)
    return [((one - q) << precision) // (one + q)], 8


def geometric_cdf(scale: Fraction, bits: int, precision: int) -> tuple[list[int], int]:
    """P(G <= k) = 1 - q^(k+1)."""
    tail, error = geometric_tail(1 / scale, 1 << precision, precision, bits)
    return [(1 << precision) - t for t in tail], error


def digit_cdf(scale: Fraction, base: int, bits: int, precision: int) -> tuple[list[int], int]:
    """P(R <= j) = (1 - q^(j+1)) / (1 - q^base) for j < base - 1."""
    one, q = 1 << precision, exp_minus(1 / scale, precision)
    whole = one - exp_minus(base / scale, precision)
    power, values = one, []
    for _ in range(base - 1):
        power = power * q >> precision
        values.append(((one - power) << precision) // whole)
    # A numerator is off by 2 per step, the denominator by 1, and the quotient is at most 1.
    return values, ((2 * base + 4) << precision) // (whole - 1) + 2


class DiscreteLaplace(Law):
    """
    >>> DiscreteLaplace(8).variance
    127.83...
    """

    def __init__(self, scale: Fraction | int, *, bits: int = 64) -> None:
        self.scale = check_width(Fraction(scale), WIDEST, "scale")
        self._bits = bits

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), bits=self._bits), (self.scale,)

    @cached_property
    def _parts(self) -> _Parts:
        """Built when the first sample is drawn: most laws are only compared."""
        return _tables(self.scale, self._bits)

    @cached_property
    def variance(self) -> float:
        context = Context(prec=80)
        q = context.exp(context.divide(Decimal(-self.scale.denominator), Decimal(self.scale.numerator)))
        gap = context.subtract(Decimal(1), q)
        return float(context.divide(context.multiply(2, q), context.multiply(gap, gap)))

    def sample(self, words: RandomWords) -> I64:
        return in_parts(words, self._sample)

    def _sample(self, words: RandomWords) -> I64:
        if isinstance(self._parts, Inverse):
            return signed(*self._parts.sample(words, 0))
        nonzero, digits, rest = self._parts
        found, spare = nonzero.sample(words, 0)
        magnitude = np.ones(words.shape, dtype=np.int64)
        place = 1
        for stream, (base, digit) in enumerate(digits, start=1):
            magnitude += place * digit.sample(words, stream)[0]
            place *= base
        magnitude += place * rest.sample(words, len(digits) + 1)[0]
        return signed(magnitude * found, spare)

    @property
    def transform_limit(self) -> float:
        return 1 / float(self.scale)

    def log_transform(self, s: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
        rate = 1 / float(self.scale)
        # Both factors are as small as the rate: for wide noise, 1 - exp would lose all digits.
        return np.asarray(2 * np.log(-np.expm1(-rate)) - np.log(np.expm1(s - rate) * np.expm1(-s - rate)))

    def __repr__(self) -> str:
        return f"DiscreteLaplace(scale={float(self.scale):.6g})"


_Parts = Inverse | tuple[Inverse, list[tuple[int, Inverse]], Inverse]


@lru_cache(maxsize=64)
def _tables(scale: Fraction, bits: int) -> _Parts:
    if scale <= DIRECT:
        return Inverse(partial(magnitude_cdf, scale), bits=bits)
    digits: list[tuple[int, Inverse]] = []
    rest = scale
    while rest > DIRECT:
        base = min(DIGIT, 1 << math.ceil(math.log2(rest / 64)))
        digits.append((base, Inverse(partial(digit_cdf, rest, base), bits=bits)))
        rest /= base
    return (
        Inverse(partial(zero_cdf, scale), bits=bits),
        digits,
        Inverse(partial(geometric_cdf, rest), bits=bits),
    )
