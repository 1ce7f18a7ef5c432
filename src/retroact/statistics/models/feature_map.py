"""Records as points of a ball: whole numbers that are a function of the record and of public choices alone.

A row t of scaled columns has at most the length R, R^2 the sum of their squares (`scaled_columns`). A row longer than
``reach`` * R is shortened to it; then everything is divided by reach * R and rounded towards zero to a point x of 12
bits: |x| <= 2^12. Few rows are as long as R, so a reach of 4/5 leaves nearly all as they are, with less noise.

**Exactness.** No number depends on other rows, on their order in memory or on threads. Scaled values t are whole
numbers of at most 2^20 steps, and so are all intermediate results, in floats. The sum s of their squares is at most
R^2 2^40 <= 2^50, so no order of adding ever rounds. With l = max(ceil(sqrt(s)), ceil(reach R 2^20)) a point is
x = trunc(t 2^12 / l), exact by `quotient`. Square roots are correctly rounded: the root of a whole number strictly
between m^2 and (m + 1)^2 differs from m and from m + 1 by at least 1 / (2m + 2) >= 2^-27, and rounding moves a number
below 2^25 by at most 2^-29; so the ceiling is that of the true root. Hence l^2 >= s, and |x|^2 <= 2^24 s / l^2 <= 2^24.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from ...arrays import F64, I64
from ...checks import integer
from ...errors import InputError
from ...messages import mismatch
from ...schema import Boolean, Category, Field, Integer, Number, Schema, Vector, field_of
from .scaled_columns import ONE, scaled_columns

BITS = 12
LENGTH = 1 << BITS
MOST, DEFAULT_MOST = 1024, 512
MOST_KNOTS = 64
USUAL_REACH = Fraction(4, 5)
WHOLE_REACH = Fraction(1)


class FeatureMap:
    """Maps records that train and records to predict in the same way.

    >>> fields = {"miles": Number(0, 50), "member": Boolean()}
    >>> features = FeatureMap(fields)
    >>> features.names, features.points({"miles": np.array([0, 5000]), "member": np.array([1, 1])}).tolist()
    (('miles', 'member'), [[-3344.0, 2364.0], [-3069.0, 2712.0]])
    """

    def __init__(self, fields: Mapping[str, Field], *, knots: int = 0, reach: Fraction = USUAL_REACH) -> None:
        self.fields, self.knots = dict(fields), knots
        self._parts = {name: scaled_columns(name, field, knots) for name, field in fields.items()}
        self.names = tuple(name for part in self._parts.values() for name in part.names)
        if len(set(self.names)) < len(self.names):
            raise InputError("expected columns whose features have different names", place="columns")
        self.middles = np.array([middle for part in self._parts.values() for middle in part.middles])
        self.scales = np.array([scale for part in self._parts.values() for scale in part.scales])
        longest = sum((part.square for part in self._parts.values()), Fraction(0)) * reach**2 * ONE**2
        self._least = float(math.isqrt(math.ceil(longest) - 1) + 1)
        self.stretch = ONE / self._least
        """A point is 2^12 * stretch * t, where no row was shortened."""

    @classmethod
    def of(cls, schema: Schema, names: tuple[str, ...], most: int = DEFAULT_MOST, **options: Any) -> FeatureMap:
        """Make the map for the fields of a schema."""
        kinds = Number, Integer, Boolean, Category, Vector
        made = cls({name: field_of(schema, name, *kinds, place="columns") for name in names}, **options)
        if made.width > most:
            more = f", or most={MOST}" if most < MOST else ""
            raise mismatch(f"at most {most} features: merge levels, or take fewer columns{more}", made.width, "columns")
        return made

    def to_plain(self) -> dict[str, Any]:
        return {"fields": {name: field.spec() for name, field in self.fields.items()}, "knots": self.knots}

    @property
    def width(self) -> int:
        return len(self.names)

    def points(self, columns: Mapping[str, I64], where: I64 | slice = slice(None)) -> F64:
        """The points of encoded columns, or of some of their rows: (records, width), whole numbers."""
        scaled = np.concatenate([part.columns(columns[name][where]) for name, part in self._parts.items()], axis=1)
        squares = np.einsum("ij,ij->i", scaled, scaled)
        lengths = np.maximum(np.ceil(np.sqrt(squares)), self._least)
        return np.asarray(np.trunc(scaled * float(LENGTH) / lengths[:, None]))

    @property
    def dependent(self) -> int:
        """How many combinations of features are 0 for every record, up to rounding."""
        return sum(part.dependent for part in self._parts.values())

    def balanced(self, slopes: F64) -> F64:
        """Slopes by feature that predict the same, with the mean 0 over the levels of a category."""
        found, first = slopes.copy(), 0
        for part in self._parts.values():
            own = found[first : first + len(part.names)][part.balanced]
            if len(own):
                own -= own.sum(axis=0) / len(own)
            first += len(part.names)
        return found

    def read(self, data: Any) -> F64:
        """The points of records to predict: a frame, columns, records or an array. Values out of bounds are clipped,
        whatever their field says; other columns are ignored; missing values and unknown levels are refused."""
        rows, _ = Schema({name: clipping(field) for name, field in self.fields.items()}).encode(
            selected(self.fields, data)
        )
        return self.points(rows.columns)


def selected(fields: Mapping[str, Field], data: Any) -> Any:
    """The columns of these fields."""
    if isinstance(data, list | tuple) and data and isinstance(data[0], Mapping):
        return [selected(fields, record) for record in data]
    if isinstance(data, Mapping) or hasattr(data, "columns"):
        known = data if isinstance(data, Mapping) else getattr(data, "column_names", data.columns)
        for name in fields:
            if name not in known:
                raise InputError(f"expected the columns {', '.join(fields)}, got none named {name!r}")
        return {name: data[name] for name in fields}
    table, widths = np.asarray(data), [field.width for field in fields.values()]
    if table.ndim != 2 or table.shape[1] != sum(widths):
        raise mismatch(f"an array of {sum(widths)} columns", table.shape, "data")
    parts = np.split(table, np.cumsum(widths)[:-1], axis=1)
    each = zip(fields.items(), parts, strict=True)
    return {name: part if isinstance(field, Vector) else part[:, 0] for (name, field), part in each}


def clipping(field: Field) -> Field:
    """Make a field move what is out of bounds to the bound and refuses missing values."""
    return field.replace(missing="error", **({"clip": True} if "clip" in field.parameters() else {}))


def checked_knots(knots: int) -> int:
    """
    >>> checked_knots(1)
    Traceback (most recent call last):
    retroact.errors.InputError: expected 0, or 2 to 64 knots, got 1 - at knots
    """
    integer(knots, "knots", least=0, most=MOST_KNOTS, expected=f"0, or 2 to {MOST_KNOTS} knots")
    return integer(knots, "knots", least=0 if knots == 0 else 2, expected=f"0, or 2 to {MOST_KNOTS} knots")


def checked_most(most: int) -> int:
    return integer(most, "most", least=1, most=MOST, expected=f"a whole number from 1 to {MOST:,}")
