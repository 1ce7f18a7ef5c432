"""Which positions of a source were taken: an exact set of whole numbers, kept as ranges."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..arrays import I64
from ..errors import VerificationError


class PositionSet:
    """Neighbours are one range, so that a source that counts one by one costs next to nothing.

    >>> taken = PositionSet.of([7, 3, 4, 5, 1 << 50])
    >>> taken, 4 in taken, 6 in taken
    (PositionSet(3-5, 7, 1125899906842624), True, False)
    >>> PositionSet.from_bytes(taken.to_bytes()) | PositionSet.of([6])
    PositionSet(3-7, 1125899906842624)
    """

    def __init__(self, first: I64, last: I64) -> None:
        self._first, self._last = first, last

    @classmethod
    def of(cls, positions: Iterable[int] = ()) -> PositionSet:
        numbers = np.unique(np.fromiter(positions, dtype=np.int64))
        return cls._joined(numbers, numbers)

    @classmethod
    def _joined(cls, first: I64, last: I64) -> PositionSet:
        """From ranges in order of their beginning."""
        if not len(first):
            return cls(first, last)
        reach = np.maximum.accumulate(last)
        begins = np.ones(len(first), dtype=np.bool_)
        begins[1:] = first[1:] > reach[:-1] + 1
        ends = np.append(np.flatnonzero(begins)[1:] - 1, len(first) - 1)
        return cls(first[begins], reach[ends])

    def __contains__(self, position: int) -> bool:
        place = int(np.searchsorted(self._first, position, side="right")) - 1
        return place >= 0 and position <= int(self._last[place])

    def __or__(self, other: PositionSet) -> PositionSet:
        first, last = (np.concatenate(pair) for pair in ((self._first, other._first), (self._last, other._last)))
        order = np.argsort(first, kind="stable")
        return PositionSet._joined(first[order], last[order])

    def __repr__(self) -> str:
        ranges = zip(self._first.tolist(), self._last.tolist(), strict=True)
        return f"PositionSet({', '.join(str(a) if a == b else f'{a}-{b}' for a, b in ranges)})"

    def to_bytes(self) -> bytes:
        return self._first.astype("<i8").tobytes() + self._last.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, stored: bytes) -> PositionSet:
        if len(stored) % 16:
            raise VerificationError(f"expected ranges of positions, got {len(stored)} bytes")
        numbers = np.frombuffer(stored, dtype="<i8").astype(np.int64).reshape(2, -1)
        return cls(numbers[0], numbers[1])
