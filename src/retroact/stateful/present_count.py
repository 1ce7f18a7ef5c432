"""Noise for a count of present values, each of which may change it up to w times.

**Privacy.** Two histories that differ in the updates of one value shift the nodes of a Schauder tree by a vector of
whole numbers with squared length at most D = `longest_shift`. With a discrete Gaussian of parameter D / (2 rho) on
every node all answers together are rho-zCDP (Canonne, Kamath and Steinke 2020: a shift of the discrete Gaussian by
whole numbers costs what it costs in the continuous one). **Retroactivity.** The noise is; what it is added to need not
be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ..arrays import I64
from ..coins import Coins, DiscreteGaussian
from ..errors import InputError
from ..noise import Schauder
from .sensitivity import longest_shift

# A sample is beyond 128 deviations with probability below 2^-180; products must stay in 64 bits.
REACH = 128
HEADROOM = 1 << 62
# Rounds that are computed at once, in columns and round by round.
COLUMN = 1 << 15
BLOCK = 1 << 8


class Continual:
    """
    >>> from retroact.coins import Key
    >>> noise = Continual(1023, flips=1, rho=Fraction(1, 2), coins=Key.for_testing(1).coins("example"))
    >>> noise.law.variance, noise.denominator
    (22.0, 1024)
    """

    def __init__(self, horizon: int, *, flips: int, rho: Fraction, coins: Coins) -> None:
        self.process = Schauder(horizon)
        self.law = DiscreteGaussian(node_variance(self.process, flips, rho))
        self._coins = coins
        weights = self.process.levels << (self.process.levels - 1)
        if REACH * math.sqrt(self.law.variance) * weights >= HEADROOM:
            raise InputError(
                f"noise of deviation {math.sqrt(self.law.variance):.3g} over {horizon:,} rounds leaves 64-bit "
                "integers: take a larger budget or a shorter horizon",
                place="epsilon",
            )

    @property
    def denominator(self) -> int:
        return self.process.length

    def numerators(self, first: int, last: int) -> I64:
        """The noise of rounds first .. last, times the denominator."""
        parts = [self._part(f, min(f + COLUMN - 1, last)) for f in range(first, last + 1, COLUMN)]
        return np.concatenate(parts)

    def _part(self, first: int, last: int) -> I64:
        terms = self.process.weights_of(np.arange(first, last + 1))
        total = np.zeros(last - first + 1, dtype=np.int64)
        for level in range(self.process.levels):
            indices = terms.indices[:, level]
            nodes = np.arange(indices[0], indices[-1] + 1)
            samples = self.law.sample(self._coins.words(np.full(len(nodes), level), nodes))[:, 0]
            total += terms.weights[:, level] * samples[indices - indices[0]]
        return total


def node_variance(process: Schauder, flips: int, rho: Fraction) -> Fraction:
    """Of every node, rounded up."""
    return Fraction(math.ceil(longest_shift(process.levels, flips) / (2 * rho) * 2**20), 2**20)


def mean_square(horizon: int, flips: int, rho: Fraction) -> Fraction:
    """Of the noise, over the rounds of a full tree: a triangle has a mean square of 1/3, and the weight is its half."""
    process = Schauder(horizon)
    return node_variance(process, flips, rho) * process.levels / 12


class Buffer:
    """One round at a time out of something that is computed for many at once; nothing depends on where blocks begin."""

    def __init__(self, compute: Callable[[int, int], I64], horizon: int) -> None:
        self._compute, self._horizon = compute, horizon
        self._first, self._block = 1, np.zeros(0, dtype=np.int64)

    def at(self, round: int) -> int:
        if not self._first <= round < self._first + len(self._block):
            self._first = round
            self._block = self._compute(round, min(round + BLOCK - 1, self._horizon))
        return int(self._block[round - self._first])
