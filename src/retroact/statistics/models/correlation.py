"""Correlations of columns."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ...arrays import F64
from ...schema import Schema
from ..answer import Answer
from ..statistic import Example
from .covariance import EVEN_VARIANCE, Covariance, PairModel, common, covariances
from .feature_map import LENGTH, FeatureMap
from .intervals import around
from .moments import EXAMPLE_STREAM
from .noisy_moments import NoisyMoments, rounded, shortened

# A variance is known where it is this many deviations of its noise: for fewer, first-order errors are too small.
CLEAR = 6


class Correlation(Covariance):
    """The correlation of every pair of ``columns``, as `Covariance` reads them; None where the variance of a
    feature is below six deviations of its noise.

    **Privacy.** That of `Covariance`. **Retroactivity.** That of `Covariance`.

    **Error.** Of the noise alone, to first order. Intervals are within -1 and 1.

    >>> Correlation(["age", "income"])
    Correlation(['age', 'income'])
    """

    kind: ClassVar[str] = "correlation"
    theorem: ClassVar[str] = 'Theorem "linear"'

    @classmethod
    def examples(cls) -> list[Example]:
        return [Example("correlation", cls(["age", "amount"]), EXAMPLE_STREAM)]

    def _published(self, moments: NoisyMoments, features: FeatureMap) -> Answer:
        matrix, deviations = covariances(moments)
        variances = matrix.diagonal()
        known = variances > CLEAR * deviations.diagonal()
        variances = np.where(known, variances, 1.0)
        lengths = np.sqrt(variances)
        found = np.clip(matrix / (lengths[:, None] * lengths), -1.0, 1.0)
        np.fill_diagonal(found, 1.0)
        errors = _errors(found, deviations, lengths)
        hidden = ~(known[:, None] & known)
        errors = shortened(errors)
        found = rounded(found, errors)
        found[hidden] = math.nan
        shown = _plain(errors, hidden)
        model = CorrelationModel(features, found, **common(moments, shown))
        values = _plain(found, hidden)
        return Answer(model, shown, lambda level: around(values, shown, level, (-1.0, 1.0)))

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        """The error for features that are uncorrelated and spread evenly."""
        spread = self.products(schema).features.stretch ** 2 * EVEN_VARIANCE
        return float(deviations[0]) / LENGTH**2 / math.sqrt(2) / max(1, records) / spread

    def notes(self, schema: Schema, records: int) -> tuple[str, ...]:
        width = self.products(schema).features.width
        return (f"{width} features; error: of a correlation of features that are spread evenly",)


def _errors(found: F64, deviations: F64, lengths: F64) -> F64:
    """The errors to first order: of the covariance, and of the variances, which move the divisor."""
    own = deviations.diagonal() / lengths**2
    through = found**2 / 4 * (own[:, None] ** 2 + own**2)
    errors = np.sqrt((deviations / (lengths[:, None] * lengths)) ** 2 + through)
    np.fill_diagonal(errors, 0.0)
    return np.asarray(errors)


def _plain(table: F64, hidden: Any) -> list[list[float | None]]:
    rows = zip(table.tolist(), hidden.tolist(), strict=True)
    return [[None if gone else number for number, gone in zip(*row, strict=True)] for row in rows]


class CorrelationModel(PairModel):
    """``matrix`` has the correlations of `feature_names`; NaN (None in plain data) where one is not known."""

    kind: ClassVar[str] = "correlation"
