"""Distribution functions to any number of binary digits, with bounds on the error of every step.

Numbers are integers in units of 2^-precision. ``floors`` repeats a computation at growing precision until its error
bound no longer affects any floor, so it returns the floor of the exact real number.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

DIGITS_PER_BIT = 0.30103


def exp_minus(x: Fraction, precision: int) -> int:
    """exp(-x) in units of 2^-precision, for x >= 0; off by less than 1 unit."""
    digits = int(precision * DIGITS_PER_BIT) + 30
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=-(10**9), Emax=10**9)
    exponent = context.divide(Decimal(-x.numerator), Decimal(x.denominator))
    value = context.exp(exponent)
    # The quotient is off by x * 10^-digits at most, which 30 spare digits swallow for every x below 2^64.
    return int(context.multiply(value, Decimal(1 << precision)))


Compute = Callable[[int, int], tuple[list[int], int]]
"""From (bits, precision) to the reals whose first bits are needed, in units of 2^-precision, and a bound on errors."""


def floors(compute: Compute, bits: int) -> list[int]:
    """floor(v * 2^bits) for the reals v that are computed."""
    guard = 64
    while True:
        values, error = compute(bits, bits + guard)
        low = [(v - error) >> guard for v in values]
        if low == [(v + error) >> guard for v in values]:
            return low
        guard *= 2


def geometric_tail(ratio_exponent: Fraction, start: int, precision: int, until: int) -> tuple[list[int], int]:
    """start * q^k for k = 1, 2, ..., with q = exp(-ratio_exponent), down to the first value below 2^-until.

    ``start`` is in units of 2^-precision, off by at most 2. Each product is truncated, so the error grows by less than
    2 units per step (q < 1, start <= 2): 2 * (number of steps) + 4 bounds it.
    """
    q = exp_minus(ratio_exponent, precision)
    smallest = 1 << (precision - until)
    values = []
    value = start
    while value >= smallest:
        value = value * q >> precision
        values.append(value)
    return values, 4 * len(values) + 8
