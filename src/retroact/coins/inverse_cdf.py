"""Exact sampling of a law on 0, 1, 2, ... by its inverse distribution function, with integers only.

Let u be a uniform real, given by its binary digits. The sample is the number of k with F(k) <= u. The first 64 digits
of u decide it unless they equal the first 64 digits of some F(k); then more digits of both are compared. So the sample
has *exactly* the law F, not a truncation of it: the statistical distance is 0 and a pure guarantee stays pure. More
digits are needed with probability (table size) * 2^-64; tests shorten the first word so that they often are.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from ..arrays import I64, U64
from .coins import RandomWords
from .exact_cdf import Compute, floors

GUIDE_BITS = 16


class Inverse:
    """``cdf`` computes F(k) for k = 0, 1, ... up to the first whose floor is 2^bits - 1 (or to the last k of a finite
    law, whose F = 1 is left out)."""

    __slots__ = ("_cdf", "_guide", "_shift", "_table", "bits")

    def __init__(self, cdf: Compute, *, bits: int = 64) -> None:
        self.bits = bits
        self._cdf = cdf
        self._table = np.array(floors(cdf, bits), dtype=np.uint64)
        # The guide: the sample for each leading word w, or -1 where a threshold begins with w too. Otherwise every
        # threshold is below all digits that begin with w or above all of them, and no tie is possible: the sample is
        # the number of thresholds with a smaller leading word.
        guide = min(GUIDE_BITS, bits)
        self._shift = np.uint64(bits - guide)
        counts = np.bincount((self._table >> self._shift).astype(np.int64), minlength=1 << guide)
        self._guide = np.where(counts, -1, np.cumsum(counts))

    def sample(self, words: RandomWords, stream: int) -> tuple[I64, U64]:
        """One sample per name, and the second word of the block, which the sample does not use."""
        first, spare = words.block(stream)
        if self.bits < 64:
            first = first >> np.uint64(64 - self.bits)
        found = self._guide.take((first >> self._shift).view(np.int64))
        near = np.flatnonzero(found < 0)
        digits = first[np.unravel_index(near, first.shape)]
        exact = np.searchsorted(self._table, digits, side="right")
        for place in np.flatnonzero((exact > 0) & (self._table[exact - 1] == digits)).tolist():
            exact[place] = self._extend(words, int(near[place]), stream, int(digits[place]))
        found.reshape(-1)[near] = exact
        return found, spare

    def _extend(self, words: RandomWords, position: int, stream: int, digits: int) -> int:
        bits = self.bits
        for more in words.extension(position, stream):
            digits, bits = digits << 128 | more, bits + 128
            table = floors(self._cdf, bits)
            found = bisect_right(table, digits)
            if found == 0 or table[found - 1] != digits:
                return found
        raise AssertionError("unreachable: the extension never ends")
