"""What must last of a stream before anybody hears of it: nothing, for one in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..ledger import Change, Removal
from ..ledger.operations import Position
from .door import Barred
from .open_round import RoundMark
from .release import Release

if TYPE_CHECKING:
    from .core import Core


@dataclass(frozen=True, eq=False)
class Closing:
    """A round that is about to close: what it does to the surviving data, planned, and what it publishes."""

    round: int
    change: Change
    releases: Mapping[str, Release]


class Keep:
    """In memory nothing lasts; a stream in a store has another (`stream.vault`)."""

    lasts = False
    identity: str | None = None
    """Where it is kept, for the key to know."""

    @property
    def silent(self) -> int:
        """Rounds up to here are replayed and not released."""
        return 0

    def require_ready(self) -> None:
        """That something can come in."""

    def barred(self, core: Core) -> Barred | None:
        """Which subjects' records are not taken any more; None where all are."""
        return None

    def receive(
        self, core: Core, mark: RoundMark, source: str | None, position: Position, delivered: Sequence[int]
    ) -> None:
        """What came in since a mark, of a source read so far, is acknowledged when this returns."""

    def undo_failed(self) -> None:
        """What came in could not be taken back."""

    def closing(self, core: Core) -> AbstractContextManager[None]:
        """Around all of a close, which it refuses where nothing may be released."""
        return nullcontext()

    def keep(self, core: Core, closing: Closing) -> None:
        """A round lasts when this returns; an error before the first byte is written stops it."""

    def publish(self, core: Core, round: int) -> None:
        """A round is about to be seen."""

    def remove(self, core: Core, removal: Removal) -> None:
        """Apply deletions that wait for no round: the stream is over."""
        if removal:
            left = removal.left_of(core.open.updates)
            core.ledger.apply(core.round, removal.deletions(core.schema))
            core.open.updates = left

    def forget(self, core: Core) -> None:
        """The open round holds nothing but its erasures."""
