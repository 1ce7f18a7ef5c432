"""Fields whose values lie between two declared bounds, on a lattice of integers."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from retroact.arrays import I64
from retroact.checks import flag
from retroact.errors import InputError
from retroact.messages import At, exact_text, mismatch
from retroact.schema.field import Field, Missing, encode_each
from retroact.schema.lattice import INT64_MAX, INT64_MIN, saturated

# Up to here every lattice integer is also a float, so nothing downstream can lose it.
LARGEST = 2**53 - 1


class Bounded(Field):
    """A value, rounded to the lattice and then held against the bounds: an error outside, or clipped.

    Membership is decided after rounding: a value less than half a step outside counts as the bound itself.

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
    """How far out the bounds themselves may lie, in steps; and in words."""

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
        return self._declared_bound(value) if name in ("lower", "upper") else value

    def _declared_bound(self, multiple: int) -> Fraction | str:
        """A bound as the constructor takes it."""
        return multiple * self.step

    def _text(self, multiple: Fraction | int) -> str:
        """This number of steps, as a person writes it."""
        return exact_text(multiple * self.step)

    @abstractmethod
    def _nearest(self, value: object, place: str) -> int:
        """The lattice integer of one value, wherever it lies."""

    def _nearest_cells(self, cells: NDArray[Any], at: At) -> I64:
        """The same for many, except that what 64 bits do not hold becomes the nearest integer that they do."""

        def nearest(value: object, place: str) -> int:
            return saturated(self._nearest(value, place))

        return np.array(encode_each(nearest, cells, at), np.int64)

    def encode(self, value: object, place: str) -> int:
        nearest = self._nearest(value, place)
        if self.lower <= nearest <= self.upper:
            return nearest
        if self.clip:
            return self.lower if nearest < self.lower else self.upper
        raise mismatch(f"{self.noun} between {self._text(self.lower)} and {self._text(self.upper)}", value, place)

    def _encode_cells(self, cells: NDArray[Any], at: At) -> I64:
        nearest = self._nearest_cells(cells, at)
        if self.clip:
            return np.clip(nearest, self.lower, self.upper)
        # an end of the 64 bits may be the bound itself, and may stand for what lies beyond it
        doubtful = (nearest < max(self.lower, INT64_MIN + 1)) | (nearest > min(self.upper, INT64_MAX - 1))
        for row in np.flatnonzero(doubtful).tolist():
            # the scalar path decides, and refuses in the same words
            self.encode(cells[row], at(row))
        return nearest
