"""Columns as one of a few levels each: categories, true or false, and numbers in bins of equal width."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ...arrays import I64
from ...checks import integer
from ...errors import InputError
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

    @classmethod
    def of(cls, schema: Schema, names: tuple[str, ...], bins: int) -> Levels:
        kinds = Category, Boolean, Number, Integer
        return cls({name: field_of(schema, name, *kinds, place="columns") for name in names}, bins)

    def _named(self, name: str, field: Field) -> tuple[str, ...]:
        if isinstance(field, Category | Boolean):
            return tuple("true" if one is True else "false" if one is False else str(one) for one in classes_of(field))
        if max(abs(field.lower), abs(field.upper)) > LARGEST:
            raise InputError(f"expected {name} with bounds below 2^53 steps", place="columns")
        span = field.upper - field.lower + 1
        # the first value of bin b is the least k with k * bins >= b * span
        firsts = [field.lower - (-place * span // self.bins) for place in range(self.bins + 1)]
        ends = [(float(one * field.step), float((after - 1) * field.step)) for one, after in pairwise(firsts)]
        return tuple(f"{low:g}..{high:g}" for low, high in ends)

    def codes(self, columns: Mapping[str, I64]) -> list[I64]:
        """The number of the level of each record, column by column; a number times the bins is below 2^64 / 2."""
        found = []
        for name, field in self.fields.items():
            values = columns[name]
            if not isinstance(field, Category | Boolean):
                values = (values - field.lower) * self.bins // (field.upper - field.lower + 1)
            found.append(values)
        return found

    def read(self, data: Any) -> list[I64]:
        """Of records to predict, as `FeatureMap.read` takes them."""
        rows, _ = Schema({name: clipping(field) for name, field in self.fields.items()}).encode(
            selected(self.fields, data)
        )
        return self.codes(rows.columns)

    def to_plain(self) -> dict[str, Any]:
        return {"fields": {name: field.spec() for name, field in self.fields.items()}, "bins": self.bins}


def checked_bins(bins: int) -> int:
    return integer(bins, "bins", least=2, most=MOST_BINS, expected=f"a whole number from 2 to {MOST_BINS:,}")
