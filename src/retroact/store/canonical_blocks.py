"""Surviving records in blocks of about a hundred, so that a store writes blobs and not rows.

Records are ordered by stamp and then by a keyed mark of their content. A record whose mark ends in zeros begins a
block; those before the first such record are the block (0, 0). So blocks are a function of the key and the surviving
data, not of arrival order or of what was deleted. A changed record changes one block, or two if it begins one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import I64, Mask, Words
from ..errors import VerificationError
from ..ledger import sorted_keys
from ..ledger.codec import Records, pack, unpack
from ..schema import Schema
from ..texts import SHORT, Texts, mixed

Place = tuple[int, int]
"""The stamp and the mark that a block begins with."""
FIRST: Place = (0, 0)
SIZE = 128
"""Records in a block, on average."""


class Marks:
    """A keyed number from 0 to 2^63 - 1 for every record, from its values, id and subject (not from its stamp).

    Because of the key, whoever chooses values cannot choose where blocks end. Records may share a mark.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._seed = int.from_bytes(self._hash(b"")[:8], "little")

    def __call__(self, records: Records) -> I64:
        mark = np.full(len(records), self._seed, dtype=np.uint64)
        if not len(mark):
            return mark.astype(np.int64)
        for column in records.content:
            if isinstance(column, Texts):
                mark = column.mixed_into(mark, self._hash)
            else:
                for part in column.reshape(len(mark), -1).T:
                    mark = mixed(mark, part.astype(np.uint64))
        return (mark >> np.uint64(1)).astype(np.int64)

    def _hash(self, text: bytes) -> bytes:
        return hashlib.blake2b(text, digest_size=SHORT, key=self._key).digest()


@dataclass(frozen=True)
class Edit:
    """What a change does to the blocks."""

    gone: list[Place]
    new: list[tuple[Place, bytes]]


def edit(
    schema: Schema,
    marks: Marks,
    places: Sequence[Place],
    change: Records,
    read: Callable[[Sequence[Place]], Sequence[bytes]],
) -> Edit:
    """The blocks that a change rewrites. `change` has signed counts; `places` are those of all blocks, sorted."""
    if not len(change):
        return Edit([], [])
    virtual = not places or places[0] != FIRST
    every = [FIRST, *places] if virtual else list(places)
    mark = marks(change)
    order = sorted_keys.order(_keys(change, mark))
    where = _find(every, sorted_keys.take(_keys(change, mark), order))
    begins = (_begins(mark) & (change.counts < 0))[order]
    # without its first record a block merges with the one before it
    touched = np.unique(np.concatenate([where, np.maximum(where[begins] - 1, 0)]))
    stored = [every[index] for index in touched.tolist() if index or not virtual]
    old = unpack(schema, read(stored))
    merged, mark = _merged(old.followed_by(change), np.concatenate([marks(old), mark]))
    # in a run of neighbouring blocks, the records before the first beginning keep the place of the first block
    gap = np.ones(len(touched), dtype=np.bool_)
    gap[1:] = np.diff(touched) > 1
    run = (np.cumsum(gap) - 1)[_find([every[index] for index in touched.tolist()], _keys(merged, mark))]
    return Edit(stored, _split(merged, mark, [every[index] for index in touched[gap].tolist()], run))


def canonical(marks: Marks, records: Records) -> list[tuple[Place, bytes]]:
    """All blocks of these records."""
    merged, mark = _merged(records, marks(records))
    return _split(merged, mark, [FIRST], np.zeros(len(merged), dtype=np.int64))


def _merged(records: Records, mark: I64) -> tuple[Records, I64]:
    """Merge in order: counts of equal records add up, and those without copies vanish."""
    order = sorted_keys.order(_keys(records, mark))
    records, mark = records.take(order), mark[order]
    run, ties = sorted_keys.ties(_keys(records, mark))
    if len(ties):
        columns = records.take(ties).content
        labels = zip(*(c.labels() if isinstance(c, Texts) else c.tolist() for c in columns), strict=True)
        members = sorted(zip(run.tolist(), labels, ties.tolist(), strict=True))
        order = np.arange(len(order))
        order[ties] = [place for _, _, place in members]
        records = records.take(order)
        before: list[Any] = []
        target = 0
        for position, (*this, _) in zip(ties.tolist(), members, strict=True):
            if this == before:
                records.counts[target] += records.counts[position]
                records.counts[position] = 0
            else:
                before, target = this, position
    if len(mark) and int(records.counts.min()) < 0:
        raise VerificationError("the store does not hold a record that was deleted: its data are not the stream's own")
    left = records.counts > 0
    return (records, mark) if left.all() else (records.take(left), mark[left])


def _split(records: Records, mark: I64, places: Sequence[Place], run: I64) -> list[tuple[Place, bytes]]:
    """The blocks of sorted records in runs: a block begins at each beginning, and at the place of each run."""
    if not len(mark):
        return []
    # records with equal stamp and mark stay together
    starts = _begins(mark) & sorted_keys.starts(_keys(records, mark))
    first = np.diff(run, prepend=-1) > 0
    begins = np.flatnonzero(starts | first).tolist()
    own = [
        (int(records.stamps[begin]), int(mark[begin])) if starts[begin] else places[int(run[begin])] for begin in begins
    ]
    return list(zip(own, pack(records, [*begins, len(mark)]), strict=True))


def _begins(mark: I64) -> Mask:
    return np.asarray(mark & (SIZE - 1) == 0)


def _keys(records: Records, mark: I64) -> Words:
    """The sort keys of records and blocks."""
    return records.stamps.view(np.uint64), mark.view(np.uint64)


def _find(places: Sequence[Place], keys: Words) -> I64:
    """The last place that is not after each record. Both are sorted."""
    begins, _ = sorted_keys.find(keys, tuple(np.array(places, dtype=np.uint64).T.copy()))
    return np.cumsum(np.bincount(begins, minlength=len(keys[0]) + 1)[:-1]) - 1
