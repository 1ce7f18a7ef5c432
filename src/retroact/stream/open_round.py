"""The open round of a stream: its operations, how far their sources were read, and pending requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ..arrays import I64
from ..checks import is_integral
from ..errors import InputError, VerificationError
from ..ledger import Operations, Updates
from ..ledger.operations import Position
from ..ledger.updates import UpdatesMark
from ..schema import Schema

if TYPE_CHECKING:
    from ..store.tables import Request

LARGEST = 1 << 62


class PositionSet:
    """An exact set of positions of a source, kept as ranges: one that counts up in steps of one costs next to nothing.

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
        """From ranges sorted by their first position."""
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
        if not len(other._first):
            return self
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


Reading = tuple[str, Position, list[int]]
"""A source, how far it was read, and the single positions it delivered."""
NO_POSITIONS = PositionSet(np.empty(0, np.int64), np.empty(0, np.int64))
Sources = dict[str, tuple[Position, PositionSet]]
"""How far each source was read, and which single positions were taken, so that nothing is taken twice."""


class RoundMark(msgspec.Struct, frozen=True):
    """How much an open round held, so that it can go back there."""

    updates: UpdatesMark
    reading: Sources
    requests: int
    rejected: int


class OpenRound:
    def __init__(self, schema: Schema) -> None:
        self.updates = Updates(schema)
        self.reading: Sources = {}
        self.requests: list[tuple[Request, list[bytes]]] = []
        """Erasures to be applied when the round closes, each with the hashes of its subjects."""
        self.rejected = 0
        """Records of barred subjects that were left out."""
        self.entries = 0
        """How many entries the store has in its inbox."""

    def asked(self) -> list[str | bytes]:
        """Whom its requests erase."""
        whole = self.updates.whole() if self.requests else Operations()
        return [*whole.erased, *whole.digests]

    def mark(self) -> RoundMark:
        return RoundMark(self.updates.mark(), dict(self.reading), len(self.requests), self.rejected)

    def go_back(self, mark: RoundMark) -> None:
        """Forget what came after the mark."""
        self.updates.go_back(mark.updates)
        self.reading, self.rejected = dict(mark.reading), mark.rejected
        del self.requests[mark.requests :]


def read_on(sources: Sources, source: str, position: Position, taken: PositionSet) -> None:
    """A source was read up to this position or further, and these single positions were taken."""
    reached, known = sources.get(source, ((), NO_POSITIONS))
    sources[source] = max(reached, position), known | taken


def checked_source(source: Any, position: Any, delivered: Any) -> Reading:
    if not isinstance(source, str) or not source:
        raise InputError(f"expected the name of a source, got {source!r}", place="source")
    for place, numbers in (("position", position), ("delivered", delivered)):
        for number in numbers if isinstance(numbers, list | tuple) else [numbers]:
            if not is_integral(number) or abs(int(number)) > LARGEST:
                raise InputError(f"expected whole numbers below 2^62, got {number!r}", place=place)
    return source, tuple(map(int, position)), list(map(int, delivered))
