"""Everything about a flippancy tracker that does not depend on data: levels, noise, thresholds, budget.

**Privacy.** With a known bound w one `Continual` gets all of rho. Without it, level j = 0 .. J runs one for w = 2^j
over the whole horizon, `Lazy` releases follow the last, and J + 1 times `AboveThreshold` says when to leave a level.
What is published is a function of all of these, each of which is private on its own (a level that is not shown costs
too), so their rhos add up: (J + 2) parts of (1 - 1/5) rho / (J + 2), and (J + 1) gates of epsilon^2 / 2 = (1/5) rho /
(J + 1). rho is the largest with an epsilon at delta within the budget (`ZeroConcentratedDP`).
**Retroactivity.** None; see `FlippancyTracker`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from ..checks import positive_int
from ..coins import Coins
from ..errors import InputError
from ..noise.process import check_horizon
from ..oneshot.ordered_domain import log_up
from ..privacy import ZeroConcentratedDP, check_budget
from ..privacy.halving import halved
from .tracker_noise import AboveThreshold, Continual, Lazy, mean_square

# The part of rho for deciding when to leave a level. On the histories of `benchmarks/price.py`, 1/10 to 1/2 were tried:
# less makes level 0 better and level changes later, and none is best everywhere (docs/price.md).
GATES = Fraction(1, 5)
# The probability that a level is left although no value has flipped too often.
FALSE_ALARM = Fraction(1, 20)


class TrackerDesign:
    """
    >>> from retroact.coins import Key
    >>> design = TrackerDesign(65536, 1.0, 1e-6, None, Key.for_testing(1).coins("example"))
    >>> design.limits, design.lazy.every
    ((1, 2, 4), 118)
    """

    def __init__(
        self, horizon: int, epsilon: float | Fraction, delta: float | Fraction, flips: int | None, coins: Coins
    ) -> None:
        self.horizon = check_horizon(horizon)
        self.rho = largest_rho(epsilon, delta)
        if flips is not None:
            positive_int(flips, "flips", expected="a whole number of flips from 1 on, or None")
        self.limits: tuple[int, ...] = (flips,) if flips is not None else self._levels(coins)
        count = len(self.limits)
        rho = self.rho if flips is not None else self.rho * (1 - GATES) / (count + 1)
        self.bases = [
            Continual(horizon, flips=limit, rho=rho, coins=coins.branch("base", limit)) for limit in self.limits
        ]
        self.lazy = None if flips is not None else Lazy(horizon, rho=rho, coins=coins.branch("lazy"))
        self.gates: list[AboveThreshold] = []
        if flips is None:
            # The square root, rounded down to a multiple of 2^-40.
            epsilon_gate = Fraction(math.isqrt(math.floor(2 * self.rho * GATES / count * 2**80)), 2**40)
            for limit in self.limits:
                bar = quiet(horizon, count, epsilon_gate) + math.isqrt(math.ceil(mean_square(horizon, limit, rho)))
                branch = coins.branch("gate", limit)
                self.gates.append(AboveThreshold(bar, epsilon_gate, horizon=horizon, coins=branch))

    @property
    def denominator(self) -> int:
        return self.bases[0].denominator

    def _levels(self, coins: Coins) -> tuple[int, ...]:
        """w = 2^0 .. 2^J: up to T^(2/3) as in the theorem, but no level on which lazy releases do better."""
        count = 1
        while 8 ** (count - 1) < self.horizon**2:
            rho = self.rho * (1 - GATES) / (count + 2)
            lazy = Lazy(self.horizon, rho=rho, coins=coins)
            if mean_square(self.horizon, 1 << count, rho) >= lazy.mean_square:
                break
            count += 1
        return tuple(1 << level for level in range(count))


@lru_cache
def largest_rho(epsilon: float | Fraction, delta: float | Fraction) -> Fraction:
    """Rounded down to 9 digits, so that it is the same on every machine.

    >>> float(largest_rho(1.0, 1e-6))
    0.02435597034
    """
    whole, failure = (float(part) for part in check_budget(epsilon, delta))
    if failure == 0:
        raise InputError("expected a delta above 0: Gaussian noise needs one, got 0", place="delta")
    low, _ = halved(lambda rho: ZeroConcentratedDP(rho).epsilon(failure) <= whole, 0.0, whole, steps=100)
    return Fraction(f"{low * (1 - 1e-9):.9e}")


def quiet(horizon: int, levels: int, epsilon: Fraction) -> int:
    """A threshold that no gate passes while its count is 0, except with probability about `FALSE_ALARM`.

    A Laplace of scale b is above b ln(1/(2p)) with probability p: half of the failures go to the threshold of each of
    the levels, half to each of at most horizon + levels counts.
    """
    return math.ceil(2 / epsilon * log_up(levels * (horizon + levels) / FALSE_ALARM**2))
