"""The sparse vector technique: says in which round a count first passes a threshold, and nothing else.

**Privacy.** Counts c_1 .. c_T of values that did something; a neighbouring history has c'_t in {c_t, c_t + 1} for all
t, or {c_t - 1, c_t} for all t, because it moves the round from which *one* value counts. Noise X on the threshold and
Y_t on each count, discrete Laplace of scale 2 / epsilon. "First in round k" reads: c_t + Y_t <= h + X for t < k, and
c_k + Y_k > h + X. Given Y_1 .. Y_(k-1), moving from c to a c' that is larger: X + 1 keeps every earlier round below,
and Y_k + 1 keeps round k above. To a c' that is smaller: Y_k + 1 is enough. Each shift by 1 changes a probability by a
factor of at most e^(epsilon/2), so this is epsilon-private, hence epsilon^2/2-zCDP. (One-sided differences: without
them Y needs twice the scale; Lyu, Su and Li 2017.) **Retroactivity.** None: that a threshold was passed is never
forgotten.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..arrays import I64
from ..coins import Coins, DiscreteLaplace
from .present_count import Buffer


class AboveThreshold:
    """
    >>> from retroact.coins import Key
    >>> gate = AboveThreshold(100, Fraction(1), horizon=8, coins=Key.for_testing(1).coins("example"))
    >>> gate.exceeded(50, 1), gate.exceeded(200, 2)
    (False, True)
    """

    def __init__(self, threshold: int, epsilon: Fraction, *, horizon: int, coins: Coins) -> None:
        self.threshold = threshold
        self.law = DiscreteLaplace(2 / epsilon)
        self._coins = coins
        self._bar = threshold + int(self.law.sample(coins.words([0], [0]))[0, 0])
        self._buffer = Buffer(self._noise, horizon)

    def exceeded(self, count: int, round: int) -> bool:
        """Whether the noisy count is above the noisy threshold: to be asked in round after round until it is."""
        return count + self._buffer.at(round) > self._bar

    def first(self, counts: I64, start: int) -> int | None:
        """The first round from ``start`` on that exceeds; ``counts`` holds rounds 1, 2, ... to the last."""
        above = np.flatnonzero(counts[start - 1 :] + self._noise(start, len(counts)) > self._bar)
        return start + int(above[0]) if above.size else None

    def _noise(self, first: int, last: int) -> I64:
        rounds = np.arange(first, last + 1)
        return self.law.sample(self._coins.words(np.ones(len(rounds)), rounds))[:, 0]
