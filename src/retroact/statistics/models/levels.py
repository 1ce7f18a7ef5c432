"""Columns as one of a few levels each: categories, true or false, and numbers in bins of equal width."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ...arrays import I64
from ...checks import integer
from ...errors import InputError
from ...messages import exact_text
from ...schema import Boolean, Category, Field, Integer, Number, Schema, field_of
from ...schema.numbers import LARGEST
from .class_scores import classes_of
from .feature_map import clipping, selected

MOST_BINS = 1000


class Levels:
    """
    >>> import numpy as np
    >>> levels = Levels({"age": Integer(0, 99), "member": Boolean()}, bins=4)
    >>> levels.names["age"], levels.codes({"age": np.array([0, 30, 99]), "member": np.array([1, 0, 1])})
    (('0..24', '25..49', '50..74', '75..99'), [array([0, 1, 3]), array([1, 0, 1])])
    """

    def __init__(self, fields: Mapping[str, Field], bins: int) -> None:
        self.fields, self.bins = dict(fields), bins
        self.names = {name: self._named(name, field) for name, field in self.fields.items()}
        if len({*self.flat}) < len(self.flat):
            raise InputError("expected columns whose levels have different names", place="columns")

    @classmethod
    def of(cls, schema: Schema, names: tuple[str, ...], bins: int) -> Levels:
        kinds = Category, Boolean, Number, Integer
        return cls({name: field_of(schema, name, *kinds, place="columns") for name in names}, bins)

    @property
    def flat(self) -> list[str]:
        """The names of all levels of all columns, as tables have them."""
        return [level_name(column, level) for column, levels in self.names.items() for level in levels]

    def _named(self, name: str, field: Field) -> tuple[str, ...]:
        if isinstance(field, Category | Boolean):
            return tuple("true" if one is True else "false" if one is False else str(one) for one in classes_of(field))
        if max(abs(field.lower), abs(field.upper)) > LARGEST:
            raise InputError(f"expected {name} with bounds below 2^53 steps", place="columns")
        span, bins = field.upper - field.lower + 1, self._bins(field)
        # the first value of bin b is the least k with k * bins >= b * span
        firsts = [field.lower - (-place * span // bins) for place in range(bins + 1)]
        return tuple(range_name(one * field.step, (after - 1) * field.step) for one, after in pairwise(firsts))

    def _bins(self, field: Field) -> int:
        """None is empty."""
        return min(self.bins, int(field.upper - field.lower + 1))

    def codes(self, columns: Mapping[str, I64]) -> list[I64]:
        """The number of the level of each record, column by column; a number times the bins is below 2^64 / 2."""
        found = []
        for name, field in self.fields.items():
            values = columns[name]
            if not isinstance(field, Category | Boolean):
                values = (values - field.lower) * self._bins(field) // (field.upper - field.lower + 1)
            found.append(values)
        return found

    def read(self, data: Any) -> list[I64]:
        """Read records to predict, as `FeatureMap.read` takes them."""
        rows, _ = Schema({name: clipping(field) for name, field in self.fields.items()}).encode(
            selected(self.fields, data)
        )
        return self.codes(rows.columns)

    def to_plain(self) -> dict[str, Any]:
        return {"fields": {name: field.spec() for name, field in self.fields.items()}, "bins": self.bins}


def range_name(low: Fraction, high: Fraction) -> str:
    """Exact: with six digits where they are enough for both ends.

    >>> range_name(Fraction(5, 2), Fraction(10**6)), range_name(Fraction(10**6), Fraction(10**6 + 1))
    ('2.5..1e+06', '1000000..1000001')
    """
    short = [f"{float(end):g}" for end in (low, high)]
    right = [Fraction(text) for text in short] == [low, high]
    return "..".join(short if right else map(exact_text, (low, high)))


def level_name(column: str, level: str) -> str:
    return f"{column}={level}"


def checked_bins(bins: int) -> int:
    return integer(bins, "bins", least=2, most=MOST_BINS, expected=f"a whole number from 2 to {MOST_BINS:,}")
