"""Gaussian vectors on a lattice: how long they are (the chi law), and how fine the lattice is."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ..errors import InputError
from ..privacy.halving import halved


def chi_quantile(dimension: int, beta: float) -> float:
    """The r with P(|N| > r) = beta for a standard Gaussian vector, rounded up to about 9 digits.

    >>> round(chi_quantile(1, 1e-6), 2), round(chi_quantile(100, 1e-6), 1)
    (4.89, 13.5)
    """
    if not 0 < beta < 1:
        raise InputError(f"expected a probability above 0 and below 1, got {beta!r}", place="beta")
    return halved(lambda r: chi_tail(dimension, r) > beta, 0.0, 1.0, grow=2, relative=1e-10)[1] * (1 + 1e-9)


def chi_tail(dimension: int, radius: float) -> float:
    """P(|N| > r): with x = r^2 / 2, a finite sum of positive terms x^j e^-x / Gamma(j + 1) over j = d/2 - 1, d/2 - 2,
    ... down to 0 (d even), or to 1/2 and then erfc(sqrt(x)) (d odd)."""
    x = radius * radius / 2
    if x == 0:
        return 1.0
    start = 0.0 if dimension % 2 == 0 else 0.5
    powers = start + np.arange(dimension // 2)
    total = 0.0 if dimension % 2 == 0 else math.erfc(math.sqrt(x))
    if len(powers):
        first = start * math.log(x) - x - math.lgamma(start + 1)
        logs = first + np.concatenate([[0.0], np.cumsum(np.log(x / powers[1:]))])
        total += float(np.exp(logs).sum())
    return min(1.0, total)


def power_of_two_below(value: Fraction) -> Fraction:
    """The largest power of two up to a positive number.

    >>> power_of_two_below(Fraction(5)), power_of_two_below(Fraction(1, 3))
    (Fraction(4, 1), Fraction(1, 4))
    """
    guess = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length())
    return guess if guess <= value else guess / 2


@lru_cache(maxsize=64)
def root_above(number: int) -> Fraction:
    """A square root, exact if it is whole, otherwise rounded up to a multiple of 2^-40."""
    root = math.isqrt(number << 80)
    return Fraction(root if root * root == number << 80 else root + 1, 2**40)
