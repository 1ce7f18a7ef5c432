"""The live records of a window, in an order that depends only on them and on the key.

All copies of all live records are in one canonical order: by stamp, then by value, then by copy. A draw names positions
in that order, so a sample is a function of the round, the coins and the live multiset alone.

Records are kept in blocks of ``span`` stamps, a public number, so that a change rewrites few of them.

**State.** A sum over live records: `Live` objects form an Abelian group with the empty one as zero. They are immutable,
and a block without records is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from ..arrays import I64, U64
from ..coins import COIN_BITS, Coins, distinct, name_bytes, tossed
from ..ledger import sorted_keys
from ..privacy import Form
from ..schema import Rows, Schema
from ..statistics.tally import Labels, Tally
from .persistent_ranks import ranks_of

SIGN = np.uint64(1 << 63)


class LiveBlock:
    """The records of some stamps: a tally by (stamp, value), the number of copies, and, given coins, the ranks of all
    copies, computed when first needed and updated from then on."""

    __slots__ = ("_coins", "_ranks", "size", "tally")

    def __init__(self, tally: Tally, size: int, coins: Coins | None, ranks: Tally | None = None) -> None:
        self.tally, self.size = tally, size
        self._coins, self._ranks = coins, ranks

    def __add__(self, other: LiveBlock) -> LiveBlock:
        ranks = self._ranks
        if ranks is not None and self._coins is not None:
            touched = other.tally
            before = self.tally.find(touched.words)[:, 0]
            after = before + touched.amounts[:, 0]
            fewer, more = np.flatnonzero(before > after), np.flatnonzero(after > before)
            new = ranks_of(touched.take(more), before[more], after[more], self._coins)
            ranks = ranks + (new - ranks_of(touched.take(fewer), after[fewer], before[fewer], self._coins))
        return LiveBlock(self.tally + other.tally, self.size + other.size, self._coins, ranks)

    def __neg__(self) -> LiveBlock:
        return LiveBlock(-self.tally, -self.size, self._coins)

    @property
    def ranks(self) -> Tally:
        assert self._coins is not None
        if self._ranks is None:
            counts = self.tally.amounts[:, 0]
            self._ranks = ranks_of(self.tally, np.zeros_like(counts), counts, self._coins)
        return self._ranks


class Live:
    """Records of some fields, by block.

    >>> from retroact.schema import Integer
    >>> schema = Schema({"age": Integer(0, 120)})
    >>> rows = Rows({"age": np.array([31, 44, 31])}, 3, stamps=np.array([2, 1, 2]))
    >>> live = Live.of(rows, np.ones(3, dtype=np.int64), ("age",), schema, Coins(bytes(32)), span=4)
    >>> live.count, live.rows(np.array([0, 2])).columns["age"].tolist(), (live - live).count
    (3, [44, 31], 0)
    """

    __slots__ = ("__dict__", "blocks", "empty")

    def __init__(self, empty: Rows, blocks: Mapping[int, LiveBlock]) -> None:
        self.empty = empty
        """No records, of the fields that are kept."""
        self.blocks = blocks
        """By number, in order."""

    @classmethod
    def of(
        cls,
        rows: Rows,
        weights: I64,
        names: tuple[str, ...],
        schema: Schema,
        coins: Coins,
        *,
        span: int,
        ranks: Coins | None = None,
    ) -> Live:
        """Of records in any order, times their weights (negative ones for a change). ``ranks`` are the coins of
        ranks."""
        assert rows.stamps is not None
        tally = Tally.of(
            (rows.stamps.astype(np.uint64), *_keys(rows, names, schema, coins)),
            weights[:, None],
            tuple(rows.columns[name] for name in names),
        )
        numbers = tally.words[0].astype(np.int64) // span
        begins = np.flatnonzero(np.diff(numbers, prepend=np.int64(-1)))
        blocks = {}
        for start, stop in pairwise([*begins.tolist(), len(tally)]):
            # A copy, not a view: a block must not keep its neighbours' records, or those deleted in the round.
            part = tally.take(np.arange(start, stop))
            blocks[int(numbers[start])] = LiveBlock(part, int(part.amounts.sum()), ranks)
        return cls(Rows({name: rows.columns[name][:0].copy() for name in names}, 0), blocks)

    @property
    def count(self) -> int:
        return self._offsets[-1]

    def __add__(self, other: Live) -> Live:
        if not self.blocks or not other.blocks:
            return self if self.blocks else other
        blocks = dict(self.blocks)
        for number, change in other.blocks.items():
            block = blocks[number] + change if number in blocks else change
            if len(block.tally):
                blocks[number] = block
            else:
                del blocks[number]
        return Live(self.empty, dict(sorted(blocks.items())))

    def __sub__(self, other: Live) -> Live:
        return self + Live(other.empty, {number: -block for number, block in other.blocks.items()})

    @cached_property
    def _offsets(self) -> list[int]:
        """How many copies precede each block, and how many there are."""
        return [0, *accumulate(block.size for block in self.blocks.values())]

    def rows(self, places: I64) -> Rows:
        """The records at sorted positions of the canonical order."""
        ends = np.searchsorted(places, self._offsets).tolist()
        parts = []
        for block, offset, (start, stop) in zip(self.blocks.values(), self._offsets, pairwise(ends), strict=False):
            if start == stop:
                continue
            within, tally = places[start:stop] - offset, block.tally
            if block.size != len(tally):  # otherwise there is one copy of each
                within = np.searchsorted(tally.below, within, side="right") - 1
            parts.append(tuple(label[within] for label in tally.labels))
        return self.joined(parts)

    def all(self) -> Rows:
        """Every live copy."""
        return self.joined([repeated(block.tally) for block in self.blocks.values()])

    def joined(self, parts: Sequence[Labels]) -> Rows:
        columns = zip(*(tuple(self.empty.columns.values()), *parts), strict=True)
        found = {name: np.concatenate(column) for name, column in zip(self.empty.columns, columns, strict=True)}
        return Rows(found, len(next(iter(found.values()))))


def repeated(tally: Tally) -> Labels:
    counts = tally.amounts[:, 0]
    return tally.labels if (counts == 1).all() else tuple(np.repeat(label, counts, axis=0) for label in tally.labels)


def _keys(rows: Rows, names: tuple[str, ...], schema: Schema, coins: Coins) -> tuple[U64, ...]:
    """What orders the records of a stamp: their values, if these are at most two numbers; otherwise 128 bits that the
    key makes of them (two values collide with probability 2^-128)."""
    columns = [rows.columns[name] for name in names]
    if len(names) <= 2 and all(not schema.fields[name].interned and rows.columns[name].ndim == 1 for name in names):
        return tuple(column.astype(np.int64).view(np.uint64) ^ SIGN for column in columns)
    plain = [
        [row.tobytes() for row in column.astype("<i8")] if column.ndim > 1 else column.tolist() for column in columns
    ]
    cells = coins.branch("record").cells(name_bytes(*parts) for parts in zip(*plain, strict=True))
    return cells[:, 0].copy(), cells[:, 1].copy()


def drawn(
    form: Form, live: Live, coins: Coins, round: int, *, size: int | None = None, rate: Fraction | None = None
) -> Rows:
    """The sample of a round; ``size`` or ``rate`` as the form needs it."""
    match form:
        case "fresh":
            assert size is not None
            return live.rows(distinct(coins.branch("sample", round), live.count, min(size, live.count)))
        case "poisson":
            return live.rows(tossed(coins.branch("sample", round), live.count, threshold(rate, COIN_BITS)))
        case "ranks":
            assert size is not None
            return smallest(live, size)
        case "coins":
            return below(live, threshold(rate, 64))
        case _:
            return live.all()


def smallest(live: Live, size: int) -> Rows:
    """The ``size`` live copies of smallest rank, or all of them."""
    if size >= live.count:
        return live.all()
    ranks = [block.ranks for block in live.blocks.values()]
    # First those below a bound that about twice as many stay under; double it if they were too few.
    limit = (2 * size + 64 << 64) // live.count
    while True:
        bound = np.uint64(min(limit, (1 << 64) - 1))
        parts = [one.take(slice(int(np.searchsorted(one.words[0], bound, side="right")))) for one in ranks]
        high, low = (np.concatenate(words) for words in zip(*(part.words for part in parts), strict=True))
        if len(high) >= size or limit >= 1 << 64:
            break
        limit *= 2
    chosen = np.sort(sorted_keys.order((high, low))[:size])
    return live.joined([part.labels for part in parts]).take(chosen)


def below(live: Live, bound: int) -> Rows:
    """The live copies whose rank is below the bound, in units of 2^-64: persistent coins."""
    if bound >= 1 << 64:
        return live.all()
    ranks = [block.ranks for block in live.blocks.values()]
    return live.joined([one.take(slice(int(np.searchsorted(one.words[0], np.uint64(bound))))).labels for one in ranks])


def threshold(rate: Fraction | None, bits: int) -> int:
    """The rate in units of 2^-bits, rounded down: bounds for a rate cover every smaller one."""
    assert rate is not None
    return int(rate * (1 << bits))
