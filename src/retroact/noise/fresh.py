"""Fresh noise in every round: the best for windows of a few rounds.

  Z_q = noise(q).

**Privacy.** A record that is live for at most W rounds changes at most W of them, by 1 each: **l1 = l2_squared = W**.
**Retroactivity.** The node of a round depends on the round alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ..arrays import I64
from ..errors import InputError
from .process import Process, Shift, Terms, check_horizon


class Fresh(Process):
    """
    >>> Fresh(7).l2_squared, Fresh(7).shift_hiding([0, 1, 1])
    (Fraction(7, 1), {(0, 2): 1, (0, 3): 1})
    """

    kind: ClassVar[str] = "fresh"
    horizon = None

    def __init__(self, window: int) -> None:
        self.window = check_horizon(window, "window")

    def terms_at(self, rounds: I64) -> Terms:
        column = rounds[:, None]
        return Terms(np.zeros_like(column), column, np.ones_like(column), 1)

    def shift(self, boundary: int) -> Shift:
        """Minus the noise of all rounds up to the boundary: a step, up to a common offset, and finite."""
        return {(0, round): -1 for round in range(1, boundary + 1)}

    def shift_hiding(self, pattern: Sequence[int]) -> Shift:
        changed = [round for round, value in enumerate(pattern, 1) if value]
        if changed and changed[-1] - changed[0] >= self.window:
            raise InputError(f"expected changes within {self.window} rounds", place="pattern")
        return {(0, round): pattern[round - 1] for round in changed}

    def charge(self, p: int) -> Fraction:
        return Fraction(self.window)
