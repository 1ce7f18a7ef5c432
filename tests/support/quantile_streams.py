"""Streams of quantiles, with and without noise."""

import numpy as np
import pytest

import retroact as ra
from retroact.noise import Spread
from retroact.statistics.bound import At
from retroact.statistics.tally import Tally

BOTH = pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "gaussian"])
PROBABILITIES = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1]
LOWEST, HIGHEST = -(2**63), 2**63 - 1


class Silent:
    """A mechanism whose noise is zero, or what is planted at some nodes."""

    def __init__(self, denominator=1, planted=()):
        self.denominator, self.planted = denominator, dict(planted)

    def sample(self, index, cells):
        noise = [self.planted.get((int(prefix), int(number)), 0) for prefix, number in cells]
        return np.array(noise, dtype=np.int64)[:, None], self.denominator

    def square_of(self, coordinate, round):
        return 0

    def half_width(self, index, coordinate, level):
        return 0.0

    def spread(self, index, coordinate):
        return Spread(0.0, 0.0, 0.0)


def tally(offsets):
    return Tally.of((np.array(offsets, dtype=np.uint64),), np.ones((len(offsets), 1), dtype=np.int64))


def specification(statistic, field, *, delta=1e-6, epsilon=1.0, horizon=100, **options):
    """With Gaussian noise where there is a delta, so that both laws are tried."""
    budget = {"epsilon": epsilon, "delta": delta, "law": "gaussian" if delta else "laplace"}
    return ra.Specification({"v": field}, {"q": statistic}, horizon=horizon, **budget, **options)


def totals_of(spec, values):
    rows, _ = spec.schema.encode({"v": values})
    return spec.bounds["q"].gather(rows, np.ones(len(values), dtype=np.int64))


def answer(spec, totals, seed=1, index=37, noise=None):
    """One release of these totals, in whatever round."""
    noise = spec.mechanism("q", ra.Key.for_testing(seed).coins("stream")) if noise is None else noise
    return spec.bounds["q"].release([totals], noise, At(index, index)).answer
