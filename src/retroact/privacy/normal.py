"""The normal distribution: in decimals for calibration (the same digits on every machine), in floats for display."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

DIGITS = 110
_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651328"
)


def upper_tail(x: Decimal) -> Decimal:
    """P(N > x): 1/2 - density * (x + x^3/3 + x^5/(3*5) + ...), whose terms all have the sign of x.

    With 110 digits the difference is good to 20 digits for |x| <= 19, where the tail is 1e-80.
    """
    with localcontext(Context(prec=DIGITS)):
        square = x * x
        if square > 400:
            return Decimal(0) if x > 0 else Decimal(1)
        term = total = x
        n = 1
        while abs(term) > Decimal(10) ** -DIGITS * (1 + abs(total)):
            n += 2
            term = term * square / n
            total += term
        density = (-square / 2).exp() / (2 * _PI).sqrt()
        return Decimal("0.5") - density * total


def decimal(x: Fraction | float | int) -> Decimal:
    """A rational number to 110 digits; a float is taken exactly."""
    exact = Fraction(x)
    return Context(prec=DIGITS).divide(Decimal(exact.numerator), Decimal(exact.denominator))


def quantile(probability: float) -> float:
    """The normal quantile, rounded to 9 digits to hide the last bit of a logarithm."""
    from statistics import NormalDist  # slow to import

    return float(f"{NormalDist().inv_cdf(probability):.9g}")


def upper_tail_float(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2
