"""From a value of any type to the nearest point of a lattice, exactly.

The lattice of `step` is anchored at zero: the integer k stands for k * step. Ties go to the even integer. A float means
its shortest decimal text, so that 0.155, "0.155" and the 0.155 of a JSON file are the same number.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import F64, I64, U64, Mask
from ..errors import Place
from ..messages import At, mismatch
from .field import encode_each

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MAX_TEXT = 1000
# A short text may stand for an integer of a billion digits. Every float is well within these powers of ten.
_MAX_POWER = 400


def exact_ratio(value: object, place: str | None = None) -> tuple[int, int]:
    """The value as a reduced fraction (numerator, positive denominator).

    >>> exact_ratio(0.155), exact_ratio("1e3"), exact_ratio(np.float32(0.1))
    ((31, 200), (1000, 1), (1, 10))
    """
    if type(value) is int:
        return value, 1
    if isinstance(value, float):
        number = Decimal(float.__repr__(value))  # repr() of a numpy float64 says np.float64(...)
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
    # Decimal() alone would also accept "NaN", "1_000", digits of other scripts and texts of any length
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


def saturated(integer: int) -> int:
    """The nearest integer that 64 bits hold.

    >>> saturated(7), saturated(2**63), saturated(-(10**30))
    (7, 9223372036854775807, -9223372036854775808)
    """
    return min(max(integer, INT64_MIN), INT64_MAX)


# The shortcut. Write s for 1/step. For a float v with shortest text r, |r - v| <= 2^-53 |v|; the float of s and the
# product x = v * s are rounded once each. So |x - r * s| < 2^-51 |x|, and when x is further than 2^-50 |x| from
# every tie, rounding x gives what the exact path gives. All other values take the exact path.


def shortcut_scale(step: Fraction) -> float:
    """1/step as a float, or NaN (for which the shortcut never applies) where it is too large or too small."""
    try:
        scale = step.denominator / step.numerator
    except OverflowError:
        return math.nan
    # within these powers of two a denormal value cannot come near a tie, where its relative error would matter
    return scale if 2.0**-1000 < scale < 2.0**1000 else math.nan


def to_lattice(value: object, step: Fraction, *, place: str | None = None, scale: float = math.nan) -> int:
    """The integer k for which k * step is nearest to the value. The `shortcut_scale` of the step makes floats faster.

    >>> cent = Fraction(1, 100)
    >>> [to_lattice(value, cent) for value in (0.155, "0.155", 0.165, 12, "-1.5e1")]
    [16, 16, 16, 1200, -1500]
    >>> [to_lattice(value, cent, scale=100.0) for value in (12.5, 0.155)]
    [1250, 16]
    """
    if type(value) is float:
        x = value * scale
        if -(2.0**49) < x < 2.0**49:
            nearest = round(x)
            if abs(x - nearest) < 0.5 - abs(x) * 2.0**-50:
                return nearest
    numerator, denominator = exact_ratio(value, place)
    return half_even(numerator * step.denominator, denominator * step.numerator)


def _row(index: int) -> str:
    return Place("", index + 1)


def column_to_lattice(values: NDArray[Any], step: Fraction, *, at: At = _row) -> I64:
    """`to_lattice` for every element of a one-dimensional array, with equal results, saturated at 64 bits.

    >>> column_to_lattice(np.array([0.155, 0.165, 12.5]), Fraction(1, 100))
    array([  16,   16, 1250])
    """
    if values.dtype == object:
        values = _small_numbers(values)
    kind = values.dtype.kind
    if kind == "f" and values.dtype.itemsize <= 8:
        result, clear = _floats(values, step, at)
    elif kind == "i" or (kind == "u" and (values.dtype.itemsize < 8 or not (values > INT64_MAX).any())):
        result, clear = integers_to_lattice(values.astype(np.int64), step)
    else:
        result, clear = np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    doubtful = np.flatnonzero(~clear)
    if doubtful.size:
        result[doubtful] = _one_by_one(values[doubtful], doubtful, step, at)
    return result


def _small_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """A mixed column of floats and integers, as JSON has them, as floats if that changes no value."""
    if set(map(type, values)) == {float, int}:
        try:
            floats = values.astype(np.float64)
        except OverflowError:
            return values
        if (np.abs(floats) < 2.0**53).all():
            return floats
    return values


def _floats(values: NDArray[Any], step: Fraction, at: At) -> tuple[I64, Mask]:
    finite = np.isfinite(values)
    if not finite.all():
        first = int(np.argmin(finite))
        raise mismatch("a finite number", values[first], at(first))
    scale = shortcut_scale(step)
    limits = np.finfo(values.dtype)
    with np.errstate(all="ignore"):
        x = values.astype(np.float64) * scale
        nearest = np.rint(x)
        # 4 eps is the 2^-50 above for float64, and as generous for narrower floats; their denormals are not
        # negligible, hence the second term
        doubt = np.abs(x) * (4 * float(limits.eps)) + float(limits.smallest_subnormal) * scale
        clear = np.abs(x - nearest) < 0.5 - doubt
    doubtful = np.flatnonzero(~clear)
    if doubtful.size:
        nearest[doubtful] = 0
        if values.dtype == np.float64:
            settled, sure = _ties(values[doubtful], np.floor(x[doubtful]), step)
            nearest[doubtful[sure]] = settled[sure]
            clear[doubtful[sure]] = True
    return nearest.astype(np.int64), clear


def _ties(values: F64, below: F64, step: Fraction) -> tuple[F64, Mask]:
    """Values v next to the tie h = (below + 1/2) * step, decided by comparing v with the float of h.

    Rounding to a float is monotone, so v < float(h) proves that the text of v is below h, and v > float(h) that it is
    above. When they are equal and h has at most 15 digits, h is the text of v: no two such texts share a float.
    """
    digits = 0
    while 10**digits % step.denominator and digits < 21:
        digits += 1
    unit = step * 10**digits * 5
    if unit.denominator != 1 or unit >= 10**15:
        return below, np.zeros(len(values), np.bool_)
    with np.errstate(all="ignore"):
        # below 10^15 the product is exact, and so is 10^22; then the quotient is the float of h
        scaled = (2 * below + 1) * float(unit)
        tie = scaled / float(10 ** (digits + 1))
        sure = np.abs(scaled) < 10.0**15
        up = (values > tie) | ((values == tie) & (below % 2 == 1))
    return below + up, sure


def integers_to_lattice(values: I64, step: Fraction) -> tuple[I64, Mask]:
    """The same for integers, and which of the results are right: 64 bits are too few for others."""
    if step == 1:
        return values, np.ones(len(values), bool)
    largest = INT64_MAX // step.denominator if step.numerator <= INT64_MAX else -1
    clear = (values <= largest) & (values >= -largest)
    divisor = step.numerator if largest > 0 else 1
    quotient, rest = np.divmod(np.where(clear, values, 0) * (step.denominator if largest > 0 else 1), divisor)
    other = divisor - rest
    return quotient + ((rest > other) | ((rest == other) & (quotient & 1 == 1))), clear


def _one_by_one(values: NDArray[Any], rows: NDArray[np.intp], step: Fraction, at: At) -> list[int]:
    # list() keeps numpy scalars, whose precision says which text a float32 stands for
    items = values.tolist() if values.dtype in (np.float64, np.int64, np.uint64) else list(values)
    scale = shortcut_scale(step)
    return encode_each(
        lambda value, place: saturated(to_lattice(value, step, place=place, scale=scale)),
        items,
        lambda index: at(int(rows[index])),
    )


def offsets(column: I64, lower: int) -> U64:
    """Lattice values minus the lower bound; differences of 64-bit integers need all 64 bits.

    >>> offsets(np.array([-(2**63), 2**63 - 1]), -(2**63)).tolist()
    [0, 18446744073709551615]
    """
    return column.view(np.uint64) - np.uint64(lower % 2**64)
