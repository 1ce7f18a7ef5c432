"""When the subjects of records are erased, over several rounds counted from 0."""

from __future__ import annotations

import numpy as np

from ..arrays import I64, Words
from ..texts import places_of
from .subject_index import Erased


class Erasures:
    """An erasure removes what its subject has at the end of its round, records of that round included."""

    def __init__(self, erased: Erased | None, codes: I64, rounds: I64, count: int) -> None:
        """Subjects by code, each with a round below `count`."""
        self.erased, self.count = erased, count
        self._events = np.unique(codes * count + rounds)

    def first(self, records: Words, since: I64) -> I64:
        """In which round, from this one on, the subject of each record is erased first; `count` if in none."""
        until = np.full(len(records[0]), self.count, dtype=np.int64)
        if self.erased is None:
            return until
        owners = self.erased.owners(records)
        theirs = np.flatnonzero(self.erased.flags[owners])
        at = np.searchsorted(self._events, owners[theirs] * self.count + since[theirs])
        found = np.append(self._events, -1)[at]
        same = found // self.count == owners[theirs]
        until[theirs[same]] = found[same] % self.count
        return until

    def each(self, records: Words) -> tuple[I64, I64]:
        """All erasures of the subjects of these records: which record, and in which round."""
        if self.erased is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        owners = self.erased.owners(records)
        begin, end = (np.searchsorted(self._events, code * self.count) for code in (owners, owners + 1))
        which = np.repeat(np.arange(len(owners)), end - begin)
        return which, self._events[places_of(begin, end - begin)] % self.count

    def held_before(self, codes: I64, rounds: I64, records: Words, weights: I64, when: I64) -> I64:
        """How many copies each of these subjects gained before that round, by the changes of all rounds."""
        if self.erased is None:
            return np.zeros(len(codes), dtype=np.int64)
        owners = self.erased.owners(records)
        theirs = np.flatnonzero(self.erased.flags[owners])
        order = np.argsort(owners[theirs] * self.count + when[theirs])
        theirs = theirs[order]
        times = owners[theirs] * self.count + when[theirs]
        sums = np.concatenate([[0], np.cumsum(weights[theirs])])
        begin, end = (np.searchsorted(times, codes * self.count + more) for more in (0, rounds))
        gained: I64 = sums[end] - sums[begin]
        return gained
