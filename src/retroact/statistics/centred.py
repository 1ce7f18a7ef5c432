"""What mean and variance share: a field centred on the middle of its bounds, in whole half-steps.

With k the lattice value, the centred value 2k - (lower + upper) is an integer of at most upper - lower in absolute
value. Centring halves the sensitivity of the sum, and is undone after the noise is on.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ..errors import InputError
from ..schema import Boolean, Field, Integer, Number, Rows, Schema
from .answer import Answer, Noisy
from .linear import Contributions, Layout, OfField, field_of

# A mean is a float.
LARGEST = 1 << 53


class Centred(OfField):
    """A record with centred value c contributes 1, c, c^2, ... up to ``highest``: at most one unit in each coordinate.
    Where the noisy count cannot be told from zero the value is None, and the interval all that the bounds allow."""

    highest: ClassVar[int]

    def layout(self, schema: Schema) -> Layout:
        field = field_of(schema, self.field, Number, Integer, Boolean)
        if max(abs(field.lower), abs(field.upper)) > LARGEST:
            raise InputError("expected bounds below 2^53, where every whole number is a float too", place="field")
        units = tuple(span(field) ** power for power in range(self.highest + 1))
        return Layout(units, Fraction(len(units)), Fraction(len(units)), units[-1])

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        # From the lower bound on, so that nothing on the way is larger than twice the span, which is at most 2^54.
        # Powers are at most the largest amount of the layout, and a stream refuses layouts beyond 2^38.
        field, size = schema.fields[self.field], self.highest + 1
        centred = 2 * (rows.columns[self.field] - field.lower) - (field.upper - field.lower)
        powers = [centred**power for power in range(size)]
        return Contributions(
            np.tile(np.arange(rows.count), size), np.repeat(np.arange(size), rows.count), np.concatenate(powers)
        )

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        field = schema.fields[self.field]
        widest, count = self.widest(field), float(noisy.values[0])
        if not noisy.above_zero(0):
            return Answer(None, None, lambda level: widest)
        found = self.estimate(noisy, field)

        def interval(level: float) -> tuple[float, float]:
            if count <= noisy.reach((1.0,), level):
                return widest
            return found.interval(level)  # type: ignore[no-any-return]

        return replace(found, interval=interval)

    @abstractmethod
    def widest(self, field: Field) -> tuple[float, float]:
        """The interval that the declared bounds allow."""

    @abstractmethod
    def estimate(self, noisy: Noisy, field: Field) -> Answer:
        """Where the noisy count is clear of zero."""


def span(field: Field) -> int:
    return max(1, field.upper - field.lower)
