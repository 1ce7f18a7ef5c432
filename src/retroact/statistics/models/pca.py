"""Principal components of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from ...arrays import F64
from ...checks import positive_int
from ...messages import mismatch
from ...schema import Schema
from ..answer import Answer, Noisy
from ..answer_rows import AnswerRows, Row, part_of
from ..grant import Layout
from ..statistic import Example
from .class_scores import scaled
from .covariance import common
from .exact import product
from .feature_map import LENGTH, FeatureMap
from .intervals import around
from .model import Model
from .moments import EXAMPLE_STREAM, Moments
from .noisy_moments import ONE, NoisyMoments, rounded, shortened
from .plain_parts import array_of, list_of
from .products import Shares


class PCA(Moments):
    """The ``k`` directions in which ``columns`` vary most, each number scaled from its bounds to [-1, 1], with their
    variances. A direction's sign is that of its largest entry, which is positive.

    Directions with nearly equal variances may turn from round to round: notes say which.

    **Privacy.** `Moments`: what a record adds has at most the norm 1 (lemma in `products`). The noise is Gaussian.
    **Retroactivity.** Memoryless post-processing of noisy sums of products (Lemma "closure").

    **Error.** Of the variances, from the noise alone, to first order: that of v'Av / n - (v'm)^2, where v'Ev has the
    deviation of the diagonal of the noise E for every direction v. Noise makes the largest eigenvalues w larger, by
    about r^2 / 4w, with r the largest of the noise (semicircle law); that is taken off again.

    >>> PCA(["height", "weight", "age"], 2)
    PCA(['height', 'weight', 'age'], 2)
    """

    kind: ClassVar[str] = "pca"
    theorem: ClassVar[str] = 'Theorem "linear"'
    shares: ClassVar[Shares] = Shares(Fraction(1))

    def __init__(self, columns: str | Sequence[str], k: int, **options: Any) -> None:
        super().__init__(columns, **options)
        self.k = positive_int(k, "k")

    @classmethod
    def examples(cls) -> list[Example]:
        return [Example("principal components", cls(["age", "place"], 2), EXAMPLE_STREAM)]

    def _target(self, schema: Schema) -> None:
        return None

    def layout(self, schema: Schema) -> Layout:
        width = self.products(schema).features.width
        if self.k > width:
            raise mismatch(f"at most {width} components, the number of features", self.k, "k")
        return super().layout(schema)

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return ComponentRows()

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        made = self.products(schema)
        moments, features = NoisyMoments(noisy, made), made.features
        values, vectors = moments.spectrum
        values, vectors = values[::-1], vectors[:, ::-1]
        gaps = np.append(values[:-1] - values[1:], values[-1])[: self.k]
        closest = np.minimum(gaps, np.append(np.inf, gaps[:-1]))
        turns = moments.deviation / np.maximum(closest, moments.deviation)
        unit = moments.records * features.stretch**2
        along = product(np.ascontiguousarray(vectors[:, : self.k].T), moments.means) ** 2
        through_count = along - values[: self.k] / moments.records
        errors = shortened(np.sqrt(1 + 2 * along / ONE**2 + through_count**2 / ONE**4) * moments.deviation / unit)
        variances = rounded(deflated(values[: self.k], moments.radius) / unit, errors)
        factor = features.scales / features.stretch
        shown = common(moments, {"variances": errors.tolist()})
        shown["notes"] = (*shown["notes"], *_warnings(values, gaps, moments.radius))
        model = PCAModel(
            features,
            rounded(np.ascontiguousarray(vectors[:, : self.k].T), turns[:, None]),
            variances,
            rounded(features.middles + factor * moments.means, factor * moments.deviation / moments.records),
            **shown,
        )
        error = {"variances": errors.tolist()}
        return Answer(model, error, lambda level: around({"variances": variances.tolist()}, error, level))

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        """The error of a variance."""
        return float(deviations[0]) / LENGTH**2 / max(1, records) / self.products(schema).features.stretch ** 2

    def notes(self, schema: Schema, records: int) -> tuple[str, ...]:
        width = self.products(schema).features.width
        return (f"{width} features; error: of a variance, where bounds are scaled to [-1, 1]",)


def deflated(values: F64, radius: float) -> F64:
    """Eigenvalues less what noise adds to them on average: w from w + r^2 / 4w; half of those within the noise."""
    return np.asarray((values + np.sqrt(np.maximum(values**2 - radius**2, 0.0))) / 2)


def _warnings(values: F64, gaps: F64, radius: float) -> Iterator[str]:
    """Warnings, from noisy numbers only, since they are published."""
    count = len(gaps)
    noise = int((values[:count] <= radius).sum())
    if noise:
        yield f"{noise} of {count} components cannot be distinguished from noise"
    for place, gap in enumerate(gaps.tolist()[: count - noise]):
        if gap < radius / 2:
            yield f"component {place} varies about as much as the next one: they may turn"


class PCAModel(Model):
    """``components`` are rows of unit length over `feature_names`, ``variances`` those along them, and ``means`` those
    of the features, in the units of their columns."""

    kind: ClassVar[str] = "pca"
    keys: ClassVar[tuple[str, ...]] = ("features", "components", "variances", "means")

    def __init__(self, features: FeatureMap, components: F64, variances: F64, means: F64, **shared: Any) -> None:
        super().__init__(features, **shared)
        self.components, self.variances, self.means = components, variances, means

    def transform(self, data: Any) -> F64:
        """The coordinates of records along the components: (records, k)."""
        centred = scaled(self.features, data) - (self.means - self.features.middles)
        return np.asarray((centred / self.features.scales) @ self.components.T)

    predict = transform

    def _parts(self) -> dict[str, Any]:
        return {"features": list(self.features.names), "components": self.components, "variances": self.variances,
                "means": self.means}  # fmt: skip

    @classmethod
    def _of_parts(cls, parts: Mapping[str, Any], features: FeatureMap, shared: Mapping[str, Any]) -> Self:
        list_of(parts["features"], features.names, "features")
        if not isinstance(parts["components"], list | tuple):
            raise mismatch("a list of components", parts["components"], "components")
        k, width = len(parts["components"]), features.width
        components = array_of(parts["components"], (k, width), "components")
        variances, means = (array_of(parts[name], (size,), name) for name, size in (("variances", k), ("means", width)))
        return cls(features, components, variances, means, **shared)


class ComponentRows(AnswerRows):
    """A row for the variance of each component, without a feature, and one for each of its entries.

    >>> value = {"features": ["x", "y"], "components": [[0.6, 0.8]], "variances": [2.0], "means": [0.0, 0.0]}
    >>> [row[:2] for row in ComponentRows().rows(value, None, None)]
    [((0, None), 2.0), ((0, 'x'), 0.6), ((0, 'y'), 0.8)]
    """

    keys = (("component", "integer"), ("feature", "text"))
    signed = True

    def rows(self, value: Any, error: Any, interval: Any) -> Iterator[Row]:
        errors, intervals = part_of(error, "variances"), part_of(interval, "variances")
        for number, variance in enumerate(value["variances"]):
            low, high = part_of(intervals, number) or (None, None)
            yield (number, None), variance, part_of(errors, number), low, high
            for name, entry in zip(value["features"], value["components"][number], strict=True):
                yield (number, name), entry, None, None, None
