"""Linear regression with a ridge as large as the noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from ...arrays import F64
from ...schema import Field, Schema
from ..answer import Answer, Noisy
from ..answer_rows import AnswerRows, Row, part_of
from ..statistic import Example
from .feature_map import LENGTH, FeatureMap
from .intervals import around
from .model import Model, one_number_each
from .moments import EXAMPLE_STREAM, WithTarget
from .noisy_moments import LEAST, ONE, SPREAD, NoisyMoments, radius, rounded, shortened
from .products import NumberTarget, Shares

INTERCEPT_NAME = "(intercept)"


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
    same k, of the exact sums. With E the noise of S and t the coefficients, these vary like f(S) (noise of c - E t);
    E t has the covariance (|t|^2 1 + t t') s^2 / 2, s the deviation of the diagonal.

    >>> Ridge(["miles", "hour"], "fare", knots=4)
    Ridge(['miles', 'hour'], 'fare', knots=4)
    """

    kind: ClassVar[str] = "ridge"
    theorem: ClassVar[str] = 'Theorem "linear"'
    shares: ClassVar[Shares] = Shares(Fraction(1, 2), Fraction(9, 20), Fraction(1, 20))

    @classmethod
    def examples(cls) -> list[Example]:
        return [
            Example("ridge", cls(["age", "country", "member"], "amount"), EXAMPLE_STREAM),
            Example("ridge with knots", cls(["age", "place"], "amount", knots=3, window=4), EXAMPLE_STREAM),
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


class _Fitted:
    """Slopes and intercept for points of the unit ball and targets from -1 to 1, with the deviations of their noise."""

    def __init__(self, moments: NoisyMoments, features: FeatureMap) -> None:
        records, means, sums = moments.records, moments.means, moments.sums[:, 0]
        values, vectors = moments.spectrum
        ridge = 2 * moments.radius
        factors = _shrunk(values, ridge)
        average = min(max(float(sums[0]) / (ONE * records), -1.0), 1.0)
        joint = sums[1:] - means * (float(sums[0]) / ONE)
        slopes = moments.turned(factors, joint)
        self.slopes = features.balanced(slopes)
        self.bias = average - float((means * slopes).sum())
        turning = moments.deviation**2 / 2
        common = moments.sum_deviation**2 + turning * float((slopes * slopes).sum())
        again = features.balanced(moments.turned(factors, slopes))
        self.errors = np.sqrt((features.balanced(vectors * factors) ** 2).sum(axis=1) * common + turning * again**2)
        # The mean of the target, the means of the features, the slopes, and the number of records.
        towards = moments.turned(factors, means)
        self.bias_error = math.sqrt(
            (moments.sum_deviation / (ONE * records)) ** 2
            + turning * float((slopes * slopes).sum()) / (ONE * records) ** 2
            + common * float((towards * towards).sum()) + turning * float((towards * slopes).sum()) ** 2
            + (self.bias * moments.count_deviation / records) ** 2
        )  # fmt: skip
        (self.records,) = rounded(np.array([moments.count]), moments.count_deviation).tolist()
        self.notes = tuple(self._warnings(moments, bool((values[features.dependent :] < ridge).any())))
        spread = moments.target_square - records * average**2
        explained = 2 * float((joint * slopes).sum()) - float((slopes * _times(moments, slopes)).sum())
        self.r_squared = None
        if spread > LEAST * moments.target_square_deviation:
            self.r_squared = round(min(max(explained / spread, 0.0), 1.0), 2)

    @staticmethod
    def _warnings(moments: NoisyMoments, shrinks: bool) -> Iterator[str]:
        if moments.count < LEAST * moments.count_deviation:
            yield "too few records to tell from none"
        elif shrinks:
            yield "some features vary too little for this noise: their coefficients are shrunk towards 0"


def _times(moments: NoisyMoments, slopes: F64) -> F64:
    return moments.turned(moments.spectrum[0], slopes)


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
        """In units of the target for one unit of the feature."""
        return dict(zip(self.features.names, self._slopes.tolist(), strict=True))

    def predict(self, data: Any) -> F64:
        """Of a frame, columns, records or an array with the columns in order; within the bounds of the target."""
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
        slopes = one_number_each(parts["coefficients"], features.names, "coefficients")
        target = parts["target"]
        field = Field.from_spec(target["field"], "target.field")
        return cls(features, target["name"], field, float(parts["intercept"]), slopes,
                   r_squared=parts["r_squared"], **shared)  # fmt: skip


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
