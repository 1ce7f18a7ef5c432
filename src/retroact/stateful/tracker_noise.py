"""What a flippancy tracker draws: noise for counts of present values, thresholds for them, and lazy releases.

**Privacy.** **Retroactivity.** Each part has its own proof; `TrackerDesign` composes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from ..arrays import I64
from ..coins import Coins, DiscreteGaussian, DiscreteLaplace
from ..errors import InputError
from ..noise import Schauder
from ..noise.any_rounds import root

# A sample exceeds 128 deviations with probability below 2^-180; products must fit 64 bits.
REACH = 128
HEADROOM = 1 << 62
# Rounds computed at once.
BLOCK = 1 << 8
STATES = (-1, 0, 1)


class Buffer:
    """One round at a time of something computed for many at once; where blocks begin does not matter."""

    def __init__(self, compute: Callable[[int, int], I64], horizon: int) -> None:
        self._compute, self._horizon = compute, horizon
        self._first, self._block = 1, np.zeros(0, dtype=np.int64)

    def at(self, round: int) -> int:
        if not self._first <= round < self._first + len(self._block):
            self._first = round
            self._block = self._compute(round, min(round + BLOCK - 1, self._horizon))
        return int(self._block[round - self._first])


class Continual:
    """Noise for a count of present values, each of which may change it up to w times.

    **Privacy.** Two histories that differ in the updates of one value shift the nodes of a Schauder tree by a vector of
    whole numbers with squared length at most D = `longest_shift`. With a discrete Gaussian of parameter D / (2 rho) on
    every node all answers together are rho-zCDP (Canonne, Kamath and Steinke 2020: a shift of the discrete Gaussian by
    whole numbers costs what it costs in the continuous one). **Retroactivity.** The noise is; what it is added to need
    not be.

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
        terms = self.process.weights_of(np.arange(first, last + 1))
        total = np.zeros(last - first + 1, dtype=np.int64)
        for level in range(self.process.levels):
            indices = terms.indices[:, level]
            nodes = np.arange(indices[0], indices[-1] + 1)
            samples = self.law.sample(self._coins.words(np.full(len(nodes), level), nodes))[:, 0]
            total += terms.weights[:, level] * samples[indices - indices[0]]
        return total


@lru_cache(maxsize=1024)
def longest_shift(levels: int, flips: int) -> int:
    """The largest squared length by which all flips of one value can shift a Schauder tree of that many levels.

    Let q and q' be the presence of one value in two neighbouring histories, each frozen after w flips, and d = q - q':
    a path of -1, 0 and 1 over rounds, 0 before the first. Ended by a return to 0 after the last round it has at most 2w
    unit changes: q and q' flip at most w times each, and if d ends at +-1, one of them an odd and the other an even
    number of times, so they flip at most 2w - 1 times together and the return makes 2w.

    A unit change at boundary s shifts node (j, s >> (j+1)) by +1 or -1 as bit j of s is 0 or 1 (`noise.Schauder`). So a
    path that is a before the boundaries of a node, c at their middle and b after them shifts it by (c - a) - (b - c):
    the squared length of the shift is the sum of (2c - a - b)^2 over all nodes.

    - w = 1: d is the indicator of one interval, for which the tree has 2m + 2.
    - w > 1: for every price p >= 0 the length of a path with at most 2w unit changes is at most 2w p + max over *all*
      paths of (length - p * changes). The maximum has no constraint left, so it splits at the middle of a node into the
      same problem for either half, given a, c and b: three values each. The least over whole p is the bound: all in
      integers, and what it gives is a proof.

    It does not use which pairs (q, q') are neighbours, so it holds for many updates a round as well. Tests attain it on
    a horizon of 63 for w = 3, 4, 8 and 16. Bounding every level on its own would give 8w m, nearly twice as much.

    >>> longest_shift(17, 1), longest_shift(17, 8), longest_shift(17, 256)
    (36, 480, 11564)
    """
    if flips == 1:
        return 2 * levels + 2
    # Beyond 4 a level a change costs more than it can ever gain: N^2 <= 4 (changes in the node), since |N| <= 4.
    return min(2 * flips * price + _best(levels, price) for price in range(4 * levels + 1))


@lru_cache(maxsize=4096)
def _best(levels: int, price: int) -> int:
    """max of (length - price * changes) over all paths from 0 to 0."""
    best = {(a, b): -price * abs(b - a) for a in STATES for b in STATES}
    for _ in range(levels):
        best = {
            (a, b): max(best[a, c] + best[c, b] + (2 * c - a - b) ** 2 for c in STATES) for a in STATES for b in STATES
        }
    return best[0, 0]


def node_variance(process: Schauder, flips: int, rho: Fraction) -> Fraction:
    """The variance of every node, rounded up."""
    return Fraction(math.ceil(longest_shift(process.levels, flips) / (2 * rho) * 2**20), 2**20)


def mean_square(horizon: int, flips: int, rho: Fraction) -> Fraction:
    """Of the noise of `Continual`, over the rounds of a full tree: a triangle has a mean square of 1/3, and the weight
    is its half."""
    process = Schauder(horizon)
    return node_variance(process, flips, rho) * process.levels / 12


class AboveThreshold:
    """The sparse vector technique: says in which round a count first passes a threshold, and nothing else.

    **Privacy.** Counts c_1 .. c_T of values that did something; a neighbouring history has c'_t in {c_t, c_t + 1} for
    all t, or {c_t - 1, c_t} for all t, because it moves the round from which *one* value counts. Noise X on the
    threshold and Y_t on each count, discrete Laplace of scale 2 / epsilon. "First in round k" reads: c_t + Y_t <= h + X
    for t < k, and c_k + Y_k > h + X. Given Y_1 .. Y_(k-1), moving from c to a c' that is larger: X + 1 keeps every
    earlier round below, and Y_k + 1 keeps round k above. To a c' that is smaller: Y_k + 1 is enough. Each shift by 1
    changes a probability by a factor of at most e^(epsilon/2), so this is epsilon-private, hence epsilon^2/2-zCDP.
    (One-sided differences: without them Y needs twice the scale; Lyu, Su and Li 2017.) **Retroactivity.** None: that a
    threshold was passed is never forgotten.

    >>> from retroact.coins import Key
    >>> gate = AboveThreshold(100, Fraction(1), horizon=8, coins=Key.for_testing(1).coins("example"))
    >>> gate.exceeded(50, 1), gate.exceeded(200, 2)
    (False, True)
    """

    def __init__(self, threshold: int, epsilon: Fraction, *, horizon: int, coins: Coins) -> None:
        self.law = DiscreteLaplace(2 / epsilon)
        self._coins = coins
        self._bar = threshold + int(self.law.sample(coins.words([0], [0]))[0, 0])
        self._buffer = Buffer(self._noise, horizon)

    def exceeded(self, count: int, round: int) -> bool:
        """Whether the noisy count is above the noisy threshold; to be asked every round until it is."""
        return count + self._buffer.at(round) > self._bar

    def _noise(self, first: int, last: int) -> I64:
        rounds = np.arange(first, last + 1)
        return self.law.sample(self._coins.words(np.ones(len(rounds)), rounds))[:, 0]


class Lazy:
    """Fresh noise every few rounds, and the old answer in between: the fallback when values flip all the time.

    **Privacy.** R releases of the number of present values; one value changes each of them by at most 1, so the squared
    sensitivity is R, and discrete Gaussian noise of parameter R / (2 rho) makes all of them rho-zCDP.
    **Retroactivity.** None: an answer that is repeated still counts what was deleted since.

    >>> from retroact.coins import Key
    >>> lazy = Lazy(1000, rho=Fraction(1, 8), coins=Key.for_testing(1).coins("example"))
    >>> lazy.every, lazy.releases, lazy.law.variance
    (10, 100, 400.0)
    """

    def __init__(self, horizon: int, *, rho: Fraction, coins: Coins) -> None:
        self.every = _period(horizon, rho)
        self.releases = -(-horizon // self.every)
        self._variance = Fraction(math.ceil(self.releases / (2 * rho) * 2**20), 2**20)
        self._coins = coins

    @cached_property
    def law(self) -> DiscreteGaussian:
        return DiscreteGaussian(self._variance)

    @property
    def mean_square(self) -> Fraction:
        """Of noise and staleness, if every round since the release changed the count in one direction."""
        return self._variance + Fraction(self.every**2, 3)

    def due(self, round: int) -> bool:
        return (round - 1) % self.every == 0

    def noise(self, round: int) -> int:
        """The noise of the release due in this round."""
        return int(self.law.sample(self._coins.words([0], [(round - 1) // self.every]))[0, 0])


def _period(horizon: int, rho: Fraction) -> int:
    """(T / (8 rho))^(1/3), where noise and staleness are of equal size, rounded down."""
    return min(max(1, root(math.floor(horizon / (8 * rho)), 3)), horizon)
