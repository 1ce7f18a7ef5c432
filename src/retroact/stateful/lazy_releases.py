"""Fresh noise every few rounds, and the old answer in between: what is left when values flip all the time.

**Privacy.** R releases of the number of present values; one value changes each of them by at most 1, so the squared
sensitivity is R, and discrete Gaussian noise of parameter R / (2 rho) makes all of them rho-zCDP. **Retroactivity.**
None: an answer that is repeated still counts what was deleted since.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ..arrays import I64
from ..coins import Coins, DiscreteGaussian


class Lazy:
    """
    >>> from retroact.coins import Key
    >>> lazy = Lazy(1000, rho=Fraction(1, 8), coins=Key.for_testing(1).coins("example"))
    >>> lazy.every, lazy.releases, lazy.law.variance
    (10, 100, 400.0)
    """

    def __init__(self, horizon: int, *, rho: Fraction, coins: Coins) -> None:
        self.every = period(horizon, rho)
        self.releases = -(-horizon // self.every)
        self.law = DiscreteGaussian(release_variance(horizon, rho))
        self._coins = coins

    def due(self, round: int) -> bool:
        return (round - 1) % self.every == 0

    def noise(self, round: int) -> int:
        """Of the release that is due in this round."""
        return int(self.noises((round - 1) // self.every, 1)[0])

    def noises(self, first: int, count: int) -> I64:
        """Of releases first, first + 1, ... (from 0)."""
        return self.law.sample(self._coins.words(np.zeros(count), np.arange(first, first + count)))[:, 0]


def period(horizon: int, rho: Fraction) -> int:
    """(T / (8 rho))^(1/3), where noise and staleness are of one size; rounded down."""
    wanted = horizon / (8 * rho)
    root = round(math.pow(wanted, 1 / 3)) + 1
    while root**3 > wanted:
        root -= 1
    return min(max(1, root), horizon)


def release_variance(horizon: int, rho: Fraction) -> Fraction:
    releases = -(-horizon // period(horizon, rho))
    return Fraction(math.ceil(releases / (2 * rho) * 2**20), 2**20)


def mean_square(horizon: int, rho: Fraction) -> Fraction:
    """Of noise and staleness, if every round since the release brought a change in one direction."""
    return release_variance(horizon, rho) + Fraction(period(horizon, rho) ** 2, 3)
