"""Persistent secret ranks: each live copy has one for as long as it lives (Appendix C).

The rank of copy j of a value x with stamp t is 128 bits of the name (t, x, j). A deletion takes the copy with the
highest j, the last that came. So the ranks of the live copies are a function of the live multiset, and independent and
uniform over it.
"""

from __future__ import annotations

import numpy as np

from ..arrays import I64, U64, Mask
from ..coins import Coins
from ..ledger import sorted_keys
from ..ledger.sorted_keys import edited
from ..schema import Rows
from ..statistics.tally import Labels, Tally
from .live_records import Live, negated, taken


class RankColumns:
    """Ranks in order (high and low 64 bits), each with the record that has it, column by column."""

    __slots__ = ("high", "labels", "low")

    def __init__(self, high: U64, low: U64, labels: Labels) -> None:
        self.high, self.low, self.labels = high, low, labels

    @classmethod
    def of(cls, tally: Tally, first: I64, last: I64, coins: Coins) -> RankColumns:
        """Of copies first .. last - 1 of each key of a tally."""
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

    def taken(self, where: I64 | Mask | slice) -> RankColumns:
        return RankColumns(self.high[where], self.low[where], tuple(label[where] for label in self.labels))

    def __len__(self) -> int:
        return len(self.high)

    def edited(self, gone: RankColumns, new: RankColumns) -> RankColumns:
        """Without some and with others."""
        here = self.high, self.low
        out, found = sorted_keys.find(here, (gone.high, gone.low))
        assert found.all()
        at, _ = sorted_keys.find(here, (new.high, new.low))
        return RankColumns(
            edited(self.high, out, at, new.high),
            edited(self.low, out, at, new.low),
            tuple(edited(old, out, at, label) for old, label in zip(self.labels, new.labels, strict=True)),
        )


class Ranked:
    """The records of some stamps with the ranks of all their copies, which are worked out when first asked for and
    kept up from then on."""

    __slots__ = ("_coins", "_ranks", "tally")

    def __init__(self, tally: Tally, coins: Coins, ranks: RankColumns | None = None) -> None:
        self.tally = tally
        self._coins, self._ranks = coins, ranks

    def __add__(self, other: Ranked) -> Ranked:
        tally = self.tally + other.tally
        ranks = self._ranks
        if ranks is not None:
            touched = other.tally
            before = self.tally.find(touched.words)[:, 0]
            after = before + touched.amounts[:, 0]
            fewer, more = np.flatnonzero(before > after), np.flatnonzero(after > before)
            ranks = ranks.edited(
                RankColumns.of(taken(touched, fewer), after[fewer], before[fewer], self._coins),
                RankColumns.of(taken(touched, more), before[more], after[more], self._coins),
            )
        return Ranked(tally, self._coins, ranks)

    def negated(self) -> Ranked:
        return Ranked(negated(self.tally), self._coins)

    @property
    def ranks(self) -> RankColumns:
        if self._ranks is None:
            counts = self.tally.amounts[:, 0]
            self._ranks = RankColumns.of(self.tally, np.zeros_like(counts), counts, self._coins)
        return self._ranks


def smallest(live: Live, size: int) -> Rows:
    """The ``size`` live copies of smallest rank, or all there are."""
    blocks = _ranked(live)
    if size >= live.count:
        return live.all()
    # First those below a bound that about twice as many stay under; more if these were too few.
    limit = (2 * size + 64 << 64) // live.count
    while True:
        bound = np.uint64(min(limit, (1 << 64) - 1))
        stops = [int(np.searchsorted(block.ranks.high, bound, side="right")) for block in blocks]
        if sum(stops) >= size or limit >= 1 << 64:
            break
        limit *= 2
    high = np.concatenate([block.ranks.high[:stop] for block, stop in zip(blocks, stops, strict=True)])
    low = np.concatenate([block.ranks.low[:stop] for block, stop in zip(blocks, stops, strict=True)])
    last = sorted_keys.order((high, low))[size - 1]
    parts = [
        block.ranks.taken(slice(_not_above(block.ranks, high[last], low[last])))
        for block, stop in zip(blocks, stops, strict=True)
        if stop
    ]
    return live.joined([part.labels for part in parts])


def below(live: Live, bound: int) -> Rows:
    """The live copies whose rank is below the bound, in units of 2^-64: persistent coins."""
    blocks = _ranked(live)
    if bound >= 1 << 64:
        return live.all()
    stops = [int(np.searchsorted(block.ranks.high, np.uint64(bound))) for block in blocks]
    parts = [block.ranks.taken(slice(stop)) for block, stop in zip(blocks, stops, strict=True)]
    return live.joined([part.labels for part in parts])


def _not_above(ranks: RankColumns, high: np.uint64, low: np.uint64) -> int:
    limit = np.array([high], dtype=np.uint64), np.array([low], dtype=np.uint64)
    return sorted_keys.not_above((ranks.high, ranks.low), limit)


def _ranked(live: Live) -> list[Ranked]:
    blocks = [block for block in live.blocks if isinstance(block, Ranked)]
    assert len(blocks) == len(live.blocks)
    return blocks
