"""The live records of a window in an order that depends on nothing but them (and on the key).

All copies of all live records stand in one canonical order: by stamp, then by value, then by copy. A draw names places
in that order, so that a sample is a function of the round, the coins and the live multiset alone.

Records are kept in blocks of ``span`` stamps, a public number, so that a change writes few of them anew.

**State.** A sum over live records: lives form an Abelian group with the empty one as zero, they are never changed, and
what has no record left has no block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Protocol, Self

import numpy as np

from ..arrays import I64, U64
from ..coins import Coins, name_bytes
from ..schema import Rows, Schema
from ..statistics.tally import Labels, Tally

SIGN = np.uint64(1 << 63)


class LiveBlock(Protocol):
    """The records of some stamps: a tally by (stamp, value), and what else is kept with it."""

    @property
    def tally(self) -> Tally: ...

    def __add__(self, other: Self) -> Self: ...

    def negated(self) -> Self: ...


class Unranked:
    """A tally and no more."""

    __slots__ = ("tally",)

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    def __add__(self, other: Unranked) -> Unranked:
        return Unranked(self.tally + other.tally)

    def negated(self) -> Unranked:
        return Unranked(negated(self.tally))


Make = Callable[[Tally], LiveBlock]


class Live:
    """Records of some fields, by block.

    >>> from retroact.schema import Integer
    >>> schema = Schema({"age": Integer(0, 120)})
    >>> rows = Rows({"age": np.array([31, 44, 31])}, 3, stamps=np.array([2, 1, 2]))
    >>> live = Live.of(rows, np.ones(3, dtype=np.int64), ("age",), schema, Coins(bytes(32)), span=4)
    >>> live.count, live.rows(np.array([0, 2])).columns["age"].tolist(), (live - live).count
    (3, [44, 31], 0)
    """

    __slots__ = ("__dict__", "blocks", "empty", "numbers", "sizes")

    def __init__(self, empty: Rows, numbers: I64, sizes: I64, blocks: list[LiveBlock]) -> None:
        self.empty = empty
        """No records, of the fields that are kept."""
        self.numbers = numbers
        """Of the blocks, in order."""
        self.sizes = sizes
        """How many copies each holds."""
        self.blocks = blocks

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
        make: Make = Unranked,
    ) -> Live:
        """Of records in any order, each ``weights`` times (also less than zero: a change)."""
        assert rows.stamps is not None
        tally = Tally.of(
            (rows.stamps.astype(np.uint64), *_keys(rows, names, schema, coins)),
            weights[:, None],
            tuple(rows.columns[name] for name in names),
        )
        numbers = tally.words[0].astype(np.int64) // span
        begins = np.flatnonzero(np.diff(numbers, prepend=np.int64(-1)))
        # Copies, and no views: a block must not keep what its neighbours, or the round's deletions, were.
        ends = pairwise([*begins.tolist(), len(tally)])
        parts = [taken(tally, np.arange(start, stop)) for start, stop in ends]
        sizes = np.array([int(part.amounts.sum()) for part in parts], dtype=np.int64)
        empty = Rows({name: rows.columns[name][:0].copy() for name in names}, 0)
        return cls(empty, numbers[begins], sizes, [make(part) for part in parts])

    @property
    def count(self) -> int:
        """How many copies are live."""
        return int(self.sizes.sum())

    def __add__(self, other: Live) -> Live:
        if not len(other.blocks):
            return self
        if not len(self.blocks):
            return other
        mine = dict(zip(self.numbers.tolist(), zip(self.sizes.tolist(), self.blocks, strict=True), strict=True))
        for number, size, block in zip(other.numbers.tolist(), other.sizes.tolist(), other.blocks, strict=True):
            if number in mine:
                before, old = mine[number]
                size, block = before + size, old + block
            if len(block.tally):
                mine[number] = size, block
            else:
                del mine[number]
        numbers = sorted(mine)
        sizes = np.array([mine[number][0] for number in numbers], dtype=np.int64)
        return Live(self.empty, np.array(numbers, dtype=np.int64), sizes, [mine[number][1] for number in numbers])

    def __sub__(self, other: Live) -> Live:
        return self + Live(other.empty, other.numbers, -other.sizes, [block.negated() for block in other.blocks])

    @cached_property
    def _before(self) -> I64:
        """How many copies are in earlier blocks than each, and how many there are."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def rows(self, places: I64) -> Rows:
        """The records at these places of the canonical order, which are sorted."""
        number = np.searchsorted(self._before, places, side="right") - 1
        parts = []
        begins = np.flatnonzero(np.diff(number, prepend=-1))
        for start, stop in pairwise([*begins.tolist(), len(places)]):
            block = int(number[start])
            tally = self.blocks[block].tally
            within = places[start:stop] - self._before[block]
            if self.sizes[block] != len(tally):  # otherwise there is one copy of each
                within = np.searchsorted(tally.below, within, side="right") - 1
            parts.append(tuple(label[within] for label in tally.labels))
        return self.joined(parts)

    def all(self) -> Rows:
        """Every live copy."""
        return self.joined([repeated(block.tally) for block in self.blocks])

    def joined(self, parts: Sequence[Labels]) -> Rows:
        """The records of all parts."""
        columns = zip(*(tuple(self.empty.columns.values()), *parts), strict=True)
        found = {name: np.concatenate(column) for name, column in zip(self.empty.columns, columns, strict=True)}
        return Rows(found, len(next(iter(found.values()))))


def repeated(tally: Tally) -> Labels:
    counts = tally.amounts[:, 0]
    return tally.labels if (counts == 1).all() else tuple(np.repeat(label, counts, axis=0) for label in tally.labels)


def taken(tally: Tally, where: I64) -> Tally:
    """Some keys of a tally, with their labels, in arrays of their own."""
    return Tally(
        tuple(word[where] for word in tally.words),
        tally.amounts[where],
        tuple(label[where] for label in tally.labels),
    )


def negated(tally: Tally) -> Tally:
    return Tally(tally.words, -tally.amounts, tally.labels)


def _keys(rows: Rows, names: tuple[str, ...], schema: Schema, coins: Coins) -> tuple[U64, ...]:
    """What orders the records of a stamp: their values, where these are at most two numbers, or else 128 bits that the
    key makes of them (two values share them with probability 2^-128)."""
    columns = [rows.columns[name] for name in names]
    if len(names) <= 2 and all(not schema.fields[name].interned and rows.columns[name].ndim == 1 for name in names):
        return tuple(column.astype(np.int64).view(np.uint64) ^ SIGN for column in columns)
    plain = [
        [row.tobytes() for row in column.astype("<i8")] if column.ndim > 1 else column.tolist() for column in columns
    ]
    cells = coins.branch("record").cells(name_bytes(*parts) for parts in zip(*plain, strict=True))
    return cells[:, 0].copy(), cells[:, 1].copy()
