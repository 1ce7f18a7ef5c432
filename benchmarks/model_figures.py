"""How good a model is in the worst round, beside naive recomputation and the same method with almost no noise."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

import retroact as ra
from model_data import Table
from model_peers import DELTA, fitting
from retroact.noise import Fresh
from retroact.statistics.bound import At
from retroact.statistics.models.pca import PCAModel


def quality(model: Any, part: dict[str, Any], target: str) -> float:
    if isinstance(model, PCAModel):
        found = np.cov(np.asarray(part["x"]).T)
        best = np.linalg.eigvalsh(found)[-len(model.components) :].sum()
        return float(np.trace(model.components @ found @ model.components.T) / best)
    return fitting(model.predict(part), np.asarray(part[target]))


def figures(data: Table, statistic: Any, epsilon: float, releases: int, keys: int) -> tuple[float, float, float]:
    """Of the worst round, of naive recomputation, and of the same method with almost no noise."""
    spec = ra.Specification(data.schema, {"m": statistic}, epsilon=epsilon, delta=DELTA, horizon=releases)
    bound, shares = spec.bounds["m"], spec.shares["m"]
    rows = spec.schema.encode(data.train)[0]
    totals = bound.gather(rows, np.ones(rows.count, dtype=np.int64))
    worst = int(bound.noise.variances_of(0, np.arange(1, releases + 1)).argmax()) + 1
    naive = bound.layout.mechanism(Fresh(releases), shares)
    clear = ra.Specification(data.schema, {"m": statistic}, epsilon=1000, delta=1e-2, horizon=1)

    def mean(noise: Any, bound: Any, at: int, count: int) -> float:
        found = []
        for seed in range(1, count + 1):
            coins = ra.Key.for_testing(seed).coins("models")
            model = bound.release([bound.named(totals, coins)], noise.under(coins), At(at, at)).answer.value
            found.append(quality(model, data.test, data.target))
        return statistics.mean(found)

    exact = mean(clear.bounds["m"].noise, clear.bounds["m"], 1, 1)
    return mean(bound.noise, bound, worst, keys), mean(naive, bound, worst, keys), exact
