"""Second moments of records as one linear statistic; what every model here is made of.

**Privacy.** A record adds products of a point with itself and with its target, at most 1 in the second norm, in units:
the lemma in `products`. Its points are whole numbers, a function of the record alone (`feature_map`), clipped to a
ball. **Retroactivity.** Totals are sums of whole numbers: a deletion subtracts the same products (Theorem "linear").
A model is memoryless post-processing of the noisy totals of one round (Lemma "closure").
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ...arrays import I64
from ...errors import InputError
from ...noise import Oblivious
from ...schema import Rows, Schema
from ...schema.field import field_name, field_names, one_or_list
from ..grant import Demand, Layout, StreamTerms
from ..linear import Contributions, Linear
from .feature_map import DEFAULT_MOST, USUAL_REACH, FeatureMap, checked_knots, checked_most
from .products import ClassTarget, NumberTarget, Products, Shares

# Second moments need Gaussian noise.
EXAMPLE_STREAM = {"delta": 1e-6}


class Moments(Linear):
    """``columns`` are the fields that make the features; ``most`` limits their number, since a release takes time and
    memory that grow with its square."""

    shares: ClassVar[Shares]
    reach: ClassVar[Fraction] = USUAL_REACH
    target: str | None = None
    knots: int = 0

    def __init__(self, columns: str | Sequence[str], *, most: int = DEFAULT_MOST, **options: Any) -> None:
        super().__init__(**options)
        self.columns = field_names(columns, "columns")
        self.most = checked_most(most)
        self._latest: tuple[Schema, Products] | None = None

    def argument(self, name: str) -> Any:
        return one_or_list(self.columns) if name == "columns" else super().argument(name)

    def products(self, schema: Schema) -> Products:
        """The latest is cached in one reference: other threads may ask for other schemas."""
        known = self._latest
        if known is None or known[0] is not schema:
            options = {"knots": self.knots, "reach": self.reach}
            features = FeatureMap.of(schema, self.columns, self.most, **options)
            known = self._latest = schema, Products(features, self._target(schema), self.shares)
        return known[1]

    @abstractmethod
    def _target(self, schema: Schema) -> NumberTarget | ClassTarget | None: ...

    def demand(self, schema: Schema, stream: StreamTerms) -> Demand:
        found = super().demand(schema, stream)
        if not self.shares.squares:
            return found
        if self.noise == "paper" or isinstance(self.noise, Oblivious):
            raise InputError("expected Gaussian noise for second moments", place=f"{stream.place}.noise")
        # The first norm of what a record adds grows with the number of features.
        return Demand(found.largest, "gaussian")

    def layout(self, schema: Schema) -> Layout:
        return self.products(schema).layout

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return self.columns if self.target is None else (*self.columns, self.target)

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        added = self.products(schema).each(rows.columns, rows.count)
        row, coordinate = np.nonzero(added)
        return Contributions(row, coordinate, added[row, coordinate])

    def sums(self, rows: Rows, weights: I64, schema: Schema, group: I64, count: int) -> I64:
        """Sum by products of matrices; a weight multiplies the sum over the records that have it, modulo 2^64."""
        products = self.products(schema)
        out = np.zeros((count, products.layout.size), dtype=np.int64)
        kinds, kind = np.unique(np.stack([group, weights]), axis=1, return_inverse=True)
        for number, (place, weight) in enumerate(kinds.T.tolist()):
            out[place] += weight * products.sums(rows.columns, np.flatnonzero(kind.ravel() == number))
        return out


class WithTarget(Moments):
    """Models that predict ``target``."""

    target: str

    def __init__(self, columns: str | Sequence[str], target: str, *, knots: int = 0, **options: Any) -> None:
        super().__init__(columns, **options)
        self.target, self.knots = field_name(target), checked_knots(knots)
        if self.target in self.columns:
            raise InputError(f"expected a target that is not one of the columns, got {target!r}", place="target")
