"""A durable stream: what a stream in a store offers in addition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ..coins import Key
from ..errors import InputError
from ..ledger import Operations
from ..ledger.codec import Records
from ..store import inbox
from ..store.receipt import moment, public_key
from ..store.store import Store
from ..store.tables import Request
from .core import Core
from .door import Names
from .erasure import Asked, Earlier, Hashes, Requested, earlier_streams
from .layout import OldLayout
from .outcome import Erasure
from .stored import columns_note, untouched, written
from .stream import Stream
from .vault import Vault

if TYPE_CHECKING:
    from .verify import Verification


class Durable(Stream):
    """A stream in a store; made by `Stream.open`."""

    def __init__(self, core: Core, vault: Vault, promises: list[str]) -> None:
        self._core, self._vault = core, vault
        self.promises = promises
        """What the operator has vouched for since a restore, in words; part of the guarantee."""

    @property
    def store(self) -> Store:
        return self._vault.store

    @property
    def hashes(self) -> Hashes:
        """What is hashed, sealed or signed under the key of this stream."""
        return self._vault.hashes

    @property
    def name(self) -> str:
        """A keyed id of the stream, which reveals nothing."""
        return self.hashes.stream

    @property
    def replaying(self) -> bool:
        """Whether the open round was released before a restore, and so will not be released again."""
        return self._core.round <= self._vault.silent

    @property
    def missing_erasures(self) -> int | None:
        """How many acknowledged erasures a restored store still lacks; None if that is unknown because its fence was
        lost. No round is released until that many are requested, or `Stream.open` is given `erasures_asked`."""
        return self._vault.guard.missing_erasures(self._core)

    @property
    def debt(self) -> str:
        """The missing erasures in words; empty if there are none."""
        return self._vault.guard.debt(self._core)

    def _lines(self, first: int, last: int | None) -> Iterator[dict[str, Any]]:
        """Read the releases from the journal."""
        order = {name: number for number, name in enumerate(self.specification.statistics)}
        found = self.store.releases(first, last)
        for stored in sorted(found, key=lambda each: (each.round, order.get(each.statistic, len(order)))):
            yield msgspec.json.decode(stored.line)

    def keep_boundaries(self, last: int) -> None:
        """The boundaries of the grid up to this round stay as they are from now on, since they are used."""
        with self._core.lock:
            self._vault.keep_boundaries(self._core, last)

    @property
    def moved_boundaries(self) -> str:
        """Which rounds would end elsewhere by the rules that the time zone has now, in words; empty if none."""
        grid = self._core.grid
        moved = {} if grid is None else grid.moved()
        if grid is None or not moved:
            return ""
        first, last = (max(1, number) for number in (min(moved), max(moved)))
        which = f"round {first:,} keeps" if first == last else f"rounds {first:,} to {last:,} keep"
        return f"the rules of {grid.time_zone} have changed since: {which} the boundaries that were used"

    def verify(self, progress: Callable[[int, int], None] | None = None) -> Verification:
        """Recompute everything from the surviving data and compare (`stream.verify`)."""
        from .verify import verify

        with self._core.lock:
            result = verify(self._core, self._vault, progress)
            result.notes += [self.moved_boundaries] if self.moved_boundaries else []
            if waiting := OldLayout.noted(self.store):
                standing = waiting.standing(self._core.round, moment())
                result.notes.append(f"erased bytes are wiped; the layout of the data is {standing}")
            return result

    def compact(self, *, at_once: int | None = None, rounds: int | None = None, hours: int | None = None) -> bool:
        """Rewrite the layout of the data now, if erasures wait for that. Whether none waits any more.

        What is given becomes a setting of the store: after an erasure, the layout of a store of fewer bytes than
        ``at_once`` is rewritten at once (100,000,000); that of a larger one after this many ``rounds`` (16),
        or with the first round after this many ``hours`` (24).
        """
        with self._core.lock:
            return self._vault.compact(self._core, at_once=at_once, rounds=rounds, hours=hours)

    def close(self) -> None:
        """Close the store; the open round stays there."""
        with self._core.lock:
            self._vault.close()

    def __enter__(self) -> Durable:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Erasures --------------------------------------------------------------------------------------------------------

    def erase(
        self,
        *,
        subject: Names = None,
        sha256: Sequence[bytes] | bytes | None = None,
        request: str | None = None,
        dry_run: bool = False,
    ) -> Requested:
        """Request the erasure of all records of some subjects, surviving ones and those of the open round.

        It is applied and purged when the round closes, or at once if the stream is over. ``request`` names it: a
        repeated request under the same name changes nothing, and returns its progress and what it found.
        """
        with self._core.lock:
            batch = self._core.door.erasure(subject, sha256)
            asked = self.hashes.request(request, batch.erased, batch.digests)
            known = self.request(asked.name)
            if known is not None:
                if known.content != asked.content:
                    raise InputError("this name was given to another request", place="request")
                return Requested(self, known, asked)
            if dry_run:
                return self._requested(asked, dry_run=True)
            with self._core.entering():
                self._core.append(batch)
                return self._requested(asked)

    def _erasure(self, batch: Operations) -> Erasure:
        """The erasures of a batch are a request without a name."""
        if not batch.erased and not batch.digests:
            return Erasure()
        return self._requested(self.hashes.request(None, batch.erased, batch.digests))

    def _requested(self, asked: Asked, *, dry_run: bool = False) -> Requested:
        outcomes = self._core.outcomes(asked.who)
        made = self._vault.request(asked, outcomes)
        if dry_run:
            made = made._replace(state="dry run")
        else:
            self._core.open.requests.append((made, asked.subjects))
        return Requested(self, made, asked, outcomes)

    def request(self, name: bytes) -> Request | None:
        """A request by the keyed hash of its name."""
        pending = next((made for made, _ in self._core.open.requests if made.name == name), None)
        return pending or self.store.request(name)

    def requests(self) -> list[Request]:
        """All requests: those of closed rounds, then those of the open one."""
        pending = {made.name: made for made, _ in self._core.open.requests}
        return [*(known for known in self.store.requests() if known.name not in pending), *pending.values()]

    # Changes ---------------------------------------------------------------------------------------------------------

    def change_columns(self, columns: Mapping[str, Any], *, source: str | None = None) -> None:
        """Give roles to other columns from now on, for all sources or for one. Roles that are not named stay, and an
        empty name removes a role. Whether there are subjects cannot change once data came in."""
        with self._core.lock:
            old = self.specification
            if source is None:
                new = old.replace(columns=replace(old.columns.updated(columns), given=True))
            else:
                own = old.sources.get(source, {"columns": {}})["columns"] | columns
                new = old.replace(sources={**old.sources, source: {"columns": own}})
            if new.has_subjects != old.has_subjects and not untouched(self.store):
                raise InputError(
                    f"this stream has {'subjects' if old.has_subjects else 'no subjects'}, and already holds data: "
                    "make a new stream",
                    place="subject",
                )
            with self._vault.writing():
                self.store.write_notes(columns_note(new))
            self._core.run_under(new)

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
        """As for any stream, in another store. This stream keeps its data and can still erase: request later erasures
        in both."""
        from .open import Follows, open_stream

        core, vault = self._core, self._vault
        with core.lock:
            if where is None:
                raise InputError("expected a place for the successor", place="where")
            if core.followed:
                raise InputError(f"this stream has a successor already: {self.store.note('followed')}")
            vault.guard.require_replayed(core)
            spec = core.specification.following(core.round - 1, epsilon=epsilon, delta=delta, horizon=horizon)
            own = written(core.specification)
            if own is None:
                raise InputError("expected statistics that files can describe: a successor reads them", place="where")
            removal, ledger = core.removed()
            sources = {name: (position, taken.to_bytes()) for name, (position, taken) in core.sources.items()}
            this = Earlier(self.name, public_key(self.hashes.signing), self.store.where)
            notes = {
                "before": [*msgspec.json.decode(self.store.note("before") or "[]"), own],
                "earlier": [*earlier_streams(self.store), this],
                "promises": self.promises,
            }
            follows = Follows(
                core.round - 1,
                {name: msgspec.json.encode(note).decode() for name, note in notes.items()},
                Records.of(ledger.data(), core.schema),
                inbox.without(core.schema, self.store.inbox(), removal),
                sources,
                vault.erased(core),
                self.store.boundaries(),
                self.hashes.handed_on,
            )
            stream = open_stream(where, spec, key=key, key_file=key_file, fence=fence, follows=follows)
            # The other store is complete: the open round is there now, and no longer here.
            try:
                vault.amend(core, removal, [], {"followed": stream.store.where})
            except BaseException:
                stream.close()
                raise
            return stream
