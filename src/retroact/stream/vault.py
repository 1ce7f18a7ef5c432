"""The persistence of a stream in a store: every operation is written before it is acknowledged, every release before it
is published.

**The protocol.** *Ingest*: operations go to the inbox, with how far they read their source, and are then acknowledged.
*Compute*: the releases are a pure function of key, round and surviving data; nothing is written yet. *Seal*: one
transaction replaces the surviving data by those of the new round and empties the inbox; after a crash from here on, the
releases are computed again from these. *Commit*: the releases, once for each round and statistic, for ever. *Fence*: a
mark outside the store moves to the round. *Publish*: only now does `close_round` return. So whatever was published is
at or below the fence, and a round is never released on two data sets: not after a crash (the sealed data are the same),
and not from an old backup (the store is behind its fence).

**Without a round**, data change by deletions from a stream that is over, by what a successor takes over, and by a
discard. A request is entered like any other: it is acknowledged once it is in the inbox. So are deletions by id, as a
request without a name, since the fence counts requests. *Prepare*: the journal gets what the inbox knows of them.
*Amend*: one transaction removes what was deleted from the surviving data and from the open round, and the requests from
the inbox; the round stays. *Applied*: the journal says so, and notes a keyed hash of the data as they are now, so that
data restored without their journal are detected. *Fence*, *purge*. A request that is still in the inbox after a crash
is applied again; one that was prepared and is no longer there was amended.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import msgspec

from ..errors import InputError, RetroactError, VerificationError
from ..ledger import Change, Entry, Operations, Removal, RoundChanges
from ..ledger.codec import Records
from ..log import DEBUG, INFO, log
from ..store import canonical_blocks, inbox, staging
from ..store.canonical_blocks import Place
from ..store.receipt import moment
from ..store.store import Store
from ..store.tables import Prepared, Request
from . import journal_rows as rows
from . import layout
from .closing import Closing
from .core import Core
from .door import Barred
from .erasure import Asked, Hashes
from .fence_guard import FenceGuard
from .open_round import OpenRound, Reading, RoundMark
from .outcome import Outcome
from .persistence import Persistence


class Vault(Persistence):
    durable = True

    def __init__(
        self, store: Store, guard: FenceGuard, hashes: Hashes, marks: canonical_blocks.Marks, places: list[Place]
    ) -> None:
        self.guard, self.hashes, self.marks = guard, hashes, marks
        self.identity, self.silent = store.identity, guard.silent
        self._store: Store | None = store
        self._places = places
        self._erased = store.erased()
        self._unscrubbed = bool(store.note("unscrubbed"))
        self._broken = self._sealing = False

    @property
    def store(self) -> Store:
        if self._store is None:
            raise InputError("this stream is closed: open it again")
        if self._broken:
            raise InputError("the store failed during a write: close this stream and open it again")
        return self._store

    def close(self) -> None:
        if self._store is not None:
            if not self._broken:
                with suppress(RetroactError):  # then it is made up for
                    self._store.wind_up()
            self._store.close()
            self.guard.fence.close()
            log(INFO, "%s: closed", self._store.where)
            self._store = None

    def require_ready(self) -> None:
        _ = self.store

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write to the store. If that fails, memory and store may differ until the stream is opened again."""
        try:
            yield
        except BaseException:
            self._broken = True
            raise

    # Operations in ---------------------------------------------------------------------------------------------------

    def ready_for_pass(self, core: Core) -> bool:
        return super().ready_for_pass(core) and not self.guard.debt(core)

    def barred(self) -> Barred | None:
        if not self._erased:
            return None
        erased, hashed = self._erased, self.hashes.subject
        return lambda subjects: {name for name in {*subjects} if name is not None and hashed(name) in erased}

    def request(self, asked: Asked, outcomes: Sequence[Outcome]) -> Request:
        found = {subject: outcome.found for subject, outcome in zip(asked.subjects, outcomes, strict=True)}
        sealed = self.hashes.seal(asked.content, found, asked.subjects) if asked.who else None
        return Request(asked.name, asked.content, "received", moment(), outcome=sealed)

    def receive(self, core: Core, mark: RoundMark, readings: Sequence[Reading]) -> None:
        opened = core.open
        batch = opened.updates.since(mark.updates)
        if not readings and not len(batch):
            return
        if core.over and len(opened.requests) == mark.requests and isinstance(batch, Operations) and batch.emptied:
            opened.requests.append((self.request(self.hashes.request(None, [], []), []), []))
        made = opened.requests[mark.requests :]
        requests = [[each.name, each.content, each.received, subjects, each.outcome] for each, subjects in made]
        # an entry has one source: the first one has all operations, the others say how far theirs were read
        parts = [Entry(Operations(), *reading) for reading in readings] or [Entry(Operations())]
        parts[0] = msgspec.structs.replace(parts[0], operations=batch, requests=requests)
        entries = [*enumerate((inbox.write(core.schema, each) for each in parts), start=opened.entries + 1)]
        with self.writing():
            if core.over and self.store.note("amended"):
                # right with these entries or without them, wherever a crash comes
                self.store.write_notes({"amended": f"{self._amended()} {self._amended(*entries)}"})
            self.store.receive(entries)
            opened.entries += len(entries)
            if requests:
                self.guard.advance(core)

    def load(self, core: Core) -> None:
        """Read the open round from the inbox."""
        core.open = opened = OpenRound(core.schema)
        for entry in (inbox.read(core.schema, stored) for stored in self.store.inbox()):
            opened.updates.append(entry.operations)
            if entry.source is not None and entry.position is not None:
                core.read(entry.source, entry.position, entry.delivered)
            for name, content, received, subjects, outcome in entry.requests:
                opened.requests.append((Request(name, content, "received", received, outcome=outcome), subjects))
            opened.entries += 1

    # Rounds ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def closing(self, core: Core) -> Iterator[None]:
        if core.round > self.silent:
            self.guard.require_erasures(core)
        try:
            yield
        except BaseException:
            # from the first byte written until the round number has moved
            self._broken = self._broken or self._sealing
            raise
        finally:
            self._sealing = False

    def persist(self, core: Core, change: Change | RoundChanges, closing: Sequence[Closing]) -> None:
        store, first, last = self.store, closing[0].round, closing[-1].round
        edit = self._edit(core, change)
        revised = max((each.round for each in closing if each.revises), default=0)
        several = len(closing) > 1
        scrub = self._unscrubbed or several or any(each.leaves_traces for each in closing)
        releases = [stored for each in closing for stored in rows.stored(each.round, each.releases)]
        staged = [*staging.staged(first, last, releases, self.hashes.encrypted)] if several else []
        self.guard.require_unmoved()
        self._sealing = True
        notes = ({"revising": str(revised)} if revised else {}) | ({"unscrubbed": "1"} if scrub else {})
        self._prepare(core, closing, notes)
        store.seal(last, edit, staged)
        self._unscrubbed = scrub and not store.scrub()
        done = {"unscrubbed": ""} if scrub and not self._unscrubbed else {}
        done |= {"revised": str(revised)} if revised else {}
        store.commit(last, releases, moment(), done, first=first)
        if several:
            staging.forget(store)
        self._place(edit)

    def publish(self, core: Core) -> None:
        self.guard.advance(core)
        log(INFO, "%s: round %d is published", self.store.where, core.round - 1)
        self._sealing = False
        self._purge(core)

    def _prepare(self, core: Core, closing: Sequence[Closing], notes: Mapping[str, str]) -> None:
        # and the end of the next round, which takes records as soon as this one is closed
        boundaries = _unkept(core, closing[-1].round + 1)
        if not (notes or boundaries or any(each.opened.reading or each.opened.requests for each in closing)):
            return
        made = [rows.prepared(each, self.hashes, rejects=_rejects(core)) for each in closing]
        self.store.prepare(made, notes, boundaries)
        if core.grid is not None:
            core.grid.keep(boundaries)
        self._erased |= {subject for each in made for subject in each.erased}

    def keep_boundaries(self, core: Core, last: int) -> None:
        if core.grid is not None and (unkept := _unkept(core, last)):
            with self.writing():
                self.store.keep_boundaries(unkept)
            core.grid.keep(unkept)

    def reconsider(self, core: Core) -> None:
        opened, decided = core.open, self._decided(core)
        opened.requests = [(made, asked) for made, (_, asked) in zip(decided, opened.requests, strict=True)]

    def _decided(self, core: Core) -> list[Request]:
        return rows.decided(core.open, core.outcomes(core.open.asked()), self.hashes)

    def _edit(self, core: Core, change: Change | RoundChanges) -> canonical_blocks.Edit:
        records = Records.of(core.ledger.named(change), core.schema)
        return canonical_blocks.edit(core.schema, self.marks, self._places, records, self.store.read_blocks)

    def _place(self, edit: canonical_blocks.Edit) -> None:
        gone = {*edit.gone}
        kept = [place for place in self._places if place not in gone] if gone else self._places
        self._places = sorted([*kept, *(place for place, _ in edit.new)])

    def _purge(self, core: Core) -> None:
        """Purge what was erased. The erasures are applied already, so a failure here is retried later."""
        try:
            layout.purge(self.store, core.round, moment, now=core.over)
            # in any case: a log that says when there was something to purge would say when somebody was erased
            log(DEBUG, "%s: purged", self.store.where)
        except RetroactError as error:
            later = "the stream is opened again" if core.over else "the next round closes"
            warnings.warn(f"not purged yet; tried again when {later}: {error}", RuntimeWarning, stacklevel=3)

    def compact(self, core: Core, **settings: int | None) -> bool:
        """Keep these settings, and rewrite the layout now, if erasures wait for that. Whether none waits any more."""
        layout.LayoutSettings.of(self.store).changed(**settings).keep(self.store)
        return layout.purge(self.store, core.round, moment, now=True)

    # Without a round -------------------------------------------------------------------------------------------------

    def remove(self, core: Core, removal: Removal) -> None:
        if not removal and not core.open.requests:
            return
        # A successor has all records, including those that were still in the open round here.
        moved = core.followed and core.open.updates.whole().records
        self.amend(core, removal, [] if moved else inbox.without(core.schema, self.store.inbox(), removal))

    def amend(
        self, core: Core, removal: Removal, entries: Sequence[bytes], notes: Mapping[str, str] | None = None
    ) -> None:
        """Apply deletions to the surviving data without a round, and leave these entries in the inbox."""
        store, round = self.store, core.round
        with self.writing():
            change = core.ledger.plan(round, removal.deletions(core.schema))
            try:
                edit = self._edit(core, change)
                revised = {"revised": str(round)} if change.removed else {}
                requests = [made._replace(state="amending") for made in self._decided(core)]
                noted = {**(notes or {}), **revised, "unscrubbed": "1", "amended": ""}
                store.prepare([Prepared(round, {}, requests, rows.subjects(core.open, rejects=_rejects(core)))], noted)
                store.amend(edit, entries)
                self._place(edit)
            except BaseException:
                core.ledger.drop(change)
                raise
            core.ledger.commit(change)
            core.followed = core.followed or "followed" in (notes or {})
            self._unscrubbed = not store.scrub()
            store.applied_without_round(round, moment(), {"amended": self._amended()})
            if not self._unscrubbed:
                store.write_notes({"unscrubbed": ""})
            self._erased = store.erased()
            self.load(core)
            self.guard.advance(core)
        self._purge(core)

    def forget(self, core: Core) -> None:
        with self.writing():
            kept = inbox.erasures(core.schema, self.store.inbox())
            self.store.forget_unsealed((made.name for made, _ in core.open.requests), over=core.over)
            if core.over:
                self.store.write_notes({"amended": ""})
            self.store.replace_inbox(kept)
            self.store.scrub()
            if core.over:
                self.store.write_notes({"amended": self._amended()})
            self._erased = self.store.erased()
            self.load(core)

    def erased(self, core: Core) -> set[bytes]:
        """Hashes of the subjects whose later records are rejected."""
        return self.store.erased() | {*rows.subjects(core.open, rejects=_rejects(core))}

    def _amended(self, *entries: tuple[int, bytes]) -> str:
        """A keyed hash of the surviving data and the open round, as they are or with more entries."""
        return self.hashes.state(self.store.content(entries)).hex()

    # After a crash ---------------------------------------------------------------------------------------------------

    def recover(self, core: Core) -> None:
        """Finish what a crash interrupted, step by step in the order of the protocol."""
        store, round = self.store, core.round - 1
        done = max(store.committed, core.origin)
        if round > done:
            # sealed and not committed: the same data give the same releases, and those of several rounds wait
            revised = {"revised": str(store.number("revising"))} if done < store.number("revising") <= round else {}
            if staging.waiting(store):
                releases = staging.releases(store, self.hashes.decrypted)
            else:
                again = {} if round <= self.silent else core.engine.releases(round, core.engine.totals)
                releases = rows.stored(round, again)
            with self.writing():
                store.commit(round, releases, moment(), revised, first=done + 1)
            log(INFO, "%s: recovered: round %d was interrupted, and is committed", store.where, round)
        with self.writing():
            staging.forget(store)
        self.load(core)
        noted = store.note("amended")
        if core.over and noted and self._amended() not in noted.split():
            raise VerificationError(
                f"{store.where}: the data are older than the journal, which knows of deletions that they do not have, "
                "or the journal is older than the data: restore both from one backup"
            )
        self.guard.advance(core)
        self._recover_amended(core, noted)
        if self._unscrubbed and store.scrub():
            self._unscrubbed = False
            store.write_notes({"unscrubbed": ""})
        self._purge(core)

    def _recover_amended(self, core: Core, noted: str | None) -> None:
        """Finish deletions without a round."""
        store = self.store
        pending = {made.name for made, _ in core.open.requests}
        if core.over and noted == "" and not pending:
            store.applied_without_round(core.round, moment(), {"amended": self._amended()})
        older = {"amended": ""} if noted and not core.over else {}
        if store.number("revised") > store.sealed + core.over:
            older["revised"] = str(store.sealed)
        if older:
            store.write_notes(older)  # these data are of an earlier round
        store.forget_unsealed(pending, over=core.over)
        if core.over:
            self.remove(core, Removal.of(core.open.updates, core.round))
        self._erased = store.erased()


def _unkept(core: Core, last: int) -> list[tuple[int, int]]:
    """Boundaries up to this one that are not stored yet. Which ones are is public: it depends on the number of rounds,
    never on a record."""
    return core.grid.unkept(last) if core.grid is not None and core.grid.follows_rules else []


def _rejects(core: Core) -> bool:
    return core.specification.after_erasure == "reject"
