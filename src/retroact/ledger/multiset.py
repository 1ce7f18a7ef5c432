"""Records without id: a sorted array of distinct keys, and the number of surviving copies of each.

In a round c' = max(0, c + additions - deletions) for every key: additions come first, and a deletion that finds no copy
does nothing. Keys begin with the stamp, so records with the current stamp sort last and go to the spare room at the
end; anything else rewrites the arrays. Spare room is always zero.
"""

from __future__ import annotations

import msgspec
import numpy as np

from ..arrays import I64, Words
from . import sorted_keys
from .sorted_keys import write_edited
from .subject_index import Erased


class MultisetEdit(msgspec.Struct, frozen=True):
    """What one round will do to a multiset."""

    inserted: Words
    """New keys, sorted, with their numbers of copies."""
    copies: I64
    at: I64
    """Positions before the edit in front of which the first new keys go; the others go to the end."""
    changed: I64
    """Positions where the number of copies changes, sorted, with the new numbers; 0 removes the key."""
    counts: I64
    ignored: int
    """Deletions that found no copy."""


class Multiset:
    """Distinct keys with their number of copies; `size` of the former, `copies` of the latter."""

    def __init__(self, words: Words, counts: I64) -> None:
        """Sorted distinct keys and positive counts, not copied."""
        self._words = words
        self._counts = counts
        self._spare: tuple[Words, I64] | None = None
        """The previous arrays, all zero."""
        self.size = len(counts)
        self.copies = int(counts.sum())

    @property
    def words(self) -> Words:
        return sorted_keys.take(self._words, slice(self.size))

    @property
    def counts(self) -> I64:
        return self._counts[: self.size]

    def between(self, smallest: np.uint64, largest: np.uint64) -> slice:
        """The positions of keys whose first word lies within the bounds."""
        first = self._words[0][: self.size]
        start, stop = np.searchsorted(first, smallest), np.searchsorted(first, largest, side="right")
        return slice(int(start), int(stop))

    def plan(self, additions: Words, deletions: Words, erased: Erased | None, copies: I64 | None) -> MultisetEdit:
        """The effect of one round. The given keys are reordered. `copies` counts each addition; None means one each."""
        added, net = sorted_keys.unique(additions, copies)
        deleted, losses = sorted_keys.unique(deletions)
        again, both = sorted_keys.find(added, deleted)
        if both.any():
            net[again[both]] -= losses[both]
            deleted, losses = sorted_keys.take(deleted, ~both), losses[~both]

        # most rounds only add after the last key, and need no search
        old = sorted_keys.not_above(added, sorted_keys.take(self.words, slice(-1, None)))
        at, present = sorted_keys.find(self.words, sorted_keys.take(added, slice(old)))
        net[:old][present] += self._counts[at[present]]
        at_deleted, found = sorted_keys.find(self.words, deleted)
        left = self._counts[at_deleted[found]] - losses[found]
        ignored = int(losses[~found].sum()) - int(left[left < 0].sum()) - int(net[net < 0].sum())

        changed = np.concatenate([at[present], at_deleted[found]])
        counts = np.maximum(np.concatenate([net[:old][present], left]), 0)
        if present.any():
            ascending = np.argsort(changed)
            changed, counts = changed[ascending], counts[ascending]
        new = net > 0
        new[:old][present] = False
        inserted, copies, at = added, net, at[new[:old]]
        if not new.all():
            inserted, copies = sorted_keys.take(added, new), net[new]
        if erased is not None:
            gone = np.flatnonzero(erased(self.words))
            current = self.counts.copy()
            current[changed] = counts
            unborn = erased(inserted)
            inserted, copies, at = sorted_keys.take(inserted, ~unborn), copies[~unborn], at[~unborn[: len(at)]]
            current[gone] = 0
            changed = np.unique(np.concatenate([changed, gone]))
            counts = current[changed]
        real = counts != self._counts[changed]
        return MultisetEdit(inserted, copies, at, changed[real], counts[real], ignored)

    def apply(self, edit: MultisetEdit) -> None:
        """Carry out an edit that was planned on this state. Anything that can fail fails before a change."""
        gained = int(edit.copies.sum()) + int((edit.counts - self._counts[edit.changed]).sum())
        if len(edit.changed) == 0 and len(edit.at) == 0 and self.size + len(edit.copies) <= len(self._counts):
            size = self.size + len(edit.copies)
            for array, new in zip((*self._words, self._counts), (*edit.inserted, edit.copies), strict=True):
                array[self.size : size] = new
            self.size, self.copies = size, self.copies + gained
            return
        words, counts, size = self._rewritten(edit)
        old = (self._words, self._counts)
        used = self.size
        self._words, self._counts, self.size, self.copies = words, counts, size, self.copies + gained
        for array in (*old[0], old[1]):
            array[:used] = 0
        if size <= len(old[1]) <= 4 * size:
            self._spare = old

    def repack(self, words: Words) -> None:
        """Move the keys to another layout."""
        self._words, self._counts, self._spare = words, self.counts.copy(), None

    def _rewritten(self, edit: MultisetEdit) -> tuple[Words, I64, int]:
        """Keys and counts after an edit, in the spare arrays if they fit: new memory costs more than copying."""
        gone = edit.changed[edit.counts == 0]
        size = self.size - len(gone) + len(edit.copies)
        spare, self._spare = self._spare, None
        if spare is None or not size <= len(spare[1]) <= 4 * size:
            room = size + size // 2
            spare = tuple(np.zeros(room, dtype=np.uint64) for _ in self._words), np.zeros(room, dtype=np.int64)
        words, counts = spare
        for old, new, out in zip(self.words, edit.inserted, words, strict=True):
            write_edited(old, gone, edit.at, new, out[:size])
        write_edited(self.counts, gone, edit.at, edit.copies, counts[:size])
        kept, left = edit.changed[edit.counts > 0], edit.counts[edit.counts > 0]
        counts[kept - np.searchsorted(gone, kept) + np.searchsorted(edit.at, kept, side="right")] = left
        return words, counts, size
