"""Values as their noisy totals say them, for statistics whose value is a plain function of these."""

from __future__ import annotations

import math
from typing import Any

from ..schema import Schema
from ..statistics import Count, Distinct, GroupBy, Histogram, Linear, LinearQuery, Mean, Published, Ratio, Sum, Variance
from ..statistics.statistic import Statistic
from ..stream.release import plain

ANY: Any = object()
"""A number that is not looked at."""


def explained(inner: Statistic, published: Published, noisy: list[int], schema: Schema, clear: float) -> bool:
    """Whether the value is what the noisy totals say; of what is made of them in other ways nothing is asked here.
    ``clear``: a noisy count that is surely above zero. Below it a mean may be None, and is not looked at."""
    totals = [total / published.denominator for total in noisy]
    expected: list[Any] | None = None
    if isinstance(inner, Histogram):
        step = 1.0 if inner.sum is None else float(schema.fields[inner.sum].step)
        width = 1 if inner.sum is None else 2
        expected = [total * step for total in totals[width - 1 :: width]]
    elif isinstance(inner, Distinct):
        expected = totals
    elif isinstance(inner, Linear):
        expected = _linear(inner, totals, schema, clear)
    if expected is None:
        return True
    flat = _flat(plain(published.answer.value))
    return len(flat) == len(expected) and all(
        want is ANY or (got is not None and math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9))
        for got, want in zip(flat, expected, strict=True)
    )


def _linear(statistic: Linear, totals: list[float], schema: Schema, clear: float) -> list[Any] | None:
    if isinstance(statistic, GroupBy):
        size = statistic.of.layout(schema).size
        parts = [_linear(statistic.of, totals[i : i + size], schema, clear) for i in range(0, len(totals), size)]
        return None if any(part is None for part in parts) else [number for part in parts for number in part or ()]
    kind = next((k for k in (Count, Sum, Mean, Variance, LinearQuery, Ratio) if _answers_as(statistic, k)), None)
    if kind is None:
        return None
    if kind in (Count, LinearQuery):
        return totals
    if isinstance(statistic, Ratio):
        return [_ratio(statistic, totals[0], totals[1], schema, clear)]
    field = schema.fields[statistic.field]  # type: ignore[attr-defined]
    step = float(field.step)
    if kind is Sum:
        return [total * step for total in totals]
    count, total = totals[:2]
    if count < clear:
        return [ANY]
    mean = total / count
    if kind is Mean:
        low, high = float(field.lower * field.step), float(field.upper * field.step)
        return [min(max((mean + field.lower + field.upper) / 2 * step, low), high)]
    spread = min(max(totals[2] / count - mean**2, 0.0), float(max(1, field.upper - field.lower)) ** 2)
    return [spread * (step / 2) ** 2]


def _ratio(statistic: Ratio, top: float, bottom: float, schema: Schema, clear: float) -> Any:
    """In the units of the fields; a proportion, or a mean, is within its bounds."""
    field, under = (getattr(part, "field", None) for part in (statistic.top, statistic.bottom))
    if bottom < clear * (1 if under is None else schema.fields[under].upper):
        return ANY
    step = 1 if field is None else schema.fields[field].step
    ratio = top / bottom * float(step / (1 if under is None else schema.fields[under].step))
    if under is not None or not statistic.bottom.where.items() <= statistic.top.where.items():
        return ratio
    low, high = (0, 1) if field is None else (schema.fields[field].lower * step, schema.fields[field].upper * step)
    if statistic.top.where != statistic.bottom.where:
        low, high = min(low, 0), max(high, 0)
    return min(max(ratio, float(low)), float(high))


def _answers_as(statistic: Linear, kind: type[Linear]) -> bool:
    return isinstance(statistic, kind) and type(statistic).answer is kind.answer


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [number for part in value.values() for number in _flat(part)]
    if isinstance(value, list):
        return [number for part in value for number in _flat(part)]
    return [value]
