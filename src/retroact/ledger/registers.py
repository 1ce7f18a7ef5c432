"""Records with an id: a register for each id holds at most one record, which the next event on the id replaces.

Free slots and spare room are zero, which is no record, since stamps begin at 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
import numpy as np

from ..arrays import I64, U64, Mask, Words
from ..texts import Texts
from . import sorted_keys
from .subject_index import Erased, Owners, SubjectIndex, entries
from .text_table import SMALL, TextTable, grouped, marks, resized


class RegisterEdit(msgspec.Struct, frozen=True):
    """What one round will do to the registers."""

    replaced: I64
    """Slots that get another record."""
    replacements: Words
    removed: I64
    """Slots that are emptied, sorted."""
    ids: Texts
    """Ids that held nothing, for `inserted`."""
    marks: U64
    """Their hashes."""
    inserted: Words
    gained: Words
    """All new records, and all that go; a record that is replaced by its equal is neither."""
    lost: Words
    written: I64
    """Held slots that get another record than before."""
    unlisted: U64 | None
    """Entries of lost records in the index of subjects; None if there was none."""
    named: Callable[[], tuple[Texts, Texts]]
    """The ids of `gained` and of `lost`; only before the edit is carried out."""
    ignored: int
    """Deletions of ids that held nothing."""


class Events(msgspec.Struct, frozen=True, eq=False):
    """Events on ids, and the slot of each: of the table, or one from `size` on for an id that it does not have."""

    texts: Texts
    mark: U64
    slots: I64
    size: int
    limit: int
    """No slot is as large."""

    def untouched(self, slots: I64) -> I64:
        """Those of these slots of the table that have no event."""
        touched = np.zeros(self.limit, dtype=np.bool_)
        touched[self.slots] = True
        return slots[~touched[slots]]


class Registers:
    """The record of each id, in a slot: the number of the id in a table of texts."""

    def __init__(self, words: Words) -> None:
        """Empty, for keys of this many words."""
        self._ids = TextTable()
        self._words = words
        self._index = SubjectIndex()

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def words(self) -> Words:
        """The record of every slot; zero, which is no record, where a slot is free."""
        return sorted_keys.take(self._words, slice(self._ids.size))

    def ids(self, slots: I64) -> Texts:
        return self._ids[slots]

    def holds(self, ids: Sequence[str], erased: Erased | None) -> Mask:
        slots = self._ids.find(Texts.of(ids, place="id"))
        held: Mask = slots >= 0
        if erased is not None:
            held[held] = ~erased(sorted_keys.take(self._words, slots[held]))
        return held

    def belonging_to(self, erased: Erased) -> I64:
        """The slots of these subjects."""
        return self._index.slots(erased, self.words)

    def find(self, ids: Sequence[str | None]) -> Events:
        texts = Texts.of(ids, place="id")
        mark = marks(texts)
        slots = self._ids.find(texts, mark)
        unknown = np.flatnonzero(slots < 0)
        if len(unknown):
            # after the others, one for each that is different
            slots[unknown] = grouped(texts[unknown], mark[unknown]) + self._ids.size
        return Events(texts, mark, slots, self._ids.size, self._ids.size + len(unknown))

    def plan(
        self, ids: Sequence[str | None], rows: I64, records: Words, erased: Erased | None, owners: Owners
    ) -> RegisterEdit:
        """The effect of one round: event k puts record `rows[k]` under `ids[k]`, or empties it if `rows[k]` is -1."""
        events = self.find(ids)
        slots, size = events.slots, events.size
        arrival = np.arange(len(slots))
        last = np.empty(events.limit, dtype=np.int64)
        last[slots] = arrival  # of several events on one id, the last one stays
        final = np.flatnonzero(last[slots] == arrival)
        ignored = _ignored(slots, rows, size)
        slot, row = slots[final], rows[final]
        held = slot < size

        removed = slot[held & (row < 0)]
        if erased is not None:
            theirs = self.belonging_to(erased)
            placed = np.flatnonzero(row >= 0)
            unborn = placed[erased(sorted_keys.take(records, row[placed]))]
            removed = np.concatenate([removed, events.untouched(theirs), slot[unborn][held[unborn]]])
            row[unborn] = -1
        return self.edit(events, final, row, removed, records, owners, ignored)

    def edit(
        self, events: Events, final: I64, row: I64, removed: I64, records: Words, owners: Owners, ignored: int = 0
    ) -> RegisterEdit:
        """By the `final` event on each id, which leaves record `row`, or none if that is -1."""
        slot = events.slots[final]
        held = slot < events.size
        replace, insert = held & (row >= 0), ~held & (row >= 0)
        replaced, replacements = slot[replace], sorted_keys.take(records, row[replace])
        inserted = sorted_keys.take(records, row[insert])
        new = final[insert]
        names = events.texts[new]
        names.require_utf8(place="id")
        before = sorted_keys.take(self._words, replaced)
        differs = sorted_keys.differ(before, replacements)

        lost = sorted_keys.concatenate(sorted_keys.take(before, differs), sorted_keys.take(self._words, removed))
        changed = replaced[differs]
        indexed = self._index.follows(len(changed) + len(removed) + len(new), events.size)

        def named() -> tuple[Texts, Texts]:
            same = self.ids(changed)
            return same.followed_by(names), same.followed_by(self.ids(removed))

        return RegisterEdit(
            replaced=replaced,
            replacements=replacements,
            removed=np.sort(removed),
            ids=names,
            marks=events.mark[new],
            inserted=inserted,
            gained=sorted_keys.concatenate(sorted_keys.take(replacements, differs), inserted),
            lost=lost,
            written=changed,
            unlisted=entries(owners(lost), np.concatenate([changed, removed])) if indexed else None,
            named=named,
            ignored=ignored,
        )

    def reserve(self, edit: RegisterEdit) -> None:
        """Make room for an edit: carrying it out then needs memory for what has the size of the edit alone."""
        self._ids.reserve(len(edit.ids), int(edit.ids.counts.sum()))
        size = self._ids.size + len(edit.ids)
        if size > len(self._words[0]):
            self._words = _resized(self.words, size + size // 4)

    def apply(self, edit: RegisterEdit) -> None:
        """Carry out an edit that was planned on this state."""
        self.reserve(edit)
        for word, new in zip(self._words, edit.replacements, strict=True):
            word[edit.replaced] = new
        self._ids.remove(edit.removed)
        slots = self._ids.insert(edit.ids, edit.marks)
        for word, new in zip(self._words, edit.inserted, strict=True):
            word[edit.removed] = 0
            word[slots] = new
        self._index.replace(edit.unlisted, np.concatenate([edit.written, slots]))
        with suppress(MemoryError):
            self._shrink()

    def _shrink(self) -> None:
        """Give back memory, if there is much more than is needed; each step as a whole."""
        self._ids.shrink()
        if self._ids.sparse:
            ids, kept = self._ids.compacted()
            words = sorted_keys.take(self._words, kept)
            self._index.drop()
            self._ids, self._words = ids, words
        if len(self._words[0]) > max(SMALL, 4 * self._ids.size):  # give back the memory of a much larger table
            self._words = _resized(self.words, self._ids.size)

    def repack(self, words: Words) -> None:
        """Move the records to another layout."""
        self._words = words
        self._index.drop()


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
    return tuple(resized(word, capacity) for word in words)
