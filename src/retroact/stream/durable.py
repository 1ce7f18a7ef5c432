"""A stream that lasts: every acknowledged update and every release is on disk before anybody hears of it.

**The protocol.** *Ingest*: updates go to the inbox, with how far they read their source, and are then acknowledged.
*Seal*: in one transaction the surviving data of the round replace those of the round before, and the inbox is empty.
*Compute*: a pure function of key, round and surviving data, so it may run again after a crash. *Commit*: the releases,
once for each round and statistic, for ever. *Fence*: a mark outside the store moves to the round. *Publish*: only now
does `close_round` return. So what was published lies at or below the fence, and a round is never released on two data
sets: not after a crash (the sealed data are the same), and not from an old backup (the store is behind its fence).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ..coins import Key
from ..errors import InputError, RetroactError, VerificationError
from ..ledger import Change, Ledger, Updates
from ..privacy import Guarantee
from ..store import blocks, inbox
from ..store.fence import Fence, Mark
from ..store.packed import Records, unpack
from ..store.store import Request, Store, Stored
from .erasure import Erasure, Hashes, Outcome
from .intake import Position
from .names import Names, digests_of, required
from .release import Release
from .specification import Specification
from .stream import Stream

if TYPE_CHECKING:
    from .verify import Verification


class Durable(Stream):
    """A stream in a store; made by `Stream.open`."""

    _store: Store | None = None

    def _attach(
        self,
        spec: Specification,
        key: Key,
        store: Store,
        fence: Fence,
        *,
        origin: int,
        before: list[Guarantee],
        epoch: tuple[int, bytes],
        silent: int,
    ) -> None:
        """Everything from what is stored; rounds up to `silent` are replayed and not released."""
        self._key, self._fence, self._silent, self._epoch = key, fence, silent, epoch
        self._broken = False
        self._depth = 0
        self._entry = inbox.Entry([])
        self._requests: list[tuple[Request, list[bytes]]] = []
        self._hashes = Hashes(key)
        self._marks = blocks.Marks(key.derive("order of blocks"))
        stored = store.blocks()
        self._places = [place for place, _ in stored]
        ledger = _ledger(store.where, spec, [records for _, records in stored])
        del stored
        self._begin(spec, key, ledger, origin, before, max(store.sealed, origin) + 1, epoch=epoch, where=store.where)
        self._store = store
        self._erased = store.erased()
        self._positions = dict(store.sources())
        self._recover()

    # What people ask for -------------------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        if self._store is None:
            raise InputError("this stream is closed: open it again")
        if self._broken:
            raise InputError("the store failed while it was written: close this stream and open it again")
        return self._store

    @property
    def guarantee(self) -> Guarantee:
        own = super().guarantee
        if not self._silent:
            return own
        promise = f"after a restore, additions and deletions were replayed up to round {self._silent}"
        return Guarantee(own.measure, own.epsilon, own.delta, own.unit, own.adaptive, (*own.promises, promise))

    @property
    def replaying(self) -> bool:
        """Whether the open round was released before a restore, so that it will not be again."""
        return self._round <= self._silent

    def releases(self, first: int = 1, last: int | None = None) -> Iterator[dict[str, Any]]:
        """What was published, as it was published."""
        order = {name: number for number, name in enumerate(self.specification.statistics)}
        found = self.store.releases(first, last)
        for stored in sorted(found, key=lambda each: (each.round, order.get(each.statistic, len(order)))):
            yield msgspec.json.decode(stored.line)

    def verify(self, progress: Callable[[int, int], None] | None = None) -> Verification:
        """Work everything out again from the surviving data and compare (`stream.verify`)."""
        from .verify import verify

        return verify(self, progress)

    def close(self) -> None:
        """Let go of the store; what the open round holds waits there."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    def __enter__(self) -> Durable:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # What comes in -------------------------------------------------------------------------------------------------

    def erase(
        self,
        *,
        subject: Names = None,
        sha256: Sequence[bytes] | bytes | None = None,
        request: str | None = None,
        dry_run: bool = False,
    ) -> Erasure:
        """Ask for the erasure of all records of some subjects: those that survive, and those of the open round.

        It is applied when the round closes, and purged then. ``request`` names it: asked again under the same name,
        nothing happens twice, and the answer tells how far it is.
        """
        with self._lock:
            names = [] if subject is None else required(subject, "subject")
            digests = [] if sha256 is None else digests_of(sha256)
            if not names and not digests:
                raise InputError("expected a subject, or the SHA-256 of one", place="subject")
            everybody: list[str | bytes] = [*names, *digests]
            outcomes = [self._outcome(who) for who in everybody]
            asked = self._hashes.request(request, names, digests)
            known = self.request(asked.name)
            if known is not None:
                if known.content != asked.content:
                    raise InputError("this name was given to another request", place="request")
                return Erasure(self, known, outcomes, asked.token)
            now = moment()
            made = Request(asked.name, asked.content, "received", now)
            if dry_run:
                return Erasure(self, made._replace(state="dry run"), outcomes, asked.token)
            with self._entering():
                if names:
                    super().erase(subject=names)
                if digests:
                    super().erase(sha256=digests)
                hashes = [self._hashes.subject(who) for who in everybody]
                self._entry.request = [*made[:2], now, hashes]
            self._requests.append((made, hashes))
            return Erasure(self, made, outcomes, asked.token)

    def request(self, name: bytes) -> Request | None:
        """A request by the keyed hash of its name."""
        waiting = next((made for made, _ in self._requests if made.name == name), None)
        return self.store.request(name) or waiting

    @contextmanager
    def receiving(self, source: str, position: Position, delivered: Sequence[int] = ()) -> Iterator[None]:
        with self._entering(), super().receiving(source, position, delivered):
            self._entry.source, self._entry.position = source, list(position)
            self._entry.delivered = [*self._entry.delivered, *delivered]
            yield

    def discard(self) -> int:
        with self._lock, self._writing():
            dropped = super().discard()
            self.store.empty_inbox()
            self.store.scrub()
            self._erased = self.store.erased()
            self._load()
            return dropped

    # What goes out -------------------------------------------------------------------------------------------------

    def successor(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        horizon: int | None = None,
        key: Key | None = None,
        where: str | Path | None = None,
        key_file: str | Path | None = None,
        fence: str | Path | None = None,
    ) -> Durable:
        """As for any stream, in a store of its own. What the open round holds goes with it."""
        from .opening import Follows, open_stream
        from .written import written

        with self._lock:
            if where is None:
                raise InputError("expected a place for the stream that follows", place="where")
            spec = self.specification.replace(epsilon=epsilon, delta=delta, horizon=horizon)
            own = written(self.specification)
            if own is None:
                raise InputError(
                    "a stream with statistics that files cannot describe has no successor in a store", place="where"
                )
            before = [*msgspec.json.decode(self.store.note("before") or "[]"), own]
            sources = dict(self.store.sources())
            follows = Follows(self._round - 1, before, self._ledger, self.store.inbox(), sources)
            stream = open_stream(where, spec, key=key, key_file=key_file, fence=fence, follows=follows)
            self.discard()
            return stream

    # Inside ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _entering(self) -> Iterator[None]:
        """What comes in between the outermost pair of these is stored as one entry, or undone as one."""
        with self._lock:
            store = self.store
            self._depth += 1
            try:
                yield
            except BaseException:
                if self._depth == 1:
                    self._load()
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
            with self._writing():
                store.receive(self._number, inbox.write(entry))
            self._number += 1

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A failure in here leaves memory and store apart: only opening again brings them together."""
        try:
            yield
        except BaseException:
            self._broken = True
            raise

    def _load(self) -> None:
        """The open round as the store has it."""
        self._updates, self._reading, self._requests = self._empty_round(), {}, []
        self._entry = inbox.Entry([])
        entries = self.store.inbox()
        for stored in entries:
            entry = inbox.read(stored)
            inbox.replay(self._updates, entry.operations)
            if entry.source is not None and entry.position is not None:
                known = self._reading.get(entry.source, ((), set()))[1]
                self._reading[entry.source] = (tuple(entry.position), known | {*entry.delivered})
            if entry.request is not None:
                name, content, received, hashes = entry.request
                self._requests.append((Request(name, content, "received", received), hashes))
        assert isinstance(self._updates, inbox.Recorded)
        self._updates.unsaved = []
        self._number = len(entries) + 1

    def _empty_round(self) -> Updates:
        self._number = 1
        return inbox.Recorded(self.schema)

    def _barred(self, subjects: Sequence[str | None]) -> set[str]:
        if self.specification.after_erasure == "accept" or not self._erased:
            return set()
        return {name for name in {*subjects} if name is not None and self._hashes.subject(name) in self._erased}

    def _releases(self, round: int, totals: Mapping[str, Any]) -> dict[str, Release]:
        return {} if round <= self._silent else super()._releases(round, totals)

    def _keep(self, change: Change, releases: Mapping[str, Release]) -> None:
        store, round = self.store, self._round
        edit = blocks.edit(self.schema, self._marks, self._places, Records.of(change.named()), store.read_blocks)
        revises = change.removed > 0 or bool((change.stamps[change.weights > 0] < round).any())
        # everything that came in is there, and nothing that was there is gone
        leaves_nothing = change.removed == 0 and change.added == len(self._updates)
        with self._writing():
            self._prepare({"revised": str(round)} if revises else {})
            store.seal(round, edit)
            if not leaves_nothing:
                store.scrub()
            self._commit(round, releases)
        self._entry = inbox.Entry([])
        gone = {*edit.gone}
        kept = [place for place in self._places if place not in gone] if gone else self._places
        self._places = sorted([*kept, *(place for place, _ in edit.new)])

    def _prepare(self, notes: Mapping[str, str]) -> None:
        rejects = self.specification.after_erasure == "reject"
        hashes = [subject for _, subjects in self._requests for subject in subjects] if rejects else []
        positions = {source: position for source, (position, _) in self._reading.items()}
        if positions or self._requests or notes:
            self.store.prepare(self._round, positions, [made for made, _ in self._requests], hashes, notes)
        self._erased |= {*hashes}

    def _commit(self, round: int, releases: Mapping[str, Release]) -> None:
        self.store.commit(round, stored_form(round, releases), moment())
        self._requests = []

    def _closed(self, round: int) -> None:
        with self._writing():
            if round > self._silent:
                self._fence.advance(Mark(self.name, round))
        self._purge()

    def _purge(self) -> None:
        """What erasures asked for. The round is out already: what fails here is tried again when the next closes."""
        try:
            if self.store.unpurged and self.store.purge():
                self.store.purged(moment())
        except RetroactError as error:
            warnings.warn(f"not purged yet, but when the next round closes: {error}", RuntimeWarning, stacklevel=3)

    def _recover(self) -> None:
        """Finish what a crash interrupted, step by step as the protocol has it."""
        store, round = self.store, self._round - 1
        if round > max(store.committed, self._origin):
            # sealed and not committed: the same data give the same releases
            totals = {name: running.totals for name, running in self._running.items()}
            self._requests = []
            with self._writing():
                self._commit(round, self._releases(round, totals))
        fenced = self._fence.read()
        if store.committed > self._silent and (fenced is None or fenced.round < store.committed):
            self._fence.advance(Mark(self.name, store.committed))
        self._load()
        self._purge()

    def _shadow(self, ledger: Ledger, round: int) -> Stream:
        """A stream in memory under the same key, as this one was after a round with these data."""
        shadow = Stream.__new__(Stream)
        shadow._warned = True
        before, epoch = list(self.before), self._epoch
        shadow._begin(
            self.specification, self._key, ledger, self._origin, before, round + 1, epoch=epoch, where=self.store.where
        )
        return shadow

    @property
    def hashes(self) -> Hashes:
        """What is hashed or signed under the key of this stream."""
        return self._hashes

    @property
    def name(self) -> str:
        """The stream by a keyed id that says nothing."""
        return self._hashes.stream

    def _outcome(self, who: str | bytes) -> Outcome:
        waiting = self._updates.additions.of_subject(who) + self._updates.placements.of_subject(who)
        return Outcome(who if isinstance(who, str) else who.hex(), self._ledger.find_subject(who), waiting)


def _ledger(where: str, spec: Specification, stored: list[bytes]) -> Ledger:
    try:
        return unpack(spec.schema, stored).ledger(spec.schema)
    except InputError as error:
        raise VerificationError(f"{where}: the stored data are not those of a stream: {error}") from None


def stored_form(round: int, releases: Mapping[str, Release]) -> list[Stored]:
    return [
        Stored(round, name, msgspec.json.encode(release.to_dict()), release.encode())
        for name, release in releases.items()
    ]


def moment() -> str:
    """Now, to the second, as receipts and requests have it."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
