"""The variance of a field, from three noisy sums."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..schema import Field, Schema
from .answer import Answer, Noisy
from .centred import Centred, span
from .example import Example
from .ratio import ratio_interval


class Variance(Centred):
    """The (population) variance. **Privacy.** A record contributes (1, c, c^2) with c its centred value: at most one
    unit in each of three coordinates. **Retroactivity.** Memoryless post-processing of noisy sums (Lemma "closure").

    With n, s, q the noisy sums, m and v the true mean and variance, and Z the noise,
    q - s^2/n - v n = (Zq - 2m Zs + (m^2 - v) Zn) - (Zs - m Zn)^2 / n.
    The interval has every v for which the left side stays within the noise of the first term (`ratio`), with the noisy
    mean for m, moved outwards by a quarter of its deviation, and the mean of the second term added at the upper end.
    That is close to exact and not a bound: docs/proofs.md has what is measured. It lies between 0 and the largest
    variance that the declared bounds allow. Where the noisy count cannot be told from zero the value is None.

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
        # What noise makes of sum - mean * count, whose square goes into the variance.
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

    def error(self, deviations: npt.NDArray[np.float64], schema: Schema, records: int) -> float:
        """For a field whose mean is near the middle of its bounds and whose spread is small beside them."""
        return float(deviations[2]) / max(1, records) * _scale(schema.fields[self.field])


def _scale(field: Field) -> float:
    """Centred values are counted in half-steps."""
    return (float(field.step) / 2) ** 2
