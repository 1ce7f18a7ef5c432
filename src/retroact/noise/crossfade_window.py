"""Crossfade noise for windows: an error that depends on W and not on the horizon, and no horizon needed.

The levels of `Faded` without end: with 2^b >= W the spacings go up to 2^b / 2, widths are 7/8, and 1 for the last.
There are no blocks, and no borders between them.

**Privacy.** A record is live for at most W rounds. `WINDOWS` has the largest cost over all intervals of up to 2^b
rounds, wherever they begin, of the process without end; what was published when a stream stops is a part of that. Rows
up to 2^b = 1,024 are certified.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from ..errors import InputError
from .crossfade_table import WINDOWS
from .faded import Faded, spacings
from .process import Shift, check_horizon

WIDEST = 1 << max(WINDOWS)


class CrossfadeWindow(Faded):
    """
    >>> CrossfadeWindow(256).spacings, CrossfadeWindow(200) == CrossfadeWindow(256)
    ((2, 8, 32, 128), False)
    """

    kind: ClassVar[str] = "crossfade_window"
    horizon = None

    def __init__(self, window: int) -> None:
        self.window = check_horizon(window, "window")
        if window > WIDEST:
            raise InputError(f"expected a window of at most {WIDEST:,}, for which crossfade noise is certified")
        self.bits = max(min(WINDOWS), (window - 1).bit_length())
        self.spacings = spacings(self.bits)
        self.widths = (*[Fraction(7, 8)] * len(self.spacings), Fraction(1))[1:]
        self.squared = Fraction(WINDOWS[self.bits])

    @property
    def name(self) -> str:
        return "windowed crossfade"

    def shift_hiding(self, pattern: Sequence[int]) -> Shift:
        changed = [round for round, value in enumerate(pattern, 1) if value]
        if changed and changed[-1] - changed[0] >= self.window:
            raise InputError(f"expected changes within {self.window} rounds", place="pattern")
        return super().shift_hiding(pattern)
