"""Classification by projected discriminant analysis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from ...arrays import F64
from ...checks import choice
from ...schema import Field, Schema
from ..answer import Answer, Noisy
from ..answer_rows import AnswerRows
from ..statistic import Example
from .class_scores import (
    OFFSETS,
    ClassModel,
    ClassRows,
    by_feature,
    classes_of,
    classes_target,
    probabilities,
    scaled,
)
from .discriminant import FEWEST, ClassMeans, nearest, projected
from .feature_map import LENGTH, FeatureMap
from .moments import EXAMPLE_STREAM, WithTarget
from .noisy_moments import NoisyMoments, rounded
from .plain_parts import array_of, table_of
from .products import ClassTarget, Products, Shares

Method = Literal["auto", "lda", "mean"]
# How scores are found; by descent: `oneshot.LinearModel`.
METHODS = ("lda", "mean", "descent")
# Decimals of the largest coefficient of a class that are published.
DIGITS = 1e-3


def no_interval(level: float) -> None:
    return None


class ClassStatistic(WithTarget):
    """Statistics whose target is one of declared classes. More classes cost nothing: each record has one."""

    def _target(self, schema: Schema) -> ClassTarget:
        return ClassTarget(schema, self.target)

    def notes(self, schema: Schema, records: int) -> tuple[str, ...]:
        made = self.products(schema)
        return (
            f"{made.features.width} features, {made.targets} classes; error: the noise of the mean of a class, where "
            f"the longest row is 1, with {records:,} records evenly in all classes",
        )

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        """The error of the mean of a class, over all features together."""
        made = self.products(schema)
        noise = float(deviations[made.blocks[1].start]) / LENGTH
        return math.sqrt(made.features.width) * noise / max(1.0, records / made.targets)


class Classifier(ClassStatistic):
    """The class ``target``, a category or true or false, from ``columns``, with probabilities. With ``knots``, each
    number of the columns also has that many hat functions.

    ``method``: ``"lda"`` is discriminant analysis in the directions in which classes differ; ``"mean"`` takes the
    class with the nearest mean; ``"auto"`` takes the first where the features vary by more than their noise, judged by
    noisy sums. Near that point a model may jump from one to the other.

    **Privacy.** `Moments`: what a record adds has at most the norm 1 (lemma in `products`). The noise is Gaussian.
    **Retroactivity.** Memoryless post-processing of noisy sums, also of the choice of the method (Lemma "closure").

    >>> Classifier(["age", "hours"], "job", knots=4)
    Classifier(['age', 'hours'], 'job', knots=4)
    """

    kind: ClassVar[str] = "classifier"
    theorem: ClassVar[str] = 'Theorem "linear"'
    shares: ClassVar[Shares] = Shares(Fraction(2, 5), Fraction(3, 5))

    def __init__(self, columns: str | Sequence[str], target: str, *, method: Method = "auto", **options: Any) -> None:
        super().__init__(columns, target, **options)
        self.method = choice(method, get_args(Method), "method")

    @classmethod
    def examples(cls) -> list[Example]:
        return [
            Example("classifier", cls(["age"], "country", method="lda"), EXAMPLE_STREAM),
            Example("classifier, any method", cls("country", "member"), EXAMPLE_STREAM),
        ]

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return ClassRows("intercepts", OFFSETS, "coefficients")

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        made = self.products(schema)
        moments, features = NoisyMoments(noisy, made), made.features
        classes = ClassMeans(moments)
        method = self._chosen(moments)
        found = (nearest if method == "mean" else projected)(moments, classes)
        slopes = features.balanced(found.slopes) * (features.stretch / features.scales)[:, None]
        largest = np.abs(np.concatenate([found.offsets[None], slopes * features.scales[:, None]])).max()
        model = ClassifierModel(
            features,
            *_named(made),
            method,
            rounded(found.offsets, DIGITS * largest),
            rounded(slopes, DIGITS * largest / features.scales[:, None]),
            records=float(rounded(np.array(moments.count), moments.count_deviation)),
            notes=tuple(warnings_of(made, moments)),
        )
        return Answer(model, None, no_interval)

    def _chosen(self, moments: NoisyMoments) -> str:
        if self.method != "auto":
            return str(self.method)
        return "mean" if float(moments.spectrum[0][-1]) < 2 * moments.radius else "lda"


def _named(made: Products) -> tuple[str, Field]:
    assert made.target is not None
    return made.target.name, made.target.field


def warnings_of(made: Products, moments: NoisyMoments) -> Iterator[str]:
    """Warnings, from noisy numbers only, since they are published."""
    assert isinstance(made.target, ClassTarget)
    few = moments.sums[0] < FEWEST * moments.sum_deviation
    named = [str(one) for one, rare in zip(made.target.classes, few.tolist(), strict=True) if rare]
    if named:
        yield f"classes with too few records, or none: {', '.join(named)}"


class ClassifierModel(ClassModel):
    """The score of a class is its intercept + the sum of coefficient * (value - middle) over the features; scores are
    logarithms of probabilities up to a constant. ``method`` says how they were found; with ``"mean"``, probabilities
    are rough, and take all classes to be equally frequent."""

    kind: ClassVar[str] = "classifier"
    keys: ClassVar[tuple[str, ...]] = ("target", "classes", "method", "intercepts", "coefficients")

    def __init__(
        self, features: FeatureMap, target: str, field: Field, method: str, intercepts: F64, slopes: F64, **shared: Any
    ) -> None:
        super().__init__(features, **shared)
        self.target, self.target_field, self.method = target, field, method
        self.intercepts, self._slopes = intercepts, slopes

    @property
    def coefficients(self) -> dict[str, list[float]]:
        """The coefficients by feature, one for each class."""
        return by_feature(self.features, self._slopes)

    def scores(self, data: Any) -> F64:
        return np.asarray(self.intercepts + scaled(self.features, data) @ self._slopes)

    def predict_proba(self, data: Any) -> F64:
        """(records, classes)."""
        return probabilities(self.scores(data))

    def _parts(self) -> dict[str, Any]:
        found = {"method": self.method, "intercepts": self.intercepts, "coefficients": self.coefficients}
        return {**self._target_plain(), **found}

    @classmethod
    def _of_parts(cls, parts: Mapping[str, Any], features: FeatureMap, shared: Mapping[str, Any]) -> Self:
        target, field = classes_target(parts)
        size, method = len(classes_of(field)), choice(parts["method"], METHODS, "method")
        slopes = table_of(parts["coefficients"], features.names, size, "coefficients")
        return cls(
            features, target, field, method, array_of(parts["intercepts"], (size,), "intercepts"), slopes, **shared
        )
