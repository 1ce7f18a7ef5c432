"""Whether a store is the latest, by its fence: the rounds that were published, and the erasures acknowledged since.

A store ahead of its fence was interrupted, and the fence moves up to it. A store behind its fence is an old backup, and
is only opened if the operator says so: rounds that were published are replayed without releases, and no later round is
released until the erasures that the backup lacks are requested again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from ..errors import InputError, VerificationError
from ..messages import plural
from ..store import inbox, staging
from ..store.fence import Fence, Mark
from ..store.store import Store

if TYPE_CHECKING:
    from .core import Core


class Owed(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a restored store owes: erasures that were acknowledged and that it does not have."""

    round: int
    """The last round that may have been published; the next one has to wait."""
    since: int
    """The round that was open when the store was restored."""
    needed: int | None
    """How many requests the next released round must hold; None if that is unknown because the fence was lost."""
    lacked: int = 0
    """How many erasures the fence counts that the store will never have."""
    lost: str = ""
    """Which loss of the fence this answers, as in the fence made after it."""

    def note(self) -> str:
        return msgspec.json.encode(self).decode()


@dataclass(frozen=True)
class Standing:
    """How a store stands: up to which round nothing is released, what is owed, and what has to be noted."""

    silent: int
    owed: Owed | None
    notes: dict[str, str] = field(default_factory=dict)


def acknowledged(store: Store, pending: Iterable[bytes], round: int, owed: Owed | None, *, over: bool) -> int:
    """How many erasures were acknowledged after a round, as a fence at that round counts them."""
    if owed is None or round > owed.round:
        return len({*pending} | store.applied_after(round, over=over))
    return len({*pending} | store.applied_after(owed.since - 1, over=over)) + owed.lacked


def missing_words(missing: int | None, round: int) -> str:
    if missing is None:
        return f"erasures acknowledged after round {round} may be missing from this store"
    are = "is" if missing == 1 else "are"
    return f"{plural(missing, 'erasure')} acknowledged after round {round} {are} missing from this store"


def promises(store: Store) -> list[str]:
    """What the operator vouches for, in words: for the predecessors, and for this stream."""
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
    """Compare a store with its fence, and refuse one that is older than what was published or acknowledged. ``over``:
    no more rounds come."""
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
    if store.state("stream") is None and store.committed == 0:
        if after is not None:
            raise InputError(f"{store.where}: expected a stream to continue, got none", place="after")
        return Standing(0, None)
    if after is None:
        raise VerificationError(
            f"{fence.path}: the fence is missing, so nobody can tell whether this store is the latest. Bring the "
            "fence back; or say after which round nothing was published, and a new fence begins there (after=N, "
            "--after N; docs/operations.md)"
        )
    least = max(store.committed, store.sealed - 1, store.number("silent"))
    if after < least:
        raise InputError(f"expected a round from {least} on, since the store has releases up to there", place="after")
    lost = Owed(after, open_round(store), None, lost=secrets.token_hex(8))
    return Standing(after, lost, {"owed": lost.note(), **_promised(after)})


def _against(store: Store, mark: Mark, over: bool, restored: bool) -> Standing:
    committed = max(store.committed, store.number("origin"))
    if store.sealed > committed + 1 and committed + 1 not in staging.waiting(store):
        raise VerificationError(
            f"{store.where}: the data are of round {store.sealed} and the journal is of round {store.committed}: "
            "restore both from one backup"
        )
    known = store.number("silent")
    # a crash leaves a round sealed and not committed, but never at or below the fence, unless it is replayed
    if store.sealed > committed and mark.round >= store.sealed > known:
        raise VerificationError(
            f"{store.where}: the data are of round {store.sealed}, which was published, and the journal is of round "
            f"{store.committed}: restore both from one backup"
        )
    note = store.note("owed")
    owed = msgspec.json.decode(note, type=Owed) if note else None
    if owed is not None and mark.round > owed.round:
        owed = None  # that round is closed
    latest = max(mark.round, committed)
    behind = (store.sealed < latest or committed < mark.round) and known < latest
    if behind and not restored:
        raise VerificationError(
            f"{store.where}: this store ends with round {min(store.sealed, store.committed)}, but round {latest} was "
            "published: it is an old backup. Replay additions and deletions up to that round, without releases "
            "(restored=True, --restored; docs/operations.md)"
        )
    # the inbox may be large, and is not read if nothing was acknowledged
    entries = store.inbox() if mark.erasures else []
    pending = {request[0] for request in inbox.requests(entries)}
    # requests that wait for a round published before are not among those that the fence counts
    count = 0 if behind else acknowledged(store, pending, mark.round, owed, over=over)
    lacks = max(0, mark.erasures - count) if mark.round == latest or not behind else 0
    # after the loss of a fence, the operator's answer is not in an older copy of the store, and has to be given again
    unknown = bool(mark.lost) and (owed is None or owed.lost != mark.lost)
    if (lacks or unknown) and not restored:
        raise VerificationError(
            f"{store.where}: {missing_words(None if unknown else lacks, mark.round)}: it is an old backup. Open it as "
            "one, and ask for them again (restored=True, --restored; docs/operations.md)"
        )
    silent = latest if behind else known
    if not behind and not lacks and not unknown:
        return Standing(silent, owed)
    if behind or owed is None:
        owed = Owed(latest, open_round(store), 0)
    held = len(pending | store.applied_after(store.sealed, over=over)) if store.sealed >= latest else 0
    needed = None if unknown or owed.needed is None else lacks and max(owed.needed, held) + lacks
    owed = msgspec.structs.replace(owed, needed=needed, lacked=owed.lacked + lacks, lost=mark.lost)
    notes = {"owed": owed.note()} | ({"silent": str(silent)} if behind else {})
    notes |= {"asked": str(latest + 1)} if lacks else {}
    return Standing(silent, owed, (_promised(mark.round) if unknown else {}) | notes)


def _promised(after: int) -> dict[str, str]:
    """Notes of what the operator vouches for after the loss of a fence."""
    return {"silent": str(after), "fenced": str(after), "asked": str(after + 1)}


def open_round(store: Store) -> int:
    return max(store.sealed, store.number("origin")) + 1


class FenceGuard:
    def __init__(self, fence: Fence, store: Store, mark: Mark, standing: Standing) -> None:
        """`mark`: what the fence says, or is about to."""
        self.fence, self._store, self._mark = fence, store, mark
        self.silent = standing.silent
        """Rounds up to this one are replayed, and not released."""
        self._owed: Owed | None = standing.owed
        self._left = fence.read()
        """The fence as this stream left it."""

    def advance(self, core: Core) -> None:
        """Ensure that no round so far is published again, and no acknowledged erasure forgotten."""
        reached = max(core.round - 1, self.silent)
        # the loss of a fence is noted until the fence moves past that round
        lost = self._mark.lost if reached == self._mark.round else ""
        mark = Mark(self._mark.stream, reached, self._mark.salt, self.acknowledged(core), lost)
        if mark != self._left:
            self.fence.advance(mark)
            self._left = mark
        # a restore is settled once the fence has passed the round that had to wait
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
        """How many erasures were acknowledged since the last round: pending ones, and those applied without a round."""
        pending = (made.name for made, _ in core.open.requests)
        return acknowledged(self._store, pending, max(core.round - 1, self.silent), self._owed, over=core.over)

    def missing_erasures(self, core: Core) -> int | None:
        """See `Durable.missing_erasures`."""
        if self._owed is None or self._owed.needed is None:
            return None if self._owed else 0
        pending = {made.name for made, _ in core.open.requests}
        held = pending | self._store.applied_after(core.round - 1, over=core.over)
        return max(0, self._owed.needed - (0 if core.round <= self.silent else len(held)))

    def debt(self, core: Core) -> str:
        """The missing erasures in words; empty if there are none."""
        missing = self.missing_erasures(core)
        if self._owed is None or missing == 0:
            return ""
        return (
            f"{self._store.where}: {missing_words(missing, self._owed.round)}: no round is released before "
            f"{'it was' if missing == 1 else 'they were'} asked for again, or the operator says so "
            "(erasures_asked=True, --erasures-asked; docs/operations.md)"
        )

    def require_erasures(self, core: Core) -> None:
        """Require, before a release, that erasures which a restored store lacked were requested again."""
        if debt := self.debt(core):
            raise VerificationError(debt)

    def require_replayed(self, core: Core) -> None:
        """Require, before a successor is made, that this stream has replayed what was published."""
        if core.round <= self.silent:
            raise VerificationError(
                f"{self._store.where}: this store is open at round {core.round}, but round {self.silent} was "
                "published: replay additions and deletions up to that round first (docs/operations.md)"
            )
        self.require_erasures(core)


def _words(mark: Mark | None) -> str:
    return "none" if mark is None else f"round {mark.round} and {mark.erasures} erasures since"
