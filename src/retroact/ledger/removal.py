"""Deletions that do not wait for the round to close: what they remove from the surviving data and the open round.

What is left of both must give at the close what all of it would have given. So if the last event on an id places a
record that is erased, the id is emptied in the surviving data, and all events on it are removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec
import numpy as np

from ..arrays import Mask
from ..schema import Schema
from .operations import Operations, Stamped
from .updates import Updates


class Removal(msgspec.Struct, frozen=True):
    """The erasures and the deletions by id of an open round.

    >>> from retroact.ledger import Ledger
    >>> from retroact.schema import Integer
    >>> schema = Schema({"age": Integer(0, 120)})
    >>> ledger, updates = Ledger(schema), Updates(schema)
    >>> updates.add_one((31,), 1, "a", "u17")
    >>> updates.add_one((44,), 1, "b", "u18")
    >>> updates.append(Operations(erased=["u17"]))
    >>> removal = Removal.of(updates, 1)
    >>> ledger.apply(1, removal.deletions(schema)).removed, removal.left(updates.whole()).ids
    (0, ['b'])
    """

    subjects: frozenset[str]
    digests: frozenset[bytes]
    """Subjects by the SHA-256 of their names."""
    until: Mapping[str, int]
    """The ids that are emptied, each with the last event on it that is removed."""

    @classmethod
    def of(cls, updates: Updates, round: int) -> Removal:
        whole = updates.whole()
        ids, placed = list(whole.ids), whole.placed
        found = cls(frozenset(whole.erased), frozenset(whole.digests), {ids[k]: k for k in whole.emptied})
        # a stamp in the future is no event
        happens = placed.stamps <= round
        gone = found._theirs(placed) & happens
        if not gone.any():
            return found
        places = whole.places
        last = {ids[k]: k for k in sorted([*places[happens].tolist(), *whole.emptied])}
        erased = {ids[k]: k for k in places[gone].tolist() if last[ids[k]] == k}
        return cls(found.subjects, found.digests, {**found.until, **erased})

    def __bool__(self) -> bool:
        return bool(self.subjects or self.digests or self.until)

    def deletions(self, schema: Schema) -> Updates:
        """What is removed from the surviving data."""
        updates = Updates(schema)
        emptied = list(self.until)
        updates.append(
            Operations(ids=emptied, emptied=range(len(emptied)), erased=[*self.subjects], digests=[*self.digests])
        )
        return updates

    def left(self, batch: Operations, first: int = 0) -> Operations:
        """What is left of a batch of the open round that ``first`` events on ids precede."""
        names, places = list(batch.ids), batch.places
        later = [first + k > self.until.get(names[k], -1) for k in places.tolist()]
        stays = np.array(later, dtype=np.bool_) & ~self._theirs(batch.placed)
        added, deleted = (part.take(~self._theirs(part)) for part in (batch.added, batch.deleted))
        ids = [names[k] for k in places[stays].tolist()]
        return Operations(added, batch.placed.take(stays), deleted, ids)

    def left_of(self, updates: Updates) -> Updates:
        """What is left of an open round."""
        left = Updates(updates.schema)
        left.append(self.left(updates.whole()))
        return left

    def _theirs(self, part: Stamped) -> Mask:
        """Which records belong to erased subjects."""
        owners = list(part.owners())
        known = {name: self._erases(name) for name in {*owners}}
        return np.fromiter((known[name] for name in owners), dtype=np.bool_, count=part.rows.count)

    def _erases(self, subject: str | None) -> bool:
        if subject is None:
            return False
        return subject in self.subjects or bool(self.digests and sha256(subject.encode()).digest() in self.digests)
