"""Covariances and correlations of columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from ...arrays import F64
from ...schema import Schema
from ..answer import Answer, Noisy
from ..answer_rows import AnswerRows, Row, part_of
from ..statistic import Example
from .feature_map import LENGTH, WHOLE_REACH, FeatureMap
from .intervals import around
from .model import Model
from .moments import EXAMPLE_STREAM, Moments
from .noisy_moments import LEAST, ONE, NoisyMoments, rounded, shortened
from .plain_parts import array_of, list_of
from .products import Shares

# Of a feature that is spread evenly between -1 and 1.
EVEN_VARIANCE = 1 / 3


class Covariance(Moments):
    """Means, and the (population) covariance of every pair of ``columns``: numbers, true or false (as 1 and 0), the
    levels of categories, the coordinates of vectors. No row is shortened, so these are the covariances of the records.

    **Privacy.** `Moments`: what a record adds has at most the norm 1 (lemma in `products`). The noise is Gaussian.
    **Retroactivity.** Memoryless post-processing of noisy sums of products (Lemma "closure").

    **Error.** Of the noise alone, to first order: that of a mean of products, of the two means and of the number of
    records. A noisy variance may be below 0; the value is then 0.

    >>> Covariance(["age", "income"])
    Covariance(['age', 'income'])
    """

    kind: ClassVar[str] = "covariance"
    theorem: ClassVar[str] = 'Theorem "linear"'
    shares: ClassVar[Shares] = Shares(Fraction(1))
    reach: ClassVar[Fraction] = WHOLE_REACH

    @classmethod
    def examples(cls) -> list[Example]:
        return [Example("covariance", cls(["age", "member"]), EXAMPLE_STREAM)]

    def _target(self, schema: Schema) -> None:
        return None

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return PairRows()

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        made = self.products(schema)
        moments, features = NoisyMoments(noisy, made), made.features
        return self._published(moments, features)

    def _published(self, moments: NoisyMoments, features: FeatureMap) -> Answer:
        factor = features.scales / features.stretch
        matrix, errors = covariances(moments)
        factors = factor[:, None] * factor
        errors = shortened(errors * factors)
        matrix = matrix * factors
        np.fill_diagonal(matrix, np.maximum(matrix.diagonal(), 0.0))
        means = features.middles + factor * moments.means
        spread = moments.deviation / math.sqrt(2) / (ONE * moments.records)
        off = np.hypot(spread, moments.means * moments.count_deviation / moments.records) * factor
        model = CovarianceModel(features, rounded(matrix, errors), means=rounded(means, off), **common(moments, errors))
        return Answer(model, errors.tolist(), lambda level: around(model.matrix.tolist(), errors.tolist(), level))

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        """The largest of a variance."""
        features = self.products(schema).features
        factor = float(features.scales.max()) / features.stretch / LENGTH
        return float(deviations[0]) / max(1, records) * factor**2

    def notes(self, schema: Schema, records: int) -> tuple[str, ...]:
        return (f"{self.products(schema).features.width} features; error: the largest of a variance",)


def common(moments: NoisyMoments, errors: Any) -> dict[str, Any]:
    """What models without a target have in common."""
    few = moments.count < LEAST * moments.count_deviation
    return {
        "records": float(rounded(np.array(moments.count), moments.count_deviation)),
        "notes": ("too few records: there may be none",) * few,
        "error": errors.tolist() if isinstance(errors, np.ndarray) else errors,
    }


def covariances(moments: NoisyMoments) -> tuple[F64, F64]:
    """In the units of points, with their errors: the deviation of A/n - m m' to first order in the noise of the sums of
    products A, of the sums behind the means m, and of the number of records n."""
    records, means = moments.records, moments.means
    products = moments.squares[1:, 1:] / records
    outer = means[:, None] * means
    own = np.full(outer.shape, 0.5)
    np.fill_diagonal(own, 1.0)
    both = means[:, None] ** 2 + means**2
    np.fill_diagonal(both, 4 * means**2)
    through_means = both / (2 * ONE**2)
    through_count = (2 * outer - products) ** 2 / ONE**4
    return products - outer, moments.deviation / records * np.sqrt(own + through_means + through_count)


class PairModel(Model):
    """``matrix`` has a number for each pair of `feature_names`."""

    keys: ClassVar[tuple[str, ...]] = ("features", "matrix")
    reach: ClassVar[Fraction] = WHOLE_REACH

    def __init__(self, features: FeatureMap, matrix: F64, **shared: Any) -> None:
        super().__init__(features, **shared)
        self.matrix = matrix

    def _parts(self) -> dict[str, Any]:
        return {"features": list(self.features.names), "matrix": _without_nan(self.matrix)}

    @classmethod
    def _of_parts(cls, parts: Mapping[str, Any], features: FeatureMap, shared: Mapping[str, Any]) -> Self:
        list_of(parts["features"], features.names, "features")
        matrix = array_of(parts["matrix"], (features.width, features.width), "matrix", gaps=True)
        return cls(features, matrix, **shared)


class CovarianceModel(PairModel):
    """``matrix`` has the covariances of `feature_names`, in the units of their columns, and ``means`` their means."""

    kind: ClassVar[str] = "covariance"
    keys: ClassVar[tuple[str, ...]] = ("features", "means", "matrix")

    def __init__(self, features: FeatureMap, matrix: F64, *, means: F64, **shared: Any) -> None:
        super().__init__(features, matrix, **shared)
        self.means = means

    def _parts(self) -> dict[str, Any]:
        found = super()._parts()
        return {"features": found["features"], "means": self.means, "matrix": found["matrix"]}

    @classmethod
    def _of_parts(cls, parts: Mapping[str, Any], features: FeatureMap, shared: Mapping[str, Any]) -> Self:
        means = array_of(parts["means"], (features.width,), "means")
        return super()._of_parts(parts, features, {**shared, "means": means})


def _without_nan(matrix: F64) -> list[list[float | None]]:
    return [[None if number != number else number for number in row] for row in matrix.tolist()]


class PairRows(AnswerRows):
    """A row for each pair of features, and for each with itself.

    >>> value = {"features": ["x", "y"], "means": [0.0, 0.0], "matrix": [[1.0, 0.5], [0.5, 2.0]]}
    >>> [row[:2] for row in PairRows().rows(value, None, None)]
    [(('x', 'x'), 1.0), (('x', 'y'), 0.5), (('y', 'y'), 2.0)]
    """

    keys = (("feature", "text"), ("other", "text"))
    signed = True

    def rows(self, value: Any, error: Any, interval: Any) -> Iterator[Row]:
        names = value["features"]
        for row, name in enumerate(names):
            for column in range(row, len(names)):
                low, high = part_of(part_of(interval, row), column) or (None, None)
                own = part_of(part_of(error, row), column)
                yield (name, names[column]), value["matrix"][row][column], own, low, high
