"""When the layout of a store is rewritten after erasures.

An erasure is purged once its bytes are wiped, in the close that applies it. What is left is the layout: where rows lie
in the file, and which pages are free. Rewriting it costs as much as the store has, so it may wait in a large one, for
so many rounds and hours after the first erasure that waits. The journal notes its round and the time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from ..store.store import Store
from ..store.tables import Request

NOTE = "layout"
ROUNDS, HOURS = 16, 24


class OldLayout(NamedTuple):
    """The round of the first erasure whose layout was not rewritten, and the time when it was wiped."""

    round: int
    since: str

    @classmethod
    def noted(cls, store: Store) -> OldLayout | None:
        round, _, since = (store.note(NOTE) or "").partition(" ")
        return cls(int(round), since) if since else None

    def covers(self, request: Request) -> bool:
        """Whether this one waits. By rounds, as a clock may be set back."""
        return request.state == "purged" and request.round is not None and request.round >= self.round

    def due(self, round: int, time: str) -> bool:
        return round > self.round + ROUNDS or time >= self.until

    @property
    def until(self) -> str:
        late = datetime.fromisoformat(self.since) + timedelta(hours=HOURS)
        return late.isoformat(timespec="seconds").replace("+00:00", "Z")

    def __str__(self) -> str:
        return f"rewritten when round {self.round + ROUNDS:,} closes, or the first one after {self.until}"


def purge(store: Store, round: int, clock: Callable[[], str], *, now: bool) -> bool:
    """Wipe what was erased, and rewrite the layout unless that may wait. Whether all that is due was done."""
    waiting, applied = OldLayout.noted(store), store.applied()
    if not applied and waiting is None:
        return True
    time = clock()
    if now or not store.large or (waiting is not None and waiting.due(round, time)):
        if not store.purge():
            return False
        store.purged(time, {NOTE: ""} if waiting else {}, since=waiting and waiting.round)
    elif applied:
        if not store.scrub():
            return False
        first = min(each.round or round for each in applied)
        first, since = (min(first, waiting.round), waiting.since) if waiting else (first, time)
        store.purged(time, {NOTE: f"{first} {since}"})
    return True
