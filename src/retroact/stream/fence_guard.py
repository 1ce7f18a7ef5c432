"""Whether a store is the latest, by its fence: its rounds, and the erasures acknowledged since.

A store that is ahead of its fence was interrupted, and its fence is brought up to it. One that is behind is an old
backup, and is opened on the operator's word alone: rounds that were published are replayed without releases, and no
later round is released until the erasures that the backup lacks were asked for again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from ..errors import InputError, VerificationError
from ..store import inbox
from ..store.fence import Fence, Mark
from ..store.store import Store

if TYPE_CHECKING:
    from .core import Core


class Owed(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is left to do after a restore: erasures that were acknowledged and that the store does not have."""

    round: int
    """The last round that may have been published; the next one waits."""
    since: int
    """The round that was open when the store was restored."""
    needed: int | None
    """How many requests the next released round must hold; None where the fence was lost, which leaves it unknown."""
    lacked: int = 0
    """How many erasures the fence counts, and the store never will."""
    lost: str = ""
    """Which loss of the fence this answers, as the fence made after it has it."""

    def note(self) -> str:
        return msgspec.json.encode(self).decode()


@dataclass(frozen=True)
class Standing:
    """Where a store stands: up to which round nothing is released, what is owed, and what is to be noted."""

    silent: int
    owed: Owed | None
    notes: dict[str, str] = field(default_factory=dict)


def owed(store: Store) -> Owed | None:
    note = store.note("owed")
    return msgspec.json.decode(note, type=Owed) if note else None


def acknowledged(store: Store, waiting: Iterable[bytes], round: int, owed: Owed | None, *, over: bool) -> int:
    """How many erasures were acknowledged after a round, as a fence at that round counts them."""
    if owed is None or round > owed.round:
        return len({*waiting} | store.applied_after(round, over=over))
    return len({*waiting} | store.applied_after(owed.since - 1, over=over)) + owed.lacked


def missing_words(missing: int | None, round: int) -> str:
    if missing is None:
        return f"erasures acknowledged after round {round} may be missing from this store"
    many = "1 erasure" if missing == 1 else f"{missing:,} erasures"
    return f"{many} acknowledged after round {round} {'is' if missing == 1 else 'are'} missing from this store"


def promises(store: Store) -> list[str]:
    """What the operator answers for, in words: of the streams before this one, and of this one."""
    words = {
        "silent": "after a restore, additions and deletions were replayed up to round",
        "fenced": "when the fence was lost, nothing had been published after round",
        "asked": "erasures that a restored store lacked were asked for again before round",
    }
    inherited: list[str] = msgspec.json.decode(store.note("promises") or "[]")
    return [*inherited, *(f"{text} {round}" for name, text in words.items() if (round := store.note(name)))]


def standing(
    store: Store, fence: Fence, mark: Mark | None, over: bool, restored: bool, after: int | None, erasures_asked: bool
) -> Standing:
    """Of a store against its fence; refuses one that is older than what was published or acknowledged. ``over``:
    no round comes any more."""
    if mark is None:
        now = _of_a_lost_fence(store, fence, after)
    elif after is not None:
        raise InputError(f"{fence.path}: the fence is there and says round {mark.round}", place="after")
    else:
        now = _against(store, mark, over, restored)
    if not erasures_asked:
        return now
    if now.owed is None:
        raise InputError(f"{store.where}: no erasures are missing: leave it out", place="erasures_asked")
    asked = msgspec.structs.replace(now.owed, needed=0)
    return Standing(now.silent, asked, {**now.notes, "owed": asked.note()})


def _of_a_lost_fence(store: Store, fence: Fence, after: int | None) -> Standing:
    known = store.number("silent")
    if store.state("stream") is None and store.committed == 0:
        if after is not None:
            raise InputError(f"{store.where}: expected a stream to go on with, got none", place="after")
        return Standing(0, None)
    if after is None:
        raise VerificationError(
            f"{fence.path}: the fence is missing, so nobody can tell whether this store is the latest. Bring the "
            "fence back; or say after which round nothing was published, and a new fence begins there (after=N, "
            "--after N; docs/operations.md)"
        )
    least = max(store.committed, store.sealed - 1, known)
    if after < least:
        raise InputError(f"expected a round from {least} on, up to which the store knows releases", place="after")
    lost = Owed(after, _open_round(store), None, lost=secrets.token_hex(8))
    return Standing(after, lost, {"owed": lost.note(), **_promised(after)})


def _against(store: Store, mark: Mark, over: bool, restored: bool) -> Standing:
    committed = max(store.committed, store.number("origin"))
    if store.sealed > committed + 1:
        raise VerificationError(
            f"{store.where}: the data are of round {store.sealed} and the journal is of round {store.committed}: "
            "restore both from one backup"
        )
    known, debt = store.number("silent"), owed(store)
    # a crash leaves a round sealed and not committed, but never behind the fence, unless it is replayed
    if store.sealed > committed and mark.round >= store.sealed > known:
        raise VerificationError(
            f"{store.where}: the data are of round {store.sealed}, which was published, and the journal is of round "
            f"{store.committed}: restore both from one backup"
        )
    if debt is not None and mark.round > debt.round:
        debt = None  # that round is closed
    latest = max(mark.round, committed)
    behind = (store.sealed < latest or committed < mark.round) and known < latest
    if behind and not restored:
        raise VerificationError(
            f"{store.where}: this store ends with round {min(store.sealed, store.committed)}, but round {latest} was "
            "published: it is an old backup. Replay additions and deletions up to that round, without releases "
            "(restored=True, --restored; docs/operations.md)"
        )
    # the open round may be large, and is not gone through where nothing was acknowledged
    entries = store.inbox() if mark.erasures else []
    waiting = {request[0] for request in inbox.requests(entries)}
    # what waits for a round that was published before is none of those that the fence counts
    count = 0 if behind else acknowledged(store, waiting, mark.round, debt, over=over)
    lacks = max(0, mark.erasures - count) if mark.round == latest or not behind else 0
    # after a lost fence every copy of the store has to know what the operator said, or the operator says it again
    unknown = bool(mark.lost) and (debt is None or debt.lost != mark.lost)
    if (lacks or unknown) and not restored:
        raise VerificationError(
            f"{store.where}: {missing_words(None if unknown else lacks, mark.round)}: it is an old backup. Open it as "
            "one, and ask for them again (restored=True, --restored; docs/operations.md)"
        )
    silent = latest if behind else known
    if not behind and not lacks and not unknown:
        return Standing(silent, debt)
    if behind or debt is None:
        debt = Owed(latest, _open_round(store), 0)
    held = len(waiting | store.applied_after(store.sealed, over=over)) if store.sealed >= latest else 0
    needed = None if unknown or debt.needed is None else lacks and max(debt.needed, held) + lacks
    debt = msgspec.structs.replace(debt, needed=needed, lacked=debt.lacked + lacks, lost=mark.lost)
    notes = {"owed": debt.note()} | ({"silent": str(silent)} if behind else {})
    notes |= {"asked": str(latest + 1)} if lacks else {}
    return Standing(silent, debt, (_promised(mark.round) if unknown else {}) | notes)


def _promised(after: int) -> dict[str, str]:
    """What the operator answers for where a fence was lost, as notes."""
    return {"silent": str(after), "fenced": str(after), "asked": str(after + 1)}


def _open_round(store: Store) -> int:
    return max(store.sealed, store.number("origin")) + 1


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

    def advance(self, core: Core) -> None:
        """Nothing up to the last round is published again, and no erasure acknowledged since is forgotten."""
        reached = max(core.round - 1, self.silent)
        # the loss of a fence is noted until the fence moves beyond that round
        lost = self._mark.lost if reached == self._mark.round else ""
        mark = Mark(self._mark.stream, reached, self._mark.salt, self.acknowledged(core), lost)
        if mark != self._left:
            self.fence.advance(mark)
            self._left = mark
        # what a restore left to do is done when the round that waited for it is behind the fence
        if self._owed is not None and core.round - 1 > self._owed.round:
            self._owed = None
            self._store.write_notes({"owed": ""})

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
        """How many acknowledged erasures a restored store still lacks; None where that is unknown."""
        if self._owed is None or self._owed.needed is None:
            return None if self._owed else 0
        waiting = {made.name for made, _ in core.open.requests}
        held = waiting | self._store.applied_after(core.round - 1, over=core.over)
        return max(0, self._owed.needed - (0 if self.replaying(core) else len(held)))

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


def _words(mark: Mark | None) -> str:
    return "none" if mark is None else f"round {mark.round} and {mark.erasures} erasures since"
