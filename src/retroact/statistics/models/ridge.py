"""Linear regression with a ridge as large as the noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from ...arrays import F64
from ...schema import Boolean, Field, Integer, Number, Schema
from ..answer import Answer, Noisy
from ..answer_rows import AnswerRows, Row, part_of
from ..statistic import Example
from .exact import product
from .feature_map import LENGTH, FeatureMap
from .intervals import around
from .model import Model
from .moments import EXAMPLE_STREAM, WithTarget
from .noisy_moments import LEAST, ONE, SPREAD, NoisyMoments, radius, rounded, shortened
from .plain_parts import mapping_of, number_of, target_of
from .products import NumberTarget, Shares

INTERCEPT_NAME = "(intercept)"
# Eigenvalues that differ by less than this part of the largest are taken to be equal.
NEAR = 1e-9


class Ridge(WithTarget):
    """Linear regression of ``target``, a number, on ``columns``. With ``knots``, each number of the columns also has
    that many hat functions, so that its effect may bend.

    Bounds are those of the schema and public; noise is proportional to them. Columns may be numbers, true or false,
    categories or vectors. See the page *Models that forget*.

    **Privacy.** `Moments`: what a record adds has at most the norm 1 (lemma in `products`). The noise is Gaussian.
    **Retroactivity.** Memoryless post-processing of noisy sums of products (Lemma "closure").

    With S the noisy centred squares, c the noisy centred sums, and k twice the largest eigenvalue of the noise, the
    coefficients are f(S) c with f(w) = (w + 2k) / (w + k)^2: ridge regression and one step of iterated refinement.

    **Error.** Of the noise alone, neither of shrinkage nor of sampling: the deviation from the same model, with the
    same k, of the exact sums, to first order.

    >>> Ridge(["miles", "hour"], "fare", knots=4)
    Ridge(['miles', 'hour'], 'fare', knots=4)
    """

    kind: ClassVar[str] = "ridge"
    theorem: ClassVar[str] = 'Theorem "linear"'
    shares: ClassVar[Shares] = Shares(Fraction(1, 2), Fraction(9, 20), Fraction(1, 20))

    @classmethod
    def examples(cls) -> list[Example]:
        return [
            Example("ridge", cls(["age", "member"], "amount"), EXAMPLE_STREAM),
            Example("ridge with knots", cls("age", "amount", knots=2, window=4), EXAMPLE_STREAM),
        ]

    def _target(self, schema: Schema) -> NumberTarget:
        return NumberTarget(schema, self.target)

    def notes(self, schema: Schema, records: int) -> tuple[str, ...]:
        width = self.products(schema).features.width
        return (f"{width} features; error: the noise of a prediction, {records:,} records, everything spread evenly",)

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return CoefficientRows()

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        products = self.products(schema)
        target, features = products.target, products.features
        assert isinstance(target, NumberTarget)
        found = _Fitted(NoisyMoments(noisy, products), features)
        factors = target.scale * features.stretch / features.scales
        errors = shortened(found.errors * factors)
        slopes = rounded(found.slopes * factors, errors)
        (bias,) = shortened(np.array([found.bias_error * target.scale])).tolist()
        (intercept,) = rounded(np.array([target.middle + target.scale * found.bias]), bias).tolist()
        error = {"intercept": bias, "coefficients": dict(zip(features.names, errors.tolist(), strict=True))}
        model = RidgeModel(
            features, target.name, target.field, intercept, slopes, records=found.records, notes=found.notes,
            r_squared=found.r_squared, error=error,
        )  # fmt: skip
        values = {"intercept": intercept, "coefficients": dict(zip(features.names, slopes.tolist(), strict=True))}
        return Answer(model, error, lambda level: around(values, error, level))

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        """The noise of a prediction, where features and target are spread evenly."""
        products = self.products(schema)
        assert isinstance(products.target, NumberTarget)
        width, sums = products.features.width, products.blocks[1]
        each = records * SPREAD / width
        ridge = 2 * radius(float(deviations[0]) / LENGTH**2, width)
        noise = float(deviations[sums.start]) / LENGTH**2
        return math.sqrt(SPREAD) * float(_shrunk(each, ridge)) * noise * products.target.scale


def _shrunk(eigenvalue: Any, ridge: float) -> Any:
    """The f of the class `Ridge`."""
    return (eigenvalue + 2 * ridge) / (eigenvalue + ridge) ** 2


def _slope(eigenvalue: Any, ridge: float) -> Any:
    """Its derivative."""
    return -(eigenvalue + 3 * ridge) / (eigenvalue + ridge) ** 3


class _Fitted:
    """Slopes and intercept for points of the unit ball and targets from -1 to 1, with the deviations of their noise."""

    def __init__(self, moments: NoisyMoments, features: FeatureMap) -> None:
        self._moments, self._features = moments, features
        self.ridge = 2 * moments.radius
        records, means, sums = moments.records, moments.means, moments.sums[:, 0]
        values, vectors = moments.spectrum
        average = min(max(float(sums[0]) / (ONE * records), -1.0), 1.0)
        joint = sums[1:] - means * (float(sums[0]) / ONE)
        self._turned = product(np.ascontiguousarray(vectors.T), joint)
        own = _shrunk(values, self.ridge) * self._turned
        slopes = product(vectors, own)
        self.slopes = features.balanced(slopes)
        self.bias = average - float((means * slopes).sum())
        self.errors, self.bias_error = self._errors(own)
        self.records = float(rounded(np.array(moments.count), moments.count_deviation))
        self.notes = tuple(self._warnings(bool((values[features.dependent :] < self.ridge).any())))
        spread = moments.target_square - records * average**2
        explained = 2 * float((self._turned * own).sum()) - float((values * own * own).sum())
        self.r_squared = None
        if spread > LEAST * moments.target_square_deviation:
            self.r_squared = round(min(max(explained / spread, 0.0), 1.0), 2)

    def _errors(self, own: F64) -> tuple[F64, float]:
        """The errors to first order in all noise (docs/proofs.md, 11a). Everything is in the coordinates of the
        eigenvectors, in which the noise of the squares has the same law."""
        moments = self._moments
        raw, vectors = moments.raw_spectrum
        values, first = moments.spectrum[0], ONE**2 * moments.records
        factors, turned = _shrunk(values, self.ridge), self._turned
        quotients = _quotients(raw, factors, np.where(raw > 0, _slope(values, self.ridge), 0.0))
        means = product(np.ascontiguousarray(vectors.T), moments.means) / ONE
        beta = float(moments.sums[0, 0]) / first
        noise, half = moments.sum_deviation, moments.deviation**2 / 2
        # What moves with the squares; with the sums of the features; with the number of records; with the target's.
        pairs = quotients**2 * (turned[:, None] * turned)
        alone = product(quotients**2, turned**2)
        through = means[:, None] * quotients * turned
        np.fill_diagonal(through, through.diagonal() + product(quotients, means * turned) + beta * factors)
        count = product(quotients, means * turned) * means + beta * factors * means
        rows = self._features.balanced(vectors)
        variances = (
            half * (product(rows**2, alone) + (product(rows, pairs) * rows).sum(axis=1))
            + noise**2 * (product(rows**2, factors**2) + product(rows, factors * means) ** 2)
            + half * ((product(rows, through) ** 2).sum(axis=1) + 2 * product(rows, count) ** 2)
        )
        weighted = factors * means
        by_sums = product(np.ascontiguousarray(through.T), means) - own / first
        by_count = (float((means * own).sum()) - beta) / first - float((means * count).sum())
        intercept = (
            half * float((means**2 * alone).sum() + (product(pairs, means) * means).sum())
            + noise**2 * (float((weighted**2).sum()) + (1 / first + float((means * weighted).sum())) ** 2)
            + half * (float((by_sums**2).sum()) + 2 * by_count**2)
        )
        return np.sqrt(variances), ONE * math.sqrt(intercept)

    def _warnings(self, shrinks: bool) -> Iterator[str]:
        if self._moments.count < LEAST * self._moments.count_deviation:
            yield "too few records: there may be none"
        elif shrinks:
            yield "some features vary too little for this noise: their coefficients are shrunk towards 0"


def _quotients(points: F64, values: F64, slopes: F64) -> F64:
    """(f(x) - f(y)) / (x - y) for all pairs of points, and the slope of f where they are (nearly) the same.

    >>> _quotients(np.array([1.0, 3.0]), np.array([1.0, 9.0]), np.array([2.0, 6.0])).tolist()
    [[2.0, 4.0], [4.0, 6.0]]
    """
    gaps = points[:, None] - points
    near = np.abs(gaps) <= NEAR * np.abs(points).max(initial=0.0)
    middle = (slopes[:, None] + slopes) / 2
    return np.where(near, middle, (values[:, None] - values) / np.where(near, 1.0, gaps))


class RidgeModel(Model):
    """A prediction is ``intercept`` + the sum of coefficient * (value - middle) over the features: for a number the
    middle of its bounds, for one of k levels 1/k with value 1 or 0. Rows that are longer than the map allows are
    shortened first, as in training. ``r_squared`` is about the part of the target's variance that it explains."""

    kind: ClassVar[str] = "ridge"
    keys: ClassVar[tuple[str, ...]] = ("target", "intercept", "coefficients", "r_squared")

    def __init__(
        self,
        features: FeatureMap,
        target: str,
        target_field: Field,
        intercept: float,
        coefficients: F64,
        *,
        r_squared: float | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(features, **shared)
        self.target, self.target_field = target, target_field
        self.intercept, self.r_squared = intercept, r_squared
        self._slopes = coefficients

    @property
    def coefficients(self) -> dict[str, float]:
        """The coefficients in units of the target for one unit of the feature."""
        return dict(zip(self.features.names, self._slopes.tolist(), strict=True))

    def predict(self, data: Any) -> F64:
        """Predict for a frame, columns, records or an array with columns in order; within the bounds of the target."""
        scaled = self.features.read(data) / (LENGTH * self.features.stretch)
        found = self.intercept + scaled @ (self._slopes * self.features.scales)
        low, high = (
            float(bound * self.target_field.step) for bound in (self.target_field.lower, self.target_field.upper)
        )
        return np.asarray(np.clip(found, low, high))

    def _parts(self) -> dict[str, Any]:
        target = {"name": self.target, "field": self.target_field.spec()}
        return {"target": target, "intercept": self.intercept, "coefficients": self.coefficients,
                "r_squared": self.r_squared}  # fmt: skip

    @classmethod
    def _of_parts(cls, parts: Mapping[str, Any], features: FeatureMap, shared: Mapping[str, Any]) -> Self:
        given = mapping_of(parts["coefficients"], features.names, "coefficients")
        slopes = np.array([number_of(given[name], f"coefficients.{name}") for name in features.names])
        explained = parts["r_squared"]
        explained = None if explained is None else number_of(explained, "r_squared")
        target = target_of(parts["target"], Number, Integer, Boolean)
        return cls(features, *target, number_of(parts["intercept"], "intercept"), slopes, r_squared=explained, **shared)


class CoefficientRows(AnswerRows):
    """A row for the intercept and one for each feature.

    >>> value = {"intercept": 12.5, "coefficients": {"miles": 2.5}}
    >>> [row[:2] for row in CoefficientRows().rows(value, None, None)]
    [(('(intercept)',), 12.5), (('miles',), 2.5)]
    """

    keys = (("feature", "text"),)
    signed = True

    def rows(self, value: Any, error: Any, interval: Any) -> Iterator[Row]:
        low, high = part_of(interval, "intercept") or (None, None)
        yield (INTERCEPT_NAME,), value["intercept"], part_of(error, "intercept"), low, high
        errors, intervals = part_of(error, "coefficients"), part_of(interval, "coefficients")
        for name, slope in value["coefficients"].items():
            low, high = part_of(intervals, name) or (None, None)
            yield (name,), slope, part_of(errors, name), low, high
