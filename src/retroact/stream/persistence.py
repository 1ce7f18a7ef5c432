"""What makes a stream last, as its core sees it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from ..ledger import Change, Removal, RoundChanges
from .closing import Closing
from .door import Barred
from .open_round import Reading, RoundMark

if TYPE_CHECKING:
    from .core import Core


class Persistence:
    """What is written before anyone learns of it. A stream in memory writes nothing; one in a store has a `Vault`."""

    durable = False
    identity: str | None = None
    """The store, so that no two share a key."""
    silent = 0
    """Rounds up to this one are replayed after a restore, and not released again."""

    def require_ready(self) -> None:
        """Refuse operations if the store is closed or has failed."""

    def barred(self) -> Barred | None:
        """Which subjects' records are rejected; None if no subject's are."""
        return None

    def receive(self, core: Core, mark: RoundMark, readings: Sequence[Reading]) -> None:
        """What came in since the mark, and how far it read its sources; acknowledged when this returns, all of it or
        nothing."""

    def writing(self) -> AbstractContextManager[None]:
        """A failure inside may leave memory and store in different states."""
        return nullcontext()

    def closing(self, core: Core) -> AbstractContextManager[None]:
        """Around the whole of a close; refuses it where nothing may be released."""
        return nullcontext()

    def persist(self, core: Core, change: Change | RoundChanges, closing: Sequence[Closing]) -> None:
        """Write rounds that close: their planned change of the surviving data, and their releases. An error before the
        first byte is written leaves everything as it was."""
        for each in closing:
            core.recent.keep(each.round, each.releases)

    def publish(self, core: Core) -> None:
        """The last round is about to be published."""

    def remove(self, core: Core, removal: Removal) -> None:
        """Apply deletions without a round, since the stream is over."""
        if removal:
            left = removal.left_of(core.open.updates)
            core.ledger.apply(core.round, removal.deletions(core.schema))
            core.open.updates = left

    def ready_for_pass(self, core: Core) -> bool:
        """Whether several rounds may wait for one another."""
        return core.round > self.silent

    def reconsider(self, core: Core) -> None:
        """Decide again what requests of the open round found: rounds before it were settled since they came."""

    def forget(self, core: Core) -> None:
        """Drop all that the open round holds, except erasures."""
