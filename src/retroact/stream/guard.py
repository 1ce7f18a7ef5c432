"""The fence of a stream that lasts, as this process left it; and what is left to do after a restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import VerificationError
from ..store.fence import Fence, Mark
from ..store.store import Store
from .latest import Owed, Standing, acknowledged, missing_words

if TYPE_CHECKING:
    from .core import Core


class FenceGuard:
    def __init__(self, fence: Fence, store: Store, mark: Mark, standing: Standing) -> None:
        """`mark` is what the fence says, or will."""
        self.fence, self._store = fence, store
        self.silent = standing.silent
        """Rounds up to here are replayed and not released."""
        self._mark = mark
        self._owed: Owed | None = standing.owed
        self._left = fence.read()
        """The fence as this stream left it."""

    def advance(self, core: Core, round: int) -> None:
        """Nothing up to this round is published again, and no erasure acknowledged since is forgotten."""
        reached = max(round, self.silent)
        # a loss of the fence is told of until it moves beyond that round
        lost = self._mark.lost if reached == self._mark.round else ""
        mark = Mark(self._mark.stream, reached, self._mark.salt, self.acknowledged(core), lost)
        if mark != self._left:
            self.fence.advance(mark)
            self._left = mark

    def require_unmoved(self) -> None:
        mark = self.fence.read()
        if mark != self._left:
            raise VerificationError(
                f"{self.fence.path}: expected {_words(self._left)}, got {_words(mark)}: another copy of this stream "
                "may have gone on"
            )

    def acknowledged(self, core: Core) -> int:
        """How many erasures were acknowledged since the last round: those that wait, and those applied without one."""
        waiting = (made.name for made, _ in core.open.requests)
        return acknowledged(self._store, waiting, max(core.round - 1, self.silent), self._owed, over=core.over)

    def replaying(self, core: Core) -> bool:
        """Whether the open round was released before a restore, so that it will not be again."""
        return core.round <= self.silent

    def missing_erasures(self, core: Core) -> int | None:
        """How many acknowledged erasures a restored store still lacks; None where nobody knows."""
        if self._owed is None:
            return 0
        waiting = {made.name for made, _ in core.open.requests}
        held = waiting | self._store.applied_after(core.round - 1, over=core.over)
        return self._owed.missing(0 if self.replaying(core) else len(held))

    def debt(self, core: Core) -> str:
        """The same in words; empty where nothing is missing."""
        missing = self.missing_erasures(core)
        if self._owed is None or missing == 0:
            return ""
        return (
            f"{self._store.where}: {missing_words(missing, self._owed.round)}: no round is released before "
            f"{'it was' if missing == 1 else 'they were'} asked for again, or the operator says so "
            "(erasures_asked=True, --erasures-asked; docs/operations.md)"
        )

    def require_erasures(self, core: Core) -> None:
        """Before anything is released: everything that a restored store lacked was asked for again."""
        if debt := self.debt(core):
            raise VerificationError(debt)

    def require_replayed(self, core: Core) -> None:
        """Before another stream goes on from this one: it is as far as what was published."""
        if self.replaying(core):
            raise VerificationError(
                f"{self._store.where}: this store is open at round {core.round}, but round {self.silent} was "
                "published: replay additions and deletions up to that round first (docs/operations.md)"
            )
        self.require_erasures(core)

    def settle_debt(self, core: Core) -> None:
        """What a restore left to do is done when the round that waited for it is behind the fence."""
        if self._owed is not None and core.round - 1 > self._owed.round:
            self._owed = None
            self._store.write_notes({"owed": ""})


def _words(mark: Mark | None) -> str:
    return "none" if mark is None else f"round {mark.round} and {mark.erasures} erasures since"
