"""The totals of the changes of many rounds, gathered at once and kept in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..arrays import I64, U64

Pick = Callable[[int], Any]
"""Maps the number of a group to its totals."""


class ByRound:
    """Totals by round, in ascending order. Those of a round are made when they are asked for, and are copies: who keeps
    them keeps nothing of other rounds.

    >>> found = ByRound(np.array([3, 8]), lambda place: f"totals {place}")
    >>> list(found), found[8], dict(found.items())
    ([3, 8], 'totals 1', {3: 'totals 0', 8: 'totals 1'})
    """

    __slots__ = ("_pick", "rounds")

    def __init__(self, rounds: I64, pick: Pick) -> None:
        self.rounds, self._pick = rounds, pick

    def __iter__(self) -> Iterator[int]:
        return iter(self.rounds.tolist())

    def __len__(self) -> int:
        return len(self.rounds)

    def __getitem__(self, round: int) -> Any:
        place = self._place(round)
        if place is None:
            raise KeyError(round)
        return self._pick(place)

    def get(self, round: int) -> Any | None:
        place = self._place(round)
        return None if place is None else self._pick(place)

    def _place(self, round: int) -> int | None:
        place = int(np.searchsorted(self.rounds, round))
        return place if place < len(self) and self.rounds[place] == round else None

    def items(self) -> Iterator[tuple[int, Any]]:
        return zip(self, map(self._pick, range(len(self))), strict=True)


def groups_of(rounds: I64) -> tuple[I64, I64]:
    """The different rounds in order, and which of them each of these is. Rounds that ascend need no sort.

    >>> groups_of(np.array([3, 3, 8])), groups_of(np.array([8, 3, 3]))
    ((array([3, 8]), array([0, 0, 1])), (array([3, 8]), array([1, 0, 0])))
    """
    if not (rounds[1:] >= rounds[:-1]).all():
        return np.unique(rounds, return_inverse=True)
    begins = np.ones(len(rounds), dtype=np.bool_)
    np.not_equal(rounds[1:], rounds[:-1], out=begins[1:])
    return rounds[begins], np.cumsum(begins) - 1


def places_of(ordered: I64 | U64, count: int) -> Callable[[int], slice]:
    """Where the members of each of the groups 0, 1, ... below ``count`` are, in their sorted numbers.

    >>> where = places_of(np.array([0, 0, 2]), 3)
    >>> where(0), where(1), where(2)
    (slice(0, 2, None), slice(2, 2, None), slice(2, 3, None))
    """
    ends = np.searchsorted(ordered, np.arange(count + 1, dtype=ordered.dtype)).tolist()
    return lambda group: slice(ends[group], ends[group + 1])
