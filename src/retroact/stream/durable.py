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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from ..coins import Key
from ..errors import InputError, RetroactError, VerificationError
from ..ledger import Change, Ledger
from ..ledger.codec import unpack
from ..privacy import Guarantee
from ..store import canonical_blocks
from ..store.fence import Fence, Mark
from ..store.receipt import moment
from ..store.store import Store, Stored
from .amending import Amending
from .columns import Columns
from .door import Barred, Door
from .erasure import Hashes
from .latest import Standing, promises
from .position_set import PositionSet
from .release import Release, Round
from .specification import Specification
from .stored import columns_note, untouched
from .stream import Stream

if TYPE_CHECKING:
    from .verify import Verification


class Durable(Amending):
    """A stream in a store; made by `Stream.open`."""

    def _attach(
        self,
        spec: Specification,
        key: Key,
        store: Store,
        fence: Fence,
        mark: Mark,
        standing: Standing,
        *,
        origin: int,
        before: list[Guarantee],
        hashes: Hashes,
    ) -> None:
        """Everything from what is stored; `mark` is what the fence says, or will."""
        self._key, self._fence, self._salt, self._marked = key, fence, bytes.fromhex(mark.salt), fence.read()
        self._silent, self._owed, self._lost = standing.silent, standing.owed, (mark.round, mark.lost)
        self.promises = promises(store)
        self._sealing = False
        self._unscrubbed = bool(store.note("unscrubbed"))
        self._followed = bool(store.note("followed"))
        self._hashes = hashes
        self._marks = canonical_blocks.Marks(key.derive("order of blocks"))
        stored = store.blocks()
        self._places = [place for place, _ in stored]
        ledger = _ledger(store.where, spec, [records for _, records in stored])
        del stored
        round = max(store.sealed, origin) + 1
        self._begin(spec, key, ledger, origin, before, round, salt=self._salt, where=store.identity)
        self._store = store
        self._erased = store.erased()
        self._sources.positions = dict(store.sources())
        for source, ranges in store.delivered():
            self._sources.take(source, PositionSet.from_bytes(ranges))
        self._recover()

    # What people ask for -------------------------------------------------------------------------------------------

    def _composed(self) -> Guarantee:
        own = super()._composed()
        return replace(own, promises=(*own.promises, *self.promises))

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
                self._fence.close()
                self._store = None

    def __enter__(self) -> Durable:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # What comes in -------------------------------------------------------------------------------------------------

    def change_columns(self, columns: Mapping[str, Any], *, source: str | None = None) -> None:
        """Give roles to other columns from now on: for all sources, or for one. Roles that are not named stay as they
        are, and an empty name takes one away. Whether there are subjects cannot change once something came in."""
        with self._lock:
            old = self.specification
            if source is None:
                new = old.replace(columns=old.columns.updated(columns).stated())
            else:
                own = {**old.sources.get(source, {"columns": {}})["columns"], **Columns.from_spec(columns).spec()}
                own |= {key: "" for key, column in columns.items() if column == ""}
                own |= {} if columns.get("ignore", True) else {"ignore": False}
                new = old.replace(sources={**old.sources, source: {"columns": own}})
            if new.has_subjects != old.has_subjects and not untouched(self.store):
                raise InputError(
                    f"this stream has {'subjects' if old.has_subjects else 'no subjects'}, and records that came in as "
                    "such: make a new stream",
                    place="subject",
                )
            with self._writing():
                self.store.write_notes(columns_note(new))
            self.specification, self._door = new, Door(new)

    # Inside ----------------------------------------------------------------------------------------------------------

    @property
    def _barred(self) -> Barred | None:
        if self.specification.after_erasure != "reject" or not self._erased:
            return None
        erased, hashed = self._erased, self._hashes.subject
        return lambda subjects: {name for name in {*subjects} if name is not None and hashed(name) in erased}

    def _releases(self, round: int, totals: Mapping[str, Any]) -> dict[str, Release]:
        return {} if round <= self._silent else super()._releases(round, totals)

    def _keep(self, change: Change, releases: Mapping[str, Release]) -> None:
        store, round = self.store, self._round
        edit = self._edit(change)
        revises = change.removed > 0 or bool((change.stamps[change.weights > 0] < round).any())
        # unless everything that came in is there, and nothing that was there is gone
        scrub = change.removed > 0 or change.added != len(self._open.updates) or self._unscrubbed
        self._require_fence()
        self._sealing = True
        self._prepare(({"revising": str(round)} if revises else {}) | ({"unscrubbed": "1"} if scrub else {}))
        store.seal(round, edit)
        self._unscrubbed = scrub and not store.scrub()
        done = {"unscrubbed": ""} if scrub and not self._unscrubbed else {}
        self._commit(round, releases, done | ({"revised": str(round)} if revises else {}))
        self._put(edit)

    def close_round(self) -> Round:
        with self._lock:
            if not self.replaying:
                self._require_erasures()
            try:
                return super().close_round()
            except BaseException:
                # from the first byte that is written until the round number has moved
                self._broken = self._broken or self._sealing
                raise
            finally:
                self._sealing = False

    def _prepare(self, notes: Mapping[str, str]) -> None:
        rejects = self.specification.after_erasure == "reject"
        hashes = self._asked() if rejects else []
        reading = self._open.reading.items()
        positions = {source: (position, PositionSet.of(known).to_bytes()) for source, (position, known) in reading}
        if positions or self._open.requests or notes:
            self.store.prepare(self._round, positions, self._decided(), hashes, notes)
        self._erased |= {*hashes}

    def _commit(self, round: int, releases: Mapping[str, Release], notes: Mapping[str, str]) -> None:
        self.store.commit(round, stored_form(round, releases), moment(), notes)
        self._open.requests = []

    def _closed(self, round: int) -> None:
        self._advance(round)
        self._sealing = False
        self._settle_debt()
        self._purge()

    def _purge(self) -> None:
        """What erasures asked for. They are applied already: what fails here is tried again later."""
        try:
            if self.store.unpurged and self.store.purge():
                self.store.purged(moment())
        except RetroactError as error:
            later = "the stream is opened again" if self.over else "the next round closes"
            warnings.warn(f"not purged yet, but when {later}: {error}", RuntimeWarning, stacklevel=3)

    def _recover(self) -> None:
        """Finish what a crash interrupted, step by step as the protocol has it."""
        store, round = self.store, self._round - 1
        if round > max(store.committed, self._origin):
            # sealed and not committed: the same data give the same releases
            totals = {name: running.totals for name, running in self._running.items()}
            revised = {"revised": str(round)} if store.number("revising") == round else {}
            with self._writing():
                self._commit(round, self._releases(round, totals), revised)
        self._load()
        self._require_amended()
        self._advance(round)
        self._settle_debt()
        self._recover_amended()
        if self._unscrubbed and store.scrub():
            self._unscrubbed = False
            store.write_notes({"unscrubbed": ""})
        self._purge()

    def _shadow(self, ledger: Ledger, round: int) -> Stream:
        """A stream in memory under the same key, as this one was after a round with these data."""
        shadow = Stream.__new__(Stream)
        shadow._warned = True
        shadow._begin(
            self.specification,
            self._key,
            ledger,
            self._origin,
            list(self.before),
            round + 1,
            salt=self._salt,
            where=self.store.identity,
        )
        return shadow


def _ledger(where: str, spec: Specification, stored: list[bytes]) -> Ledger:
    try:
        return Ledger.of_records(spec.schema, unpack(spec.schema, stored))
    except InputError as error:
        raise VerificationError(f"{where}: the stored data are not those of a stream: {error}") from None


def stored_form(round: int, releases: Mapping[str, Release]) -> list[Stored]:
    return [
        Stored(round, name, msgspec.json.encode(release.to_dict()), release.encode())
        for name, release in releases.items()
    ]
