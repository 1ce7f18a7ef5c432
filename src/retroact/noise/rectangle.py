"""Noise for the revised past (Appendix A): rounds in one direction, the past times that they look back on in the other.

At round i the answer for the past time l gets, with u the nodes of round i and v those of time l,
  Z_(i,l) = sum over u, v of weight(u) * weight(v) * noise(u, v).
One `Rectangle` is for one lag, l = i - lag; those of all lags share their nodes, so they belong under the same coins.

**Privacy.** An operation on stamp t, in effect during an interval of rounds, changes the answers for (i, l) with i in
that interval and l >= t: a rectangle, two-ended in i and one-ended in l. It is hidden by the product of the two shifts,
(r_s - r_e) x p_t, so both norms multiply: l1 and l2_squared are those of the process times those of `OneSided`.
Unit squares, intervals of one round in both directions, are as many as the nodes and independent. Their length is at
most the square root of l2_squared * (2m + 2), and those not yet published leave the published answers alone:
`kernel_squared` (docs/proofs.md, 3a).
**Retroactivity.** Nodes and weights depend on the round and the lag alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..arrays import I64
from ..errors import InputError
from .one_sided import OneSided
from .process import Process, Shift, Terms, difference

# Levels and indices of the two directions share a word.
LEVELS, INDICES = 1 << 6, 1 << 24


class Rectangle(Process):
    """``every``: release r is that of round every * r.

    >>> from retroact.noise import Schauder
    >>> Rectangle(Schauder(1023), 1023, lag=7).l2_squared
    Fraction(242, 1)
    """

    kind: ClassVar[str] = "rectangle"

    def __init__(self, process: Process, rounds: int, *, lag: int, every: int = 1) -> None:
        if process.horizon is None or max(process.horizon, rounds) >= INDICES:
            raise InputError(f"expected a horizon below {INDICES:,} rounds", place="horizon")
        self.process, self.past, self.lag, self.every = process, OneSided(rounds), lag, every
        self.horizon = process.horizon

    def argument(self, name: str) -> Any:
        return self.past.horizon if name == "rounds" else super().argument(name)

    def terms_at(self, rounds: I64) -> Terms:
        """Rounds without such a past have no noise either; they release nothing."""
        now = self.process.weights_of(rounds)
        times = rounds * self.every - self.lag
        then = self.past.weights_of(np.clip(times, 1, self.past.horizon))
        reaches = np.where(times >= 1, 1, 0)[:, None, None]
        return Terms(
            (now.levels[:, :, None] * LEVELS + then.levels[:, None, :]).reshape(len(rounds), -1),
            (now.indices[:, :, None] * INDICES + then.indices[:, None, :]).reshape(len(rounds), -1),
            (now.weights[:, :, None] * then.weights[:, None, :] * reaches).reshape(len(rounds), -1),
            now.denominator * then.denominator,
        )

    def rectangle(self, start: int, end: int, stamp: int) -> Shift:
        """The change of the nodes that adds 1 in releases start + 1 .. end for times from the stamp on."""
        return _product(difference(self.process.shift(start), self.process.shift(end)), self.past.shift(stamp - 1))

    def shift(self, boundary: int) -> Shift:
        """Prepend a stamp before all times."""
        return _product(self.process.shift(boundary), self.past.shift(0))

    def spread(self, level: int, p: int) -> Fraction:
        return self.process.spread(level // LEVELS, p)

    def charge(self, p: int) -> Fraction:
        return self.process.charge(p) * self.past.charge(p)

    @property
    def kernel_squared(self) -> Fraction:
        return max(self.process.l2_squared, self.process.kernel_squared) * (2 * self.past.levels + 2)


def _product(now: Shift, then: Shift) -> Shift:
    return {
        (level * LEVELS + other, index * INDICES + place): value * worth
        for (level, index), value in now.items()
        for (other, place), worth in then.items()
    }
