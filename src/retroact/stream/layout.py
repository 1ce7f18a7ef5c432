"""When the layout of a store is rewritten after erasures.

An erasure is purged once its bytes are wiped, in the close that applies it. What is left is the layout: where rows lie
in the file, and which pages are free. Rewriting it costs as much as the store has, so it may wait in a large one, for
so many rounds and hours after the first erasure that waits. The journal notes that round and time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from ..store.receipt import moment
from ..store.store import Store

NOTE = "layout"
ROUNDS, HOURS = 16, 24


class Waiting(NamedTuple):
    """The open round and the time when the first erasure was wiped whose layout was not rewritten."""

    round: int
    since: str

    @classmethod
    def noted(cls, store: Store) -> Waiting | None:
        round, _, since = (store.note(NOTE) or "").partition(" ")
        return cls(int(round), since) if since else None

    def due(self, round: int) -> bool:
        return round >= self.round + ROUNDS or moment() >= self.until

    @property
    def until(self) -> str:
        late = datetime.fromisoformat(self.since) + timedelta(hours=HOURS)
        return late.isoformat(timespec="seconds").replace("+00:00", "Z")

    def __str__(self) -> str:
        return f"rewritten when round {self.round + ROUNDS - 1:,} closes, or the first one after {self.until}"


def purge(store: Store, round: int, *, now: bool) -> bool:
    """Wipe what was erased, and rewrite the layout unless that may wait. Whether all that is due was done."""
    waiting = Waiting.noted(store)
    if not store.unpurged and waiting is None:
        return True
    if now or not store.large or (waiting is not None and waiting.due(round)):
        if not store.purge():
            return False
        store.purged(moment(), {NOTE: ""} if waiting else {}, since=waiting and waiting.since)
    elif store.unpurged:
        if not store.scrub():
            return False
        first = waiting or Waiting(round, moment())
        store.purged(moment(), {NOTE: f"{first.round} {first.since}"})
    return True
