"""One field as columns of whole numbers, and what they mean.

A scaled value t lies in [-1, 1] and is kept as a whole number of steps of 2^-20, rounded towards zero:

- a number, from its declared bounds to [-1, 1]; with ``knots``, also q hat functions over q evenly spaced knots, each
  less 1/q (at a value between two knots their hats are 1 - f and f, and the others are 0);
- a category of k levels: one 0 or 1 for each level, less 1/k;
- true or false: 1/sqrt(2) or -1/sqrt(2), which is as long as a category of two levels;
- a vector, divided by the longest that its field accepts.

**Bounds.** The squares of the columns of a field add up to at most its ``square``: 1 for a number and for a vector;
for hats (1 - f)^2 + f^2 - 1/q <= 1 - 1/q more; 1 - 1/k for a category; 1/2 for true or false. Rounding only makes them
smaller.
**Exactness.** Columns are float64 arrays of whole numbers. `quotient` divides whole numbers below 2^51 by whole numbers
below 2^33, where truncating the correctly rounded quotient is truncating the true one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from ...arrays import F64, I64
from ...errors import InputError
from ...messages import exact_text
from ...schema import Boolean, Category, Field, Vector
from ...schema.numbers import LARGEST

FINE = 20
ONE = 1 << FINE
# Spans are cut to this many bits, so that a value times 2^20 is exact in a float.
SPAN = 31
# 2^20 / sqrt(2), rounded down.
HALF = math.isqrt(ONE * ONE // 2)


class ScaledColumns(NamedTuple):
    """The columns of one field. A feature is t = (value - middle) / scale, where the value is that of the field, or 1
    or 0 for a level, or the height of a hat."""

    names: tuple[str, ...]
    square: Fraction
    middles: tuple[float, ...]
    scales: tuple[float, ...]
    columns: Callable[[I64], F64]
    """Turns encoded values into columns, in steps of 2^-20: (records, names)."""
    balanced: slice = slice(0)
    """Those whose sum is 0, so that a constant on all of them predicts nothing."""
    dependent: int = 0
    """How many combinations of them are 0 for every record, up to rounding."""


def scaled_columns(name: str, field: Field, knots: int = 0) -> ScaledColumns:
    if isinstance(field, Category):
        return _levels(name, field)
    if isinstance(field, Vector):
        return _vector(name, field)
    if isinstance(field, Boolean):
        return ScaledColumns((name,), Fraction(1, 2), (0.5,), (ONE / (2.0 * HALF),), _of_truth)
    return _number(name, field, knots)


def quotient(top: I64 | F64, below: float | F64) -> F64:
    """top / below, truncated towards zero; exact for whole numbers with |top| + below < 2^53, in floats or not.

    If below does not divide top, the next whole number q away from zero differs from |top| / below by at least
    1 / below. The float next to q is nearer than that, since q < (|top| + below) / below, so q 2^-53 < 1 / below:
    the rounded quotient does not reach q.
    """
    return np.asarray(np.trunc(top / below))


class Centre(NamedTuple):
    """Lattice values of a number around the middle of its bounds, cut to ``span`` of at most 2^31 half-steps."""

    lower: int
    upper: int
    shift: int
    span: int

    @classmethod
    def of(cls, name: str, field: Field, place: str = "columns") -> Centre:
        if max(abs(field.lower), abs(field.upper)) > LARGEST or field.lower >= field.upper:
            raise InputError(f"expected {name} with bounds that differ and are below 2^53 steps", place=place)
        span = field.upper - field.lower
        shift = max(0, span.bit_length() - SPAN)
        return cls(field.lower, field.upper, shift, -(-span >> shift))

    def steps(self, values: I64) -> I64:
        """The steps from -span to span."""
        return (2 * (values - self.lower) - (self.upper - self.lower)) >> self.shift

    def scaled(self, values: I64, bits: int) -> F64:
        """Scale to -1 .. 1, in steps of 2^-bits."""
        return quotient(self.steps(values) << bits, float(self.span))


def middle_and_scale(field: Field) -> tuple[float, float]:
    """The middle of the bounds of a number, and half of their distance."""
    return float((field.lower + field.upper) * field.step / 2), float((field.upper - field.lower) * field.step / 2)


def _number(name: str, field: Field, knots: int) -> ScaledColumns:
    centre, (middle, scale) = Centre.of(name, field), middle_and_scale(field)
    if not knots:
        return ScaledColumns((name,), Fraction(1), (middle,), (scale,), partial(_of_numbers, centre))
    distance = Fraction(field.upper - field.lower, knots - 1)
    places = [(field.lower + place * distance) * field.step for place in range(knots)]
    return ScaledColumns(
        (name, *(f"{name}~{place}" for place in told_apart(places))),
        2 - Fraction(1, knots),
        (middle, *[1 / knots] * knots),
        (scale, *[1.0] * knots),
        partial(_of_hats, centre, knots),
        slice(1, knots + 1),
        2,
    )


def told_apart(places: list[Fraction]) -> list[str]:
    """Different numbers as different texts: six digits, or as many as it takes.

    >>> told_apart([Fraction(0), Fraction(10, 3)]), told_apart([Fraction(5_000_000), Fraction(15_000_010, 3)])
    (['0', '3.33333'], ['5000000', '5000003'])
    """
    for digits in range(6, 18):
        texts = [f"{float(place):.{digits}g}" for place in places]
        if len({*texts}) == len(places):
            return texts
    return [exact_text(place) for place in places]


def _levels(name: str, field: Category) -> ScaledColumns:
    size = len(field.values)
    table = np.full((size, size), -float(ONE // size))
    np.fill_diagonal(table, float(ONE * (size - 1) // size))
    names = tuple(f"{name}={level}" for level in field.values)
    square = 1 - Fraction(1, size)
    return ScaledColumns(names, square, (1 / size,) * size, (1.0,) * size, partial(np.take, table, axis=0),
                         slice(0, size), 1)  # fmt: skip


def _vector(name: str, field: Vector) -> ScaledColumns:
    length = math.isqrt(field.norm2_bound - 1) + 1
    if length.bit_length() > SPAN:
        raise InputError(f"expected {name} with a coarser step: fewer than 2^{SPAN} to its radius", place="columns")
    names, scale = tuple(f"{name}[{place}]" for place in range(field.width)), float(length * field.step)
    return ScaledColumns(names, Fraction(1), (0.0,) * field.width, (scale,) * field.width, partial(_of_vectors, length))


def _of_truth(values: I64) -> F64:
    return np.asarray((2 * values - 1) * np.float64(HALF))[:, None]


def _of_numbers(centre: Centre, values: I64) -> F64:
    return centre.scaled(values, FINE)[:, None]


def _of_hats(centre: Centre, knots: int, values: I64) -> F64:
    # How far along the knots, in steps of 2^-20: at most 2^52 (q - 1) before it is divided.
    along = (centre.steps(values) + centre.span) * (knots - 1) * ONE // (2 * centre.span)
    left = np.minimum(along >> FINE, knots - 2)
    part = along - (left << FINE)
    hats = np.zeros((len(values), knots), dtype=np.int64)
    every = np.arange(len(values))
    hats[every, left], hats[every, left + 1] = ONE - part, part
    return np.column_stack([centre.scaled(values, FINE), quotient(hats * knots - ONE, float(knots))])


def _of_vectors(length: int, values: I64) -> F64:
    return quotient(values * ONE, float(length))
