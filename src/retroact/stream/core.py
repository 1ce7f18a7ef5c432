"""The parts of a stream and how they work together: the door, the open round, the ledger, the engine, persistence."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from ..coins import Key
from ..errors import ExhaustedError, InputError
from ..ledger import Ledger, Operations, Removal, Single
from ..ledger.operations import Position
from ..privacy import Guarantee
from .choosing import Choice
from .closing import Closing
from .door import Door
from .end import end
from .engine import Engine, composed
from .grid import Grid
from .open_round import NO_POSITIONS, OpenRound, PositionSet, Sources, checked_source, read_on
from .outcome import Outcome, outcomes
from .persistence import Persistence
from .release import Round
from .releases import RecentReleases, table_form
from .specification import Specification

if TYPE_CHECKING:
    from .passes import Pass

WARN_AT = 0.8
FORMAT = 3
"""The version of the format of states."""


class HorizonWarning(UserWarning):
    """Four fifths of the promised rounds are used."""


class Core:
    def __init__(
        self,
        specification: Specification,
        key: Key | None,
        ledger: Ledger,
        persistence: Persistence,
        *,
        origin: int = 0,
        round: int | None = None,
        before: Sequence[Guarantee] = (),
        promises: Sequence[str] = (),
        salt: bytes = b"",
    ) -> None:
        """`origin`: the last round of the predecessor. `before`: the guarantees of all predecessors. `promises`: what
        the operator vouches for. `salt`: distinguishes stores under one key."""
        key = Key.generate() if key is None else key
        if not isinstance(key, Key):
            raise InputError("expected a Key, such as Key.generate()", place="key")
        if not persistence.durable and specification.after_erasure == "reject":
            raise InputError(
                "rejecting later records of erased subjects needs a durable stream: Stream.open", place="after_erasure"
            )
        specification.check_rounds(before=origin)
        self.run_under(specification)
        self.persistence, self.ledger = persistence, ledger
        self.origin, self.round, self.before = origin, origin + 1 if round is None else round, tuple(before)
        self.followed = False
        """Whether the stream has a successor."""
        self.open = OpenRound(specification.schema)
        self.sources: Sources = {}
        """How far sources were read in closed rounds."""
        self.passing: Pass | None = None
        self.lock = threading.RLock()
        self._require_room(0)
        spent = composed(specification.guarantee, before)
        guarantee = replace(spent, promises=(*spent.promises, *promises))
        # The origin gives a successor other coins, even under the same testing key.
        coins = key.coins("stream", *([origin] if origin else []), *([salt] if salt else []))
        self.form, self.recent = table_form(specification, testing=key.testing, origin=origin), RecentReleases()
        self.engine = Engine(specification, coins, ledger, origin, self.round - 1, guarantee, self.form)
        self._warned = self._entered = False
        key.claim(persistence.identity)  # last, so that a stream that could not be made leaves its key free

    @classmethod
    def new(cls, specification: Specification, key: Key | None, *, persistence: Persistence | None = None) -> Core:
        """Make a new stream in memory."""
        table_form(specification, testing=False).check()
        return cls(specification, key, Ledger(specification.schema), persistence or Persistence())

    def run_under(self, specification: Specification) -> None:
        """Take a specification that may differ in the roles of columns."""
        self.specification, self.schema, self.door = specification, specification.schema, Door(specification)

    # Operations in ---------------------------------------------------------------------------------------------------

    @contextmanager
    def entering(
        self, source: str | None = None, position: Position = (), delivered: Sequence[int] = ()
    ) -> Iterator[None]:
        """Operations inside the outermost of these contexts are one entry, kept as a whole or not at all."""
        with self.lock:
            self.persistence.require_ready()
            reading = None if source is None else checked_source(source, position, delivered)
            if self._entered:
                if reading is not None:
                    raise InputError("expected one source at a time: `receiving` takes operations of one source")
                yield
                return
            opened, mark = self.open, self.open.mark()
            if reading is not None:
                self.read(*reading)
            self._entered = True
            try:
                yield
            except BaseException:
                # back to the mark, or to the start of a round that opened since
                with self.persistence.writing():
                    self.open.go_back(mark if self.open is opened else OpenRound(self.schema).mark())
                raise
            finally:
                self._entered = False
            if self.open is not opened:
                # the source belongs to the round that was closed inside, and not to operations after that
                mark, reading = OpenRound(self.schema).mark(), None
            self.persistence.receive(self, mark, [] if reading is None else [reading])
            self._remove_if_over()

    def append(self, batch: Operations | Single) -> None:
        """Check a batch and add it to the open round."""
        batch, rejected = self.door.admit(batch, self.round, self.persistence.barred())
        self._require_room(1 if isinstance(batch, Single) else batch.records)
        self.open.updates.append(batch)
        self.open.rejected += rejected

    def enter(self, batch: Operations | Single) -> None:
        """A batch as an entry; in memory nothing has to be undone, which is quicker."""
        if self.persistence.durable:
            with self.entering():
                self.append(batch)
            return
        self.append(batch)
        if not self._entered and not isinstance(batch, Single):
            self._remove_if_over()

    def _remove_if_over(self) -> None:
        if self.over:
            self.persistence.remove(self, Removal.of(self.open.updates, self.round))

    def read(self, source: str, position: Position, delivered: Sequence[int]) -> None:
        """The open round has read a source up to this position, or further."""
        reached = max(position, self.position(source) or ())
        read_on(self.open.reading, source, reached, PositionSet.of(delivered) if delivered else NO_POSITIONS)

    def position(self, source: str) -> Position | None:
        return self.open.reading.get(source, self.sources.get(source, (None,)))[0]

    def outcomes(self, who: Sequence[str | bytes]) -> list[Outcome]:
        """How many records each of these subjects has now."""
        if not who:
            return []
        return outcomes(who, self.ledger.of_subjects(who), self.open.updates.of_subjects(who))

    def discard(self) -> int:
        """See `Stream.discard`."""
        if self._entered or self.passing is not None:
            raise InputError("expected no discard inside `receiving`, which keeps all operations inside, or none")
        kept, whole = OpenRound(self.schema), self.open.updates.whole()
        kept.updates.append(Operations(erased=whole.erased, digests=whole.digests))
        kept.requests, kept.entries = self.open.requests, self.open.entries
        dropped, self.open = len(self.open.updates) - len(kept.updates), kept
        self.persistence.forget(self)
        return dropped

    def _require_room(self, count: int) -> None:
        """Each record adds at most ``Layout.largest`` to a total, and all together at most 2^62. Intermediate sums may
        wrap around, since totals are only ever added to modulo 2^64; the totals themselves do not."""
        if self.followed and count:
            raise InputError("this stream has a successor, which takes records from now on; here they can be deleted")
        if self.passing is not None and self._records() + count > self.specification.capacity:
            self.passing.settle()
        if self._records() + count > self.specification.capacity:
            raise InputError(
                f"expected at most {self.specification.capacity:,} records, the most that 64-bit totals hold for these "
                "statistics: a coarser step makes room"
            )

    def _records(self) -> int:
        """An upper bound on the number of records after the open round."""
        waiting = 0 if self.passing is None else self.passing.waiting
        return len(self.ledger) + waiting + len(self.open.updates)

    # Releases out ----------------------------------------------------------------------------------------------------

    def close(self) -> Round:
        """End the open round and publish: all or nothing."""
        with self.lock, self.persistence.closing(self):
            self._require_no_pass()
            self.require_open()
            round = self.round
            # Whatever can fail does so before the ledger is changed.
            change = self.ledger.plan(round, self.open.updates)
            try:
                totals = self.engine.advance(change.rows, change.weights, round)
                releases = {} if round <= self.persistence.silent else self.engine.releases(round, totals)
                closing = Closing.of(self, change, releases)
                self.persistence.persist(self, change, [closing])
            except BaseException:
                self.ledger.drop(change)
                raise
            self.ledger.commit(change)
            self.engine.adopt(totals)
            self.open_next()
            self.persistence.publish(self)
            return Round(round, releases, closing.applied, self.form)

    def _require_no_pass(self) -> None:
        if self.passing is not None:
            raise InputError("expected this after the pass, whose rounds end by `end_round`")

    def open_next(self) -> None:
        """The open round ends."""
        for source, read in self.open.reading.items():
            read_on(self.sources, source, *read)
        self.open, self.round = OpenRound(self.schema), self.round + 1

    def successor(self, key: Key | None, *, epsilon: float, delta: float, horizon: int | None) -> Core:
        self._require_no_pass()
        if self.followed:
            raise InputError("this stream has a successor already: continue from that one")
        spec = self.specification.following(self.round - 1, epsilon=epsilon, delta=delta, horizon=horizon)
        removal, ledger = self.removed()
        before = [*self.before, self.specification.guarantee]
        following = Core(spec, key, ledger, Persistence(), origin=self.round - 1, before=before)
        self.persistence.remove(self, removal)
        following.open.updates, self.open.updates = self.open.updates, following.open.updates
        self.followed = True
        return following

    def removed(self) -> tuple[Removal, Ledger]:
        """The deletions that need no round, and a copy of the ledger after them."""
        removal, ledger = Removal.of(self.open.updates, self.round), Ledger.from_state(self.schema, self.ledger.state())
        ledger.apply(self.round, removal.deletions(self.schema))
        return removal, ledger

    # State -----------------------------------------------------------------------------------------------------------

    def state(self) -> bytes:
        """See `Stream.state`."""
        with self.lock:
            self._require_no_pass()
            if len(self.open.updates):
                raise InputError("expected no operations in the open round: the state is taken between rounds")
            if self.followed:
                raise InputError("this stream has a successor: take the state of that one")
            digest, choice = self.specification.whole_digest, self.specification.choice
            chosen = [choice.law, *choice.noise.values()]
            before, ledger = len(self.before), self.ledger.state()
            return msgspec.msgpack.encode([FORMAT, digest, chosen, self.round, self.origin, before, ledger])

    @classmethod
    def from_state(cls, specification: Specification, state: bytes, key: Key, before: Sequence[Guarantee]) -> Core:
        """See `Stream.from_state`."""
        try:
            parts = msgspec.msgpack.decode(state, type=tuple[int, bytes, list[str], int, int, int, bytes])
        except msgspec.MsgspecError as error:
            raise InputError(f"expected the state of a stream, got something else ({error})", place="state") from None
        version, digest, chosen, round, origin, streams, ledger = parts
        if version != FORMAT:
            raise InputError(f"expected state format {FORMAT}, got {version}", place="state")
        names = list(specification.statistics)
        if len(chosen) == len(names) + 1:
            stored = {"law": chosen[0], "noise": dict(zip(names, chosen[1:], strict=True))}
            specification = specification.running_under(Choice.from_dict(stored))
        if digest != specification.whole_digest:
            raise InputError("expected the specification that the state was made under, got another", place="state")
        if len(before) != streams:
            raise InputError(f"expected the guarantees of {streams} predecessors, got {len(before)}", place="before")
        data = Ledger.from_state(specification.schema, ledger)
        return cls(specification, key, data, Persistence(), origin=origin, round=round, before=before)

    # The end ---------------------------------------------------------------------------------------------------------

    @property
    def grid(self) -> Grid | None:
        """In a store, with the boundaries that were used."""
        return self.specification.rounds.grid

    @property
    def over(self) -> bool:
        return self._end() is not None

    def _end(self) -> str | None:
        return end(self.specification, self.origin, self.round, followed=self.followed)

    def require_open(self) -> None:
        """Refuse to publish after the end, and warn when most rounds are used."""
        if (end := self._end()) is not None:
            raise ExhaustedError(end)
        horizon, index = self.specification.horizon, self.round - self.origin
        if horizon is not None and index == max(1, int(horizon * WARN_AT)) and horizon > 1 and not self._warned:
            self._warned = True  # first, so that a warning turned into an error is raised only once
            warnings.warn(
                f"round {index:,} of {horizon:,}: plan what follows (stream.successor)", HorizonWarning, stacklevel=4
            )
