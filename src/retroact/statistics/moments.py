"""Mean and variance: noisy sums of the powers of a field, centred on the middle of its bounds, in whole half-steps.

The centred value of lattice value k, 2k - (lower + upper), is an integer of at most upper - lower in absolute value.
Centring halves the sensitivity of the sum, and is undone after noise is added.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from ..arrays import F64
from ..errors import InputError
from ..schema import Boolean, Field, Integer, Number, Rows, Schema, field_of
from .answer import Answer, Noisy
from .answer_rows import NUMBER, AnswerRows
from .linear import Contributions, Layout, OfField
from .ratio_interval import ratio_interval
from .statistic import Example

# A mean is a float.
LARGEST = 1 << 53


class Centred(OfField):
    """A record with centred value c contributes 1, c, c^2, ... up to ``highest``: at most one unit in each coordinate.
    Where the noisy count is not significantly above zero, the value is None and the interval all that the bounds
    allow."""

    highest: ClassVar[int]

    def layout(self, schema: Schema) -> Layout:
        field = field_of(schema, self.field, Number, Integer, Boolean)
        if max(abs(field.lower), abs(field.upper)) > LARGEST:
            raise InputError("expected bounds below 2^53, where every whole number is a float too", place="field")
        units = tuple(span(field) ** power for power in range(self.highest + 1))
        return Layout(units, Fraction(len(units)), Fraction(len(units)), units[-1])

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        # Counted from the lower bound, no intermediate value exceeds twice the span, which is at most 2^54. Powers are
        # at most the largest amount of the layout, and a stream refuses layouts beyond 2^38.
        field, size = schema.fields[self.field], self.highest + 1
        centred = 2 * (rows.columns[self.field] - field.lower) - (field.upper - field.lower)
        powers = [centred**power for power in range(size)]
        return Contributions(
            np.tile(np.arange(rows.count), size), np.repeat(np.arange(size), rows.count), np.concatenate(powers)
        )

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return NUMBER

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
        """Estimate, if the noisy count is significantly above zero."""


class Mean(Centred):
    """**Privacy.** A record contributes (1, centred value): at most one unit in each of two coordinates.
    **Retroactivity.** Memoryless post-processing of noisy sums (Lemma "closure").

    Where the noisy count is not significantly above zero, the value is None and the interval the declared bounds.
    Otherwise the interval has every mean m within the bounds for which sum - m * count is within its noise (Fieller).

    >>> Mean("age")
    Mean('age')
    """

    kind: ClassVar[str] = "mean"
    theorem: ClassVar[str] = 'Theorem "linear"'
    highest: ClassVar[int] = 1

    @classmethod
    def examples(cls) -> list[Example]:
        return [Example("mean", cls("amount")), Example("mean of whole numbers", cls("age"))]

    def widest(self, field: Field) -> tuple[float, float]:
        return float(field.lower * field.step), float(field.upper * field.step)

    def estimate(self, noisy: Noisy, field: Field) -> Answer:
        count, total = (float(v) for v in noisy.values)
        farthest = float(span(field))

        def interval(level: float) -> tuple[float, float]:
            bounds = (-farthest, farthest)
            low, high = ratio_interval(total, count, lambda mean: noisy.reach((-mean, 1.0), level), bounds)
            return to_field(low, field), to_field(high, field)

        slope = total / count
        deviation = math.hypot(float(noisy.deviations[1]), slope * float(noisy.deviations[0])) / count
        return Answer(to_field(slope, field), deviation / 2 * float(field.step), interval)

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        """The error in the worst case, a mean at one of the bounds."""
        field = schema.fields[self.field]
        worst = math.hypot(float(deviations[1]), span(field) * float(deviations[0]))
        return worst / max(1, records) / 2 * float(field.step)


class Variance(Centred):
    """The (population) variance. **Privacy.** A record contributes (1, c, c^2) with c its centred value: at most one
    unit in each of three coordinates. **Retroactivity.** Memoryless post-processing of noisy sums (Lemma "closure").

    With n, s, q the noisy sums, m and v the true mean and variance, and Z the noise,
    q - s^2/n - v n = (Zq - 2m Zs + (m^2 - v) Zn) - (Zs - m Zn)^2 / n.
    The interval has every v for which the left side stays within the noise of the first term (Fieller), with the noisy
    mean for m, moved outwards by a quarter of its deviation, and the mean of the second term added at the upper end.
    That is close to exact but not a bound: docs/proofs.md has measurements. It is cut to 0 and the largest variance
    within the declared bounds. Where the noisy count is not significantly above zero, the value is None.

    >>> Variance("age")
    Variance('age')
    """

    kind: ClassVar[str] = "variance"
    theorem: ClassVar[str] = 'Theorem "linear"'
    highest: ClassVar[int] = 2

    @classmethod
    def examples(cls) -> list[Example]:
        return [Example("variance", cls("amount")), Example("variance, pure", cls("amount"), {"delta": 0.0})]

    def widest(self, field: Field) -> tuple[float, float]:
        return 0.0, float(span(field)) ** 2 * _scale(field)

    def estimate(self, noisy: Noisy, field: Field) -> Answer:
        largest, scale = float(span(field)) ** 2, _scale(field)
        count, total, square = (float(v) for v in noisy.values)
        mean = total / count
        # The noise of sum - mean * count, whose square goes into the variance.
        blur = math.hypot(float(noisy.deviations[1]), mean * float(noisy.deviations[0]))
        outer = abs(mean) + blur / count / 4

        def interval(level: float) -> tuple[float, float]:
            low, high = ratio_interval(
                square - total * mean,
                count,
                lambda variance: noisy.reach((outer**2 - variance, -2 * outer, 1.0), level),
                (0.0, largest),
                above=blur**2 / count,
            )
            return low * scale, high * scale

        value = square / count - mean**2
        # The gradient of q/n - (s/n)^2 in (n, s, q), times n.
        by_count = -square / count + 2 * mean**2
        parts = [by_count * noisy.deviations[0], 2 * mean * noisy.deviations[1], noisy.deviations[2]]
        deviation = math.sqrt(sum(float(p) ** 2 for p in parts)) / count
        return Answer(min(max(value, 0.0), largest) * scale, deviation * scale, interval)

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        """The error for a mean near the middle of the bounds, and a spread that is small compared with them."""
        return float(deviations[2]) / max(1, records) * _scale(schema.fields[self.field])


def span(field: Field) -> int:
    return max(1, field.upper - field.lower)


def to_field(centred_mean: float, field: Field) -> float:
    """Convert half-steps around the middle to the unit of the field, within the declared bounds."""
    steps = (centred_mean + field.lower + field.upper) / 2
    return min(max(steps, field.lower), field.upper) * float(field.step)


def _scale(field: Field) -> float:
    """A squared half-step, in the unit of the field."""
    return (float(field.step) / 2) ** 2
