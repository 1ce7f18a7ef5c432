"""A stream that takes everything and publishes nothing: what it refuses, a stream of this specification refuses."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..coins import Key
from ..ledger import Change, RoundChanges
from .closing import Closing
from .core import Core
from .door import Barred
from .persistence import Persistence
from .specification import Specification
from .stream import Stream


class Unpublished(Persistence):
    """Closes every round in memory, without a release. If later records of erased subjects are rejected, this stream
    knows whose, as a store does."""

    silent = sys.maxsize

    def __init__(self, *, rejects: bool) -> None:
        self._rejects = rejects
        self._erased: set[str] = set()

    def barred(self) -> Barred | None:
        erased = self._erased
        return (lambda subjects: {name for name in subjects if name is not None and name in erased}) if erased else None

    def persist(self, core: Core, change: Change | RoundChanges, closing: Sequence[Closing]) -> None:
        if self._rejects:
            self._erased.update(*(each.opened.updates.whole().erased for each in closing))


class Rehearsal(Stream):
    """It spends nothing: no noise is drawn, no key is made or read, and nothing is written.

    >>> import retroact as ra
    >>> spec = Specification({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=10)
    >>> stream = Rehearsal(spec)
    >>> stream.add({"age": [31, 44]})
    1
    >>> closed = stream.close_round()
    >>> len(closed), closed.applied.added
    (0, 2)
    """

    def __init__(self, specification: Specification) -> None:
        # a stream in memory may not reject erased subjects: this one does it by itself
        spec = specification.replace(after_erasure="accept")
        unpublished = Unpublished(rejects=specification.after_erasure == "reject")
        self._core = Core.new(spec, Key.for_testing(0), persistence=unpublished)
