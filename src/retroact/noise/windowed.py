"""Noise for windows of W rounds: an error that depends on W and not on the horizon, and no horizon needed.

Time is cut into blocks of n boundaries, n >= W, each with its own tree, which is zero at both ends of the block. Every
border between blocks has one more noise, interpolated linearly:
  Z_q = (1 - x) * border(i) + x * border(i + 1) + tree_i(q),   q in block i at position x.

**Privacy.** Within its block the tree turns a unit at boundary s into a step minus the ramp x; the borders from i + 1
on turn it into a full step. A record is live for at most W <= n rounds, so the two ends of its interval lie in one
block (no border moves: 2m + 2 in the squared second norm for Schauder, 2h for the bridge) or in adjacent ones (the
border between them moves by 1: 2m + 1 or 2h + 1). So for blocks of length 2^m: Schauder l1 = 2m + 1,
l2_squared = 2m + 2; bridge l1 = l2_squared = 2h + 1. Blocks of length 1 have no tree: 1.
**Retroactivity.** Nodes and weights depend on the round alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..arrays import I64
from .bridge import Bridge
from .process import Process, Shift, Terms, check_horizon
from .schauder import Schauder


class Windowed(Process):
    """
    >>> Windowed(64).variance(64 * 10**9 + 5) == Windowed(64).variance(5)
    True
    """

    kind: ClassVar[str] = "windowed"
    horizon = None

    def __init__(self, window: int, *, inner: type[Schauder] | type[Bridge] = Schauder) -> None:
        self.window = check_horizon(window, "window")
        # A tree over n boundaries serves horizon n - 1, and n must reach the window.
        self.inner = inner
        self.tree = inner(self.window - 1) if window > 1 else None
        self.length, self._border = (self.tree.length, self.tree.levels) if self.tree else (1, 0)

    def spec(self, *, digest: bool = False) -> dict[str, Any]:
        """The parameters, with the tree of one window, whose shape follows from it."""
        own = super().spec(digest=digest)
        return own if self.tree is None else {**own, "tree": self.tree.spec()}

    def terms_at(self, rounds: I64) -> Terms:
        block, position = np.divmod(rounds, self.length)
        ends = np.stack([block, block + 1], axis=1)
        weights = np.stack([self.length - position, position], axis=1)
        borders = np.full(ends.shape, self._border)
        if self.tree is None:
            return Terms(borders, ends, weights, 1)
        tree = self.tree.terms_at(position)
        nodes = np.array([self.tree.nodes(level) for level in range(self.tree.levels)])
        indices = tree.indices + block[:, None] * nodes[tree.levels]
        return Terms(tree.levels, indices, tree.weights, self.length).extended(borders, ends, weights)

    def shift(self, boundary: int) -> Shift:
        """Border i is shifted for every boundary before block i; here that is counted backwards, from the block itself,
        which differs from the step by a common offset (the sum over all borders)."""
        block, position = divmod(boundary, self.length)
        out: Shift = {(self._border, i): -1 for i in range(block + 1)}
        if self.tree is not None:
            for (level, index), value in self.tree.shift(position).items():
                out[level, index + block * self.tree.nodes(level)] = value
        return out

    def charge(self, p: int) -> Fraction:
        # Adjacent blocks: every level of both trees moves by one, and the border.
        adjacent = Fraction(2 * self._border + 1)
        return adjacent if self.tree is None else max(self.tree.charge(p), adjacent)

    @property
    def kernel_squared(self) -> Fraction:
        return Fraction(0) if self.tree is None else self.tree.kernel_squared
