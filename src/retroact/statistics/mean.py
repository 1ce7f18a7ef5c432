"""The mean of a field: a noisy centred sum over a noisy count."""

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


class Mean(Centred):
    """**Privacy.** A record contributes (1, centred value): at most one unit in each of two coordinates.
    **Retroactivity.** Memoryless post-processing of noisy sums (Lemma "closure").

    Where the noisy count cannot be told from zero the value is None and the interval is the declared bounds. Otherwise
    it has every mean m for which sum - m * count stays within its noise (`ratio`), and is cut to the declared bounds.

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

    def error(self, deviations: npt.NDArray[np.float64], schema: Schema, records: int) -> float:
        """At the worst place for it, a mean at one of the bounds."""
        field = schema.fields[self.field]
        worst = math.hypot(float(deviations[1]), span(field) * float(deviations[0]))
        return worst / max(1, records) / 2 * float(field.step)


def to_field(centred_mean: float, field: Field) -> float:
    """Back from half-steps around the middle, cut to the declared bounds."""
    steps = (centred_mean + field.lower + field.upper) / 2
    return min(max(steps, field.lower), field.upper) * float(field.step)
