"""The sum of a field: a number, or a vector coordinate by coordinate."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np

from ..arrays import F64
from ..schema import Boolean, Integer, Number, Rows, Schema, Vector, field_of
from .answer import Answer, Noisy, scalar, vector
from .answer_rows import NUMBER, AnswerRows, ByPosition
from .linear import Contributions, Layout, OfField, one_each
from .statistic import Example


class Sum(OfField):
    """**Privacy.** A record contributes its lattice value, at most max(|lower|, |upper|); a vector at most its radius
    in the second norm (in lattice steps, rounding included). **Retroactivity.** Theorem "linear" with F the row of
    values.

    >>> Sum("amount")
    Sum('amount')
    """

    kind: ClassVar[str] = "sum"
    theorem: ClassVar[str] = 'Theorem "linear"'

    @classmethod
    def examples(cls) -> list[Example]:
        return [
            Example("sum", cls("amount")),
            Example("sum where", cls("amount", where={"country": "DE"}), {"delta": 0.0}),
            Example("sum, window and every", cls("amount", window=3, every=2)),
            Example("sum of booleans", cls("member")),
            Example("vector sum", cls("place")),
        ]

    def layout(self, schema: Schema) -> Layout:
        field = field_of(schema, self.field, Number, Integer, Boolean, Vector)
        largest = max(1, abs(field.lower), abs(field.upper))
        if isinstance(field, Vector):
            return Layout((1,) * field.width, Fraction(field.norm1_bound), Fraction(field.norm2_bound), largest)
        return Layout((largest,), Fraction(1), Fraction(1), largest)

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        column = rows.columns[self.field]
        if column.ndim == 1:
            return one_each(rows, column)
        count, width = column.shape
        return Contributions(np.repeat(np.arange(count), width), np.tile(np.arange(width), count), column.ravel())

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return ByPosition("coordinate", NUMBER) if isinstance(schema.fields[self.field], Vector) else NUMBER

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        field = schema.fields[self.field]
        shape = vector if isinstance(field, Vector) else scalar
        return shape(noisy, float(field.step))

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        return float(deviations[0]) * float(schema.fields[self.field].step)
