"""The paper's own way to an unknown horizon (remark "unknown horizon"): the reference for `Unbounded`.

Instance i is a fresh dyadic tree that answers rounds 2^i .. 2^(i+1) - 1; everything that survives when it starts goes
into its first leaf as one batch, so its nodes depend on the round alone.

**Privacy.** An interval is one interval in every instance it meets, so the budget is divided over all of them: instance
i gets the share 1 / ((i+1)(i+2)), and these sum to 1. l1 and l2_squared are 1 in these spreads, a bound that long
intervals approach. **Retroactivity.** As in Theorem "linear", instance by instance.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np

from ..arrays import I64
from ..noise.process import Normed, Shift, Terms, difference
from ..noise.tree import Tree
from ..noise.unbounded import STRIDE


class Doubling(Normed):
    """
    >>> Doubling().variance(1025) < Doubling().variance(2046)
    True
    """

    kind: ClassVar[str] = "doubling"
    horizon = None

    def terms_at(self, rounds: I64) -> Terms:
        epochs = np.array([int(r).bit_length() - 1 for r in rounds], dtype=np.int64)
        local = rounds - (np.int64(1) << epochs) + 1
        width = int(epochs.max(initial=0)) + 1
        levels = np.arange(width)
        blocks = local[:, None] >> levels
        used = blocks & 1
        return Terms(levels + STRIDE * epochs[:, None], np.where(used, blocks - 1, 0), used, 1)

    def shift(self, boundary: int) -> Shift:
        """Minus the shift of "present in all rounds up to the boundary": a step, up to a common offset, and finite."""
        out: Shift = {}
        for epoch in range((boundary + 1).bit_length()):
            first, tree = 1 << epoch, Tree(1 << epoch)
            end = min(boundary + 1 - first, tree.horizon)
            for (level, index), value in difference(tree.shift(end), tree.shift(0)).items():
                out[level + STRIDE * epoch, index] = value
        return out

    def spread(self, level: int, p: int) -> Fraction:
        epoch = level // STRIDE
        return Tree(1 << epoch).charge(p) * (epoch + 1) * (epoch + 2)
