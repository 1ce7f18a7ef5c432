"""What a record adds to second moments, and how much that can be.

A record is z = (a, x), with x a point of at most the length 2^12 (`feature_map`) and a = 2^11 for the intercept, so
|z|^2 <= r^2 = 5/4 * 2^24; and y, its target: a number from -2^12 to 2^12, or one 1 among the declared classes. Let |y|
be at most Y. It adds v = (z_i z_j for i <= j; z_i y_k; y^2), or some of these three blocks.

**Lemma.** Let w1 + w2 + w3 = 1 be shares of the blocks, and let the units of the coordinates be whole numbers with

    U_d^2 w1 >= r^4 (z_i^2),    2 U_o^2 >= U_d^2 (z_i z_j, i < j),    U_b^2 w2 >= r^2 Y^2,    U_y^2 w3 >= Y^4.

Then |v|^2 <= w1 + w2 + w3 = 1, in units. *Proof.* The first block: sum z_i^4 / U_d^2 + sum_{i<j} z_i^2 z_j^2 / U_o^2
<= (sum z_i^4 + 2 sum_{i<j} z_i^2 z_j^2) / U_d^2 = |z|^4 / U_d^2 <= w1. The second: sum z_i^2 y_k^2 / U_b^2 =
|z|^2 |y|^2 / U_b^2 <= w2. The third: y^4 / U_y^2 <= w3. The factor sqrt(2) off the diagonal is the largest that is
free: with a factor f and p_i = z_i^2 / r^2 the first sum is (sum p)^2 + (f^2 - 2) sum_{i<j} p_i p_j, in units of w1.

In the first norm, |v|_1 <= sqrt(size) |v| <= sqrt(size). Where there is only the second block, and |y|_1 <= Y too, also
|v|_1 = |z|_1 |y|_1 / U_b <= (a + sqrt(d) 2^12) Y / U_b.

**Exactness.** Sums of products come from a matrix product of floats, which are whole numbers: each product is at most
2^24, and at most 2^20 records are multiplied at once, so every partial sum, in whatever order and with or without fused
operations, is a whole number of at most 2^44 and never rounded. From there on, sums are in 64-bit integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...arrays import F64, I64
from ...errors import InputError
from ...schema import Boolean, Category, Integer, Number, Schema, field_of
from ..grant import Layout
from .feature_map import BITS, LENGTH, FeatureMap
from .scaled_columns import Centre, middle_and_scale

INTERCEPT = LENGTH // 2
# r^2, of a record with its intercept.
SQUARE = LENGTH**2 + INTERCEPT**2
MOST_RECORDS = 1 << 20
# Numbers in memory at once.
BLOCK = 1 << 22


class Shares(NamedTuple):
    """The shares of z z', z y' and y^2 in the squared norm."""

    squares: Fraction = Fraction(0)
    targets: Fraction = Fraction(0)
    target_square: Fraction = Fraction(0)


class NumberTarget:
    """A number, from its bounds to -2^12 .. 2^12, rounded towards zero."""

    size, largest = 1, LENGTH

    def __init__(self, schema: Schema, name: str) -> None:
        self.name, self.field = name, field_of(schema, name, Number, Integer, Boolean, place="target")
        self._centre = Centre.of(name, self.field, "target")
        self.middle, self.scale = middle_and_scale(self.field)

    def columns(self, values: I64) -> F64:
        return self._centre.scaled(values, BITS)[:, None]


class ClassTarget:
    """One of declared classes: one 1 among zeros."""

    largest = 1

    def __init__(self, schema: Schema, name: str) -> None:
        self.name, self.field = name, field_of(schema, name, Category, Boolean, place="target")
        self.classes = self.field.values if isinstance(self.field, Category) else (False, True)
        self.size = len(self.classes)
        if self.size < 2:
            raise InputError("expected at least two classes", place="target")

    def columns(self, codes: I64) -> F64:
        return np.eye(self.size)[codes]


class Products:
    """The coordinates of a model over a schema, and the sums of products of records."""

    def __init__(self, features: FeatureMap, target: NumberTarget | ClassTarget | None, shares: Shares) -> None:
        self.features, self.target, self.shares = features, target, shares
        self.width = features.width + 1
        self.targets = 0 if target is None else target.size
        rows, columns = np.triu_indices(self.width)
        self.corner = rows, columns
        self.blocks = self._blocks(len(rows))

    def _blocks(self, corner: int) -> tuple[slice, slice, slice]:
        """Where the coordinates of z z', z y' and y^2 are."""
        sizes = (corner, self.width * self.targets, 1)
        ends = np.cumsum([size if share else 0 for size, share in zip(sizes, self.shares, strict=True)]).tolist()
        return slice(0, ends[0]), slice(ends[0], ends[1]), slice(ends[1], ends[2])

    @property
    def units(self) -> tuple[int, int, int, int]:
        """The units on the diagonal of z z' and off it, of z y', and of y^2; each rounded up."""
        largest = 1 if self.target is None else self.target.largest
        diagonal = _root(SQUARE**2, self.shares.squares)
        return (
            diagonal,
            _root(diagonal**2, Fraction(2)),
            _root(SQUARE * largest**2, self.shares.targets),
            _root(largest**4, self.shares.target_square),
        )

    @cached_property
    def layout(self) -> Layout:
        diagonal, off_diagonal, targets, target_square = self.units
        squares, sums, last = (block.stop - block.start for block in self.blocks)
        units = (
            *(np.where(self.corner[0] == self.corner[1], diagonal, off_diagonal).tolist() if squares else ()),
            *(targets,) * sums,
            *(target_square,) * last,
        )
        norm1 = Fraction(math.isqrt(len(units)) + 1)
        largest = LENGTH * (1 if self.target is None else self.target.largest)
        if self.target is not None and not squares and not last:
            longest = INTERCEPT + math.isqrt(self.features.width * LENGTH**2) + 1
            norm1 = min(norm1, Fraction(longest * self.target.largest, targets))
        return Layout(units, norm1, sum(self.shares, Fraction(0)), LENGTH**2 if squares else largest)

    def sums(self, columns: Mapping[str, I64], where: I64) -> I64:
        """The sum of what these records add."""
        out = np.zeros(self.layout.size, dtype=np.int64)
        step = max(1, min(MOST_RECORDS, BLOCK // (self.width + self.targets)))
        for start in range(0, len(where), step):
            out += self._multiplied(*self._factors(columns, where[start : start + step])).astype(np.int64)
        return out

    def _factors(self, columns: Mapping[str, I64], where: I64) -> tuple[F64, F64]:
        points = self.features.points(columns, where)
        z = np.empty((len(points), self.width))
        z[:, 0], z[:, 1:] = INTERCEPT, points
        y = np.zeros((len(z), 0)) if self.target is None else self.target.columns(columns[self.target.name][where])
        return z, y

    def _multiplied(self, z: F64, y: F64) -> F64:
        """Here every sum is exact."""
        if not self.shares.squares:
            return np.asarray((z.T @ y).ravel())
        both = np.concatenate([z, y], axis=1)
        product = both.T @ both
        parts = [product[self.corner]]
        if self.shares.targets:
            parts.append(product[: self.width, self.width :].ravel())
        if self.shares.target_square:
            parts.append(product[-1:, -1])
        return np.concatenate(parts)

    def each(self, columns: Mapping[str, I64], count: int) -> I64:
        """What each record adds, by the definition: (records, coordinates). Slow."""
        z, y = (part.astype(np.int64) for part in self._factors(columns, np.arange(count)))
        blocks = (
            z[:, self.corner[0]] * z[:, self.corner[1]],
            (z[:, :, None] * y[:, None, :]).reshape(count, self.width * self.targets),
            (y * y).sum(axis=1, keepdims=True),
        )
        return np.concatenate([block for block, share in zip(blocks, self.shares, strict=True) if share], axis=1)


def _root(square: int, share: Fraction) -> int:
    """The smallest whole number n with n^2 share >= square; 1 for a block that there is not.

    >>> _root(50, Fraction(1, 2)), _root(51, Fraction(1, 2)), _root(51, Fraction(0))
    (10, 11, 1)
    """
    return math.isqrt(math.ceil(square / share) - 1) + 1 if share else 1
