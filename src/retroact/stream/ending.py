"""The end of a stream: nothing more is published, and deletions no longer wait for a round.

Additions may still come, and wait for a successor. Erasures and deletions by id are applied at once, to the surviving
data and to what waits: no round, the last one included, is computed from what is left.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from ..errors import ExhaustedError, InputError
from ..ledger import Operations, Removal, Updates
from ..ledger.operations import Position
from .intake import Intake
from .open_round import OpenRound, RoundMark
from .specification import Specification

WARN_AT = 0.8


class HorizonWarning(UserWarning):
    """Four fifths of the promised rounds are used."""


class Ending(Intake):
    """A stream that knows whether it is over."""

    _origin: int
    _warned = False
    _followed = False
    """Whether another stream goes on from this one."""

    @property
    def over(self) -> bool:
        """Whether nothing more is published: all promised rounds are, or another stream goes on from this one."""
        return self._end() is not None

    @property
    def waiting(self) -> int:
        """How many updates the open round holds. Exact, so not for publication."""
        return len(self._open.updates)

    def discard(self) -> int:
        """Drop the updates of the open round, as if none had come, and say how many there were. Erasures stay: whoever
        asked for one was told that it will be done."""
        with self._lock:
            if self._entered:
                raise InputError("expected no discard inside `receiving`, which keeps all that it holds, or nothing")
            kept = OpenRound(self.schema)
            for batch in self._open.updates.batches():
                kept.updates.append(Operations(erased=batch.erased, digests=batch.digests))
            kept.requests = self._open.requests
            dropped, self._open = len(self._open.updates) - len(kept.updates), kept
            return dropped

    def _end(self) -> str | None:
        return end(self.specification, self._origin, self._round, followed=self._followed)

    def _check_open(self) -> None:
        """That the open round may be published; a warning when most of them are."""
        if (end := self._end()) is not None:
            raise ExhaustedError(end)
        horizon, index = self.specification.horizon, self._round - self._origin
        if horizon is not None and index == max(1, int(horizon * WARN_AT)) and horizon > 1 and not self._warned:
            self._warned = True  # first, so that a warning turned into an error does not bar the way for ever
            warnings.warn(
                f"round {index:,} of {horizon:,}: plan what follows (stream.successor)", HorizonWarning, stacklevel=3
            )

    def _room(self, count: int) -> None:
        if self._followed and count:
            raise InputError("this stream has a successor, which takes records from now on; here they can be deleted")
        super()._room(count)

    def _received(
        self, opened: OpenRound, mark: RoundMark, source: str | None, position: Position, delivered: Sequence[int]
    ) -> None:
        if self.over and (removal := Removal.of(self._open.updates, self._round)):
            self._open.updates = self._without_deletions(removal)

    def _without_deletions(self, removal: Removal) -> Updates:
        """Apply deletions to the surviving data; what is left of the open round."""
        left = removal.left_of(self._open.updates)
        self._ledger.apply(self._round, removal.deletions(self.schema))
        return left


def end(spec: Specification, origin: int, round: int, *, followed: bool) -> str | None:
    """Why nothing more is published, where that round is open."""
    horizon, count = spec.horizon, spec.rounds.count
    if followed:
        return "this stream has a successor, and publishes nothing more"
    on = "To go on: stream.successor(epsilon=..., horizon=...), whose budget adds to this one's"
    if horizon is not None and round - origin > horizon:
        return f"all {horizon:,} promised rounds are released; the noise is calibrated to that many and no more. {on}"
    if count is not None and origin < count < round:
        return f"all {count:,} rounds of the grid are released. {on}"
    return None
