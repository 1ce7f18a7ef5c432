"""One stream for every statistic, compiler and option that there is: what an audit of everything goes through."""

from __future__ import annotations

from typing import Any

import retroact as ra
from retroact.coins import Coins, DiscreteLaplace
from retroact.oneshot import Own
from retroact.paper import TreeLog
from retroact.statistics import Example
from retroact.testing import every_example

USUAL = {"epsilon": 1.0, "delta": 1e-6, "horizon": 100}


def gallery() -> dict[str, ra.Specification]:
    """By name: the examples that statistics give of themselves, and what is made of several classes. Thresholds and
    samples have budgets with which short histories show something."""
    examples = [
        *every_example().values(),
        Example(
            "tree of intervals",
            ra.WindowSample(TreeLog("age", delta=0.001), window=4),
            {"epsilon": 8.0, "delta": 0.01},
        ),
        Example("algorithm of one's own", ra.WindowSample(Own(_size, epsilon=0.25), window=4)),
    ]
    out = {
        one.name: ra.Specification(one.schema, {"checked": one.statistic}, **{**USUAL, **one.stream})
        for one in examples
    }
    out["a dashboard"] = ra.Specification(
        examples[0].schema,
        {"orders": ra.Count(), "revenue": ra.Sum("amount"), "by_country": ra.Histogram("country")},
        epsilon=1.0,
        delta=1e-6,
        horizon=365,
    )
    return out


def _size(columns: dict[str, Any], coins: Coins) -> int:
    return len(columns["age"]) + int(DiscreteLaplace(4).sample(coins.words([0], [0]))[0, 0])
