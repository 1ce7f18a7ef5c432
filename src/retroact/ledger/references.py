"""How many records refer to each code, and which codes may have lost their last reference."""

from __future__ import annotations

import numpy as np

from ..arrays import I64
from .text_table import resized


class References:
    """
    >>> references = References()
    >>> references.begin(np.array([0, 1]))
    >>> references.count(gained=np.array([0, 0]), lost=np.array([0]))
    >>> references.unused()
    array([1])
    """

    def __init__(self, counts: I64 | None = None) -> None:
        self.counts: I64 = np.zeros(0, dtype=np.int64) if counts is None else counts
        self.loose: list[I64] = []

    def begin(self, codes: I64) -> None:
        """New codes, which nothing refers to yet."""
        size = int(codes.max(initial=-1)) + 1
        if size > len(self.counts):
            self.counts = resized(self.counts, size + size // 4)
        self.loose.append(codes)

    def count(self, gained: I64, lost: I64) -> None:
        """One reference more, or one less, for every code."""
        np.add.at(self.counts, gained, 1)
        np.subtract.at(self.counts, lost, 1)
        self.loose.append(lost)

    def unused(self) -> I64:
        """The codes without a reference that had one, or began, since the last call."""
        if not self.loose:
            return np.zeros(0, dtype=np.int64)
        loose = np.concatenate(self.loose)
        self.loose = []
        return np.unique(loose[self.counts[loose] == 0])
