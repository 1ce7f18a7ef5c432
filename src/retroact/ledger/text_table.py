"""A table of distinct texts, which owns their memory; each has a small number. Equal texts are found by hashing.

The hash table has places for at least twice as many texts; a text whose place is taken tries others, in steps that its
hash gives. What is found is compared in full, so a collision costs time and nothing else. Hashes are keyed by process:
nobody can choose texts that collide, and nothing that is stored or published depends on the key.

A text that is removed is overwritten at once; its number is used again, and its place waits until the table is
rebuilt. A number is -1 where a text is not in the table.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64, U64, AnyArray
from ..texts import SHORT, Texts, mixed, places_of

_SEED, _KEY = np.uint64(int.from_bytes(os.urandom(8))), os.urandom(32)
_NEVER, _DEAD = -1, -2
_NO_TEXT = -2
"""The length of a text that was removed."""
SMALL = 256
"""Tables this small are not worth shrinking."""


def marks(texts: Texts) -> U64:
    """The hash of each text."""
    seeds = mixed(texts.lengths.astype(np.uint64), np.array(_SEED))
    return texts.mixed_into(seeds, lambda long: blake2b(long, digest_size=SHORT, key=_KEY).digest())


def grouped(texts: Texts, mark: U64 | None = None) -> I64:
    """For each text the position of one that is equal: the same for all that are.

    >>> found = grouped(Texts.of(["b", "a", "b"]))
    >>> found[0] == found[2], found[1]
    (np.True_, np.int64(1))
    """
    found, table = np.arange(len(texts)), _empty(len(texts))
    probe = _Probe(marks(texts) if mark is None else mark, len(table))
    while len(probe.rows):
        rows, places = probe.rows, probe.places
        holders = table[places]
        free = np.flatnonzero(holders < 0)
        table[places[free]] = rows[free]
        holders = table[places].astype(np.int64)
        same = holders == rows
        others = np.flatnonzero(~same)
        same[others] = texts[rows[others]].equal(texts[holders[others]])
        found[rows[same]] = holders[same]
        probe.go_on(~same)
    return found


class TextTable:
    """
    >>> table = TextTable()
    >>> table.insert(Texts.of(["a", "b"])).tolist(), table.find(Texts.of(["b", "c"])).tolist()
    ([0, 1], [1, -1])
    >>> table.remove(np.array([0]))
    >>> len(table), table.size, table[np.array([1])].strings()
    (1, 2, ['b'])
    """

    def __init__(self) -> None:
        self._words: U64 = np.zeros(0, dtype=np.uint64)
        self._filled = self._unused = 0
        """Words that hold, or held, a text; and those of texts that were removed."""
        self._starts: NDArray[np.uint32] = np.zeros(0, dtype=np.uint32)
        self._lengths: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._free: I64 = np.zeros(0, dtype=np.int64)
        self._table = _empty(0)
        self._taken = 0
        """Places of the hash table that are not as new."""
        self.size = 0
        """The number of numbers, used or free."""

    def __len__(self) -> int:
        return self.size - len(self._free)

    def __getitem__(self, numbers: I64 | NDArray[np.int32]) -> Texts:
        """The texts with these numbers, in the memory of the table."""
        return Texts(self._words, self._starts[numbers].astype(np.int64), self._lengths[numbers])

    def numbers(self) -> I64:
        """Those in use, in order."""
        return np.flatnonzero(self._lengths[: self.size] != _NO_TEXT)

    def find(self, texts: Texts, mark: U64 | None = None) -> I64:
        found = np.full(len(texts), -1, dtype=np.int64)
        if not len(self):
            return found
        probe = _Probe(marks(texts) if mark is None else mark, len(self._table))
        while len(probe.rows):
            rows, holders = probe.rows, self._table[probe.places]
            held = holders >= 0
            if held.all():
                wanted = texts if len(rows) == len(texts) else texts[rows]
                same = wanted.equal(self[holders])
                going = ~same
            else:
                going, same = holders == _DEAD, np.zeros(len(rows), dtype=np.bool_)
                where = np.flatnonzero(held)
                same[where] = texts[rows[where]].equal(self[holders[where]])
                going[where] = ~same[where]
            found[rows[same]] = holders[same]
            probe.go_on(going)
        return found

    def insert(self, texts: Texts, mark: U64 | None = None) -> I64:
        """The numbers of new texts, all different and none of them in the table."""
        own = texts.copied()
        reused = min(len(self._free), len(own))
        size = self.size + len(own) - reused
        numbers = np.concatenate([self._free[len(self._free) - reused :], np.arange(self.size, size)])
        self.reserve(len(own), len(own.words))
        self._words[self._filled : self._filled + len(own.words)] = own.words
        self._starts[numbers] = own.starts + self._filled
        self._lengths[numbers] = own.lengths
        self._filled += len(own.words)
        self._free, self.size = self._free[: len(self._free) - reused].copy(), size
        self._taken += _place(self._table, numbers, marks(own) if mark is None else mark)
        return numbers

    def remove(self, numbers: I64) -> None:
        if not len(numbers):
            return
        texts = self[numbers]
        probe = _Probe(marks(texts), len(self._table))
        while len(probe.rows):
            found = self._table[probe.places] == numbers[probe.rows]
            self._table[probe.places[found]] = _DEAD
            probe.go_on(~found)
        words = places_of(texts.starts, texts.counts)
        self._words[words] = 0
        self._unused += len(words)
        self._starts[numbers], self._lengths[numbers] = 0, _NO_TEXT
        self._free = np.concatenate([self._free, numbers])

    def shrink(self) -> None:
        """Give back memory, if there is much more than is needed. Without it the table is as right as before."""
        with suppress(MemoryError):
            if 2 * self._unused > self._filled > SMALL:
                self._tidy(0)
            if len(self._table) > max(SMALL, 16 * len(self)):
                self._rehash(0)

    def reserve(self, count: int, words: int) -> None:
        """Make room for an insertion, which may come after removals."""
        if self._filled + words > len(self._words):
            self._tidy(words)
        size = self.size + max(0, count - len(self._free))
        if size > len(self._lengths):
            room = size + size // 4
            self._starts, self._lengths = resized(self._starts, room), resized(self._lengths, room)
        if 2 * (self._taken + count) > len(self._table):
            self._rehash(count)

    @property
    def sparse(self) -> bool:
        return self.size > SMALL and 4 * len(self) < self.size

    def compacted(self) -> tuple[TextTable, I64]:
        """The same texts with consecutive numbers in the same order, and the old number of each."""
        dense, old = TextTable(), self.numbers()
        dense.insert(self[old])
        return dense, old

    def _rehash(self, more: int) -> None:
        numbers, table = self.numbers(), _empty(len(self) + more)
        taken = _place(table, numbers, marks(self[numbers]))
        self._table, self._taken = table, taken

    def _tidy(self, more: int) -> None:
        """Move the texts to new memory without gaps."""
        numbers = self.numbers()
        own = self[numbers].copied()
        size = len(own.words)
        if size + more + (size + more) // 4 >= 1 << 32:
            raise OverflowError("expected at most 32 GB of texts in one column")
        self._words = resized(own.words, size + more + (size + more) // 4)
        self._starts[numbers] = own.starts
        self._filled, self._unused = size, 0


class _Probe:
    """Rows that look for a place in a hash table, and the place that each tries next."""

    def __init__(self, mark: U64, size: int) -> None:
        self._mark, self._limit = mark, np.uint64(size - 1)
        self.rows = np.arange(len(mark))
        self.places: I64 = (mark & self._limit).view(np.int64)

    def go_on(self, going: NDArray[np.bool_]) -> None:
        """These rows, and no others, try another place, an odd step further, which the upper bits of the hash give."""
        where = np.flatnonzero(going)
        self.rows = self.rows[where]
        steps = (self._mark[self.rows] >> np.uint64(40)) | np.uint64(1)
        self.places = ((self.places[where].view(np.uint64) + steps) & self._limit).view(np.int64)


def _place(table: NDArray[np.int32], numbers: I64, mark: U64) -> int:
    """Give each of these a separate place in a hash table. How many of the places were new."""
    probe, new = _Probe(mark, len(table)), 0
    while len(probe.rows):
        rows, places = probe.rows, probe.places
        before = table[places]
        free = before < 0
        table[places[free]] = numbers[rows[free]]
        won = table[places] == numbers[rows]
        new += int((before[won] == _NEVER).sum())
        probe.go_on(~won)
    return new


def _empty(count: int) -> NDArray[np.int32]:
    if count >= 1 << 29:
        raise OverflowError("expected at most 2^29 different texts in one column")
    return np.full(1 << max(3, (4 * count - 1).bit_length()), _NEVER, dtype=np.int32)


def resized(array: AnyArray, capacity: int) -> AnyArray:
    """Copy the entries to this capacity, padded with zeros."""
    new = np.zeros(capacity, dtype=array.dtype)
    new[: min(len(array), capacity)] = array[:capacity]
    return new
