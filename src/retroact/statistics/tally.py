"""Totals by key, for keys too many to list: a sorted map from keys to integers.

A key without a total has no entry, so a key whose records were all deleted looks like one that was never touched.
Tallies form an Abelian group with the empty one as zero. They are immutable, so a round that fails leaves everything as
it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import I64, Words
from ..errors import InputError
from ..ledger import sorted_keys
from ..ledger.sorted_keys import edited
from .by_round import Pick, places_of

Labels = tuple[npt.NDArray[Any], ...]


class Labelled:
    """Totals by label, before a key names them: labels in columns, and amounts (labels by coordinates). `of` merges
    equal labels and drops zeros. An Abelian group, gathered where the records are; it becomes a `Tally` where the key
    is.

    >>> one = Labelled.of((np.array([7, 3, 7]),), np.array([[1], [1], [1]]))
    >>> sorted(one.items()), len(one - one)
    ([((3,), [1]), ((7,), [2])], 0)
    """

    __slots__ = ("amounts", "labels")

    def __init__(self, labels: Labels, amounts: I64) -> None:
        self.labels, self.amounts = labels, amounts

    @classmethod
    def of(cls, labels: Labels, amounts: I64) -> Labelled:
        """Labels may repeat."""
        # Renumbered before every further column, so numbers stay below the square of 2^31 records.
        if len(amounts) >> 31:
            raise InputError(f"expected fewer than 2^31 records at once, got {len(amounts):,}")
        combined = np.zeros(len(amounts), dtype=np.int64)
        parts: list[tuple[npt.NDArray[Any], I64]] = []
        for column in labels:
            if parts:
                combined = np.unique(combined, return_inverse=True)[1].reshape(-1)
            values, where = distinct(column)
            parts.append((values, where))
            combined = combined * len(values) + where
        _, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
        totals = np.zeros((len(first), amounts.shape[1]), dtype=np.int64)
        np.add.at(totals, inverse.reshape(-1), amounts)
        kept = np.flatnonzero(totals.any(axis=1))
        return cls(tuple(values[where[first[kept]]] for values, where in parts), totals[kept])

    def __len__(self) -> int:
        return len(self.amounts)

    def __add__(self, other: Labelled) -> Labelled:
        columns = zip(self.labels, other.labels, strict=True)
        joined = tuple(np.concatenate(column) for column in columns)
        return Labelled.of(joined, np.concatenate([self.amounts, other.amounts]))

    def __sub__(self, other: Labelled) -> Labelled:
        return self + Labelled(other.labels, -other.amounts)

    def each(self, count: int) -> Pick:
        """Where labels begin with the number of a group and are sorted by it, as `of` leaves them: the totals of each
        group, by the other labels."""
        group, *labels = self.labels
        where = places_of(group, count)

        def pick(place: int) -> Labelled:
            here = where(place)
            return Labelled(tuple(label[here].copy() for label in labels), self.amounts[here].copy())

        return pick

    def items(self) -> Iterator[tuple[tuple[Any, ...], list[int]]]:
        columns = [list(map(tuple, c.tolist())) if c.ndim > 1 else c.tolist() for c in self.labels]
        yield from zip(zip(*columns, strict=True), self.amounts.tolist(), strict=True)


def distinct(column: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], I64]:
    """The distinct values, and for each row which of them it holds."""
    if column.dtype != object:
        values, where = np.unique(column, axis=0 if column.ndim > 1 else None, return_inverse=True)
        return values, where.reshape(-1)
    # A dictionary instead of a sort: comparing texts is slow.
    listed = column.tolist()
    codes = {value: code for code, value in enumerate(dict.fromkeys(listed))}
    values = np.empty(len(codes), dtype=object)
    values[:] = list(codes)
    return values, np.fromiter(map(codes.__getitem__, listed), dtype=np.int64, count=len(listed))


class Tally:
    """Sorted keys of one or more 64-bit words, integer amounts (keys by coordinates), and labels for each key.
    Amounts are added modulo 2^64; streams keep every total within 2^62.

    >>> one = Tally.of((np.array([7, 3, 7], dtype=np.uint64),), np.array([[1], [1], [1]]))
    >>> one.words[0].tolist(), one.amounts.tolist(), len(one - one)
    ([3, 7], [[1], [2]], 0)
    """

    __slots__ = ("__dict__", "amounts", "labels", "words")

    def __init__(self, words: Words, amounts: I64, labels: Labels = ()) -> None:
        self.words, self.amounts, self.labels = words, amounts, labels

    @classmethod
    def of(cls, words: Words, amounts: I64, labels: Labels = ()) -> Tally:
        """Keys may be in any order, and repeat."""
        order = sorted_keys.order(words)
        words = sorted_keys.take(words, order)
        begins = np.flatnonzero(sorted_keys.starts(words))
        if len(begins):
            amounts = np.add.reduceat(amounts[order], begins, axis=0)
        kept = np.flatnonzero(amounts.any(axis=1))
        return cls(
            sorted_keys.take(words, begins[kept]), amounts[kept], tuple(label[order[begins[kept]]] for label in labels)
        )

    def __len__(self) -> int:
        return len(self.words[0])

    def __add__(self, other: Tally) -> Tally:
        if not len(other):
            return self
        if not len(self):
            return other
        at, found = sorted_keys.find(self.words, other.words)
        touched, new = at[found], ~found
        changed = self.amounts[touched] + other.amounts[found]
        left = changed.any(axis=1)
        gone, places, amounts = touched[~left], at[new], self.amounts
        if left.any():
            amounts = amounts.copy()
            amounts[touched] = changed

        def merged(old: npt.NDArray[Any], added: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return edited(old, gone, places, added[new])

        return Tally(
            tuple(merged(old, word) for old, word in zip(self.words, other.words, strict=True)),
            merged(amounts, other.amounts),
            tuple(merged(old, label) for old, label in zip(self.labels, other.labels, strict=True)),
        )

    def __neg__(self) -> Tally:
        return Tally(self.words, -self.amounts, self.labels)

    def __sub__(self, other: Tally) -> Tally:
        return self + -other

    def take(self, where: I64 | slice) -> Tally:
        """Some of the keys; by positions they are copied."""
        return Tally(sorted_keys.take(self.words, where), self.amounts[where], tuple(one[where] for one in self.labels))

    def each(self, count: int) -> Pick:
        """Where keys begin with the number of a group: the tally of each group, by the other words."""
        group, *words = self.words
        where = places_of(group, count)

        def pick(place: int) -> Tally:
            here = where(place)
            labels = tuple(label[here].copy() for label in self.labels)
            return Tally(tuple(word[here].copy() for word in words), self.amounts[here].copy(), labels)

        return pick

    @cached_property
    def below(self) -> I64:
        """The sums of the first coordinate over the first 0, 1, 2, ... keys."""
        return np.concatenate([[0], np.cumsum(self.amounts[:, 0])])

    def find(self, words: Words) -> I64:
        """The amounts of some sorted keys; zero for keys without an entry."""
        at, found = sorted_keys.find(self.words, words)
        out = np.zeros((len(words[0]), self.amounts.shape[1]), dtype=np.int64)
        out[found] = self.amounts[at[found]]
        return out
