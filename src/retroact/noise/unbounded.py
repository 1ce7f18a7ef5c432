"""The unknown horizon: growing epochs, each with its own tree and one noise that lasts forever.

Epoch i covers n_i boundaries (n_0 from a guess of the horizon, then 16 times as many each time):
  Z_q = sum over epochs j < i of noise(j) + x * noise(i) + tree_i(q),   q in epoch i at position x.

**Privacy.** Within its epoch the tree turns a unit at boundary s into a step minus the ramp x; noise(i), which has
weight x and then 1 forever, turns it into a full step. So an interval moves at most two trees and, if its ends lie
in different epochs, their two noises by 1 each: the budget is not divided over the epochs. With a share a of it for
the two noises, tree i of height m_i (h_i) gets
  Gaussian: variance 2 m_i / (1 - a), long noise 2 / a:  across epochs a + (1 - a) = 1; within one
            (1 - a)(1 + 1/m_i) <= 1 because a = 1 / (m_0 + 1) and heights grow;
  Laplace:  scale 2 h_i / (1 - a), long noise 2 / a, a = 1/6: across a + (1 - a) = 1; within one 1 - a.
So **l1 = l2_squared = 1** in these spreads, attained by the ends in different epochs.
**Retroactivity.** Epochs are numbers of rounds, nodes and weights depend on the round alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..arrays import I64
from .bridge import Bridge
from .process import Normed, Shift, Terms, check_horizon
from .schauder import Schauder

GROWTH = 16
# Levels of epoch i start at 64 i; the last of them is its long noise.
STRIDE = 64
LONG = STRIDE - 1


class Unbounded(Normed):
    """
    >>> Unbounded(1000).epoch_of(1023), Unbounded(1000).epoch_of(1024)
    ((0, 0, 1024), (1, 1024, 16384))
    """

    kind: ClassVar[str] = "unbounded"
    horizon = None

    def __init__(self, guess: int = 1023, *, inner: type[Schauder] | type[Bridge] = Schauder) -> None:
        self.guess = check_horizon(guess, "guess")
        self.inner = inner
        self._trees: dict[int, Schauder | Bridge] = {}

    def spec(self, *, digest: bool = False) -> dict[str, Any]:
        """The parameters, with the first tree, whose shape follows from the guess."""
        return {**super().spec(digest=digest), "tree": self.tree(0).spec()}

    def tree(self, epoch: int) -> Schauder | Bridge:
        if epoch not in self._trees:
            self._trees[epoch] = self.inner(self.inner(self.guess).length * GROWTH**epoch - 1)
        return self._trees[epoch]

    def epoch_of(self, boundary: int) -> tuple[int, int, int]:
        """The epoch, its first boundary, its length."""
        epoch, start = 0, 0
        while boundary >= start + self.tree(epoch).length:
            start += self.tree(epoch).length
            epoch += 1
        return epoch, start, self.tree(epoch).length

    def terms_at(self, rounds: I64) -> Terms:
        last, _, denominator = self.epoch_of(int(rounds.max()) if rounds.size else 0)
        none = np.zeros((len(rounds), 0), dtype=np.int64)
        out = Terms(none, none, none, denominator)
        start = 0
        for epoch in range(last + 1):
            tree = self.tree(epoch)
            inside = (rounds >= start) & (rounds < start + tree.length)
            local = tree.terms_at(np.where(inside, rounds - start, 0))
            scale = denominator // tree.length
            weights = np.where(inside[:, None], local.weights * scale, 0)
            out = out.extended(local.levels + STRIDE * epoch, local.indices, weights)
            long = np.clip(rounds - start, 0, tree.length)[:, None] * scale
            out = out.extended(np.full(long.shape, LONG + STRIDE * epoch), np.zeros_like(long), long)
            start += tree.length
        return out

    def shift(self, boundary: int) -> Shift:
        epoch, start, _ = self.epoch_of(boundary)
        tree = self.tree(epoch).shift(boundary - start)
        out = {(level + STRIDE * epoch, index): value for (level, index), value in tree.items()}
        out[LONG + STRIDE * epoch, 0] = 1
        return out

    def spread(self, level: int, p: int) -> Fraction:
        share = Fraction(1, 6) if p == 1 else Fraction(1, self.tree(0).levels + 1)
        epoch, inner = divmod(level, STRIDE)
        return 2 / share if inner == LONG else 2 * self.tree(epoch).levels / (1 - share)

    @property
    def kernel_squared(self) -> Fraction:
        """A bound for all epochs: a bridge has radices up to 64, and its spread is above 2."""
        return Fraction(32) if self.inner is Bridge else Fraction(0)
