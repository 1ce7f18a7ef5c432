"""Deletions that wait for no round: what they take out of the surviving data and out of the open round, at once.

What is left of both gives at the close what all of it would have given. So where the last event on an id places a
record that is erased, that id ends empty: it is emptied in the surviving data, and all events on it are gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import compress

import numpy as np

from retroact.ledger.folding import Subjects
from retroact.ledger.sorted_keys import Integers, Mask
from retroact.ledger.updates import Updates
from retroact.schema import Schema


@dataclass(frozen=True)
class Removal:
    """The erasures and the deletions by id of an open round.

    >>> from retroact.ledger import Ledger
    >>> from retroact.schema import Integer
    >>> schema = Schema({"age": Integer(0, 120)})
    >>> ledger, updates = Ledger(schema), Updates(schema)
    >>> updates.add_one((31,), 1, "a", "u17")
    >>> updates.add_one((44,), 1, "b", "u18")
    >>> updates.erase(["u17"])
    >>> removal, left = Removal.of(updates, 1), Updates(schema)
    >>> ledger.apply(1, removal.deletions(schema)).removed, removal.left(updates, left), left.event_ids
    (0, 2, ['b'])
    """

    subjects: frozenset[str]
    digests: frozenset[bytes]
    """Subjects by the SHA-256 of their names."""
    until: Mapping[str, int]
    """The ids that are emptied, each with the last of the events on it that are gone."""

    @classmethod
    def of(cls, updates: Updates, round: int) -> Removal:
        """Of the updates that the open round holds, in the order in which they came."""
        ids = updates.event_ids
        found = cls(frozenset(updates.erased), frozenset(updates.erased_digests), {ids[k]: k for k in updates.emptied})
        _, stamps, subjects, _ = updates.placements.columns()
        # a stamp in the future is no event
        happens = stamps <= round
        gone = found._theirs(subjects, len(stamps)) & happens
        if not gone.any():
            return found
        placed = updates.placed
        last = {ids[k]: k for k in sorted([*placed[happens].tolist(), *updates.emptied])}
        erased = {ids[k]: k for k in placed[gone].tolist() if last[ids[k]] == k}
        return cls(found.subjects, found.digests, {**found.until, **erased})

    def __bool__(self) -> bool:
        return bool(self.subjects or self.digests or self.until)

    def deletions(self, schema: Schema) -> Updates:
        """What they do to the surviving data."""
        updates = Updates(schema)
        updates.erase(list(self.subjects))
        updates.erase_digests(list(self.digests))
        updates.delete_ids(list(self.until))
        return updates

    def left(self, updates: Updates, into: Updates, first: int = 0) -> int:
        """What is left of some updates goes into others; the number of the event after them. ``first`` is that of their
        first event, where they are a part of the open round."""
        rows, stamps, subjects, counts = updates.additions.columns()
        kept = np.flatnonzero(~self._theirs(subjects, rows.count))
        if counts is not None:
            kept = np.repeat(kept, counts[kept])
        if len(kept):
            into.add(rows.take(kept), stamps[kept], _of(subjects, kept))
        rows, stamps, subjects, _ = updates.deletions.columns()
        kept = np.flatnonzero(~self._theirs(subjects, rows.count))
        if len(kept):
            into.delete(rows.take(kept), stamps[kept], _of(subjects, kept))
        rows, stamps, subjects, _ = updates.placements.columns()
        placed = updates.placed
        ids = [updates.event_ids[k] for k in placed.tolist()]
        later = [first + k > self.until.get(id, -1) for k, id in zip(placed.tolist(), ids, strict=True)]
        stays = np.array(later, dtype=np.bool_) & ~self._theirs(subjects, rows.count)
        kept = np.flatnonzero(stays)
        if len(kept):
            into.add(rows.take(kept), stamps[kept], _of(subjects, kept), list(compress(ids, stays.tolist())))
        return first + len(updates.event_ids)

    def _theirs(self, subjects: Subjects, count: int) -> Mask:
        """Which records belong to those who are erased."""
        if subjects is None or isinstance(subjects, str):
            return np.full(count, self._erases(subjects))
        known = {name: self._erases(name) for name in {*subjects}}
        return np.fromiter((known[name] for name in subjects), dtype=np.bool_, count=count)

    def _erases(self, subject: str | None) -> bool:
        if subject is None:
            return False
        return subject in self.subjects or bool(self.digests and sha256(subject.encode()).digest() in self.digests)


def _of(subjects: Subjects, kept: Integers) -> Subjects:
    return subjects if subjects is None or isinstance(subjects, str) else [subjects[k] for k in kept.tolist()]
