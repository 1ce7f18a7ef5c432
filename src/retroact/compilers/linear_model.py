"""Linear and logistic regression by private gradient descent: a few noisy gradients in every release.

**Privacy.** A record is z = (a, x), with |z|^2 <= r^2 (`statistics.models.products`). In one question it adds its
clipped residuals e, |e| <= c, times z, so at most c r in the second norm, and 1 to the number of records. With units
U >= c r sqrt(25 / 24) and V = 5 it moves the sums by at most (c r / U)^2 + 1 / V^2 <= 24 / 25 + 1 / 25 = 1, squared.
How runs are paid for is in `noisy_sums`. **Retroactivity.** As there.

**Exactness.** Coefficients are whole numbers of steps of 2^-12, at most 2^22 of them, so a margin z t of up to 1,025
terms below 2^34 is a whole number below 2^45, in any order of adding and in floats; so are sums of residuals (at most
2^13) times points (at most 2^12) of 2^20 records. What a record adds is a function of the record and of the published
noise alone. Between questions, coefficients are moved by elementwise arithmetic, in a fixed order.

**Error.** The noise of a gradient is in proportion to the residuals that are let in, that of the sums behind `Ridge` to
the squares of records and coefficients; but each release and each step pays again, so this wins where there are few
releases, and only for some data. A plan says how large both are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from msgspec.structs import replace

from ..arrays import F64
from ..checks import as_fraction, choice, number, positive_int
from ..coins.exact_cdf import exp_minus
from ..errors import InputError
from ..messages import mismatch
from ..noise import Mechanism
from ..noise.default_process import quietest
from ..privacy.budget import check_epsilon
from ..schema import Rows, Schema
from ..schema.field import field_name, field_names, one_or_list
from ..statistics.grant import Grant, Layout
from ..statistics.models.classifier import Classifier, ClassifierModel
from ..statistics.models.feature_map import BITS, DEFAULT_MOST, LENGTH, FeatureMap, checked_knots, checked_most
from ..statistics.models.noisy_moments import LEAST, radius, rounded
from ..statistics.models.products import INTERCEPT, MOST_RECORDS, SQUARE, ClassTarget, NumberTarget
from ..statistics.models.ridge import Ridge, RidgeModel
from ..statistics.models.scaled_columns import quotient
from .noisy_sums import Ask, NoisySums

Loss = Literal["squared", "logistic"]
FARTHEST = float(1 << 22)
"""Coefficients are at most 2^10."""
COUNT_UNIT = 5
# Margins of classes are read to 2^-8, and differences beyond 16 are 16.
MARGIN_BITS, WIDEST = 8, 1 << 12
WEIGHT_BITS = 30
# Gradients change by at most 5/4 for a change of 1 (half of that for classes): momentum is stable below 30 and 60.
USUAL_STEP = {"squared": 25.0, "logistic": 50.0}
MOMENTUM = 0.9
# In more releases, sums of products were better for most tables that were tried (docs/models.md).
USUAL_TURN = {"squared": 64, "logistic": 16}


class LinearModel(NoisySums):
    """``target`` from ``columns``: a number with ``loss="squared"``, a class with ``loss="logistic"``. In
    `WindowSample`, where a model that is retrained in each of a few releases may err less than `Ridge` or
    `Classifier`.

    ``iterations`` of gradient descent with momentum; residuals longer than ``clip`` are shortened, in units of half the
    distance of the target's bounds, or of probability. ``step`` is the length of a step (default: 25, or 50 for
    classes). All three are public and cannot be tuned on the records.

    **Privacy.** Gaussian, for all releases of a window together (`noisy_sums`).

    >>> LinearModel(["miles", "hour"], "fare", iterations=30)
    LinearModel(['miles', 'hour'], 'fare', iterations=30)
    """

    kind: ClassVar[str] = "linear_model"

    def __init__(
        self,
        columns: str | Sequence[str],
        target: str,
        *,
        loss: Loss = "squared",
        iterations: int = 60,
        clip: float | str | Fraction = Fraction(3, 10),
        step: float | None = None,
        knots: int = 0,
        most: int = DEFAULT_MOST,
        epsilon: float | Fraction | None = None,
        delta: float | str | Fraction = Fraction(1, 10**6),
    ) -> None:
        self.columns, self.target = field_names(columns, "columns"), field_name(target)
        if self.target in self.columns:
            raise InputError(f"expected a target that is not one of the columns, got {target!r}", place="target")
        self.loss = choice(loss, get_args(Loss), "loss")
        self.iterations, self.knots = positive_int(iterations, "iterations"), checked_knots(knots)
        self.most = checked_most(most)
        self.clip = _fraction(clip, "clip", Fraction(1, 1000), Fraction(2))
        self.step = (
            None if step is None else float(number(step, "step", "a finite number above 0", above=0, below=math.inf))
        )
        self.epsilon = None if epsilon is None else check_epsilon(epsilon)
        self.delta = _fraction(delta, "delta", Fraction(1, 10**60), Fraction(1, 2))

    def argument(self, name: str) -> Any:
        return one_or_list(self.columns) if name == "columns" else super().argument(name)

    @property
    def queries(self) -> int:
        return self.iterations

    def check(self, schema: Schema, place: str) -> None:
        try:
            self._features(schema)
            self._target(schema)
        except InputError as error:
            raise error.under(place) from None

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (*self.columns, self.target)

    def layout(self, schema: Schema) -> Layout:
        unit = math.isqrt(math.ceil(Fraction(25, 24) * SQUARE * self.longest**2) - 1) + 1
        size = (self._features(schema).width + 1) * self._target(schema).size
        return Layout((unit,) * size + (COUNT_UNIT,), Fraction(size + 1), Fraction(1), 1)

    def answer(self, rows: Rows, schema: Schema, ask: Ask, deviations: Any) -> Any:
        features, target = self._features(schema), self._target(schema)
        descent = Descent(rows, features, target, self)
        found, records = descent.run(ask)
        deviation = float(deviations[-1]) / math.sqrt(self.iterations)
        notes = ("too few records: there may be none",) if records < LEAST * deviation else ()
        shared: dict[str, Any] = {"records": float(rounded(np.array(records), deviation)), "notes": notes}
        slopes = features.balanced(found[1:]) * features.stretch
        offsets = found[0] * (INTERCEPT / LENGTH)
        # Digits that this noise, divided by the number of records and by the step, leaves meaningful.
        errors = np.array(float(deviations[0]) / LENGTH**2 / max(records, 1.0))
        if isinstance(target, NumberTarget):
            scales = target.scale / features.scales
            intercept = float(rounded(target.middle + target.scale * offsets, errors * target.scale)[0])
            return RidgeModel(
                features,
                target.name,
                target.field,
                intercept,
                rounded(slopes[:, 0] * scales, errors * scales),
                **shared,
            )
        each = rounded(slopes / features.scales[:, None], errors / features.scales[:, None])
        return ClassifierModel(features, target.name, target.field, "descent", rounded(offsets, errors), each, **shared)

    def outlook(self, grant: Grant, noise: Mechanism, records: int) -> Iterator[str]:
        """The lines of a plan. Noise is that of means over the records, in which points are at most 1 long: it moves
        coefficients by as much, whether they come from gradients or from sums of products."""
        width, size = self._features(grant.schema).width, self._target(grant.schema).size
        each = float(noise.deviations(1)[0]) / LENGTH**2 * math.sqrt(width * size) / records
        yield (
            f"{self.iterations} noisy gradients a release, {width} features; with {records:,} records the noise of one "
            f"is {each:.3g} long, and {each / math.sqrt(self.iterations / 2):.3g} over the half of them that is "
            f"averaged, where a residual is at most {float(self.clip):g}"
        )
        instead = (Ridge if self.loss == "squared" else Classifier)(
            self.columns, self.target, knots=self.knots, most=self.most
        )
        name, turn = type(instead).__name__, USUAL_TURN[self.loss]
        try:
            across, among = _noise_of_sums(instead, grant)
        except InputError as error:
            yield f"{name} cannot be in its place: {error}"
        else:
            yield (
                f"with {name} in its place it is {across / records:.3g} long for features with the target, and "
                f"{among / records:.3g} for each unit of length of the coefficients for features with each other"
            )
        assert grant.reach is not None
        better = f"{type(self).__name__} is worth a try" if grant.reach <= turn else f"rather {name}"
        yield (
            f"rule of thumb, no more, from the specification alone: gradient descent is worth a try where a record is "
            f"in up to about {turn} releases. Here it is in {grant.reach:,}: {better}"
        )

    @property
    def longest(self) -> int:
        """Residual that is let in, in steps of 2^-12."""
        return math.floor(self.clip * LENGTH)

    def _features(self, schema: Schema) -> FeatureMap:
        return FeatureMap.of(schema, self.columns, self.most, knots=self.knots)

    def _target(self, schema: Schema) -> NumberTarget | ClassTarget:
        return NumberTarget(schema, self.target) if self.loss == "squared" else ClassTarget(schema, self.target)


class Descent:
    """Gradient descent on some records, with coefficients on the lattice of 2^-12."""

    def __init__(
        self, rows: Rows, features: FeatureMap, target: NumberTarget | ClassTarget, settings: LinearModel
    ) -> None:
        self._settings, self._target, self._count = settings, target, rows.count
        self._step = USUAL_STEP[settings.loss] if settings.step is None else settings.step
        self._shape = features.width + 1, target.size
        self._parts = []
        for start in range(0, rows.count, MOST_RECORDS):
            part = slice(start, start + MOST_RECORDS)
            points = features.points(rows.columns, part)
            intercept = np.full((len(points), 1), float(INTERCEPT))
            goals = target.columns(rows.columns[target.name][part])
            self._parts.append((np.concatenate([intercept, points], axis=1), goals))

    def run(self, ask: Ask) -> tuple[F64, float]:
        """Coefficients by the intercept and the features, averaged over the second half, and the number of records."""
        current, speed = np.zeros(self._shape), np.zeros(self._shape)
        mean, counted, taken = np.zeros(self._shape), 0.0, 0
        for question in range(self._settings.iterations):
            noise, denominator = ask(question)
            exact = [int(total) for total in self.sums(current)]
            drawn = [total * denominator + int(one) for total, one in zip(exact, noise, strict=True)]
            noisy = np.array([float(Fraction(total, denominator)) for total in drawn])
            counted += float(noisy[-1])
            records = max(counted / (question + 1), 1.0)
            speed = MOMENTUM * speed - noisy[:-1].reshape(self._shape) / (records * LENGTH**2)
            moved = current + (1 - MOMENTUM) * self._step * speed * LENGTH
            current = np.clip(np.rint(moved), -FARTHEST, FARTHEST)
            if 2 * question >= self._settings.iterations - 1:
                mean, taken = mean + current, taken + 1
        return mean / (taken * LENGTH), counted / self._settings.iterations

    def sums(self, coefficients: F64) -> list[int]:
        """What all records together add to one question."""
        found = np.zeros(self._shape, dtype=np.int64)
        for points, goals in self._parts:
            found += (points.T @ self._residuals(points @ coefficients, goals)).astype(np.int64)
        return [*found.ravel().tolist(), self._count]

    def _residuals(self, margins: F64, goals: F64) -> F64:
        """Whole numbers of steps of 2^-12, clipped to the longest."""
        longest = float(self._settings.longest)
        if isinstance(self._target, NumberTarget):
            left = np.floor(margins / LENGTH) - goals
            return np.clip(left, -longest, longest)
        left = shares_of(margins) - goals * LENGTH
        lengths = np.ceil(np.sqrt(np.einsum("ij,ij->i", left, left)))
        shorter = quotient(left * longest, np.maximum(lengths, 1.0)[:, None])
        return np.asarray(np.where((lengths > longest)[:, None], shorter, left))


def _noise_of_sums(model: Ridge | Classifier, grant: Grant) -> tuple[float, float]:
    """In the worst release of a model under the same grant: the length of the noise of the sums of points times
    targets, and the largest eigenvalue of that of points times points."""
    process = quietest(model.candidates(grant), grant.share.kind, grant.judged)
    bound, made = model.bind(replace(grant, noise=process)), model.products(grant.schema)
    assert made.target is not None
    deviations = bound.noise.deviations(bound.outlook.worst)
    width, targets = made.features.width, float(deviations[made.blocks[1].start])
    across = targets / (LENGTH * made.target.largest) * math.sqrt(width * made.target.size)
    return across, radius(float(deviations[0]) / LENGTH**2, width)


def shares_of(margins: F64) -> F64:
    """Probabilities of classes from margins in steps of 2^-24, in steps of 2^-12, rounded down.

    >>> shares_of(np.array([[0.0, 0.0], [2.0**30, 0.0]])).tolist()
    [[2048.0, 2048.0], [4095.0, 0.0]]
    """
    behind = np.floor((margins.max(axis=1, keepdims=True) - margins) / float(1 << (2 * BITS - MARGIN_BITS)))
    weights = _weights()[np.minimum(behind, WIDEST).astype(np.int64)]
    return quotient(weights * float(LENGTH), weights.sum(axis=1, keepdims=True))


@lru_cache(1)
def _weights() -> F64:
    """e^-x for x in steps of 2^-8, as whole numbers of 30 bits."""
    return np.array([float(exp_minus(Fraction(k, 1 << MARGIN_BITS), WEIGHT_BITS)) for k in range(WIDEST + 1)])


def _fraction(value: Any, place: str, least: Fraction, most: Fraction) -> Fraction:
    exact = as_fraction(value)
    if exact is None or not least <= exact <= most:
        raise mismatch(f"a number from {float(least):g} to {float(most):g}", value, place)
    return exact
