"""Vectors in a ball around zero, each coordinate on the same lattice."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from math import isqrt
from typing import Any, ClassVar, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64, Mask
from ..checks import flag, is_integral
from ..errors import InputError, Place
from ..messages import At, exact_text, mismatch
from .field import Field, Missing, as_cells, encode_each, is_bytes
from .lattice import column_to_lattice, shortcut_scale, to_lattice
from .numbers import exact_number


class Vector(Field):
    """A vector of `dimension` coordinates and Euclidean length at most `radius`, kept in whole steps.

    Membership is decided on the lattice. Rounding moves each coordinate by at most half a step, hence the length by
    at most sqrt(d)/2 steps; so every point of the ball is accepted when lattice lengths up to
    radius/step + sqrt(d)/2 are. `norm2_bound` is the floor of that bound squared, computed exactly. Sensitivity comes
    from it, not from the radius, because every accepted lattice point k satisfies

        sum of k_i^2 <= norm2_bound,     sum of |k_i| <= norm1_bound = floor(sqrt(d * norm2_bound)).

    With `clip`, a longer vector is scaled towards zero, each coordinate to floor(|k_i| sqrt(norm2_bound / |k|^2)).

    >>> place = Vector(2, radius=1, step=0.1)
    >>> place.encode([0.6, -0.8], "place"), place.norm2_bound, place.norm1_bound
    ((6, -8), 114, 15)
    >>> Vector(2, radius=1, step=0.1, clip=True).encode([300, -400], "place")
    (6, -8)
    """

    kind: ClassVar[str] = "vector"

    def __init__(
        self, dimension: int, *, radius: object, step: object, clip: bool = False, missing: Missing = "error"
    ) -> None:
        super().__init__(missing=missing)
        self.clip = flag(clip, "clip")
        if not is_integral(dimension) or dimension < 1:
            raise mismatch("a whole number of at least 1", dimension, "dimension")
        self.width = self.dimension = int(dimension)
        self.shape = (self.width,)
        self.radius, self.step = exact_number(radius, "radius"), exact_number(step, "step")
        for name, number in (("radius", self.radius), ("step", self.step)):
            if number <= 0:
                raise InputError(f"expected a number above 0, got {exact_text(number)}", place=name)
        self.norm2_bound = _norm2_bound(self.width, self.radius / self.step)
        self.norm1_bound = isqrt(self.width * self.norm2_bound)
        # squares are summed in 64 bits before the sum is known to be small
        if self.width * self.norm2_bound >= 2**63:
            raise InputError("expected a coarser step: squared lengths do not fit 64 bits", place="step")
        self.upper = isqrt(self.norm2_bound)
        self.lower = -self.upper
        self._scale = shortcut_scale(self.step)

    @property
    def blank(self) -> tuple[int, ...]:
        return (0,) * self.width

    def encode(self, value: object, place: str) -> tuple[int, ...]:
        if not is_sequence(value) or (isinstance(value, np.ndarray) and value.ndim != 1):
            raise mismatch(f"a vector of {self.width} coordinates", value, place)
        if len(value) != self.width:
            raise InputError(f"expected {self.width} coordinates, got {len(value)}", place=place or None)
        point = tuple(encode_each(self._nearest, value, lambda index: _coordinate(place, index)))
        norm2 = sum(k * k for k in point)
        if norm2 <= self.norm2_bound:
            return point
        if self.clip:
            lengths = ((k, isqrt(k * k * self.norm2_bound // norm2)) for k in point)
            return tuple(length if k > 0 else -length for k, length in lengths)
        raise mismatch(f"a vector of length at most {exact_text(self.radius)}", value, place)

    def _nearest(self, number: object, place: str) -> int:
        return to_lattice(number, self.step, place=place, scale=self._scale)

    def is_missing(self, value: object) -> bool:
        """A vector is missing when it is None, or when a coordinate is."""
        if isinstance(value, list | tuple | np.ndarray):
            return any(map(super().is_missing, value))
        return super().is_missing(value)

    def _one_cell_a_row(self, cells: NDArray[Any], place: str) -> NDArray[Any]:
        return cells

    def _absent(self, cells: NDArray[Any]) -> Mask:
        absent = super()._absent(cells)
        return np.asarray(absent.any(axis=1)) if absent.ndim > 1 else absent

    def _encode_cells(self, cells: NDArray[Any], at: At) -> I64:
        table = self._table(cells)
        if table is None:
            return super()._encode_cells(cells, at)

        def coordinate_at(index: int) -> str:
            return _coordinate(at(index // self.width), index % self.width)

        flat = column_to_lattice(table, self.step, at=coordinate_at)
        points = flat.reshape(len(cells), self.width)
        outside = np.asarray(((points > self.upper) | (points < self.lower)).any(axis=1))
        # can wrap around only for rows that are outside already
        outside |= np.einsum("ij,ij->i", points, points) > self.norm2_bound
        for row in np.flatnonzero(outside):
            points[row] = self.encode(cells[row], at(int(row)))
        return points

    def _table(self, cells: NDArray[Any]) -> NDArray[Any] | None:
        """All coordinates in one array, if the rows are uniform enough; otherwise None."""
        if cells.ndim == 2 and cells.shape[1] == self.width:
            return cells.reshape(-1)
        types = set(map(type, cells))
        if types == {np.ndarray} and {(row.dtype, row.shape) for row in cells} == {(cells[0].dtype, (self.width,))}:
            return np.concatenate(list(cells))
        if types and types <= {list, tuple} and set(map(len, cells)) == {self.width}:
            return as_cells(list(chain.from_iterable(cells)), "")
        return None

    def decode(self, encoded: Sequence[int]) -> tuple[float, ...]:
        return tuple(float(self.step * int(k)) for k in encoded)


def _norm2_bound(dimension: int, radius: Fraction) -> int:
    """floor((radius + sqrt(dimension)/2)^2) for a radius in steps, without intermediate rounding.

    With radius = p/q that is (4p^2 + d q^2 + sqrt(16 p^2 q^2 d)) / 4q^2, and taking floors inside changes nothing.

    >>> _norm2_bound(4, Fraction(10)), _norm2_bound(2, Fraction(1, 3))
    (121, 1)
    """
    p, q = radius.numerator, radius.denominator
    return (4 * p * p + dimension * q * q + isqrt(16 * p * p * q * q * dimension)) // (4 * q * q)


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether the value is a list, tuple or array; not text or bytes."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str) and not is_bytes(value)


def _coordinate(place: str, index: int) -> str:
    if isinstance(place, Place):
        return Place(_coordinate(place.path, index), place.row)
    return f"{place}, coordinate {index + 1}" if place else f"coordinate {index + 1}"
