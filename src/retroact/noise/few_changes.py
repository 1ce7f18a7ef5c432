"""The Schauder tree for what comes and goes at most a promised number of times.

Nodes and weights are those of `Schauder`. It hides the patterns of 0 and 1 (times one number) that change at most
``flips`` times, counted from 0 before round 1 to 0 after the last round. So k changes are k/2 intervals, k is even, and
an odd number of flips hides no more than the even number below it.

**Privacy.** A pattern that changes at the boundaries s_1 < ... < s_k is hidden by r_(s_1) - r_(s_2) + ... - r_(s_k).
Signs alternate, so they add up to 0 over a part of the tree with an even number of changes and to +-1 over one with an
odd number. A node is moved by the sum over its left half minus the sum over its right half: in absolute value by a + b,
where a, b = 0 or 1 are the parities of the halves, because if both are odd their sums have opposite signs. Let
O_j be the number of blocks of 2^j boundaries with an odd number of changes, and P_j the number of nodes over two such
blocks: O_0 = k, O_m = 0 and O_(j+1) = O_j - 2 P_j. So
  sum of |shift|  = sum over j < m of O_j,
  sum of shift^2  = sum of (a + b + 2ab) = sum over j < m of (O_j + 2 P_j) = k + sum over j < m of O_j.
**l1 and l2_squared are the largest of these**, computed exactly by going up the tree: the most that a block with k
changes can add is the best division of k between its halves, plus 1 if k is odd. For two flips they are 2m and 2m + 2.
An interval of one round is among the patterns, so kernel_squared = 0 as for `Schauder`.
**Retroactivity.** Nodes and weights depend on the round alone. The promise is about the history, which surviving data
does not show: whoever adds and deletes must keep it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..arrays import I64
from ..checks import integer
from .schauder import Schauder


class FewChanges(Schauder):
    """
    >>> FewChanges(1023, 2).l2_squared, FewChanges(1023, 8).l2_squared
    (Fraction(22, 1), Fraction(74, 1))
    """

    kind: ClassVar[str] = "few_changes"

    def __init__(self, horizon: int, flips: int) -> None:
        super().__init__(horizon)
        self.flips = integer(flips, "flips", least=2, expected="a whole number from 2 on")
        self.most_intervals = flips // 2

    @cached_property
    def _odd(self) -> I64:
        """The largest sum of O_j, for k = 0, 2, 4, ... changes."""
        # A block of one boundary has no change or one. The last block ends at boundary T, and may have no sibling.
        full = last = np.array([0, 1])
        for level in range(self.levels):
            sibling = full if self.horizon >> level & 1 else np.array([0])
            full, last = self._joined(full, full), self._joined(sibling, last)
        return last[::2]

    def _joined(self, left: I64, right: I64) -> I64:
        few, many = sorted((left, right), key=len)
        out = np.zeros(min(len(few) + len(many) - 1, self.flips + 1), dtype=np.int64)
        for k, value in enumerate(few[: len(out)].tolist()):
            part = out[k : k + len(many)]
            np.maximum(part, value + many[: len(part)], out=part)
        out[1::2] += 1
        return out

    def charge(self, p: int) -> Fraction:
        changes = 2 * np.arange(len(self._odd)) if p == 2 else 0
        return Fraction(int((self._odd + changes).max()))
