"""Records with an id: a register for each id holds at most one record, which the next event on the id replaces.

Records are in slots without gaps: a removal moves the last record into the hole. Spare room is always zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress, repeat

import msgspec
import numpy as np

from ..arrays import I64, Words
from . import sorted_keys
from .sorted_keys import Erased
from .text_codes import require_utf8

# a table this small is not worth shrinking
_SMALL = 256


class RegisterEdit(msgspec.Struct, frozen=True):
    """What one round will do to the registers."""

    replaced: I64
    """Slots that get another record."""
    replacements: Words
    removed: I64
    """Slots that are emptied, sorted."""
    ids: list[str]
    """Ids that held nothing, for `inserted`."""
    inserted: Words
    gained: Words
    """All new records, and all that go; a record that is replaced by its equal is neither."""
    lost: Words
    named: Callable[[], tuple[list[str], list[str]]]
    """The ids of `gained` and of `lost`; only before the edit is carried out."""
    ignored: int
    """Deletions of ids that held nothing."""


class Registers:
    """The record of each id."""

    def __init__(self, words: Words) -> None:
        """Empty, for keys of this many words."""
        self._slots: dict[str, int] = {}
        self._ids: list[str] = []
        self._words = words

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def words(self) -> Words:
        return sorted_keys.take(self._words, slice(len(self._ids)))

    def ids(self, slots: I64) -> list[str]:
        return [self._ids[slot] for slot in slots.tolist()]

    def plan(self, ids: Sequence[str], rows: I64, records: Words, erased: Erased) -> RegisterEdit:
        """The effect of one round: event k puts record `rows[k]` under `ids[k]`, or empties it if `rows[k]` is -1."""
        slots, names = self._places(ids)
        arrival = np.arange(len(ids))
        last = np.empty(len(self._ids) + len(names), dtype=np.int64)
        last[slots] = arrival  # of several events on one id, the last one stays
        final = np.flatnonzero(last[slots] == arrival)
        ignored = _ignored(slots, rows, len(self._ids))
        slot, row = slots[final], rows[final]
        held = slot < len(self._ids)

        removed = slot[held & (row < 0)]
        if erased is not None:
            old = erased(self.words)
            old[slot[held]] = False
            placed = np.flatnonzero(row >= 0)
            unborn = placed[erased(sorted_keys.take(records, row[placed]))]
            removed = np.concatenate([removed, np.flatnonzero(old), slot[unborn][held[unborn]]])
            row[unborn] = -1

        replace, insert = held & (row >= 0), ~held & (row >= 0)
        replaced, replacements = slot[replace], sorted_keys.take(records, row[replace])
        inserted = sorted_keys.take(records, row[insert])
        names = [names[place] for place in (slot[insert] - len(self._ids)).tolist()]
        require_utf8(names, place="id")
        before = sorted_keys.take(self._words, replaced)
        differs = np.zeros(len(replaced), dtype=np.bool_)
        for one, other in zip(before, replacements, strict=True):
            differs |= one != other

        def named() -> tuple[list[str], list[str]]:
            changed = self.ids(replaced[differs])
            return [*changed, *names], [*changed, *self.ids(removed)]

        return RegisterEdit(
            replaced=replaced,
            replacements=replacements,
            removed=np.sort(removed),
            ids=names,
            inserted=inserted,
            gained=sorted_keys.concatenate(sorted_keys.take(replacements, differs), inserted),
            lost=sorted_keys.concatenate(sorted_keys.take(before, differs), sorted_keys.take(self._words, removed)),
            named=named,
            ignored=ignored,
        )

    def reserve(self, edit: RegisterEdit) -> None:
        """Make room for an edit, so that carrying it out cannot fail."""
        size = len(self._ids) + len(edit.ids)
        if size > len(self._words[0]):
            self._words = _resized(self.words, size + size // 2)

    def apply(self, edit: RegisterEdit) -> None:
        """Carry out an edit that was planned on this state."""
        self.reserve(edit)
        for word, new in zip(self._words, edit.replacements, strict=True):
            word[edit.replaced] = new
        if len(edit.removed):
            self._remove(edit.removed)
        size = len(self._ids)
        self._slots.update(zip(edit.ids, range(size, size + len(edit.ids)), strict=True))
        self._ids.extend(edit.ids)
        for word, new in zip(self._words, edit.inserted, strict=True):
            word[size : len(self._ids)] = new
        size = len(self._ids)
        if len(self._words[0]) > max(_SMALL, 4 * size):  # give back the memory of a much larger table
            self._words = _resized(self.words, size + size // 2)
            self._slots = dict(self._slots)

    def repack(self, words: Words) -> None:
        """The same records in another layout."""
        self._words = words

    def _remove(self, removed: I64) -> None:
        before, size = len(self._ids), len(self._ids) - len(removed)
        kept = np.ones(before - size, dtype=np.bool_)
        kept[removed[removed >= size] - size] = False
        holes, movers = removed[removed < size], np.flatnonzero(kept) + size
        for slot in removed.tolist():
            del self._slots[self._ids[slot]]
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self._ids[hole] = self._ids[mover]
            self._slots[self._ids[hole]] = hole
        del self._ids[size:]
        for word in self._words:
            word[holes] = word[movers]
            word[size:before] = 0

    def _places(self, ids: Sequence[str]) -> tuple[I64, list[str]]:
        """For each id its slot, or the slot behind the others that it would get; and the ids of the latter kind."""
        slots = np.fromiter(map(self._slots.get, ids, repeat(-1)), dtype=np.int64, count=len(ids))
        unknown = slots < 0
        strangers = list(compress(ids, unknown.tolist()))
        names = list(dict.fromkeys(strangers))
        size = len(self._ids)
        if len(names) == len(strangers):
            slots[unknown] = np.arange(size, size + len(names))
        else:
            places = dict(zip(names, range(size, size + len(names)), strict=True))
            slots[unknown] = np.fromiter(map(places.__getitem__, strangers), dtype=np.int64, count=len(strangers))
        return slots, names


def _ignored(slots: I64, rows: I64, size: int) -> int:
    """How many deletions found their id empty: after another deletion, or first on an id that held nothing."""
    if not (rows < 0).any():
        return 0
    by_id = np.argsort(slots, kind="stable")
    slots, empties = slots[by_id], rows[by_id] < 0
    first = np.ones(len(slots), dtype=np.bool_)
    first[1:] = slots[1:] != slots[:-1]
    was_empty = slots >= size
    was_empty[1:] = np.where(first[1:], was_empty[1:], empties[:-1])
    return int((empties & was_empty).sum())


def _resized(words: Words, capacity: int) -> Words:
    """The same words, padded with zeros."""
    resized = tuple(np.zeros(capacity, dtype=np.uint64) for _ in words)
    for new, old in zip(resized, words, strict=True):
        new[: len(old)] = old
    return resized
