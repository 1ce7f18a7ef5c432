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

    __slots__ = ("_base", "_cdf", "_crowded", "_shift", "_table", "bits")

    def __init__(self, cdf: Compute, *, bits: int = 64) -> None:
        self.bits = bits
        self._cdf = cdf
        self._table = np.array(floors(cdf, bits), dtype=np.uint64)
        # The guide: for each leading word the first threshold that can matter, so that one comparison is enough
        # if a bucket holds at most one threshold.
        guide = min(GUIDE_BITS, bits)
        self._shift = np.uint64(bits - guide)
        counts = np.bincount((self._table >> self._shift).astype(np.int64), minlength=1 << guide)
        self._base = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self._crowded = counts > 1

    def sample(self, words: RandomWords, stream: int) -> tuple[I64, U64]:
        """One sample per name, and the second word of the block, which the sample does not use."""
        first, spare = words.block(stream)
        if self.bits < 64:
            first = first >> np.uint64(64 - self.bits)
        shape, flat = first.shape, first.ravel()
        bucket = (flat >> self._shift).astype(np.intp)
        found = self._base[bucket]
        last = len(self._table) - 1
        threshold = self._table[np.minimum(found, last)]
        found = found + ((threshold <= flat) & (found <= last))
        crowded = np.flatnonzero(self._crowded[bucket])
        if crowded.size:
            found[crowded] = np.searchsorted(self._table, flat[crowded], side="right")
        tied = np.flatnonzero((found > 0) & (self._table[found - 1] == flat))
        for position in tied:
            found[position] = self._extend(words, int(position), stream, int(flat[position]))
        return found.reshape(shape), spare

    def _extend(self, words: RandomWords, position: int, stream: int, digits: int) -> int:
        bits = self.bits
        for more in words.extension(position, stream):
            digits, bits = digits << 128 | more, bits + 128
            table = floors(self._cdf, bits)
            found = bisect_right(table, digits)
            if found == 0 or table[found - 1] != digits:
                return found
        raise AssertionError("unreachable: the extension never ends")
