"""The parts of a stream and what they do together: a door, an open round, an engine, and what keeps them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

from ..coins import Key
from ..errors import ExhaustedError, InputError
from ..ledger import Change, Ledger, Operations, Removal, Single
from ..ledger.operations import Position
from ..privacy import Guarantee
from .door import Barred, Door
from .engine import Engine, composed
from .erasure import Outcome
from .open_round import NO_POSITIONS, OpenRound, PositionSet, Reading, RoundMark, Sources, checked_source, read_on
from .release import Applied, Release, Round
from .specification import Specification

WARN_AT = 0.8


class HorizonWarning(UserWarning):
    """Four fifths of the promised rounds are used."""


class Keep:
    """What must last of a stream before anybody hears of it: nothing, for one in memory. A stream in a store has
    another (`stream.vault`)."""

    lasts = False
    identity: str | None = None
    """Where it is kept, for the key to know."""
    silent = 0
    """Rounds up to here are replayed and not released."""

    def require_ready(self) -> None:
        """That something can come in."""

    def barred(self) -> Barred | None:
        """Which subjects' records are not taken any more; None where all are."""
        return None

    def receive(self, core: Core, mark: RoundMark, reading: Reading | None) -> None:
        """What came in since a mark, by reading a source or not, is acknowledged when this returns."""

    def writing(self) -> AbstractContextManager[None]:
        """A failure in here leaves memory and what lasts apart."""
        return nullcontext()

    def closing(self, core: Core) -> AbstractContextManager[None]:
        """Around all of a close, which it refuses where nothing may be released."""
        return nullcontext()

    def keep(self, core: Core, change: Change, releases: Mapping[str, Release]) -> None:
        """The open round, with what it does to the surviving data (planned) and what it publishes, lasts when this
        returns; an error before the first byte is written stops it."""

    def publish(self, core: Core) -> None:
        """The last round is about to be seen."""

    def remove(self, core: Core, removal: Removal) -> None:
        """Apply deletions that wait for no round: the stream is over."""
        if removal:
            left = removal.left_of(core.open.updates)
            core.ledger.apply(core.round, removal.deletions(core.schema))
            core.open.updates = left

    def forget(self, core: Core) -> None:
        """The open round holds nothing but its erasures."""


class Core:
    def __init__(
        self,
        specification: Specification,
        key: Key | None,
        ledger: Ledger,
        keep: Keep,
        *,
        origin: int = 0,
        round: int | None = None,
        before: Sequence[Guarantee] = (),
        promises: Sequence[str] = (),
        salt: bytes = b"",
    ) -> None:
        """`origin`: the last round of the stream before. `before`: what the streams before spent. `promises`: what the
        operator answers for. `salt`: tells stores under one key apart."""
        key = Key.generate() if key is None else key
        if not isinstance(key, Key):
            raise InputError("expected a Key, such as Key.generate()", place="key")
        if not keep.lasts and specification.after_erasure == "reject":
            raise InputError(
                "rejecting later records of erased subjects needs a stream that lasts: Stream.open",
                place="after_erasure",
            )
        specification.check_rounds(before=origin)
        self.run_under(specification)
        self.keep, self.ledger = keep, ledger
        self.origin, self.round, self.before = origin, origin + 1 if round is None else round, tuple(before)
        self.followed = False
        """Whether another stream goes on from this one."""
        self.open = OpenRound(specification.schema)
        self.sources: Sources = {}
        """Those that were read in rounds that are closed."""
        self.lock = threading.RLock()
        self._require_room(0)
        spent = composed(specification.guarantee, before)
        guarantee = replace(spent, promises=(*spent.promises, *promises))
        # A stream that follows another begins later, and so has other names even under the same testing key.
        coins = key.coins("stream", *([origin] if origin else []), *([salt] if salt else []))
        self.engine = Engine(specification, coins, ledger, origin, self.round - 1, guarantee)
        self._warned = self._entered = False
        key.claim(keep.identity)  # last, so that a stream that could not be made leaves its key free

    def run_under(self, specification: Specification) -> None:
        """From now on: columns may have other roles."""
        self.specification, self.schema, self.door = specification, specification.schema, Door(specification)

    # What comes in ---------------------------------------------------------------------------------------------------

    @contextmanager
    def entering(
        self, source: str | None = None, position: Position = (), delivered: Sequence[int] = ()
    ) -> Iterator[None]:
        """What comes in between the outermost pair of these is one entry, kept whole or not at all."""
        with self.lock:
            self.keep.require_ready()
            reading = None if source is None else checked_source(source, position, delivered)
            if self._entered:
                if reading is not None:
                    raise InputError("expected one source at a time: what is handed over inside comes from one")
                yield
                return
            opened, mark = self.open, self.open.mark()
            if reading is not None:
                self.read(*reading)
            self._entered = True
            try:
                yield
            except BaseException:
                # back to the mark, or to the beginning of a round that was opened since
                with self.keep.writing():
                    self.open.go_back(mark if self.open is opened else OpenRound(self.schema).mark())
                raise
            finally:
                self._entered = False
            if self.open is not opened:
                # the round was closed with it, and what came after that is of no source
                mark, reading = OpenRound(self.schema).mark(), None
            self.keep.receive(self, mark, reading)
            if self.over:
                self.keep.remove(self, Removal.of(self.open.updates, self.round))

    def append(self, batch: Operations | Single) -> None:
        """Into the open round, as far as it may."""
        batch, rejected = self.door.admit(batch, self.round, self.keep.barred())
        self._require_room(1 if isinstance(batch, Single) else batch.records)
        self.open.updates.append(batch)
        self.open.rejected += rejected

    def enter(self, batch: Operations | Single) -> None:
        """A batch by itself, which need not be undone where nothing lasts."""
        if self.keep.lasts:
            with self.entering():
                self.append(batch)
            return
        self.append(batch)
        if not self._entered and not isinstance(batch, Single) and self.over:
            self.keep.remove(self, Removal.of(self.open.updates, self.round))

    def read(self, source: str, position: Position, delivered: Sequence[int]) -> None:
        """The open round read a source, up to this position at least."""
        reached = max(position, self.position(source) or ())
        taken = PositionSet.of(delivered) if delivered else NO_POSITIONS
        read_on(self.open.reading, source, reached, taken)

    def position(self, source: str) -> Position | None:
        """How far a source was read."""
        return self.open.reading.get(source, self.sources.get(source, (None,)))[0]

    def outcomes(self, who: Sequence[str | bytes]) -> list[Outcome]:
        """What there is now of each of these subjects."""
        if not who:
            return []
        surviving, arrived = self.ledger.of_subjects(who), self.open.updates.of_subjects(who)
        names = [each if isinstance(each, str) else each.hex() for each in who]
        return [
            Outcome(name, bool(there or waiting), there, waiting)
            for name, there, waiting in zip(names, surviving, arrived, strict=True)
        ]

    def discard(self) -> int:
        """Everything but erasures, and how many operations it was."""
        if self._entered:
            raise InputError("expected no discard inside `receiving`, which keeps all that it holds, or nothing")
        kept, whole = OpenRound(self.schema), self.open.updates.whole()
        kept.updates.append(Operations(erased=whole.erased, digests=whole.digests))
        kept.requests, kept.entries = self.open.requests, self.open.entries
        dropped, self.open = len(self.open.updates) - len(kept.updates), kept
        self.keep.forget(self)
        return dropped

    def _require_room(self, count: int) -> None:
        """Each record adds at most ``Layout.largest`` to a total, and all together at most 2^62. Sums on the way may
        wrap around, since all that is done to totals is addition modulo 2^64; the totals themselves do not."""
        if self.followed and count:
            raise InputError("this stream has a successor, which takes records from now on; here they can be deleted")
        if len(self.ledger) + len(self.open.updates) + count > self.specification.capacity:
            raise InputError(
                f"expected at most {self.specification.capacity:,} records, the most that 64-bit totals hold for these "
                "statistics: a coarser step makes room"
            )

    # What goes out ---------------------------------------------------------------------------------------------------

    def close(self) -> Round:
        """End the open round and publish: all or nothing."""
        with self.lock, self.keep.closing(self):
            self._require_open()
            round, closed = self.round, self.open
            # Everything that can fail runs before the ledger writes the first byte.
            change = self.ledger.plan(round, closed.updates)
            try:
                totals = self.engine.advance(change.rows, change.weights, round)
                releases = {} if round <= self.keep.silent else self.engine.releases(round, totals)
                self.keep.keep(self, change, releases)
            except BaseException:
                self.ledger.drop(change)
                raise
            self.ledger.commit(change)
            self.engine.adopt(totals)
            self.open = OpenRound(self.schema)
            for source, read in closed.reading.items():
                read_on(self.sources, source, *read)
            self.round += 1
            self.keep.publish(self)
            ignored = change.ignored_deletions, change.ignored_additions
            return Round(round, releases, Applied(change.added, change.removed, *ignored, closed.rejected))

    def left_out(self) -> dict[str, int]:
        """For each statistic, how many surviving records it leaves out for want of a value."""
        statistics = self.specification.statistics
        if not self.schema.optional:
            return dict.fromkeys(statistics, 0)
        rows, copies = self.ledger.rows_between(1, self.round)
        return {name: bound.left_out(rows, copies) for name, bound in self.specification.bounds.items()}

    def successor(self, key: Key | None, *, epsilon: float, delta: float, horizon: int | None) -> Core:
        """The core of a stream that goes on from this one, in memory."""
        if self.followed:
            raise InputError("this stream has a successor already: go on from that")
        spec = self.specification.following(self.round - 1, epsilon=epsilon, delta=delta, horizon=horizon)
        removal, ledger = self.removed()
        before = [*self.before, self.specification.guarantee]
        following = Core(spec, key, ledger, Keep(), origin=self.round - 1, before=before)
        self.keep.remove(self, removal)
        following.open.updates, self.open.updates = self.open.updates, following.open.updates
        self.followed = True
        return following

    def removed(self) -> tuple[Removal, Ledger]:
        """The deletions that wait for no round, and the surviving data without what they delete."""
        removal, ledger = Removal.of(self.open.updates, self.round), Ledger.from_state(self.schema, self.ledger.state())
        ledger.apply(self.round, removal.deletions(self.schema))
        return removal, ledger

    @property
    def over(self) -> bool:
        """Whether nothing more is published."""
        return self._end() is not None

    def _end(self) -> str | None:
        return end(self.specification, self.origin, self.round, followed=self.followed)

    def _require_open(self) -> None:
        """That the open round may be published; a warning when most of them are."""
        if (end := self._end()) is not None:
            raise ExhaustedError(end)
        horizon, index = self.specification.horizon, self.round - self.origin
        if horizon is not None and index == max(1, int(horizon * WARN_AT)) and horizon > 1 and not self._warned:
            self._warned = True  # first, so that a warning turned into an error does not bar the way for ever
            warnings.warn(
                f"round {index:,} of {horizon:,}: plan what follows (stream.successor)", HorizonWarning, stacklevel=4
            )


def end(spec: Specification, origin: int, round: int, *, followed: bool) -> str | None:
    """Why nothing more is published, where that round is open: deletions no longer wait for a round then. Additions may
    still come, and wait for a successor; erasures and deletions by id are applied at once, to the surviving data and to
    what waits."""
    horizon, count = spec.horizon, spec.rounds.count
    if followed:
        return "this stream has a successor, and publishes nothing more"
    on = "To go on: stream.successor(epsilon=..., horizon=...), whose budget adds to this one's"
    if horizon is not None and round - origin > horizon:
        return f"all {horizon:,} promised rounds are released; the noise is calibrated to that many and no more. {on}"
    if count is not None and origin < count < round:
        return f"all {count:,} rounds of the grid are released. {on}"
    return None
