"""The columns of X as declared fields: numbers with bounds, declared levels, or one vector in a ball.

**Privacy.** Bounds, levels and the radius are parameters; none is taken from records. What comes in from outside the
bounds is clipped or refused, one record at a time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import F64
from ..errors import InputError
from ..schema import Category, Field, Number, Vector
from ..schema.numbers import exact_number
from ..statistics.clusters.ball import BITS

# A number has from 10^4 to 10^5 steps between its bounds.
DIGITS = 4
VECTOR = "x"
OR_RADIUS = "bounds=(lower, upper), or a radius that no row is longer than; noise is in proportion to either"


class PublicColumns:
    """
    >>> columns = PublicColumns(("age", "city"), bounds=(0, 120), categories={"city": ["Rome", "Bern"]})
    >>> columns.fields
    {'age': Number(0, 120, step=0.01, clip=True), 'city': Category(['Rome', 'Bern'])}
    >>> columns.of(np.array([[31, "Bern"]], dtype=object))["age"].tolist()
    [31.0]
    """

    def __init__(
        self, names: Sequence[str], *, bounds: Any = None, radius: Any = None, categories: Any = None, clip: bool = True
    ) -> None:
        self.names, self._is_vector = tuple(names), radius is not None
        levels = _levels(categories, self.names)
        self._texts = {name: _texts_of(own) for name, own in levels.items()}
        if radius is not None:
            if levels or bounds is not None:
                raise InputError("expected bounds and categories, or a radius: one of the two", place="radius")
            self.fields: dict[str, Field] = {VECTOR: ball(radius, len(self.names), clip=clip)}
        else:
            numbers = [name for name in self.names if name not in levels]
            given = limits(bounds, len(numbers), OR_RADIUS) if numbers else ()
            each = dict(zip(numbers, given, strict=True))
            self.fields = {
                name: Category([*map(str, levels[name])]) if name in levels else interval(*each[name], clip=clip)
                for name in self.names
            }

    def of(self, X: Any) -> dict[str, Any]:
        """Checked rows as columns of these fields."""
        if self._is_vector:
            return {VECTOR: np.asarray(X, dtype=np.float64)}
        parts = {name: X[:, place] for place, name in enumerate(self.names)}
        known = self._texts
        return {
            name: [_text(value, known[name]) for value in part.tolist()] if name in known else _numbers(part, name)
            for name, part in parts.items()
        }


def ball(radius: Any, dimension: int, *, clip: bool) -> Vector:
    """
    >>> ball(100, 3, clip=True)
    Vector(3, radius=100, step=0.0009765625, clip=True)
    """
    size = exact_number(radius, "radius")
    return Vector(dimension, radius=size, step=step_of(size), clip=clip)


def step_of(radius: Fraction) -> Fraction:
    """The largest power of two up to radius / 2^16: as fine as the steps of the ball itself, and an exact decimal.

    >>> step_of(Fraction(100)), step_of(Fraction(1, 10)) == Fraction(1, 2**20)
    (Fraction(1, 1024), True)
    """
    power = radius.numerator.bit_length() - radius.denominator.bit_length()
    power -= Fraction(2) ** power > radius
    return Fraction(2) ** (power - BITS)


def interval(lower: Any, upper: Any, *, clip: bool = True, place: str = "bounds") -> Number:
    """Between two bounds, moved outwards to whole steps.

    >>> interval(0, 1 / 3)
    Number(0, 0.33334, step=0.00001, clip=True)
    """
    low, high = exact_number(lower, place), exact_number(upper, place)
    if low >= high:
        raise InputError(f"expected a lower bound below the upper one, got {lower!r} and {upper!r}", place=place)
    step = Fraction(10) ** (math.ceil(math.log10(high - low)) - 1 - DIGITS)
    return Number(math.floor(low / step) * step, math.ceil(high / step) * step, step=step, clip=clip)


def limits(bounds: Any, count: int, hint: str = "") -> list[tuple[Any, Any]]:
    """A lower and an upper bound for each column."""
    if bounds is None:
        text = "expected declared bounds of the columns: those of the records would reveal them"
        raise InputError(text, place="bounds", hint=hint or None)
    try:
        lower, upper = bounds
        return list(zip(_each(lower, count), _each(upper, count), strict=True))
    except (TypeError, ValueError):
        raise InputError(
            f"expected a lower and an upper bound, each one number or {count} of them, got {bounds!r}", place="bounds"
        ) from None


def _each(given: Any, count: int) -> list[Any]:
    if np.ndim(given) == 0:
        return [given] * count
    if np.shape(given) != (count,):
        raise ValueError
    listed: list[Any] = np.asarray(given).tolist()
    return listed


def _levels(categories: Any, names: tuple[str, ...]) -> dict[str, list[Any]]:
    """By name, from names or positions of columns."""
    found: dict[str, list[Any]] = {}
    if categories is None:
        return found
    if not isinstance(categories, Mapping):
        raise InputError(f"expected levels by column, got {categories!r}", place="categories")
    for column, levels in categories.items():
        name = names[column] if isinstance(column, int) and -len(names) <= column < len(names) else column
        if name not in names:
            raise InputError(f"expected one of the columns {', '.join(names)}, got {column!r}", place="categories")
        found[name] = [*levels]
    return found


def _texts_of(levels: list[Any]) -> dict[Any, str]:
    """The text of each declared level: 1, 1.0 and True are one level, since arrays turn one into another; so is the
    text True, unless the text 1 is another."""
    found = {level: str(level) for level in levels}
    if len(found) < len(levels):
        raise InputError(f"expected different levels, got {levels!r}", place="categories")
    for truth in (True, False):
        if str(truth) in found and str(int(truth)) not in found:
            found.setdefault(truth, str(truth))
    return found


def _text(value: Any, known: Mapping[Any, str]) -> str | None:
    """
    >>> known = _texts_of([0, True, "2"])
    >>> [_text(value, known) for value in (0.0, 1, "True", 2.0, 0.5, None)]
    ['0', 'True', 'True', '2', '0.5', None]
    """
    if value is None:
        return None
    if isinstance(value, float) and value not in known and value.is_integer():
        value = int(value)
    return known[value] if isinstance(value, str | int | float) and value in known else str(value)


def _numbers(part: Any, name: str) -> F64:
    try:
        found = np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("expected numbers; name the levels of a column of texts in categories", place=name) from None
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found))[0]) + 1
        raise InputError(f"expected a number, got {found[row - 1]}", place=name, row=row)
    return found
