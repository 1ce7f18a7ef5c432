"""What the open round of a stream holds: operations, how far their sources were read, and requests that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..checks import is_integral
from ..errors import InputError
from ..ledger import Updates
from ..ledger.operations import Position
from ..ledger.updates import UpdatesMark
from ..schema import Schema
from ..store.store import Request
from .position_set import PositionSet

LARGEST = 1 << 62


@dataclass(frozen=True)
class RoundMark:
    """How much an open round held, to go back to."""

    updates: UpdatesMark
    reading: Mapping[str, tuple[Position, set[int]]]
    requests: int
    rejected: int


class OpenRound:
    def __init__(self, schema: Schema) -> None:
        self.updates = Updates(schema)
        self.reading: dict[str, tuple[Position, set[int]]] = {}
        """How far each source was read, and which single positions were."""
        self.requests: list[tuple[Request, list[bytes]]] = []
        """Erasures that wait for the round to close, each with the hashes of its subjects."""
        self.rejected = 0
        """Records of barred subjects."""
        self.entries = 0
        """How many entries a store holds of it."""

    def mark(self) -> RoundMark:
        return RoundMark(self.updates.mark(), dict(self.reading), len(self.requests), self.rejected)

    def go_back(self, moment: RoundMark) -> None:
        """Forget what came after."""
        self.updates.go_back(moment.updates)
        self.reading, self.rejected = dict(moment.reading), moment.rejected
        del self.requests[moment.requests :]

    def holds(self, source: str, position: int) -> bool:
        """Whether a single position of a source was read."""
        return source in self.reading and position in self.reading[source][1]

    def read(self, source: str, position: Position, delivered: Sequence[int]) -> None:
        """A source was read up to this position at least."""
        reached, known = self.reading.get(source, ((), set()))
        self.reading[source] = (max(reached, position), known | {*delivered} if delivered else known)


@dataclass
class Sources:
    """How far each source was read in rounds that are closed, so that nothing of it is taken twice."""

    positions: dict[str, Position] = field(default_factory=dict)
    taken: dict[str, PositionSet] = field(default_factory=dict)
    """Which single positions, where a source tells them."""

    def settle(self, round: OpenRound) -> None:
        """The open round closes: what it read is settled."""
        for source, (position, known) in round.reading.items():
            self.positions[source] = max(position, self.positions.get(source, ()))
            if known:
                self.take(source, PositionSet.of(known))

    def holds(self, source: str, position: int) -> bool:
        return source in self.taken and position in self.taken[source]

    def take(self, source: str, positions: PositionSet) -> None:
        self.taken[source] = self.taken.get(source, PositionSet.of()) | positions


def checked_source(source: Any, position: Any, delivered: Any) -> tuple[Position, list[int]]:
    """A source and how far it was read."""
    if not isinstance(source, str) or not source:
        raise InputError(f"expected the name of a source, got {source!r}", place="source")
    for place, numbers in (("position", position), ("delivered", delivered)):
        for number in numbers if isinstance(numbers, list | tuple) else [numbers]:
            if not is_integral(number) or abs(int(number)) > LARGEST:
                raise InputError(f"expected whole numbers below 2^62, got {number!r}", place=place)
    return tuple(map(int, position)), list(map(int, delivered))
