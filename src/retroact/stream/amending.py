"""Stored data that change without a round: deletions of a stream that is over, what a successor takes, and a discard.

**The protocol.** A request is entered like any: in the inbox, and so acknowledged; so are deletions by id, as a request
without a name, since the fence counts requests. *Prepare*: the journal gets what the inbox knows of them. *Amend*: in
one transaction the surviving data and the open round are without what was deleted, and the requests are out of the
inbox; the round stays. *Applied*: the journal says so, and notes a keyed hash of the data as they are now, so that data
that are put back without their journal are seen. *Fence*, *purge*. A request that is still in the inbox after a crash
is applied again; one that was prepared and is not there any more was amended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..coins import Key
from ..errors import InputError, VerificationError
from ..ledger import Change, Ledger, Operations, Removal, Single
from ..ledger.codec import Records
from ..store import canonical_blocks, inbox
from ..store.receipt import moment, public_key
from .earlier import Earlier, earlier_streams
from .kept import Kept
from .open_round import RoundMark
from .position_set import PositionSet

if TYPE_CHECKING:
    from .durable import Durable


class Amending(Kept):
    """A stream in a store, and all that changes its data beside rounds."""

    _marks: canonical_blocks.Marks
    _places: list[canonical_blocks.Place]
    _erased: set[bytes]
    _unscrubbed: bool

    def discard(self) -> int:
        with self._lock:
            dropped = super().discard()
            with self._writing():
                kept = inbox.erasures(self.schema, self.store.inbox())
                self.store.forget_unsealed((made.name for made, _ in self._open.requests), over=self.over)
                if self.over:
                    self.store.write_notes({"amended": ""})
                self.store.replace_inbox(kept)
                self.store.scrub()
                if self.over:
                    self.store.write_notes({"amended": self._amended()})
                self._erased = self.store.erased()
                self._load()
            return dropped

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
        """As for any stream, in a store of its own. This one keeps its data and can still erase: an erasure that is
        asked for later is asked for in both."""
        from .open import Follows, open_stream
        from .spec_text import written

        with self._lock:
            if where is None:
                raise InputError("expected a place for the stream that follows", place="where")
            if self._followed:
                raise InputError(f"this stream has a successor already: {self.store.note('followed')}")
            self._require_replayed()
            spec = self.specification.following(self._round - 1, epsilon=epsilon, delta=delta, horizon=horizon)
            own = written(self.specification)
            if own is None:
                raise InputError(
                    "a stream with statistics that files cannot describe has no successor in a store", place="where"
                )
            removal, ledger = Removal.of(self._open.updates, self._round), self._ledger
            if removal:
                ledger = Ledger.of(self.schema, ledger.data())
                ledger.apply(self._round, removal.deletions(self.schema))
            sources = {
                name: (position, self._sources.taken.get(name, PositionSet.of()).to_bytes())
                for name, position in self.store.sources().items()
            }
            follows = Follows(
                self._round - 1,
                [*msgspec.json.decode(self.store.note("before") or "[]"), own],
                [*earlier_streams(self.store), Earlier(self.name, public_key(self._hashes.signing), self.store.where)],
                ledger,
                inbox.without(self.schema, self.store.inbox(), removal),
                sources,
                self.store.erased() | {*self._asked()} if self.specification.after_erasure == "reject" else set(),
                self._hashes.handed_on,
                self.promises,
            )
            stream = open_stream(where, spec, key=key, key_file=key_file, fence=fence, follows=follows)
            # The other store is whole by now: what the open round held is there, and no longer here.
            try:
                self._amend(removal, [], {"followed": stream.store.where})
            except BaseException:
                stream.close()
                raise
            return stream

    def _complete(self, batch: Operations | Single, mark: RoundMark) -> None:
        if self.over and len(self._open.requests) == mark.requests and isinstance(batch, Operations) and batch.emptied:
            made = self._request(self._hashes.request(None, [], []), [])
            self._open.requests.append((made, []))

    def _amend_if_over(self) -> None:
        """Apply what no round will."""
        if not self.over:
            return
        removal = Removal.of(self._open.updates, self._round)
        if not removal and not self._open.requests:
            return
        # A successor takes all records, so what a stream that has one still holds is there as well.
        moved = self._followed and any(batch.records for batch in self._open.updates.batches())
        self._amend(removal, [] if moved else inbox.without(self.schema, self.store.inbox(), removal))

    def _amend(self, removal: Removal, entries: Sequence[bytes], notes: Mapping[str, str] | None = None) -> None:
        """Apply deletions to the surviving data without a round; the open round holds these entries."""
        store, round = self.store, self._round

        with self._writing():
            change = self._ledger.plan(round, removal.deletions(self.schema))
            try:
                edit = self._edit(change)
                revised = {"revised": str(round)} if change.removed else {}
                requests = [made._replace(state="amending") for made in self._decided()]
                hashes = self._asked() if self.specification.after_erasure == "reject" else []
                noted = {**(notes or {}), **revised, "unscrubbed": "1", "amended": ""}
                store.prepare(round, {}, requests, hashes, noted)
                store.amend(edit, entries)
                self._put(edit)
            except BaseException:
                self._ledger.drop(change)
                raise
            self._ledger.commit(change)
            self._followed = self._followed or "followed" in (notes or {})
            self._unscrubbed = not store.scrub()
            store.applied_without_round(round, moment(), {"amended": self._amended()})
            if not self._unscrubbed:
                store.write_notes({"unscrubbed": ""})
            self._erased = store.erased()
            self._load()
            self._advance(round - 1)
        self._purge()

    def _amended(self, *entries: tuple[int, bytes]) -> str:
        """The surviving data and the open round, as they are or with more entries, by a keyed hash."""
        return self._hashes.state(self.store.content(entries)).hex()

    def _receive(self, entry: bytes) -> None:
        if self.over and self.store.note("amended"):
            # with or without this entry, whatever happens now
            self.store.write_notes({"amended": f"{self._amended()} {self._amended((self._open.entries + 1, entry))}"})
        super()._receive(entry)

    def _require_amended(self) -> None:
        """Nothing that was deleted without a round is there again."""
        noted = self.store.note("amended") if self.over else None
        if noted and self._amended() not in noted.split():
            raise VerificationError(
                f"{self.store.where}: the data are older than the journal, which knows of deletions that they do not "
                "have, or the journal is older than they are: restore both from one backup"
            )

    def _recover_amended(self) -> None:
        """What a crash interrupted; when the open round was read."""
        store, waiting, noted = self.store, {made.name for made, _ in self._open.requests}, self.store.note("amended")
        if self.over and noted == "" and not waiting:
            store.applied_without_round(self._round, moment(), {"amended": self._amended()})
        older = {"amended": ""} if noted and not self.over else {}
        if store.number("revised") > store.sealed + self.over:
            older["revised"] = str(store.sealed)
        if older:
            store.write_notes(older)  # these data are of an earlier round
        store.forget_unsealed(waiting, over=self.over)
        self._amend_if_over()
        self._erased = store.erased()

    def _asked(self) -> list[bytes]:
        """The keyed hashes of the subjects whose erasure waits."""
        return [subject for _, subjects in self._open.requests for subject in subjects]

    def _edit(self, change: Change) -> canonical_blocks.Edit:
        """What a change does to the stored blocks."""
        records = Records.of(self._ledger.named(change), self.schema)
        return canonical_blocks.edit(self.schema, self._marks, self._places, records, self.store.read_blocks)

    def _put(self, edit: canonical_blocks.Edit) -> None:
        gone = {*edit.gone}
        kept = [place for place in self._places if place not in gone] if gone else self._places
        self._places = sorted([*kept, *(place for place, _ in edit.new)])

    def _purge(self) -> None:
        raise NotImplementedError
