"""Classification by the nearest mean."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from ...arrays import F64
from ...schema import Field, Schema
from ..answer import Answer, Noisy
from ..answer_rows import AnswerRows
from ..statistic import Example
from .class_scores import ClassModel, ClassRows, by_feature, classes_of, classes_target, scaled
from .classifier import ClassStatistic, no_interval, warnings_of
from .discriminant import ClassMeans
from .feature_map import FeatureMap
from .noisy_moments import ONE, NoisyMoments, rounded
from .plain_parts import array_of, table_of
from .products import Shares

COUNTS = "(count)"


class NearestMean(ClassStatistic):
    """The class ``target`` whose mean is nearest: for few records, or many features for that number. It works with
    delta = 0, where noise grows with the root of the number of features.

    **Privacy.** `Moments`: a record adds its point, with an intercept, to the sum of its class. In units of the length
    that a point may have, that is at most 1 in the second norm (lemma in `products`).
    **Retroactivity.** Memoryless post-processing of noisy sums (Lemma "closure").

    >>> NearestMean(["age", "hours"], "job")
    NearestMean(['age', 'hours'], 'job')
    """

    kind: ClassVar[str] = "nearest_mean"
    theorem: ClassVar[str] = 'Theorem "linear"'
    shares: ClassVar[Shares] = Shares(targets=Fraction(1))

    @classmethod
    def examples(cls) -> list[Example]:
        return [Example("nearest mean", cls("place", "country"))]

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return ClassRows("counts", COUNTS, "means")

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        made = self.products(schema)
        moments, features = NoisyMoments(noisy, made), made.features
        classes = ClassMeans(moments)
        assert made.target is not None
        errors = features.scales[:, None] / features.stretch * (moments.sum_deviation / classes.counts)
        means = features.middles[:, None] + features.scales[:, None] / features.stretch * classes.means
        counts = rounded(moments.sums[0] / ONE, moments.sum_deviation / ONE)
        model = NearestMeanModel(
            features,
            made.target.name,
            made.target.field,
            counts,
            rounded(means, errors),
            records=float(rounded(np.array(counts.sum()), moments.sum_deviation / ONE)),
            notes=tuple(warnings_of(made, moments)),
        )
        return Answer(model, None, no_interval)


class NearestMeanModel(ClassModel):
    """``means`` of the features by class, in the units of their columns, drawn towards the mean of all by as much as
    is noise; ``counts`` of records by class."""

    kind: ClassVar[str] = "nearest_mean"
    keys: ClassVar[tuple[str, ...]] = ("target", "classes", "counts", "means")

    def __init__(self, features: FeatureMap, target: str, field: Field, counts: F64, means: F64, **shared: Any) -> None:
        super().__init__(features, **shared)
        self.target, self.target_field, self.counts, self._means = target, field, counts, means

    @property
    def means(self) -> dict[str, list[float]]:
        """The means by feature, one for each class."""
        return by_feature(self.features, self._means)

    def scores(self, data: Any) -> F64:
        """Minus half the squared distances, less what all classes have in common."""
        means = (self._means - self.features.middles[:, None]) / self.features.scales[:, None]
        points = scaled(self.features, data) / self.features.scales
        return np.asarray(points @ means - (means**2).sum(axis=0) / 2)

    def _parts(self) -> dict[str, Any]:
        return {**self._target_plain(), "counts": self.counts, "means": self.means}

    @classmethod
    def _of_parts(cls, parts: Mapping[str, Any], features: FeatureMap, shared: Mapping[str, Any]) -> Self:
        target, field = classes_target(parts)
        size = len(classes_of(field))
        means = table_of(parts["means"], features.names, size, "means")
        return cls(features, target, field, array_of(parts["counts"], (size,), "counts"), means, **shared)
