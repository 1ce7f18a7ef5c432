"""Which records survive, which values are present, and when that changes: the flips of one round.

A value is present while at least one record with it survives. Rounds may hold many updates: additions count first, then
deletions (`ledger.definition`), and a value flips if its presence at the end of the round differs from before. So a
value flips at most once a round, however often it is touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from ..errors import InputError
from ..ledger.definition import Add, Delete, Point, Update


class Survivors:
    """The surviving records of a history of additions without ids and deletions by value.

    >>> survivors = Survivors()
    >>> survivors.apply([Add("x")], round=1), survivors.apply([Delete("x", 1), Delete("x", 1)], round=2)[1]
    (([Point(stamp=1, value='x', id=None, subject=None)], []), [Point(stamp=1, value='x', id=None, subject=None)])
    """

    def __init__(self) -> None:
        self._points: Counter[Point] = Counter()

    def apply(self, updates: Sequence[Update], round: int) -> tuple[list[Point], list[Point]]:
        """The records that came in a round, and those that went. Nothing changes if an update is refused."""
        events = [_checked(update) for update in updates]
        came = [p for event in events if isinstance(event, Add) and (p := event.point(round)) is not None]
        named = [Point(event.stamp, event.value, None, event.subject) for event in events if isinstance(event, Delete)]
        went = []
        for point in came:
            self._points[point] += 1
        for point in named:
            if point in self._points:
                went.append(point)
                self._points[point] -= 1
                if not self._points[point]:
                    del self._points[point]
        return came, went


class Presence(Survivors):
    """
    >>> presence = Presence()
    >>> presence.flips([Add("x"), Add("x")], round=1), presence.flips([Delete("x", 1)], round=2)
    ([('x', 1)], [])
    >>> presence.flips([Delete("x", 1), Add("y")], round=3)
    [('y', 1), ('x', -1)]
    """

    def __init__(self) -> None:
        super().__init__()
        self._copies: Counter[Hashable] = Counter()

    def flips(self, updates: Sequence[Update], round: int) -> list[tuple[Hashable, int]]:
        """Applies one round; +1 for a value that appeared, -1 for one that disappeared."""
        came, went = self.apply(updates, round)
        before = {point.value: self._copies[point.value] > 0 for point in (*came, *went)}
        for points, sign in ((came, 1), (went, -1)):
            for point in points:
                self._copies[point.value] += sign
        return [(value, -1 if was else 1) for value, was in before.items() if (self._copies[value] > 0) != was]


def _checked(update: Update) -> Add | Delete:
    # An event on an id, or an erasure, is more than one operation, and can move two values at once.
    if not isinstance(update, Add | Delete) or (isinstance(update, Add) and update.id is not None):
        raise InputError(f"expected additions without an id and deletions by value, got {update!r}", place="updates")
    try:
        hash(update)
    except TypeError as wrong:
        raise InputError(
            f"expected values and subjects that can be compared, got {update!r}", place="updates"
        ) from wrong
    return update
