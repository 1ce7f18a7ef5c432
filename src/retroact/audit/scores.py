"""Distinguishers of two worlds: each learns a score from a training part, large where world 1 is likely."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..arrays import F64, I64, Mask
from ..errors import InputError
from ..testing.features import THERE, Features, separations
from ..testing.seeds import Seeds

Score = Callable[[Features], F64]
Fit = Callable[[Features, Mask, Seeds], Score | None]

# The most columns of a covariance, and the most numbers in a table for boosted trees.
WIDEST, LARGEST = 64, 2_000_000


def _standardised(learn: Callable[[F64, Mask], Callable[[F64], F64]]) -> Fit:
    """On numbers and presence, each column with mean 0 and deviation 1 over the training part."""

    def table(given: Features) -> F64:
        there = [given.categories[:, i] for i, name in enumerate(given.labels) if name.endswith(THERE)]
        return np.column_stack([given.numbers, *there]) if there else given.numbers

    def fit(train: Features, worlds: Mask, seeds: Seeds) -> Score | None:
        raw = table(train)
        mean, deviation = raw.mean(axis=0), raw.std(axis=0)
        kept = np.flatnonzero(deviation > 1e-12 * (1 + np.abs(mean)))
        if not len(kept):
            return None
        mean, deviation = mean[kept], deviation[kept]
        score = learn((raw[:, kept] - mean) / deviation, worlds)
        return lambda given: score((table(given)[:, kept] - mean) / deviation)

    return fit


def _linear(ridge: float) -> Fit:
    def learn(table: F64, worlds: Mask) -> Callable[[F64], F64]:
        zero, one = table[~worlds], table[worlds]
        within = (len(zero) * _covariance(zero) + len(one) * _covariance(one)) / len(table)
        ahead = one.mean(axis=0) - zero.mean(axis=0)
        weights: F64 = np.linalg.solve(within + ridge * np.eye(len(within)), ahead)
        return lambda own: own @ weights

    return _standardised(learn)


def _quadratic(ridge: float) -> Fit:
    """Normal laws with a covariance for each world, of the columns that differ most."""

    def learn(table: F64, worlds: Mask) -> Callable[[F64], F64]:
        most = max(2, min(WIDEST, len(table) // 8))
        best = np.sort(np.argsort(-separations(np.abs(table), worlds) - separations(table, worlds))[:most])
        laws = []
        for side in (table[~worlds][:, best], table[worlds][:, best]):
            values, vectors = np.linalg.eigh(_covariance(side))
            values = np.maximum(values, 0.0) + ridge
            laws.append((side.mean(axis=0), vectors / np.sqrt(values), float(np.log(values).sum())))

        def score(own: F64) -> F64:
            far: list[F64] = [(((own[:, best] - mean) @ root) ** 2).sum(axis=1) + log for mean, root, log in laws]
            # Singular covariances make it huge; on this scale the middle of a gap is a fair threshold.
            return np.arcsinh(far[0] - far[1])

        return score

    return _standardised(learn)


def _window(train: Features, worlds: Mask, seeds: Seeds) -> Score | None:
    """The mean of one number over the rounds in a row where it differs most, in standard errors."""
    best: tuple[float, npt.NDArray[np.intp]] = (0.0, np.zeros(0, dtype=np.intp))
    series = np.array(train.series)
    for name in dict.fromkeys(train.series):
        own = np.flatnonzero(series == name)
        sums = np.concatenate([np.zeros((len(train), 1)), np.cumsum(train.numbers[:, own], axis=1)], axis=1)
        starts = range(0, len(own), max(1, len(own) // 32))
        for first in starts:
            for last in (*starts[1:], len(own)):
                if last > first:
                    total = sums[:, last] - sums[:, first]
                    gap = float(total[worlds].mean() - total[~worlds].mean())
                    spread = math.sqrt(float(total[worlds].var() + total[~worlds].var()))
                    ratio = abs(gap) / spread if spread else math.inf if gap else 0.0
                    if ratio > abs(best[0]):
                        best = math.copysign(ratio, gap), own[first:last]
    if not len(best[1]):
        return None
    sign = math.copysign(1.0, best[0])
    return lambda given: sign * given.numbers[:, best[1]].mean(axis=1)


def _cells(codes: Callable[[Features], I64]) -> Fit:
    """The log odds of each category in world 1, summed over all columns."""

    def fit(train: Features, worlds: Mask, seeds: Seeds) -> Score | None:
        table = codes(train)
        if not table.shape[1]:
            return None
        odds: list[tuple[I64, F64]] = []
        for column in table.T:
            known, places = np.unique(column, return_inverse=True)
            one = np.bincount(places[worlds], minlength=len(known)) + 0.5
            zero = np.bincount(places[~worlds], minlength=len(known)) + 0.5
            odds.append((known, np.log(one / one.sum()) - np.log(zero / zero.sum())))

        def score(given: Features) -> F64:
            own = codes(given)
            total = np.zeros(len(own))
            for column, (known, logs) in zip(own.T, odds, strict=True):
                places = np.minimum(np.searchsorted(known, column), len(known) - 1)
                total += np.where(known[places] == column, logs[places], 0.0)
            return total

        return score

    return fit


def _learned(train: Features, worlds: Mask, seeds: Seeds) -> Score | None:
    """Boosted trees on all columns."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ImportError:
        raise InputError("the learned distinguisher needs scikit-learn: install retroact[audit]") from None
    table = _everything(train)
    if not table.shape[1] or table.size > LARGEST:
        return None
    model = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=8, learning_rate=0.1, early_stopping=False, random_state=seeds.number() % 2**32
    )
    with threadpool_limits(1):
        model.fit(table, worlds)

    def score(given: Features) -> F64:
        with threadpool_limits(1):
            out: F64 = model.decision_function(_everything(given))
        return out

    return score


def _everything(given: Features) -> F64:
    return np.concatenate([given.numbers, given.categories, given.low_bits()], axis=1)


def _covariance(table: F64) -> F64:
    centred = table - table.mean(axis=0)
    out: F64 = centred.T @ centred / len(table)
    return out


SCORES: dict[str, Fit] = {
    "linear": _linear(1e-6),
    "linear, shrunk": _linear(0.3),
    "quadratic": _quadratic(1e-6),
    "quadratic, shrunk": _quadratic(0.3),
    "window mean": _window,
    "low bits": _cells(Features.low_bits),
    "pattern": _cells(Features.patterns),
    "learned": _learned,
}
