"""Which values are present, and when that changes: the flips of one round.

A value is present while at least one record with it survives. Rounds may hold many updates: additions count first, then
deletions (`ledger.definition`), and a value flips when it is present at the end of the round and was not before, or the
other way round. So a value flips at most once a round, however often it is touched in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from ..errors import InputError
from ..ledger.definition import Add, Delete, Point, Update


class Presence:
    """
    >>> presence = Presence()
    >>> presence.flips([Add("x"), Add("x")], round=1), presence.flips([Delete("x", 1)], round=2)
    ([('x', 1)], [])
    >>> presence.flips([Delete("x", 1), Add("y")], round=3)
    [('x', -1), ('y', 1)]
    """

    def __init__(self) -> None:
        self._points: Counter[Point] = Counter()
        self._copies: Counter[Hashable] = Counter()

    def flips(self, updates: Sequence[Update], round: int) -> list[tuple[Hashable, int]]:
        """Applies one round; +1 for a value that came, -1 for one that went."""
        events = [_checked(update) for update in updates]
        before = {event.value: self._copies[event.value] > 0 for event in events}
        for event in events:
            if isinstance(event, Add) and (point := event.point(round)) is not None:
                self._points[point] += 1
                self._copies[event.value] += 1
        for event in events:
            if isinstance(event, Delete):
                self._remove(Point(event.stamp, event.value, subject=event.subject))
        after = {value: self._copies[value] > 0 for value in before}
        return [(value, int(after[value]) - int(was)) for value, was in before.items() if after[value] != was]

    def _remove(self, point: Point) -> None:
        if self._points[point] > 0:
            self._points[point] -= 1
            self._copies[point.value] -= 1


def _checked(update: Update) -> Add | Delete:
    # An event on an id, or an erasure, can move two values at once; item privacy is for one.
    if isinstance(update, Delete) or (isinstance(update, Add) and update.id is None):
        return update
    raise InputError(f"expected additions without an id and deletions by value, got {update!r}", place="updates")
