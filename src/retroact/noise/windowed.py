"""Noise for windows of W rounds: an error that depends on W and not on the horizon, and no horizon needed.

Time is cut into blocks of n boundaries, n >= W, each with a tree of its own that is zero at both ends of the block, and
every border between blocks carries one noise more, interpolated linearly:
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
        self.window, self._inner = check_horizon(window, "window"), inner
        # A tree over n boundaries serves horizon n - 1, and n must reach the window.
        self.inner = inner(self.window - 1) if window > 1 else None

    def argument(self, name: str) -> Any:
        return self._inner if name == "inner" else super().argument(name)

    @property
    def length(self) -> int:
        return self.inner.length if self.inner else 1

    @property
    def _border(self) -> int:
        return self.inner.levels if self.inner else 0

    def weights_of(self, rounds: I64) -> Terms:
        self.check_round(rounds)
        block, position = np.divmod(rounds, self.length)
        ends = np.stack([block, block + 1], axis=1)
        weights = np.stack([self.length - position, position], axis=1)
        borders = np.full(ends.shape, self._border)
        if self.inner is None:
            return Terms(borders, ends, weights, 1)
        tree = self.inner.inner_terms(position)
        nodes = np.array([self.inner.nodes(level) for level in range(self.inner.levels)])
        return Terms(
            np.hstack([tree.levels, borders]),
            np.hstack([tree.indices + block[:, None] * nodes[tree.levels], ends]),
            np.hstack([tree.weights, weights]),
            self.length,
        )

    def shift(self, boundary: int) -> Shift:
        """Up to "all borders so far": border i is shifted for every boundary before block i, here counted from the
        block itself backwards, which differs from the step by a common offset (the sum over all borders)."""
        block, position = divmod(boundary, self.length)
        out: Shift = {(self._border, i): -1 for i in range(block + 1)}
        if self.inner is not None:
            for (level, index), value in self.inner.shift(position).items():
                out[level, index + block * self.inner.nodes(level)] = value
        return out

    @property
    def l1(self) -> Fraction:
        return Fraction(1) if self.inner is None else self.inner.l1 + 1

    @property
    def l2_squared(self) -> Fraction:
        if self.inner is None:
            return Fraction(1)
        # Adjacent blocks: every level of both trees moves by one, and the border.
        return max(self.inner.l2_squared, Fraction(2 * self.inner.levels + 1))

    @property
    def kernel_squared(self) -> Fraction:
        return Fraction(0) if self.inner is None else self.inner.kernel_squared

    def __repr__(self) -> str:
        return f"Windowed({self.window}, inner={type(self.inner).__name__})"
