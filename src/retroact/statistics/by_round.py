"""The totals of the changes of many rounds, gathered at once and kept in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..arrays import I64, U64

Pick = Callable[[int], Any]
"""From the number of a group to its totals."""


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
        place = int(np.searchsorted(self.rounds, round))
        if place == len(self) or self.rounds[place] != round:
            raise KeyError(round)
        return self._pick(place)

    def items(self) -> Iterator[tuple[int, Any]]:
        return zip(self, map(self._pick, range(len(self))), strict=True)


def places_of(ordered: I64 | U64, count: int) -> Callable[[int], slice]:
    """Where the members of each of the groups 0, 1, ... below ``count`` are, in their sorted numbers.

    >>> where = places_of(np.array([0, 0, 2]), 3)
    >>> where(0), where(1), where(2)
    (slice(0, 2, None), slice(2, 2, None), slice(2, 3, None))
    """
    ends = np.searchsorted(ordered, np.arange(count + 1, dtype=ordered.dtype)).tolist()
    return lambda group: slice(ends[group], ends[group + 1])
