"""What comes into a stream: additions, deletions and erasures, through one door."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..arrays import I64, Mask
from ..errors import InputError
from ..ledger import Entry, Ledger, Operations, Single, Stamped
from ..ledger.operations import Position
from ..schema import Schema
from .arguments import Names, Stamps
from .door import Barred, Door
from .open_round import OpenRound, RoundMark, Sources, checked_source
from .outcome import Erasure, Outcome
from .specification import Specification

if TYPE_CHECKING:
    from .release import Round


@dataclass(frozen=True)
class Accepted:
    """What became of an entry."""

    erasure: Erasure
    """What its erasures found, itself included."""
    round: Round | None
    """What was published, where it closed the round."""


class Intake:
    """The open round of a stream."""

    lasting = False
    """Whether it is kept in a store."""
    _entered = False
    """Whether an entry is being made."""

    specification: Specification
    _door: Door
    _ledger: Ledger
    _open: OpenRound
    _round: int
    _lock: threading.RLock
    _sources: Sources

    @property
    def schema(self) -> Schema:
        return self.specification.schema

    def close_round(self) -> Round:
        raise NotImplementedError

    def add(
        self,
        data: Any,
        *,
        id: Names = None,
        subject: Names = None,
        stamp: Stamps = None,
    ) -> int | None:
        """Add one record (a dict), many (a list of dicts), columns (a dict of arrays) or any Arrow-capable frame.

        Ids, subjects and stamps are given beside it, one for each record, or stand in columns that the stream knows
        (`Specification.columns`).

        Returns the stamp; None when it lies in the future, which makes the addition a no-op, and for a batch with a
        stamp for each record. With an id, what that id held is replaced. All or nothing: an error leaves the stream as
        it was.
        """
        with self._lock:
            now = self._round
            batch, at = self._door.addition(data, id, subject, stamp, now)
            self._enter(batch)
            return at if at is not None and at <= now else None

    def upsert(
        self, data: Any, *, id: Names, deleted: Sequence[bool] | Mask, subject: Names = None, stamp: Stamps = None
    ) -> None:
        """Many events on ids in arrival order: where ``deleted``, the id is emptied; the others hold the records of
        ``data`` in turn, with their subjects and stamps.

        >>> import retroact as ra
        >>> stream = ra.Stream({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=10)
        >>> stream.upsert({"age": [31, 44]}, id=["a", "b", "a"], deleted=[False, False, True])
        >>> stream.close_round().applied.added
        1
        """
        with self._lock:
            self._enter(self._door.upsert(data, id, deleted, subject, stamp, self._round))

    def delete(
        self,
        data: Any = None,
        *,
        stamp: Stamps = None,
        id: Names = None,
        subject: Names = None,
    ) -> None:
        """Delete by id, or one copy of a record by its value, its stamp and its subject (if it has one).

        Deleting what is not there changes nothing, now or later; `close_round().applied` tells how many did.
        """
        with self._lock:
            self._enter(self._door.deletion(data, stamp, id, subject, self._round))

    def erase(self, *, subject: Names = None, sha256: Sequence[bytes] | bytes | None = None) -> Erasure:
        """Erase all records of a subject: one deletion for each of them, also for those added in this round.

        Subjects may also be named by the SHA-256 of their text. What is returned says whether they have records now;
        the erasure is entered all the same.
        """
        with self._lock:
            return self.apply(Entry(self._door.erasure(subject, sha256))).erasure

    # One door --------------------------------------------------------------------------------------------------------

    def stamped(self, data: Any, *, subject: Names = None, stamp: Stamps = None, numbers: I64 | None = None) -> Stamped:
        """Records for the operations of an entry: encoded, with stamps (the open round, if none are given) and
        subjects. Errors name rows of ``data``, or their ``numbers``."""
        return self._door.stamped(data, self._round, subject=subject, stamp=stamp, numbers=numbers)

    def apply(self, entry: Entry, *, close: bool = False) -> Accepted:
        """A batch of operations, and how far it read its source; with ``close``, the round is closed with it. All or
        nothing: an error leaves the stream as it was.

        >>> import numpy as np, retroact as ra
        >>> from retroact.ledger import Entry, Operations
        >>> stream = ra.Stream({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=10)
        >>> batch = Operations(added=stream.stamped({"age": [31, 44]}, subject=["u1", "u2"]), erased=["u1"])
        >>> accepted = stream.apply(Entry(batch, "people.csv", (2,)), close=True)
        >>> accepted.round.applied.added, accepted.erasure.found, stream.position("people.csv")
        (1, True, (2,))
        """
        with self._entering(entry.source, entry.position or (), entry.delivered):
            self._append(entry.operations)
            erasure = Erasure() if isinstance(entry.operations, Single) else self._erasure(entry.operations, entry)
            return Accepted(erasure, self.close_round() if close else None)

    @contextmanager
    def receiving(self, source: str, position: Position, delivered: Sequence[int] = ()) -> Iterator[None]:
        """What is handed over inside comes from a source, up to this position: both are kept, or neither is. A round
        that is closed inside holds it all.

        ``delivered`` names single positions where a source may deliver twice or out of order.
        """
        with self._entering(source, position, delivered):
            yield

    @contextmanager
    def _entering(
        self, source: str | None = None, position: Position = (), delivered: Sequence[int] = ()
    ) -> Iterator[None]:
        """What comes in between the outermost pair of these is one entry, kept whole or not at all."""
        with self._lock:
            if source is not None:
                position, delivered = checked_source(source, position, delivered)
            if self._entered:
                if source is not None:
                    raise InputError("expected one source at a time: what is handed over inside comes from one")
                yield
                return
            opened, mark = self._open, self._open.mark()
            if source is not None:
                opened.read(source, max(position, self.position(source) or ()), delivered)
            self._entered = True
            try:
                yield
            except BaseException:
                self._undo(opened, mark)
                raise
            finally:
                self._entered = False
            if self._open is not opened:
                # the round was closed with it, and what came after that is of no source
                mark, source = OpenRound(self.schema).mark(), None
            self._received(self._open, mark, source, position, delivered)

    @property
    def sources(self) -> list[str]:
        """What was read from, by the names that positions are kept under."""
        return list(self._sources.positions | self._open.reading)

    def position(self, source: str) -> Position | None:
        """How far a source was read, so that nothing of it is taken twice."""
        reading = self._open.reading
        return reading[source][0] if source in reading else self._sources.positions.get(source)

    def settled(self, source: str) -> Position | None:
        """How far a source was read in rounds that are closed."""
        return self._sources.positions.get(source)

    def delivered(self, source: str, position: int) -> bool:
        """Whether a single position of a source was taken."""
        if source in self._open.reading and position in self._open.reading[source][1]:
            return True
        return source in self._sources.taken and position in self._sources.taken[source]

    # Inside ----------------------------------------------------------------------------------------------------------

    def _enter(self, batch: Operations | Single) -> None:
        """A batch by itself; a single addition that need not last is only appended."""
        if isinstance(batch, Single) and not self.lasting:
            self._append(batch)
            return
        with self._entering():
            self._append(batch)

    def _append(self, batch: Operations | Single) -> None:
        """Into the open round, as far as it may."""
        batch, rejected = self._door.admit(batch, self._round, self._barred)
        self._room(1 if isinstance(batch, Single) else batch.records)
        self._open.updates.append(batch)
        self._open.rejected += rejected

    def _undo(self, opened: OpenRound, mark: RoundMark) -> None:
        """Back to a mark, or to the beginning of a round that was opened since."""
        self._open.go_back(mark if self._open is opened else OpenRound(self.schema).mark())

    def _received(
        self, opened: OpenRound, mark: RoundMark, source: str | None, position: Position, delivered: Sequence[int]
    ) -> None:
        """An entry is whole: it must last now, if anything does; and deletions must not wait where no round comes."""

    def _erasure(self, batch: Operations, entry: Entry) -> Erasure:
        """What the erasures of a batch find."""
        return Erasure(self._outcomes([*batch.erased, *batch.digests]))

    def _outcomes(self, who: Sequence[str | bytes]) -> list[Outcome]:
        """What there is now of each of these subjects."""
        if not who:
            return []
        surviving, arrived = self._ledger.of_subjects(who), self._open.updates.of_subjects(who)
        names = [each if isinstance(each, str) else each.hex() for each in who]
        return [
            Outcome(name, bool(there or waiting), there, waiting)
            for name, there, waiting in zip(names, surviving, arrived, strict=True)
        ]

    @property
    def _barred(self) -> Barred | None:
        """Which subjects' records are not taken any more; None where all are."""
        return None

    def _room(self, count: int) -> None:
        """So many records at most, each adding at most ``Layout.largest`` to a total: 2^62 in all. Sums on the way may
        wrap around, since all that is done to totals is addition modulo 2^64; the totals themselves do not."""
        if len(self._ledger) + len(self._open.updates) + count > self.specification.capacity:
            raise InputError(
                f"expected at most {self.specification.capacity:,} records, the most that 64-bit totals hold for these "
                "statistics: a coarser step makes room"
            )
