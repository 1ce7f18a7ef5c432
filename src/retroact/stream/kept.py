"""The open round of a stream that lasts: what is acknowledged is in the inbox of its store, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..errors import InputError, VerificationError
from ..ledger import Entry, Operations, Single
from ..ledger.operations import Position
from ..store import inbox
from ..store.fence import Fence, Mark
from ..store.receipt import moment
from ..store.store import Request, Store
from .arguments import Names
from .erasure import Asked, Hashes, Requested
from .latest import Owed, acknowledged, missing_words
from .open_round import OpenRound, RoundMark
from .outcome import Erasure, Outcome
from .stream import Stream


class Kept(Stream):
    """A stream whose open round is kept in a store."""

    lasting = True
    _store: Store | None = None
    _broken = False
    _hashes: Hashes
    _fence: Fence
    _marked: Mark | None
    """The fence as this stream left it."""
    _lost: tuple[int, str]
    """A loss of the fence, which it tells of until it moves beyond that round."""
    _salt: bytes
    _silent: int
    """Rounds up to here are replayed and not released."""
    _owed: Owed | None
    promises: list[str]
    """What the operator answers for since a restore, in words; the guarantee names it."""

    @property
    def store(self) -> Store:
        if self._store is None:
            raise InputError("this stream is closed: open it again")
        if self._broken:
            raise InputError("the store failed while it was written: close this stream and open it again")
        return self._store

    @property
    def hashes(self) -> Hashes:
        """What is hashed, sealed or signed under the key of this stream."""
        return self._hashes

    @property
    def name(self) -> str:
        """The stream by a keyed id that says nothing."""
        return self._hashes.stream

    def erase(
        self,
        *,
        subject: Names = None,
        sha256: Sequence[bytes] | bytes | None = None,
        request: str | None = None,
        dry_run: bool = False,
    ) -> Requested:
        """Ask for the erasure of all records of some subjects: those that survive, and those of the open round.

        It is applied when the round closes, and purged then; at once where the stream is over. ``request`` names it:
        asked again under the same name, nothing happens twice, and the answer tells how far it is and what it found.
        """
        with self._lock:
            batch = self._door.erasure(subject, sha256)
            asked = self._hashes.request(request, batch.erased, batch.digests)
            known = self.request(asked.name)
            if known is not None:
                if known.content != asked.content:
                    raise InputError("this name was given to another request", place="request")
                return Requested(self, known, asked)
            outcomes = self._outcomes(asked.who)
            made = self._request(asked, outcomes)
            if dry_run:
                return Requested(self, made._replace(state="dry run"), asked, outcomes)
            with self._entering():
                self._append(batch)
                self._open.requests.append((made, asked.subjects))
            return Requested(self, made, asked, outcomes)

    def _request(self, asked: Asked, outcomes: Sequence[Outcome]) -> Request:
        """As it is received."""
        found = {subject: outcome.found for subject, outcome in zip(asked.subjects, outcomes, strict=True)}
        sealed = self._hashes.seal(asked.content, found, asked.subjects) if asked.who else None
        return Request(asked.name, asked.content, "received", moment(), outcome=sealed)

    def _erasure(self, batch: Operations, entry: Entry) -> Erasure:
        if not batch.erased and not batch.digests:
            return Erasure()
        asked = self._hashes.request(None, batch.erased, batch.digests)
        outcomes = self._outcomes(asked.who)
        made = self._request(asked, outcomes)
        self._open.requests.append((made, asked.subjects))
        return Requested(self, made, asked, outcomes)

    def request(self, name: bytes) -> Request | None:
        """A request by the keyed hash of its name."""
        waiting = next((made for made, _ in self._open.requests if made.name == name), None)
        return waiting or self.store.request(name)

    def requests(self) -> list[Request]:
        """All requests: those of closed rounds, and those that wait for the open one to close."""
        waiting = [made for made, _ in self._open.requests]
        names = {made.name for made in waiting}
        return [*(known for known in self.store.requests() if known.name not in names), *waiting]

    def _decided(self) -> list[Request]:
        """The requests that wait, each with what there is of its subjects among all that this round holds."""
        batches = self._open.updates.batches() if self._open.requests else []
        who: list[str | bytes] = []
        for batch in batches:
            who += [*batch.erased, *batch.digests]
        outcomes = zip(who, self._outcomes(who), strict=True)
        found = {self._hashes.subject(each): outcome.found for each, outcome in outcomes}
        seal = self._hashes.seal
        return [made._replace(outcome=seal(made.content, found, asked)) for made, asked in self._open.requests]

    @property
    def replaying(self) -> bool:
        """Whether the open round was released before a restore, so that it will not be again."""
        return self._round <= self._silent

    @property
    def missing_erasures(self) -> int | None:
        """How many acknowledged erasures a restored store still lacks; None where its fence was lost: nobody knows. No
        round is released until so many were asked for, or `Stream.open` was told `erasures_asked`."""
        if self._owed is None:
            return 0
        held = {made.name for made, _ in self._open.requests} | self.store.applied_after(
            self._round - 1, over=self.over
        )
        return self._owed.missing(0 if self.replaying else len(held))

    @property
    def debt(self) -> str:
        """The same in words; empty where nothing is missing."""
        missing = self.missing_erasures
        if self._owed is None or missing == 0:
            return ""
        return (
            f"{self.store.where}: {missing_words(missing, self._owed.round)}: no round is released before "
            f"{'it was' if missing == 1 else 'they were'} asked for again, or the operator says so "
            "(erasures_asked=True, --erasures-asked; docs/operations.md)"
        )

    @contextmanager
    def _entering(
        self, source: str | None = None, position: Position = (), delivered: Sequence[int] = ()
    ) -> Iterator[None]:
        with self._lock:
            _ = self.store  # which must be open
            with super()._entering(source, position, delivered):
                yield

    def _undo(self, opened: OpenRound, mark: RoundMark) -> None:
        with self._writing():
            super()._undo(opened, mark)

    def _received(
        self, opened: OpenRound, mark: RoundMark, source: str | None, position: Position, delivered: Sequence[int]
    ) -> None:
        batch = opened.updates.since(mark.updates)
        if source is None and not len(batch):
            return
        self._complete(batch, mark)
        made = opened.requests[mark.requests :]
        requests = [[each.name, each.content, each.received, subjects, each.outcome] for each, subjects in made]
        entry = Entry(batch, source, None if source is None else position, delivered, requests)
        with self._writing():
            self._receive(inbox.write(self.schema, entry))
            opened.entries += 1
            if requests:
                self._advance(self._round - 1)
        self._amend_if_over()

    def _receive(self, entry: bytes) -> None:
        self.store.receive(self._open.entries + 1, entry)

    def _complete(self, batch: Operations | Single, mark: RoundMark) -> None:
        """What belongs to an entry before it is stored."""

    def _amend_if_over(self) -> None:
        """Deletions wait for no round where none comes."""

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A failure in here leaves memory and store apart: only opening again brings them together."""
        try:
            yield
        except BaseException:
            self._broken = True
            raise

    def _advance(self, round: int) -> None:
        """The fence: nothing up to this round is published again, and no erasure acknowledged since is forgotten."""
        reached, (since, lost) = max(round, self._silent), self._lost
        lost = lost if reached == since else ""
        mark = Mark(self._hashes.stream, reached, self._salt.hex(), self._acknowledged(), lost)
        if mark != self._marked:
            self._fence.advance(mark)
            self._marked = mark

    def _require_fence(self) -> None:
        mark = self._fence.read()
        if mark != self._marked:
            raise VerificationError(
                f"{self._fence.path}: expected {_words(self._marked)}, got {_words(mark)}: another copy of this stream "
                "may have gone on"
            )

    def _require_erasures(self) -> None:
        """Before anything is released: everything that a restored store lacked was asked for again."""
        if self.debt:
            raise VerificationError(self.debt)

    def _require_replayed(self) -> None:
        """Before another stream goes on from this one: it is as far as what was published."""
        if self.replaying:
            raise VerificationError(
                f"{self.store.where}: this store is open at round {self._round}, but round {self._silent} was "
                "published: replay additions and deletions up to that round first (docs/operations.md)"
            )
        self._require_erasures()

    def _settle_debt(self) -> None:
        """What a restore left to do is done when the round that waited for it is behind the fence."""
        if self._owed is not None and self._round - 1 > self._owed.round:
            self._owed = None
            self.store.write_notes({"owed": ""})

    def _acknowledged(self) -> int:
        """How many erasures were acknowledged since the last round: those that wait, and those applied without one."""
        waiting = (made.name for made, _ in self._open.requests)
        return acknowledged(self.store, waiting, max(self._round - 1, self._silent), self._owed, over=self.over)

    def _load(self) -> None:
        """The open round as the store has it."""
        self._open = OpenRound(self.schema)
        entries = self.store.inbox()
        for entry in (inbox.read(self.schema, stored) for stored in entries):
            self._open.updates.append(entry.operations)
            if entry.source is not None and entry.position is not None:
                reached = max(entry.position, self._sources.positions.get(entry.source, ()))
                self._open.read(entry.source, reached, entry.delivered)
            for name, content, received, subjects, outcome in entry.requests:
                self._open.requests.append((Request(name, content, "received", received, outcome=outcome), subjects))
        self._open.entries = len(entries)


def _words(mark: Mark | None) -> str:
    return "none" if mark is None else f"round {mark.round} and {mark.erasures} erasures since"
