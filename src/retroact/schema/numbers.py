"""Fields with declared bounds, on a lattice: `Number` with any step, `Integer` with step 1."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64, Mask
from ..checks import flag
from ..errors import InputError
from ..messages import At, decimal_text, exact_text, mismatch
from .decimal_texts import decimals
from .field import Field, Missing, encode_each
from .lattice import (
    INT64_MAX,
    INT64_MIN,
    column_to_lattice,
    exact_ratio,
    integers_to_lattice,
    saturated,
    shortcut_scale,
    to_lattice,
)
from .packed_texts import PackedTexts

CLAMPED = "clip = true on the field (--clip) moves values that are out of bounds to the bound"
LARGEST = 2**53 - 1
"""Up to here every lattice integer is also a float, so nothing downstream can lose it."""
_POWERS: I64 = 10 ** np.arange(19, dtype=np.int64)
_LARGE = 2.0**53
"""From here on neighbouring floats are further apart than whole numbers."""


class Bounded(Field):
    """A value is rounded to the lattice, and refused or clipped outside the bounds.

    Bounds apply after rounding: a value less than half a step outside counts as the bound itself.

    >>> from retroact.schema import Number
    >>> Number(0, 500).encode(500.004, "amount"), Number(0, 500, clip=True).encode(1e30, "amount")
    (50000, 50000)
    >>> Number(0, 500).encode(1e30, "amount")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected a number between 0 and 500, got 1e+30 - at amount
    """

    noun: ClassVar[str]
    farthest: ClassVar[tuple[int, int]] = (-LARGEST, LARGEST)
    room: ClassVar[str] = "of fewer than 2^53 steps"
    """How far out the bounds may lie, in steps; and in words."""
    bounds_as_text: ClassVar[bool] = False
    """Whether the constructor takes bounds as text."""

    def __init__(self, lower: Fraction, upper: Fraction, step: Fraction, *, clip: bool, missing: Missing) -> None:
        super().__init__(missing=missing)
        self.clip, self.step = flag(clip, "clip"), step
        if lower > upper:
            raise InputError(
                f"expected lower to be at most upper, got {self._text(lower / step)} and {self._text(upper / step)}"
            )
        self.lower = self._bound("lower", lower)
        self.upper = self._bound("upper", upper)

    def _bound(self, name: str, bound: Fraction) -> int:
        multiple = bound / self.step
        step, text = exact_text(self.step), self._text(multiple)
        if multiple.denominator != 1:
            raise InputError(f"expected a multiple of the step {step}, got {text}", place=name)
        if not self.farthest[0] <= multiple <= self.farthest[1]:
            raise InputError(f"expected a bound {self.room} of {step}, got {text}", place=name)
        return multiple.numerator

    def argument(self, name: str) -> Any:
        value = super().argument(name)
        if name not in ("lower", "upper"):
            return value
        return self._text(value) if self.bounds_as_text else value * self.step

    def _text(self, multiple: Fraction | int) -> str:
        """This number of steps, for people."""
        return exact_text(multiple * self.step)

    @abstractmethod
    def _nearest(self, value: object, place: str) -> int:
        """The lattice integer of one value, inside the bounds or not."""

    def _nearest_cells(self, cells: NDArray[Any], at: At) -> I64:
        """The same for many, saturated at 64 bits."""

        def nearest(value: object, place: str) -> int:
            return saturated(self._nearest(value, place))

        return np.array(encode_each(nearest, cells, at), np.int64)

    def encode(self, value: object, place: str) -> int:
        nearest = self._nearest(value, place)
        if self.lower <= nearest <= self.upper:
            return nearest
        if self.clip:
            return self.lower if nearest < self.lower else self.upper
        raise mismatch(self._range, value, place)

    @property
    def _range(self) -> str:
        return f"{self.noun} between {self._text(self.lower)} and {self._text(self.upper)}"

    def advice(self, error: InputError) -> str | None:
        return CLAMPED if error.expected == self._range else super().advice(error)

    def _encode_cells(self, cells: NDArray[Any], at: At) -> I64:
        nearest = self._nearest_cells(cells, at)
        if self.clip:
            return np.clip(nearest, self.lower, self.upper)
        # the ends of 64 bits may be the bounds, and may stand for values beyond them
        doubtful = (nearest < max(self.lower, INT64_MIN + 1)) | (nearest > min(self.upper, INT64_MAX - 1))
        for row in np.flatnonzero(doubtful).tolist():
            self.encode(cells[row], at(row))  # decides, and refuses in the same words
        return nearest

    def _of_decimals(self, units: I64, scale: int) -> tuple[I64, Mask] | None:
        """The lattice integers of units / 10^scale, and which of them are sure; None if such numbers are no values."""
        return None

    def encode_decimals(self, units: I64, scale: int) -> I64 | None:
        found = self._of_decimals(units, scale)
        return self._inside(found[0]) if found is not None and found[1].all() else None

    def encode_texts(self, texts: PackedTexts) -> I64 | None:
        units, places, clear = decimals(texts)
        places = places if clear.all() else np.where(clear, places, 0)
        scale = int(places.max(initial=0))
        if scale and (places != scale).any():
            factor = _POWERS[scale - places]
            clear &= np.abs(units) <= INT64_MAX // factor
            units = units * factor
        found = self._of_decimals(units, scale)
        if found is None:
            return None
        nearest, sure = found
        sure = sure & clear
        if not sure.all():
            left = np.flatnonzero(~sure)
            nearest[left] = [saturated(self._nearest(text, "")) for text in texts.take(left).strings()]
        return self._inside(nearest)

    def _inside(self, nearest: I64) -> I64 | None:
        """None if one is out of bounds; so may be what 64 bits cannot hold."""
        if self.clip:
            return np.clip(nearest, self.lower, self.upper)
        low, high = nearest.min(initial=self.lower), nearest.max(initial=self.upper)
        fine = low >= max(self.lower, INT64_MIN + 1) and high <= min(self.upper, INT64_MAX - 1)
        return nearest if fine else None


class Number(Bounded):
    """A number between two bounds, kept as a whole number of steps.

    The default step is the largest power of ten that leaves at least 10000 steps between the bounds.

    >>> amount = Number(0, 500)
    >>> amount
    Number(0, 500, step=0.01)
    >>> [amount.encode(value, "amount") for value in (12.5, "12.50", 0.155)]
    [1250, 1250, 16]
    >>> amount.encode_column([1, 2.5, 600], "amount")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected a number between 0 and 500, got 600 - at amount, row 3
    """

    kind: ClassVar[str] = "number"
    noun: ClassVar[str] = "a number"

    def __init__(
        self, lower: object, upper: object, *, step: object = None, clip: bool = False, missing: Missing = "error"
    ) -> None:
        low, high = exact_number(lower, "lower"), exact_number(upper, "upper")
        size = _default_step(low, high) if step is None else exact_number(step, "step")
        if size <= 0:
            raise mismatch("a step above 0", step, "step")
        super().__init__(low, high, size, clip=clip, missing=missing)
        self.step_by_default = step is None
        """Whether nobody chose the step. A specification holds it in any case."""
        self._scale = shortcut_scale(size)

    def _nearest(self, value: object, place: str) -> int:
        return to_lattice(value, self.step, place=place, scale=self._scale)

    def _nearest_cells(self, cells: NDArray[Any], at: At) -> I64:
        return column_to_lattice(cells, self.step, at=at)

    def _of_decimals(self, units: I64, scale: int) -> tuple[I64, Mask] | None:
        return integers_to_lattice(units, self.step * Fraction(10) ** scale)

    def decode(self, encoded: int) -> float:
        return float(self.step * int(encoded))


class Integer(Bounded):
    """A whole number between two bounds of at most 64 bits; 3, 3.0 and "3" are whole numbers, 2.5 is not.

    A float of 2^53 or more is taken as exactly the whole number that it is, not as its shortest text: 2.0**63 prints as
    9.223372036854776e+18, which is 192 more. Either may differ from the number that was rounded to it, so whole numbers
    of that size should come as integers or as text.

    >>> age = Integer(0, 120)
    >>> [age.encode(value, "age") for value in (3, 3.0, "3")]
    [3, 3, 3]
    >>> age.encode(2.5, "age")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected a whole number, got 2.5 - at age
    >>> hashed = Integer(-(2**63), 2**63 - 1)
    >>> [hashed.encode(value, "hashed") for value in ("9223372036854775807", -(2.0**63), 1e18)]
    [9223372036854775807, -9223372036854775808, 1000000000000000000]
    """

    kind: ClassVar[str] = "integer"
    noun: ClassVar[str] = "a whole number"
    farthest: ClassVar[tuple[int, int]] = (INT64_MIN, INT64_MAX)
    room: ClassVar[str] = "from -2^63 to 2^63 - 1 steps"

    def __init__(self, lower: object, upper: object, *, clip: bool = False, missing: Missing = "error") -> None:
        low, high = exact_number(_large_as_it_is(lower), "lower"), exact_number(_large_as_it_is(upper), "upper")
        super().__init__(low, high, Fraction(1), clip=clip, missing=missing)

    def _nearest(self, value: object, place: str) -> int:
        if type(value) is int:
            return value
        numerator, denominator = exact_ratio(_large_as_it_is(value), place)
        if denominator != 1:
            raise mismatch("a whole number", value, place)
        return numerator

    def _nearest_cells(self, cells: NDArray[Any], at: At) -> I64:
        if cells.dtype.kind not in "fiu" or cells.dtype.itemsize > 8:
            return super()._nearest_cells(cells, at)
        if cells.dtype.kind != "f":
            return column_to_lattice(cells, self.step, at=at)
        # true of the float exactly when it is true of its shortest text
        whole = np.isfinite(cells) & (cells == np.rint(cells))
        if not whole.all():
            first = int(np.argmin(whole))
            self._nearest(cells[first], at(first))
        floats = cells.astype(np.float64, copy=False)
        large = np.abs(floats) >= _LARGE
        if not large.any():
            return column_to_lattice(cells, self.step, at=at)
        result = column_to_lattice(np.where(large, 0, cells), self.step, at=at)
        result[large] = [saturated(int(value)) for value in floats[large].tolist()]
        return result

    def _of_decimals(self, units: I64, scale: int) -> tuple[I64, Mask] | None:
        nearest, sure = integers_to_lattice(units, Fraction(10) ** scale)
        # those that are not whole are refused
        return nearest, sure & (units % 10**scale == 0) if scale > 0 else sure

    def decode(self, encoded: int) -> int:
        return int(encoded)


def _large_as_it_is(value: object) -> object:
    """A float from 2^53 on as the integer that it is; anything else unchanged."""
    # only floats of more than 64 bits have fractions there
    if isinstance(value, float | np.floating) and _LARGE <= abs(float(value)) < np.inf and value == np.rint(value):
        return int(value)
    return value


def exact_number(value: object, name: str) -> Fraction:
    """A declared number. It needs an exact decimal text, since that is what a specification holds."""
    number = Fraction(*exact_ratio(value, name))
    if abs(number.numerator).bit_length() > 4096 or decimal_text(number) is None:
        raise mismatch("a number with a short decimal text", value, name)
    return number


def _default_step(lower: Fraction, upper: Fraction) -> Fraction:
    if lower >= upper:
        raise InputError(f"expected lower to be below upper when no step is given, got {lower} and {upper}")
    largest = (upper - lower) / 10000
    power = len(str(largest.numerator)) - len(str(largest.denominator))
    return Fraction(10) ** (power if Fraction(10) ** power <= largest else power - 1)
