"""The Schauder tree: the default for (epsilon, delta).

Haar shifts, integrated: with n = 2^m >= T + 1 boundaries, node (j, i) covers boundaries i 2^(j+1) .. (i+1) 2^(j+1) - 1.
  Z_q = 1/2 * sum over j < m of tri_j(q) * noise(j, q >> (j+1)),   tri_j(q) = min(x, 2 - x), x = (q mod 2^(j+1)) / 2^j.

**Privacy.** A unit at boundary s shifts node (j, s >> (j+1)) by +1 if bit j of s is 0 and by -1 if it is 1. Two
boundaries whose highest differing bit is j move the j nodes below it on either side by 1 each and their common node by
2: 2j + 2 in the first norm, 2j + 4 in the squared second. The top bit differs for some pair, because T >= 2^(m-1):
**l1 = 2m, l2_squared = 2m + 2**, attained. Weights are multiples of 2^-m, so all arithmetic is on integers.
**Retroactivity.** Nodes and weights depend on the round alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np

from ..arrays import I64
from .process import Process, Shift, Terms, check_horizon


class Schauder(Process):
    """
    >>> Schauder(1023).l2_squared
    Fraction(22, 1)
    """

    kind: ClassVar[str] = "schauder"

    def __init__(self, horizon: int) -> None:
        self.horizon: int = check_horizon(horizon)
        self.levels = horizon.bit_length()

    @property
    def length(self) -> int:
        """The number of boundaries; Z is zero at both ends."""
        return 1 << self.levels

    def nodes(self, level: int) -> int:
        return self.length >> (level + 1)

    def terms_at(self, rounds: I64) -> Terms:
        levels = np.arange(self.levels)
        phase = rounds[:, None] & ((2 << levels) - 1)
        triangle = np.minimum(phase, (2 << levels) - phase)
        weights = triangle << (self.levels - 1 - levels)
        return Terms(np.broadcast_to(levels, weights.shape), rounds[:, None] >> (levels + 1), weights, self.length)

    def shift(self, boundary: int) -> Shift:
        return {(j, boundary >> (j + 1)): 1 - 2 * (boundary >> j & 1) for j in range(self.levels)}

    def charge(self, p: int) -> Fraction:
        return Fraction(2 * self.levels + (2 if p == 2 else 0))
