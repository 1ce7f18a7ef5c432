"""The Schauder tree with one end: for changes that last, as a revision of the past does.

With n = 2^m >= T boundaries, the tree of `Schauder` and one root, weighted by the ramp:
  Z_q = 1/2 * sum over j < m of tri_j(q) * noise(j, q >> (j+1)) + q/n * noise(root).

**Privacy.** It hides the patterns "from round t on". The tree turns a unit at boundary s = t - 1 into a step minus the
ramp, 1[q > s] - q/n, and the root adds the ramp: L(shift(s)) = 1[q > s], for the m nodes of one path and the root, each
moved by 1. **l1 = l2_squared = m + 1**, attained by every t. There is no second end, so "never" needs no boundary, and
T = n is allowed. The n shifts are independent and as many as the nodes, and those of s >= t leave the rounds up to t
alone: no node values are hidden from all rounds, kernel_squared = 0 (docs/proofs.md, 3a, with all n rounds; a stream
that ends earlier releases a prefix).
**Retroactivity.** Nodes and weights depend on the round alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ..arrays import I64
from ..errors import InputError
from .process import Shift, Terms, check_horizon, combined
from .schauder import Schauder


class OneSided(Schauder):
    """
    >>> OneSided(1024).l2_squared, OneSided(2).shift_hiding([0, 1])
    (Fraction(11, 1), {(0, 0): -1, (1, 0): 1})
    """

    kind: ClassVar[str] = "one_sided"

    def __init__(self, horizon: int) -> None:
        self.horizon: int = check_horizon(horizon)
        self.levels = (horizon - 1).bit_length()

    def nodes(self, level: int) -> int:
        """The root is the level above the tree."""
        return max(1, super().nodes(level))

    def terms_at(self, rounds: I64) -> Terms:
        root = np.zeros((len(rounds), 1), dtype=np.int64)
        return super().terms_at(rounds).extended(root + self.levels, root, rounds[:, None])

    def shift(self, boundary: int) -> Shift:
        return {**super().shift(boundary), (self.levels, 0): 1} if boundary < self.horizon else {}

    def shift_hiding(self, pattern: Sequence[int]) -> Shift:
        factor, intervals = self.runs(pattern)
        if len(intervals) > 1 or any(end != self.horizon for _, end in intervals):
            raise InputError(f"expected one number from some round to round {self.horizon}", place="pattern")
        return combined(*((factor, self.shift(start)) for start, _ in intervals))

    def charge(self, p: int) -> Fraction:
        return Fraction(self.levels + 1)
