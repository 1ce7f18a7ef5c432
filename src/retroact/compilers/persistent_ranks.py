"""Persistent secret ranks: each live copy has one for as long as it lives (Appendix C).

The rank of copy j of a value x with stamp t is 128 bits of the name (t, x, j). A deletion takes the copy with the
highest j, the last that came. So the ranks of the live copies are a function of the live multiset, and independent and
uniform over it.
"""

from __future__ import annotations

import numpy as np

from ..arrays import I64, U64
from ..coins import Coins
from ..ledger import sorted_keys
from ..ledger.sorted_keys import edited
from ..statistics.tally import Labels, Tally


class RankColumns:
    """Sorted ranks (high and low 64 bits), each with its record, in columns."""

    __slots__ = ("high", "labels", "low")

    def __init__(self, high: U64, low: U64, labels: Labels) -> None:
        self.high, self.low, self.labels = high, low, labels

    @classmethod
    def of(cls, tally: Tally, first: I64, last: I64, coins: Coins) -> RankColumns:
        """Ranks of copies first .. last - 1 of each key of a tally."""
        counts = last - first
        owner = np.repeat(np.arange(len(counts)), counts)
        copy = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts) + first[owner]
        stamp, *value = sorted_keys.take(tally.words, owner)
        cells = np.zeros((len(owner), 2), dtype="<u8")
        for place, word in enumerate(value):
            cells[:, place] = word
        high, low = coins.words(copy, stamp.view(np.int64), cells).each()
        order = sorted_keys.order((high, low))
        return cls(high[order], low[order], tuple(label[owner[order]] for label in tally.labels))

    def first(self, count: int) -> RankColumns:
        """The smallest ranks."""
        return RankColumns(self.high[:count], self.low[:count], tuple(label[:count] for label in self.labels))

    def edited(self, gone: RankColumns, new: RankColumns) -> RankColumns:
        here = self.high, self.low
        out, found = sorted_keys.find(here, (gone.high, gone.low))
        assert found.all()
        at, _ = sorted_keys.find(here, (new.high, new.low))
        return RankColumns(
            edited(self.high, out, at, new.high),
            edited(self.low, out, at, new.low),
            tuple(edited(old, out, at, label) for old, label in zip(self.labels, new.labels, strict=True)),
        )
