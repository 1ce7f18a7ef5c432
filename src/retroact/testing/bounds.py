"""Exact bounds on probabilities from counts."""

from __future__ import annotations

import math

import numpy as np

# Counts beyond this many square roots of the trials above the mean have a probability below e^-128 together.
REACH = 8


def binomial_lower(successes: int, trials: int, confidence: float) -> float:
    """The exact lower bound on a probability after so many successes (Clopper and Pearson).

    >>> round(binomial_lower(90, 100, 0.95), 4)
    0.8363
    """
    if successes == 0:
        return 0.0
    # P(successes or more), relative to the first of its terms, which falls from there on: p is at most the share seen.
    k = np.arange(successes, min(trials, successes + math.ceil(REACH * math.sqrt(trials))))
    ratios = np.concatenate([[0.0], np.cumsum(np.log((trials - k) / (k + 1)))])
    steps = np.arange(len(ratios))
    choose = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    low, high = 0.0, successes / trials
    for _ in range(60):
        p = (low + high) / 2
        first = choose + successes * math.log(p) + (trials - successes) * math.log1p(-p)
        tail = math.exp(first) * float(np.exp(ratios + steps * (math.log(p) - math.log1p(-p))).sum())
        low, high = (p, high) if tail <= 1 - confidence else (low, p)
        if high - low <= 1e-15 * high:
            break
    return low


def binomial_upper(successes: int, trials: int, confidence: float) -> float:
    """The exact upper bound.

    >>> round(binomial_upper(0, 100, 0.95), 4)
    0.0295
    """
    return 1.0 - binomial_lower(trials - successes, trials, confidence)
