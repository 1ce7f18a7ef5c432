"""One stream for every statistic, compiler and option that there is: what an audit of everything goes through."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import retroact as ra
from retroact.coins import Coins, DiscreteLaplace
from retroact.oneshot import InteriorPoint, Median, Own
from retroact.paper import TreeLog
from retroact.statistics import Statistic
from retroact.statistics.linear_query import Columns

SCHEMA = {
    "amount": ra.Number(0, 100, step=0.5),
    "country": ra.Category(["DE", "FR", "IT"]),
    "city": ra.Text(),
    "age": ra.Integer(0, 63),
    "place": ra.Vector(2, radius=1, step=0.125),
}


def gallery() -> dict[str, ra.Specification]:
    """By name; thresholds and samples have budgets with which short histories show something."""
    small: dict[str, tuple[Statistic, dict[str, object]]] = {
        "count": (ra.Count(), {}),
        "count, pure": (ra.Count(), {"delta": 0.0}),
        "count, tree": (ra.Count(noise="tree"), {"delta": 0.0, "horizon": 16}),
        "count, Gaussian tree": (ra.Count(noise="tree"), {"horizon": 16}),
        "count, paper's tree": (ra.Count(noise="paper"), {"delta": 0.0, "horizon": 16}),
        "count, without end": (ra.Count(), {"horizon": None}),
        "count, one window": (ra.Count(window=5), {"horizon": 64}),
        "count, every third round": (ra.Count(every=3), {"horizon": 64}),
        "count, doubling": (ra.Count(noise="doubling"), {"horizon": None}),
        "sum": (ra.Sum("amount"), {}),
        "sum where": (ra.Sum("amount", where={"country": "DE"}), {"delta": 0.0}),
        "mean": (ra.Mean("amount"), {}),
        "variance": (ra.Variance("amount"), {"delta": 0.0}),
        "linear query": (ra.LinearQuery(_query, size=2, norm1=1, norm2=1, name="young and old"), {}),
        "count by country": (ra.GroupBy("country", ra.Count()), {}),
        "histogram of declared bins": (ra.Histogram("country"), {}),
        "histogram with a threshold": (ra.Histogram("city"), {"epsilon": 4.0, "delta": 1e-2}),
        "quantiles": (ra.Quantiles("age", [0.25, 0.5]), {"epsilon": 4.0}),
        "distinct": (ra.Distinct("age"), {"epsilon": 4.0, "horizon": 64}),
        "distinct in blocks": (
            ra.Distinct("age", form="blocks", additions=4),
            {"epsilon": 4.0, "horizon": 64, "late": False},
        ),
        "distinct with few flips": (ra.Distinct("age", form="flips", flips=4), {"epsilon": 4.0, "horizon": 64}),
        "restated": (ra.Restated(ra.Count(), lags=[0, 2]), {"horizon": 64}),
        "mapped": (ra.Count().map(_halved), {}),
        "means of clusters": (ra.KMeans("place", 2), {"epsilon": 100.0}),
        "medians of clusters": (ra.KMedian("place", 2), {"epsilon": 100.0, "horizon": 16}),
        "median of a window": (ra.WindowSample(Median("age"), window=4), {"epsilon": 8.0}),
        "Poisson sample": (ra.WindowSample(Median("age"), window=4, rate=0.5), {"epsilon": 8.0}),
        "lasting sample": (
            ra.WindowSample(Median("age"), window=4, rate=0.5, persistent=True),
            {"epsilon": 8.0, "late": False},
        ),
        "sample of one size": (
            ra.WindowSample(InteriorPoint("age"), window=4, size=4, gate=8),
            {"epsilon": 16.0, "delta": 0.05},
        ),
        "tree of intervals": (ra.WindowSample(TreeLog("age", delta=0.001), window=4), {"epsilon": 8.0, "delta": 0.01}),
        "algorithm of one's own": (ra.WindowSample(Own(_size, epsilon=0.25), window=4), {"epsilon": 1.0}),
    }
    out = {}
    for name, (statistic, options) in small.items():
        budget = {"epsilon": 1.0, "delta": 1e-6, "horizon": 100} | options
        out[name] = ra.Specification(SCHEMA, {"checked": statistic}, **budget)  # type: ignore[arg-type]
    out["a dashboard"] = ra.Specification(
        SCHEMA,
        {"orders": ra.Count(), "revenue": ra.Sum("amount"), "by_country": ra.Histogram("country")},
        epsilon=1.0,
        delta=1e-6,
        horizon=365,
    )
    return out


def _query(columns: Columns) -> NDArray[np.int64]:
    return np.stack([columns["age"] < 18, columns["age"] >= 50], axis=1).astype(np.int64)


def _halved(value: float) -> float:
    return value / 2


def _size(columns: dict[str, Any], coins: Coins) -> int:
    return len(columns["age"]) + int(DiscreteLaplace(4).sample(coins.words([0], [0]))[0, 0])
