"""The covariance of two fields: a statistic of another package, in one file.

**Privacy.** A record contributes (1, x, y, xy) of its centred values: at most one unit in each of four coordinates.
**Retroactivity.** Memoryless post-processing of noisy sums (Lemma "closure").
"""

from fractions import Fraction

import numpy as np

import retroact as ra
from retroact.schema import field_of
from retroact.statistics import Answer, Contributions, Example, Layout, Linear


class Covariance(Linear):
    kind = "covariance"
    theorem = 'Theorem "linear", with F the rows 1, x, y and xy'
    version = "3"
    interval = False

    def __init__(self, one, other, **options):
        super().__init__(**options)
        self.one, self.other = one, other

    @classmethod
    def examples(cls):
        return [
            Example("covariance", cls("age", "amount")),
            Example("covariance, window", cls("age", "amount", window=3)),
        ]

    def reads(self, schema):
        return self.one, self.other

    def layout(self, schema):
        x, y = (max(1, field.upper - field.lower) for field in self._fields(schema))
        return Layout((1, x, y, x * y), Fraction(4), Fraction(4), x * y)

    def contribute(self, rows, schema):
        x, y = (
            2 * (rows.columns[name] - field.lower) - (field.upper - field.lower)
            for name, field in zip(self.reads(schema), self._fields(schema), strict=True)
        )
        amounts = np.concatenate([np.ones_like(x), x, y, x * y])
        return Contributions(np.tile(np.arange(rows.count), 4), np.repeat(np.arange(4), rows.count), amounts)

    def answer(self, noisy, schema):
        count, x, y, xy = (float(value) for value in noisy.values)
        value = (xy / count - x / count * y / count) * self._scale(schema) if count >= 1 else None
        return Answer(value, None, lambda level: None)

    def error(self, deviations, schema, records):
        """Where both means are near the middle of their bounds."""
        return float(deviations[3]) / max(1, records) * self._scale(schema)

    def _fields(self, schema):
        return [field_of(schema, name, ra.Number, ra.Integer) for name in (self.one, self.other)]

    def _scale(self, schema):
        """Centred values are counted in half-steps."""
        return float(np.prod([float(field.step) / 2 for field in self._fields(schema)]))
