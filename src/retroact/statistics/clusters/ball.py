"""Columns as points of a ball: exact integers, whatever the columns' units.

A point is (value - centre) / scale, column by column, in steps of radius / 2^16 and truncated towards zero, so that
rounding never makes it longer. Every point is inside the ball, ||x||^2 <= 2^32, or it is clipped to it or refused.
No sum and no square of such points is ever rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ...arrays import F64, I64, Mask
from ...errors import InputError
from ...messages import exact_text, mismatch
from ...params import Parameters
from ...schema import Boolean, Field, Integer, Number, Rows, Schema, Vector, field_of
from ...schema.field import field_names, one_or_list
from ...schema.numbers import exact_number

BITS = 16
RADIUS = 1 << BITS
# Rows far outside are scaled down to this many bits before their squares are summed.
FAR = 24
# A clipped point is slightly shorter than the radius, so that float rounding cannot push it out.
INSIDE = 1 - 2.0**-40
MOST_DIMENSIONS = 1 << 14
# Squares of twice this are summed in 64 bits.
FARTHEST = 1 << 22
# Squared distances end up as floats.
LONGEST = 1 << 400


class Space:
    """The columns of a statistic as points of a ball with a centre, a radius and a scale.

    >>> import retroact as ra
    >>> schema = ra.Schema({"x": ra.Number(-1, 1, step=0.5), "y": ra.Number(-1, 1, step=0.5)})
    >>> space = Space(schema, ["x", "y"], radius=Fraction(2))
    >>> space.points(schema.encode([{"x": 1, "y": -0.5}])[0])
    array([[ 32768, -16384]])
    """

    def __init__(
        self,
        schema: Schema,
        columns: Sequence[str],
        *,
        radius: Fraction | None = None,
        centre: Sequence[Fraction] | None = None,
        scale: Sequence[Fraction] | None = None,
    ) -> None:
        self.columns = tuple(columns)
        fields = [field_of(schema, name, Number, Integer, Boolean, Vector) for name in columns]
        self._vector = isinstance(fields[0], Vector)
        if self._vector and len(fields) > 1:
            raise InputError("expected one vector, or several numbers", place="columns")
        if self._vector:
            fields = fields * fields[0].width
        self.dimension = len(fields)
        if self.dimension > MOST_DIMENSIONS:
            raise mismatch(f"at most {MOST_DIMENSIONS:,} dimensions", self.dimension, "columns")
        self.centre = self._listed(centre, [_middle(field) for field in fields], "centre")
        self.scale = self._listed(scale, [Fraction(1)] * self.dimension, "scale")
        if any(part <= 0 for part in self.scale):
            raise InputError("expected scales above 0", place="scale")
        self.radius = self._default_radius(fields) if radius is None else radius
        if not Fraction(1, LONGEST) < self.radius < LONGEST:
            expected = "expected a radius above 0" if self.radius <= 0 else "expected a radius of fewer digits"
            raise InputError(f"{expected}, got {exact_text(self.radius)}", place="radius")
        self._prepare(fields)

    def _listed(self, given: Sequence[Fraction] | None, default: list[Fraction], place: str) -> tuple[Fraction, ...]:
        if given is not None and len(given) != self.dimension:
            raise mismatch(f"{self.dimension} numbers, one for each coordinate", len(given), place)
        return tuple(default if given is None else given)

    def _default_radius(self, fields: Sequence[Field]) -> Fraction:
        """The radius of the vector, or one that covers all declared bounds, so that nothing is outside."""
        if isinstance(fields[0], Vector) and not any(self.centre) and set(self.scale) == {Fraction(1)}:
            return fields[0].radius
        far = [
            max(abs(field.lower * field.step - c), abs(field.upper * field.step - c)) / s
            for field, c, s in zip(fields, self.centre, self.scale, strict=True)
        ]
        square = sum((part * part for part in far), Fraction(0))
        return Fraction(math.isqrt(math.ceil(square * 4**20)) + 1, 2**20)

    def _prepare(self, fields: Sequence[Field]) -> None:
        """The coordinate of lattice value k is (k * factor - offset) / divisor, in whole numbers."""
        parts = []
        reach, slack = 0, Fraction(0)
        for field, c, s in zip(fields, self.centre, self.scale, strict=True):
            one, zero = field.step * RADIUS / (s * self.radius), c * RADIUS / (s * self.radius)
            divisor = math.lcm(one.denominator, zero.denominator)
            factor, offset = int(one * divisor), int(zero * divisor)
            parts.append((factor, offset, divisor))
            slack += (one / 2) ** 2
            reach = max(reach, max(1, abs(field.lower), abs(field.upper)) * factor + abs(offset), divisor)
        # Fields round to their steps, so a point of the ball may come in slightly outside.
        self._rim = RADIUS + math.isqrt(math.ceil(slack)) + 1
        if self._rim > FARTHEST:
            raise InputError("expected a radius that is not tiny next to the steps of its columns", place="radius")
        # Big integers only where 64 bits do not suffice: no lattice value that the field accepts, times its factor and
        # minus its offset, exceeds ``reach``.
        kind: Any = np.int64 if reach < 1 << 62 else object
        self._factor, self._offset, self._divisor = (
            np.array(column, dtype=kind) for column in zip(*parts, strict=True)
        )

    def points(self, rows: Rows) -> I64:
        """Clipped to the ball."""
        return self._inside(self._coordinates(rows))

    def outside(self, rows: Rows) -> I64:
        """The rows whose points were outside the ball even before fields rounded them to their steps."""
        return np.flatnonzero(_beyond(self._coordinates(rows), self._rim))

    def _coordinates(self, rows: Rows) -> I64:
        if self._vector:
            values = rows.columns[self.columns[0]]
        else:
            values = np.stack([rows.columns[name] for name in self.columns], axis=1)
        scaled = values.astype(self._factor.dtype) * self._factor - self._offset
        sizes = np.abs(scaled) // self._divisor
        if sizes.dtype == object:
            # What exceeds 64 bits is far outside: only its direction matters.
            far = [max(0, int(size).bit_length() - 60) for size in sizes.max(axis=1, initial=0)]
            sizes = sizes >> np.array(far, dtype=object).reshape(-1, 1)
        return np.asarray(np.sign(scaled) * sizes, dtype=np.int64)

    def _inside(self, points: I64) -> I64:
        far = np.flatnonzero(_beyond(points, RADIUS))
        if far.size:
            near = _shortened(points[far])
            squares = np.einsum("ij,ij->i", near, near).astype(np.float64)
            # Each operation is correctly rounded on every machine, so the result is the same everywhere. Together they
            # err by less than 2^-50 of the length, `INSIDE` removes 2^-40 of it, and truncation never adds any.
            factor = RADIUS / np.sqrt(squares) * INSIDE
            points = points.copy()
            points[far] = np.trunc(near * factor[:, None]).astype(np.int64)
        return points

    def decode(self, points: F64) -> F64:
        """Convert steps of the ball, rounded to whole ones, to the columns' units."""
        whole = np.rint(points).astype(np.int64)
        return np.array(
            [
                [float(c + s * self.radius * k / RADIUS) for k, c, s in zip(row, self.centre, self.scale, strict=True)]
                for row in whole.tolist()
            ]
        ).reshape(len(whole), self.dimension)

    @property
    def unit(self) -> float:
        """One step of the ball, in the unit of distances."""
        return float(self.radius / RADIUS)


def inside(points: F64) -> F64:
    """Pulls centres, in steps of the ball, back into it."""
    lengths = np.sqrt((points**2).sum(axis=-1, keepdims=True))
    return np.asarray(points * np.minimum(1.0, RADIUS / np.maximum(lengths, 1e-300)))


class Ball(Parameters):
    """A ball as it is declared, before there is a schema.

    >>> Ball(["x", "y"], 10, None, [1, 2]).spec()
    {'fields': ['x', 'y'], 'radius': '10', 'scale': ['1', '2']}
    """

    def __init__(
        self,
        fields: str | Sequence[str],
        radius: object = None,
        centre: Sequence[object] | None = None,
        scale: Sequence[object] | None = None,
    ) -> None:
        self.fields = field_names(fields)
        self.radius = None if radius is None else exact_number(radius, "radius")
        self.centre, self.scale = _exact_numbers(centre, "centre"), _exact_numbers(scale, "scale")
        self._latest: tuple[Schema, Space] | None = None

    def argument(self, name: str) -> Any:
        return one_or_list(self.fields) if name == "fields" else super().argument(name)

    def space(self, schema: Schema) -> Space:
        """The latest is cached in one reference: other threads may ask for other schemas."""
        known = self._latest
        if known is None or known[0] is not schema:
            space = Space(schema, self.fields, radius=self.radius, centre=self.centre, scale=self.scale)
            known = self._latest = schema, space
        return known[1]


def _middle(field: Field) -> Fraction:
    return Fraction(0) if isinstance(field, Vector) else Fraction(field.lower + field.upper, 2) * field.step


def _shortened(points: I64) -> I64:
    """Shorten vectors so that squares can be summed in 64 bits: 2^14 squares of numbers below 2^24."""
    largest = np.abs(points).max(axis=1, initial=0)
    # The bit length of the largest, by the exponent of its float: at most one too large.
    shift = np.maximum(np.frexp(largest.astype(np.float64))[1] - FAR, 0)
    return np.asarray(np.sign(points) * (np.abs(points) >> shift[:, None]))


def _beyond(points: I64, radius: int) -> Mask:
    """Exactly: a coordinate that is cut off is beyond the radius by itself, and 2^14 squares of at most (2 * 2^22)^2
    are at most 2^60 together."""
    limited = np.clip(points, -2 * radius, 2 * radius)
    return np.asarray(np.einsum("ij,ij->i", limited, limited) > radius * radius)


def _exact_numbers(given: Any, place: str) -> tuple[Fraction, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise mismatch("a list of numbers", given, place)
    return tuple(exact_number(part, place) for part in given)


def as_points(data: Any, columns: Sequence[str], dimension: int) -> F64:
    """Points that the caller brings: an array (records by columns), a list of rows, or a mapping of columns."""
    if isinstance(data, Mapping) or hasattr(data, "columns"):
        missing = [name for name in columns if name not in data]
        if missing:
            raise InputError(
                f"expected the columns {', '.join(columns)}, got none named {missing[0]!r}", place="columns"
            )
        points = np.column_stack([np.asarray(data[name], dtype=np.float64) for name in columns])
    else:
        try:
            points = np.asarray(data, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"expected an array of numbers: {error}", place="points") from None
    if points.ndim != 2 or points.shape[1] != dimension:
        raise InputError(
            f"expected points of {dimension} coordinates, got an array of shape {points.shape}", place="points"
        )
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0]
        raise InputError(
            f"expected finite numbers, got {points[row, column]}", place=f"coordinate {column + 1}", row=row + 1
        )
    return points
