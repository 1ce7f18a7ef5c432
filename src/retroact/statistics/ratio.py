"""The ratio of two counts or sums, such as late arrivals per arrival, with one interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..arrays import F64
from ..errors import InputError
from ..messages import mismatch
from ..params import Parameters
from ..schema import Boolean, Integer, Number, Rows, Schema, field_of
from . import where as conditions
from .answer import Answer, Noisy
from .answer_rows import NUMBER, AnswerRows
from .count import Count
from .grant import Demand, StreamTerms
from .linear import Contributions, Layout, Linear
from .ratio_interval import ratio_interval
from .statistic import Example, Statistic
from .sum import Sum


class Ratio(Linear):
    """``top`` divided by ``bottom``: each a count, or the sum of a number, with separate conditions.

    A record counts if it has all fields that either of them reads, conditions included. Where the bottom is not
    significantly above zero, the value is None; the interval is then what the declared bounds allow, or None where they
    allow anything. Otherwise the interval has every r for which top - r * bottom is within its noise
    (`ratio_interval`).

    **Privacy.** A record adds at most one unit to each of two coordinates: norm1 = norm2_squared = 2, whether its
    conditions hold or not. The ratio is post-processing. **Retroactivity.** Memoryless post-processing of noisy sums
    (Lemma "closure").

    >>> Ratio(Count(where={"late": True}), Count())
    Ratio(Count(where={'late': True}), Count())
    """

    kind: ClassVar[str] = "ratio"
    theorem: ClassVar[str] = 'Theorem "linear"'
    tables: ClassVar[Mapping[str, type[Parameters]]] = {"top": Statistic, "bottom": Statistic}

    def __init__(self, top: Linear, bottom: Linear, **options: Any) -> None:
        super().__init__(**options)
        for place, part in (("top", top), ("bottom", bottom)):
            if type(part) not in (Count, Sum):
                error = mismatch("a count or a sum", part, place)
                error.hint = 'in a file such as { type = "count", where = { status = "late" } }'
                raise error
            if part != part.replace(**{n: p.default for n, p in Statistic.parameters().items() if n != "where"}):
                raise InputError(
                    "expected windows, noise and so on for the ratio as a whole, not for a part", place=place
                )
        self.top, self.bottom = top, bottom

    @classmethod
    def examples(cls) -> list[Example]:
        return [
            Example("ratio", cls(Count(where={"country": "DE"}), Count())),
            Example("ratio of sums", cls(Sum("amount"), Sum("age", where={"age": {"min": 18}}))),
        ]

    @property
    def parts(self) -> tuple[Linear, Linear]:
        return self.top, self.bottom

    def demand(self, schema: Schema, stream: StreamTerms) -> Demand:
        for place, part in (("top", self.top), ("bottom", self.bottom)):
            conditions.check(part.where, schema, f"{stream.place}.{place}.where")
        return super().demand(schema, stream)

    def layout(self, schema: Schema) -> Layout:
        for part in self.parts:
            if isinstance(part, Sum):
                field_of(schema, part.field, Number, Integer, Boolean)
        if isinstance(self.bottom, Sum) and schema.fields[self.bottom.field].lower < 0:
            raise InputError("expected a bottom without negative values", place="bottom.field")
        units = tuple(part.layout(schema).units[0] for part in self.parts)
        return Layout(units, Fraction(2), Fraction(2), max(units))

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in (*part.where, *part.reads(schema))))

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        held = [np.flatnonzero(conditions.select(part.where, rows, schema)) for part in self.parts]
        amounts = [part.contribute(rows.take(own), schema).amount for part, own in zip(self.parts, held, strict=True)]
        return Contributions(
            np.concatenate(held), np.repeat(np.arange(2), [len(own) for own in held]), np.concatenate(amounts)
        )

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return NUMBER

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        scale, widest = self._scale(schema), self._widest(schema)
        top, bottom = (float(value) for value in noisy.values)
        if not noisy.above_zero(1):
            return Answer(None, None, lambda level: widest)

        def interval(level: float) -> tuple[float, float] | None:
            clear = bottom - noisy.reach((0.0, 1.0), level)
            if clear <= 0:
                return widest
            # Beyond |top| + reach over `clear` no r is in the set; twice that leaves room for approximate tails.
            farthest = 2 * (abs(top) + noisy.reach((1.0, 0.0), level)) / clear
            ends = ratio_interval(top, bottom, lambda r: noisy.reach((1.0, -r), level), (-farthest, farthest))
            low, high = (end * scale for end in ends)
            return (low, high) if widest is None else (_within(low, widest), _within(high, widest))

        ratio = top / bottom
        deviation = math.hypot(float(noisy.deviations[0]), ratio * float(noisy.deviations[1])) / bottom
        value = ratio * scale
        return Answer(value if widest is None else _within(value, widest), deviation * scale, interval)

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        """The error if every record counts in both, with values halfway between zero and their farther bound."""
        usual = [1.0 if isinstance(part, Count) else part.layout(schema).units[0] / 2 for part in self.parts]
        worst = math.hypot(float(deviations[0]), usual[0] / usual[1] * float(deviations[1]))
        return worst / (max(1, records) * usual[1]) * self._scale(schema)

    def _scale(self, schema: Schema) -> float:
        """The unit of a ratio of lattice values."""
        steps = [Fraction(1) if isinstance(p, Count) else schema.fields[p.field].step for p in self.parts]  # type: ignore[attr-defined]
        return float(steps[0] / steps[1])

    def _widest(self, schema: Schema) -> tuple[float, float] | None:
        """What the bounds allow: known where every record of the top is one of the counted bottom."""
        within = all(self.top.where.get(name) == condition for name, condition in self.bottom.where.items())
        if not within or not isinstance(self.bottom, Count):
            return None
        if isinstance(self.top, Count):
            return 0.0, 1.0
        field = schema.fields[self.top.field]  # type: ignore[attr-defined]
        ends = (float(field.lower * field.step), float(field.upper * field.step))
        # Records of the bottom that are not in the top add nothing to it.
        return ends if self.top.where == self.bottom.where else (min(0.0, ends[0]), max(0.0, ends[1]))


def _within(value: float, ends: tuple[float, float]) -> float:
    return min(max(value, ends[0]), ends[1])
