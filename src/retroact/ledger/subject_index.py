"""Which slots belong to a subject, so that an erasure costs what the subject has.

The index is made for the first erasure and serves until many slots have changed. It is exact whatever has changed: it
names candidates, slots written since included, and their records say whose they are. An entry of a record that goes is
overwritten by its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from ..arrays import I64, U64, Mask, Words
from ..texts import places_of
from .sorted_keys import take

Owners = Callable[[Words], I64]
"""The codes of the subjects of records."""
_SLOT = np.uint64(32)
# the index is given up when more slots than a sixteenth of all, and than this, have changed
_FEW, _PART = 1024, 16


class Erased(msgspec.Struct, frozen=True):
    """Subjects that are erased, by their codes."""

    codes: I64
    flags: Mask
    """The same by code."""
    owners: Owners

    def __call__(self, words: Words) -> Mask:
        """Which records are theirs."""
        theirs: Mask = self.flags[self.owners(words)]
        return theirs


class SubjectIndex:
    def __init__(self) -> None:
        self._entries: U64 | None = None
        """Code and slot in one number, sorted; None: there is no index."""
        self._fresh: list[I64] = []
        """Slots written since."""
        self._changed = 0

    def slots(self, erased: Erased, words: Words) -> I64:
        """The slots of these subjects, sorted; `words` has the record of each slot, or zero."""
        if self._entries is None:
            owners = erased.owners(words)
            held = np.flatnonzero(owners)
            self._entries = entries(owners[held], held)
            self._entries.sort()
        codes = np.unique(erased.codes).astype(np.uint64)
        begin, end = (np.searchsorted(self._entries, codes + more << _SLOT) for more in (np.uint64(0), np.uint64(1)))
        found = self._entries[places_of(begin, end - begin)] & np.uint64(0xFFFFFFFF)
        slots = np.unique(np.concatenate([found.view(np.int64), *self._fresh]))
        theirs: I64 = slots[erased(take(words, slots))]
        return theirs

    def follows(self, count: int, size: int) -> bool:
        """Whether the index is kept when ``count`` of ``size`` slots change; otherwise it is dropped."""
        self._changed += count
        if self._entries is not None and self._changed > max(_FEW, size // _PART):
            self.drop()
        return self._entries is not None

    def replace(self, gone: U64 | None, written: I64) -> None:
        """Forget entries, and remember slots that were written. None: an index made since then is given up."""
        if gone is None:
            self.drop()
        if self._entries is None or gone is None:
            return
        begin, end = (np.searchsorted(self._entries, gone, side=side) for side in ("left", "right"))
        places = np.unique(places_of(begin, end - begin))
        if len(places):
            run = np.cumsum(np.diff(places, prepend=-2) > 1) - 1
            before = places[np.searchsorted(run, run)] - 1
            self._entries[places] = np.where(before < 0, np.uint64(0), self._entries[before])
        self._fresh.append(written)

    def drop(self) -> None:
        self._entries, self._fresh, self._changed = None, [], 0


def entries(owners: I64, slots: I64) -> U64:
    return (owners.astype(np.uint64) << _SLOT) | slots.astype(np.uint64)
