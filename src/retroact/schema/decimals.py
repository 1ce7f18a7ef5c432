"""Exact numbers: what a value of any type means as a fraction, and back to decimal text.

A float means its shortest decimal text, so that 0.155, "0.155" and the 0.155 of a JSON file are one and the same
number.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

from retroact.messages import mismatch

_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MAX_TEXT = 1000
# A short text may stand for an integer of a billion digits. Every float lies far inside these powers of ten.
_MAX_POWER = 400


def exact_ratio(value: object, place: str | None = None) -> tuple[int, int]:
    """The value as a reduced fraction (numerator, positive denominator).

    >>> exact_ratio(0.155), exact_ratio("1e3"), exact_ratio(np.float32(0.1))
    ((31, 200), (1000, 1), (1, 10))
    """
    if type(value) is int:
        return value, 1
    if isinstance(value, float):
        # repr() of a numpy float64 says np.float64(...)
        number = Decimal(float.__repr__(value))
    elif isinstance(value, str):
        number = _parse(value, place)
    elif isinstance(value, bool):
        raise mismatch("a number", value, place)
    elif isinstance(value, (int, np.integer)):
        return int(value), 1
    elif isinstance(value, Fraction):
        return value.numerator, value.denominator
    elif isinstance(value, np.floating):
        number = Decimal(np.format_float_scientific(value))
    elif isinstance(value, Decimal):
        number = value
    else:
        raise mismatch("a number", value, place)
    if not number.is_finite():
        raise mismatch("a finite number", value, place)
    if number and not -_MAX_POWER <= number.adjusted() <= _MAX_POWER:
        raise mismatch(f"a number between 1e-{_MAX_POWER} and 1e{_MAX_POWER} in magnitude", value, place)
    return number.as_integer_ratio() if number else (0, 1)


def _parse(text: str, place: str | None) -> Decimal:
    # Decimal() alone would also take "NaN", "1_000", digits of other scripts and texts of any length
    if len(text) > _MAX_TEXT or not _TEXT.fullmatch(text):
        raise mismatch("a number", text, place)
    try:
        return Decimal(text)
    except InvalidOperation:
        raise mismatch("a number", text, place) from None


def half_even(numerator: int, denominator: int) -> int:
    """numerator / denominator to the nearest integer, ties to even.

    >>> [half_even(n, 2) for n in (-3, -1, 1, 3, 5)]
    [-2, 0, 0, 2, 2]
    """
    quotient, rest = divmod(numerator, denominator)
    return quotient + (2 * rest > denominator or (2 * rest == denominator and quotient & 1))
