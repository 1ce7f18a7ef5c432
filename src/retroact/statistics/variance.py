"""The variance of a field, from three noisy sums."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..schema import Rows, Schema
from .linear import Contributions, Layout, OfField
from .moments import bounded, powers, ratio_bounds, span
from .noisy import Answer, Noisy


class Variance(OfField):
    """The (population) variance. **Privacy.** A record contributes (1, c, c^2) with c its centred value: at most one
    unit in each of three coordinates. **Retroactivity.** Memoryless post-processing of noisy sums (Lemma "closure").

    The interval holds all three sums with probability ``level`` together; it lies between 0 and the largest variance
    that the declared bounds allow. Where the noisy count cannot be told from zero the value is None.

    >>> Variance("age")
    Variance(field='age')
    """

    kind: ClassVar[str] = "variance"

    def layout(self, schema: Schema) -> Layout:
        unit = span(bounded(schema, self.field))
        return Layout((1, unit, unit**2), Fraction(3), Fraction(3), unit**2)

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        return powers(rows, self.field, schema.fields[self.field], 2)

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        field = schema.fields[self.field]
        # Centred values are counted in half-steps.
        scale = (float(field.step) / 2) ** 2
        largest = float(span(field)) ** 2
        count, total, square = (float(v) for v in noisy.values)

        def interval(level: float) -> tuple[float, float]:
            each = 1 - (1 - level) / 3
            around, reach, wide = (noisy.half_width(i, each) for i in range(3))
            if count - around <= 0:
                return 0.0, largest * scale
            fewest, most = count - around, count + around
            squares = ratio_bounds(square - wide, square + wide, fewest, most)
            low, high = ratio_bounds(total - reach, total + reach, fewest, most)
            nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
            farthest = max(abs(low), abs(high))
            return (
                _between(squares[0] - farthest**2, largest) * scale,
                _between(squares[1] - nearest**2, largest) * scale,
            )

        if not noisy.above_zero(0):
            return Answer(None, None, interval)
        mean = total / count
        value = square / count - mean**2
        # The gradient of q/n - (s/n)^2 in (n, s, q), times n.
        by_count = -square / count + 2 * mean**2
        parts = [by_count * noisy.deviations[0], 2 * mean * noisy.deviations[1], noisy.deviations[2]]
        deviation = math.sqrt(sum(float(p) ** 2 for p in parts)) / count
        return Answer(_between(value, largest) * scale, deviation * scale, interval)

    def error(self, deviations: npt.NDArray[np.float64], schema: Schema, records: int) -> float:
        """For a field whose mean is near the middle of its bounds and whose spread is small beside them."""
        scale = (float(schema.fields[self.field].step) / 2) ** 2
        return float(deviations[2]) / max(1, records) * scale


def _between(value: float, largest: float) -> float:
    return min(max(value, 0.0), largest)
