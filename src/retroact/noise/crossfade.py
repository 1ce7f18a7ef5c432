"""Crossfade noise for a known horizon: the default for (epsilon, delta).

The levels of `Faded` over n = 2^m > T boundaries: spacings up to n/2, widths 7/8, but 3/4 and 1 for the last two. The
ends s < e of an interval are boundaries from 0 to T <= n - 1, rounds are 1 .. T. **Privacy.** `ROWS` has the largest
cost over all intervals for T = n - 1; the rounds of a shorter horizon are a prefix of these. Rows up to m = 17 are
certified.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from ..errors import InputError
from .crossfade_table import ROWS
from .faded import Faded, spacings
from .process import check_horizon

LONGEST = (1 << max(ROWS)) - 1


class Crossfade(Faded):
    """
    >>> round(Crossfade(1023).sensitivity(2) ** 2, 4), round(Crossfade(1023).variance(1), 1)
    (3.2838, 4.9)
    """

    kind: ClassVar[str] = "crossfade"

    def __init__(self, horizon: int) -> None:
        self.horizon: int = check_horizon(horizon)
        if horizon > LONGEST:
            raise InputError(f"expected a horizon of at most {LONGEST:,}, for which crossfade noise is certified")
        self.bits = horizon.bit_length()
        self.spacings = spacings(self.bits)
        self.widths = (*[Fraction(7, 8)] * len(self.spacings), Fraction(3, 4), Fraction(1))[2:]
        self.squared = Fraction(ROWS[self.bits][0])
