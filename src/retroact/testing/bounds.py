"""Exact bounds on probabilities from counts."""

from __future__ import annotations

import math

import numpy as np


def binomial_lower(successes: int, trials: int, confidence: float) -> float:
    """The exact lower bound on a probability after so many successes (Clopper and Pearson).

    >>> round(binomial_lower(90, 100, 0.95), 4)
    0.8363
    """
    if successes == 0:
        return 0.0
    k = np.arange(1, trials + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(k))])
    counts = np.arange(successes, trials + 1)
    choose = logs[trials] - logs[counts] - logs[trials - counts]
    low, high = 0.0, successes / trials
    for _ in range(50):
        p = (low + high) / 2
        tail = float(np.exp(choose + counts * math.log(p) + (trials - counts) * math.log1p(-p)).sum())
        low, high = (p, high) if tail <= 1 - confidence else (low, p)
    return low
