"""What forgetting by training anew is compared with: refits of scikit-learn, SISA, and forests that unlearn (DaRE).

None of them is private: what they predict is a bar for accuracy, and what they take one for time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as ExactRidge

import retroact as ra
from model_data import Table
from model_peers import encoded, fitting

SHARDS = 10
Numbers = NDArray[np.float64]


class Sisa:
    """Record i belongs to shard i mod 10, each with a model of its own; they predict together, by the mean of their
    numbers or probabilities. A deletion refits the shards that it touches."""

    def __init__(self, make: Callable[[], Any], X: Numbers, y: NDArray[Any]) -> None:
        self._make, self._X, self._y = make, X, y
        self._left = np.ones(len(X), dtype=bool)
        self._classes = np.unique(y)
        self._models = [self._fitted(shard) for shard in range(SHARDS)]

    def _fitted(self, shard: int) -> Any:
        rows = shard + SHARDS * np.flatnonzero(self._left[shard::SHARDS])
        return self._make().fit(self._X[rows], self._y[rows])

    def forget(self, rows: Iterable[int]) -> None:
        gone = np.fromiter(rows, dtype=np.int64)
        self._left[gone] = False
        for shard in np.unique(gone % SHARDS).tolist():
            self._models[shard] = self._fitted(shard)

    def predict(self, X: Numbers) -> NDArray[Any]:
        if not hasattr(self._models[0], "predict_proba"):
            return np.asarray(np.mean([model.predict(X) for model in self._models], axis=0))
        shares = np.zeros((len(X), len(self._classes)))
        for model in self._models:
            # a shard may lack a class
            shares[:, np.searchsorted(self._classes, model.classes_)] += model.predict_proba(X)
        return np.asarray(self._classes[shares.argmax(axis=1)])


def linear(*, regression: bool) -> Any:
    return ExactRidge() if regression else LogisticRegression(max_iter=500)


def refits(data: Table) -> tuple[float, float]:
    """Of a linear model of scikit-learn on all records, and of SISA of ten shards of it."""
    field = data.schema[data.target]
    regression = isinstance(field, ra.Number)
    X, others = encoded(data, data.train), encoded(data, data.test)
    y, wanted = np.asarray(data.train[data.target]), np.asarray(data.test[data.target])

    def make() -> Any:
        return linear(regression=regression)

    found = [model.predict(others) for model in (make().fit(X, y), Sisa(make, X, y))]
    if regression:
        low, high = float(field.lower * field.step), float(field.upper * field.step)
        found = [np.clip(each, low, high) for each in found]
    return fitting(found[0], wanted), fitting(found[1], wanted)


def times(X: Numbers, y: Numbers) -> Iterator[tuple[str, float]]:
    """Seconds of processor time for what each does when 1 or 1,000 records are to be forgotten."""
    labels, several = y > 0, range(1, min(1001, len(X) // 2))
    yield "scikit-learn Ridge, refit", _seconds(lambda: ExactRidge().fit(X, y))
    yield "scikit-learn LogisticRegression, refit", _seconds(lambda: linear(regression=False).fit(X, labels))
    for name, regression, goals in (("Ridge", True, y), ("LogisticRegression", False, labels)):
        shards = Sisa(lambda regression=regression: linear(regression=regression), X, goals)
        yield f"SISA, ten shards of {name}, 1", _seconds(lambda shards=shards: shards.forget([0]))
        yield f"SISA, ten shards of {name}, 1,000", _seconds(lambda shards=shards: shards.forget(several))
    forest = _dare_forest(X, labels)
    if forest is not None:
        yield "DaRE, 100 trees, 1", _seconds(lambda: forest.delete(0))
        yield "DaRE, 100 trees, 1,000", _seconds(lambda: [forest.delete(row) for row in several])


def _dare_forest(X: Numbers, labels: NDArray[np.bool_]) -> Any:
    """None where dare-rf is not installed."""
    try:
        import dare  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        print(f"DaRE forests are absent: {error} (pip install dare-rf)")
        return None
    forest = dare.Forest(n_estimators=100, max_depth=10, k=5, topd=0, random_state=1)
    forest.fit(X.astype(np.float32), labels.astype(np.int32))
    return forest


def _seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
