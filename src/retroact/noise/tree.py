"""The dyadic tree of Theorem "linear": the reference.

**Privacy.** Rounds 1 .. t split into dyadic intervals, one for every set bit of t; a unit at boundary s shifts every
node that contains round s + 1. The theorem charges 2m with m = log2 T + 1 (`paper.PaperTree`). Exactly: prefixes use
only left children (and the root), so an interval moves the used nodes that contain one of its ends and not the other.
The largest such number, with 2^(L-1) < T <= 2^L and R = T - 2^(L-1), is the maximum of
  - one end in round 1, the other at the first round of the right half: L + min(floor(log2 R) + 1, L - 1),
  - both ends in the left half: 2 (L - 1) - 1,
  - one end in round 1, the other never: floor(log2 T) + 1;
that is 2 log2 T - 1 for a power of two from 4 on. Shifts are 0 or +-1, so l1 = l2_squared.
**Retroactivity.** The nodes of a round depend on the round alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np

from ..arrays import I64
from .process import Process, Shift, Terms, check_horizon


class Tree(Process):
    """
    >>> Tree(1024).l1
    Fraction(19, 1)
    """

    kind: ClassVar[str] = "tree"

    def __init__(self, horizon: int) -> None:
        self.horizon: int = check_horizon(horizon)

    @property
    def height(self) -> int:
        """m of the paper: the number of levels of the smallest complete tree over the horizon."""
        return (self.horizon - 1).bit_length() + 1

    def terms_at(self, rounds: I64) -> Terms:
        levels = np.arange(self.horizon.bit_length())
        blocks = rounds[:, None] >> levels
        used = blocks & 1
        return Terms(np.broadcast_to(levels, blocks.shape), np.where(used, blocks - 1, 0), used, 1)

    def shift(self, boundary: int) -> Shift:
        if boundary >= self.horizon:
            return {}
        nodes = ((level, boundary >> level) for level in range(self.horizon.bit_length()))
        return {(level, i): 1 for level, i in nodes if i % 2 == 0 and (i + 1) << level <= self.horizon}

    def charge(self, p: int) -> Fraction:
        top = self.height - 1
        one_ended = self.horizon.bit_length()
        if top == 0:
            return Fraction(one_ended)
        right = (self.horizon - (1 << top - 1)).bit_length()
        return Fraction(max(one_ended, top + min(right, top - 1), 2 * top - 3))
