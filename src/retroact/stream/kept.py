"""The open round of a stream that lasts: what is acknowledged is in the inbox of its store, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..errors import InputError, VerificationError
from ..ledger import Updates
from ..store import inbox
from ..store.fence import Fence, Mark
from ..store.receipt import moment
from ..store.store import Request, Store
from .arguments import Names
from .erasure import Hashes, Requested
from .intake import Position
from .latest import Owed, acknowledged, missing_words
from .stream import Stream


class Kept(Stream):
    """A stream whose open round is kept in a store."""

    lasting = True
    _store: Store | None = None
    _broken = False
    _depth = 0
    _number: int
    _entry: inbox.Entry
    _requests: list[tuple[Request, list[bytes]]]
    """Those that wait for the round to close, each with the hashes of its subjects."""
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
            names, digests = self._to_erase(subject, sha256)
            asked = self._hashes.request(request, names, digests)
            known = self.request(asked.name)
            if known is not None:
                if known.content != asked.content:
                    raise InputError("this name was given to another request", place="request")
                return Requested(self, known, asked)
            outcomes = self._outcomes(asked.who)
            found = {subject: outcome.found for subject, outcome in zip(asked.subjects, outcomes, strict=True)}
            sealed = self._hashes.seal(asked.content, found, asked.subjects)
            made = Request(asked.name, asked.content, "received", moment(), outcome=sealed)
            if dry_run:
                return Requested(self, made._replace(state="dry run"), asked, outcomes)
            with self._entering():
                self._enter_erasure(names, digests)
                entered = [made.name, made.content, made.received, asked.subjects, sealed]
                self._entry.requests = [*self._entry.requests, entered]
                self._requests.append((made, asked.subjects))
            return Requested(self, made, asked, outcomes)

    def request(self, name: bytes) -> Request | None:
        """A request by the keyed hash of its name."""
        waiting = next((made for made, _ in self._requests if made.name == name), None)
        return waiting or self.store.request(name)

    def requests(self) -> list[Request]:
        """All requests: those of closed rounds, and those that wait for the open one to close."""
        waiting = [made for made, _ in self._requests]
        names = {made.name for made in waiting}
        return [*(known for known in self.store.requests() if known.name not in names), *waiting]

    def _decided(self) -> list[Request]:
        """The requests that wait, each with what there is of its subjects among all that this round holds."""
        updates = self._updates
        who: list[str | bytes] = [*updates.erased, *updates.erased_digests] if self._requests else []
        outcomes = zip(who, self._outcomes(who), strict=True)
        found = {self._hashes.subject(each): outcome.found for each, outcome in outcomes}
        return [
            made._replace(outcome=self._hashes.seal(made.content, found, subjects)) for made, subjects in self._requests
        ]

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
        held = {made.name for made, _ in self._requests} | self.store.applied_after(self._round - 1, over=self.over)
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
    def receiving(self, source: str, position: Position, delivered: Sequence[int] = ()) -> Iterator[None]:
        with self._entering(), super().receiving(source, position, delivered):
            self._entry.source, self._entry.position = source, list(map(int, position))
            self._entry.delivered = [*self._entry.delivered, *map(int, delivered)]
            yield

    @contextmanager
    def _entering(self) -> Iterator[None]:
        """What comes in between the outermost pair of these is stored as one entry, or undone as one."""
        with self._lock:
            _ = self.store  # which must be open
            updates, mark, requests = self._updates, self._updates.mark(), len(self._requests)
            self._depth += 1
            try:
                yield
            except BaseException:
                if self._depth == 1:
                    with self._writing():
                        self._undo(updates, mark, requests)
                raise
            finally:
                self._depth -= 1
            if self._depth:
                return
            updates = self._updates
            assert isinstance(updates, inbox.Recorded)
            if not updates.unsaved and self._entry.source is None:
                return
            entry, self._entry = self._entry, inbox.Entry([])
            entry.operations, updates.unsaved = updates.unsaved, []
            self._complete(entry)
            with self._writing():
                self._receive(inbox.write(entry))
                self._number += 1
                if entry.requests:
                    self._advance(self._round - 1)
            self._amend_if_over()

    def _receive(self, entry: bytes) -> None:
        self.store.receive(self._number, entry)

    def _complete(self, entry: inbox.Entry) -> None:
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
        waiting = (made.name for made, _ in self._requests)
        return acknowledged(self.store, waiting, max(self._round - 1, self._silent), self._owed, over=self.over)

    def _undo(self, updates: Updates, mark: tuple[int, ...], requests: int) -> None:
        """Back to what is stored."""
        if updates is not self._updates:
            self._load()  # a round was closed meanwhile
            return
        assert isinstance(updates, inbox.Recorded)
        updates.go_back(mark)
        updates.unsaved = []
        del self._requests[requests:]
        self._entry = inbox.Entry([])

    def _load(self) -> None:
        """The open round as the store has it."""
        self._updates, self._reading, self._requests = self._empty_round(), {}, []
        self._entry = inbox.Entry([])
        entries = self.store.inbox()
        for stored in entries:
            entry = inbox.read(stored)
            inbox.replay(self._updates, entry.operations)
            if entry.source is not None and entry.position is not None:
                reached, known = self._reading.get(entry.source, ((), set()))
                reached = max(reached, self._positions.get(entry.source, ()), tuple(entry.position))
                known.update(entry.delivered)
                self._reading[entry.source] = (reached, known)
            for name, content, received, subjects, outcome in entry.requests:
                self._requests.append((Request(name, content, "received", received, outcome=outcome), subjects))
        assert isinstance(self._updates, inbox.Recorded)
        self._updates.unsaved = []
        self._number = len(entries) + 1

    def _empty_round(self) -> Updates:
        self._number = 1
        return inbox.Recorded(self.schema)


def _words(mark: Mark | None) -> str:
    return "none" if mark is None else f"round {mark.round} and {mark.erasures} erasures since"
