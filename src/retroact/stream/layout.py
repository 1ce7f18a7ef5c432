"""When the layout of a store is rewritten after erasures.

An erasure is purged once its bytes are wiped, in the close that applies it. What is left is the layout: where rows lie
in the file, and which pages are free. Rewriting it costs as much as the store has, so it may wait in a large one, for
a number of rounds and hours after the first such erasure. The journal notes its round and the time, and the settings
of the store if somebody has chosen them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from ..checks import integer
from ..store.store import Store
from ..store.tables import Request

NOTE, SETTINGS = "layout", "layout settings"
AT_ONCE, ROUNDS, HOURS = 100_000_000, 16, 24


class LayoutSettings(msgspec.Struct, frozen=True):
    """
    >>> LayoutSettings().changed(rounds=2).rounds
    2
    """

    at_once: int = msgspec.field(default_factory=lambda: AT_ONCE)
    """In a store of fewer bytes the layout is rewritten at once. Otherwise it waits ..."""
    rounds: int = msgspec.field(default_factory=lambda: ROUNDS)
    hours: int = msgspec.field(default_factory=lambda: HOURS)
    """... until this many rounds have closed, or the first one after this many hours."""

    @classmethod
    def of(cls, store: Store) -> LayoutSettings:
        noted = store.note(SETTINGS)
        return msgspec.json.decode(noted, type=cls) if noted else cls()

    def changed(self, **settings: int | None) -> LayoutSettings:
        given = {name: value for name, value in settings.items() if value is not None}
        for name, value in given.items():
            integer(value, name, least=0, expected="a whole number from 0")
        return msgspec.structs.replace(self, **given)

    def keep(self, store: Store) -> None:
        if self != self.of(store):
            store.write_notes({SETTINGS: msgspec.json.encode(self).decode()})


class OldLayout(NamedTuple):
    """The round of the first erasure whose layout was not rewritten, and the time when it was wiped."""

    round: int
    since: str
    settings: LayoutSettings

    @classmethod
    def noted(cls, store: Store) -> OldLayout | None:
        round, _, since = (store.note(NOTE) or "").partition(" ")
        return cls(int(round), since, LayoutSettings.of(store)) if since else None

    def covers(self, request: Request) -> bool:
        """Whether this one waits. By rounds, as a clock may be set back."""
        return request.state == "purged" and request.round is not None and request.round >= self.round

    def due(self, round: int, time: str) -> bool:
        return round > self.round + self.settings.rounds or time >= self.until

    @property
    def until(self) -> str:
        late = datetime.fromisoformat(self.since) + timedelta(hours=self.settings.hours)
        return late.isoformat(timespec="seconds").replace("+00:00", "Z")

    def standing(self, round: int, time: str) -> str:
        """When it is rewritten, or since when that is overdue, by the open round and the time. Nothing looks at the
        clock but a close and an opening."""
        last = self.round + self.settings.rounds
        if not self.due(round, time):
            return f"rewritten when round {last:,} closes, or the first one after {self.until}"
        since = self.until if round <= last else f"round {last:,} closed"
        return (
            f"overdue since {since}: it is rewritten when the next round closes, when the stream is opened again, or "
            "by `retroact compact`"
        )


def purge(store: Store, round: int, clock: Callable[[], str], *, now: bool) -> bool:
    """Wipe what was erased, and rewrite the layout unless that may wait. Whether all that is due was done."""
    waiting, applied = OldLayout.noted(store), store.applied()
    if not applied and waiting is None:
        return True
    time = clock()
    small = store.size < LayoutSettings.of(store).at_once or not store.size
    if now or small or (waiting is not None and waiting.due(round, time)):
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
