"""What comes into a stream: additions, deletions and erasures, each at the door checked whole or refused whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from ..arrays import I64, Mask
from ..errors import InputError, Place
from ..ledger import Ledger, Updates
from ..messages import show
from ..schema import Rows, Schema
from ..statistics import Statistic
from .apart import Apart
from .arguments import (
    Names,
    Stamps,
    as_list,
    digests_of,
    is_single,
    name_of,
    names_of,
    required,
    stamp_of,
    stamps_of,
    timely,
)
from .outcome import Erasure, Outcome
from .position_set import PositionSet
from .specification import Specification

Position = tuple[int, ...]
"""How far a source was read; compared part by part."""


LARGEST = 1 << 62


def _source(source: Any, position: Any, delivered: Any) -> tuple[Position, list[int]]:
    """A source and how far it was read, checked."""
    if not isinstance(source, str) or not source:
        raise InputError(f"expected the name of a source, got {source!r}", place="source")
    for place, numbers in (("position", position), ("delivered", delivered)):
        for number in numbers if isinstance(numbers, list | tuple) else [numbers]:
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or abs(int(number)) > LARGEST:
                raise InputError(f"expected whole numbers below 2^62, got {number!r}", place=place)
    return tuple(map(int, position)), list(map(int, delivered))


def no_subjects() -> InputError:
    return InputError(
        'this stream has no subjects: its specification names no column of them (subject = "..." in [columns])',
        place="subject",
    )


class Intake:
    """The open round of a stream."""

    _receiving = False

    specification: Specification
    _apart: Apart
    _ledger: Ledger
    _updates: Updates
    _round: int
    _lock: threading.RLock
    _positions: dict[str, Position]
    """How far each source was read in closed rounds."""
    _taken: dict[str, PositionSet]
    """Which single positions, where a source tells them."""
    _reading: dict[str, tuple[Position, set[int]]]
    """How far in the open round, and which single positions it holds."""
    _rejected: int
    """Records of the open round that belong to barred subjects."""

    @property
    def schema(self) -> Schema:
        return self.specification.schema

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
        with self._entering():
            now = self._round
            if not self._apart.nothing(data):
                data, beside = self._apart.of(data, {"id": id, "subject": subject, "stamp": stamp})
                id, subject, stamp = beside.get("id"), beside.get("subject"), beside.get("stamp")
            if isinstance(data, Mapping) and is_single(id) and is_single(subject) and self.schema.is_record(data):
                if self._apart.asks:
                    self._owned(None if subject is None else [subject], 1)  # type: ignore[list-item]
                record = self.schema.encode_record(data)
                at = timely(stamp_of(stamp, now), now, self.specification.late)
                one, owner = name_of(id, "id"), name_of(subject, "subject")
                if self._bars(owner):
                    if one is not None and at <= now:
                        # An event on an id replaces what it held, also when there is nothing to put in its place.
                        self._updates.delete_ids([one])
                    return at if at <= now else None
                self._validate(lambda: Rows.from_tuples(self.schema, [record]))
                self._room(1)
                self._updates.add_one(record, at, one, owner)
                return at if at <= now else None
            self._one_each(data, id=id, subject=subject)
            rows, count = self._encode(data)
            self._owned(subject, count)
            rows = self._admitted(rows, count, subject)
            if id is not None:
                stamps = self._upsert(rows, stamp, subject, self._all_named(id, count), np.zeros(count, dtype=np.bool_))
            else:
                stamps = timely(stamps_of(stamp, count, now, rows), now, self.specification.late)
                subjects = names_of(subject, count, "subject", rows)
                self._validate(lambda: rows)
                self._room(rows.count)
                self._updates.add(rows, stamps, subjects)
            return stamps if isinstance(stamps, int) and stamps <= now else None

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
        with self._entering():
            flags = np.asarray(deleted, dtype=np.bool_)
            rows, count = self._encode(data) if data is not None else (Rows.empty(self.schema), 0)
            if flags.ndim != 1 or int((~flags).sum()) != count:
                raise InputError(
                    f"expected one event that is not deleted for each of {count} records, got {int((~flags).sum())}",
                    place="deleted",
                )
            self._one_each(data, id=id, subject=subject)
            self._owned(subject, count)
            rows = self._admitted(rows, count, subject)
            self._upsert(rows, stamp, subject, self._all_named(id, len(flags)), flags)
            self._hasten()

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
        with self._entering():
            if (data is None) == (id is None):
                raise InputError("expected either id=... or a record with its stamp")
            if id is not None:
                if stamp is not None or subject is not None:
                    raise InputError("expected an id alone: it holds at most one record", place="id")
                self._updates.delete_ids(required(id, "id"))
                self._hasten()
                return
            if stamp is None:
                raise InputError(
                    "a deletion by value names its stamp, the round the record was added in: "
                    "'the oldest copy' would let one operation change every later round",
                    place="stamp",
                )
            self._one_each(data, subject=subject)
            rows, count = self._encode(data)
            stamps = stamps_of(stamp, count, self._round, rows)
            self._updates.delete(rows, stamps, names_of(subject, count, "subject", rows))

    def erase(self, *, subject: Names = None, sha256: Sequence[bytes] | bytes | None = None) -> Erasure:
        """Erase all records of a subject: one deletion for each of them, also for those added in this round.

        Subjects may also be named by the SHA-256 of their text. What is returned says whether they have records now;
        the erasure is entered all the same.
        """
        with self._entering():
            names, digests = self._to_erase(subject, sha256)
            outcomes = self._outcomes([*names, *digests])
            self._enter_erasure(names, digests)
            self._hasten()
            return Erasure(outcomes)

    # Where it comes from ---------------------------------------------------------------------------------------------

    @contextmanager
    def receiving(self, source: str, position: Position, delivered: Sequence[int] = ()) -> Iterator[None]:
        """What is handed over inside comes from a source, up to this position: both are kept, or neither is. A round
        that is closed inside holds it all.

        ``delivered`` names single positions where a source may deliver twice or out of order.
        """
        with self._lock:
            if self._receiving:
                raise InputError("expected one source at a time: what is handed over inside comes from one")
            position, delivered = _source(source, position, delivered)
            before, mark, round = self._reading.get(source), self._updates.mark(), self._round
            reached = self.position(source)
            known = before[1] if before is not None else set()
            reading = position if reached is None else max(reached, position)
            self._reading[source] = (reading, known | {*delivered} if delivered else known)
            self._receiving = True
            try:
                yield
            except BaseException:
                if self._round == round:
                    self._updates.go_back(mark)
                    self._reading.pop(source, None)
                    self._reading |= {} if before is None else {source: before}
                raise
            finally:
                self._receiving = False
            self._hasten()

    @property
    def sources(self) -> list[str]:
        """What was read from, by the names that positions are kept under."""
        return list(self._positions | self._reading)

    def position(self, source: str) -> Position | None:
        """How far a source was read, so that nothing of it is taken twice."""
        return self._reading[source][0] if source in self._reading else self._positions.get(source)

    def settled(self, source: str) -> Position | None:
        """How far a source was read in rounds that are closed."""
        return self._positions.get(source)

    def delivered(self, source: str, position: int) -> bool:
        """Whether a single position of a source was taken."""
        if source in self._reading and position in self._reading[source][1]:
            return True
        return source in self._taken and position in self._taken[source]

    def _settle(self) -> None:
        """The open round closes: what it read is settled."""
        for source, (position, known) in self._reading.items():
            self._positions[source] = position
            if known:
                self._taken[source] = self._taken.get(source, PositionSet.of()) | PositionSet.of(known)
        self._reading, self._rejected = {}, 0

    # Inside ----------------------------------------------------------------------------------------------------------

    def _entering(self) -> AbstractContextManager[Any]:
        """Around all that changes the open round."""
        return self._lock

    def _to_erase(self, subject: Names, sha256: Sequence[bytes] | bytes | None) -> tuple[list[str], list[bytes]]:
        """Whom an erasure is about."""
        if not self.specification.has_subjects:
            raise InputError(
                "this stream has no subjects, so nobody can be erased: its specification names no column of them. Make "
                'a new stream with subjects (subject = "COLUMN" in [columns], or `retroact run --subject COLUMN`), or '
                'delete a record by its id (stream.delete(id=...), or {"op": "delete", "id": ...} in the feed)',
                place="subject",
            )
        names = [] if subject is None else required(subject, "subject")
        digests = [] if sha256 is None else digests_of(sha256)
        if not names and not digests:
            raise InputError("expected a subject, or the SHA-256 of one", place="subject")
        return names, digests

    def _outcomes(self, who: Sequence[str | bytes]) -> list[Outcome]:
        """What there is now of each of these subjects."""
        surviving, arrived = self._ledger.of_subjects(who), self._updates.of_subjects(who)
        names = [each if isinstance(each, str) else each.hex() for each in who]
        return [
            Outcome(name, bool(there or waiting), there, waiting)
            for name, there, waiting in zip(names, surviving, arrived, strict=True)
        ]

    def _enter_erasure(self, names: list[str], digests: list[bytes]) -> None:
        if names:
            self._updates.erase(names)
        if digests:
            self._updates.erase_digests(digests)

    def _hasten(self) -> None:
        """Apply deletions at once, where no round will."""

    def _one_each(self, data: Any, **given: Names) -> None:
        """One text is for one record: for a batch it may as well be meant as the name of a column."""
        for place, name in given.items():
            if name is not None and is_single(name) and not (isinstance(data, Mapping) and self.schema.is_record(data)):
                raise InputError(
                    f"expected one for each record, got {show(name)} alone. Give them all, such as "
                    f"{place}=frame[{name!r}]; or name their column when the stream is made: "
                    f"columns={{{place!r}: {name!r}}}",
                    place=place,
                )

    def _owned(self, subject: Names, count: int) -> None:
        """Whether a stream has subjects, and whether every record has one, its specification says."""
        role = self.specification.columns.subject
        if role is None:
            if subject is not None and any(name is not None for name in as_list(subject, "subject")):
                raise no_subjects()
        elif not role.optional and count:
            names = [None] * count if subject is None else as_list(subject, "subject")
            if None in names:
                raise InputError(
                    "expected whom the record belongs to, got none (the role may be optional: "
                    f'subject = {{ column = "{role.column}", optional = true }} in [columns])',
                    place=Place("subject", names.index(None) + 1) if count > 1 else "subject",
                )

    @property
    def _barring(self) -> bool:
        """Whether there are subjects whose records are not taken any more."""
        return False

    def _barred(self, subjects: Sequence[str | None]) -> set[str]:
        """Those of the subjects that are such."""
        return set()

    def _bars(self, subject: str | None) -> bool:
        barred = bool(self._barred([subject]))
        self._rejected += barred
        return barred

    def _admitted(self, rows: Rows, count: int, subject: Names) -> Rows:
        """Without the records of barred subjects."""
        subjects = names_of(subject, count, "subject", rows) if self._barring else None
        barred = self._barred(subjects) if subjects is not None else set()
        if subjects is None or not barred:
            return rows
        left = np.array([name not in barred for name in subjects], dtype=np.bool_)
        self._rejected += int((~left).sum())
        return replace(rows.take(left), kept=np.flatnonzero(left))

    def _upsert(self, rows: Rows, stamp: Stamps, subject: Names, ids: list[str], deleted: Mask) -> I64 | int:
        """Events on ids; one whose record is not taken empties its id."""
        now, places = self._round, np.flatnonzero(~deleted)
        stamps: I64 | int = timely(stamps_of(stamp, len(places), now, rows), now, self.specification.late)
        subjects = names_of(subject, len(places), "subject", rows)
        if rows.kept is not None:
            given = np.broadcast_to(stamps_of(stamp, len(places), now, Rows({}, len(places))), len(places))
            barred = np.ones(len(places), dtype=np.bool_)
            barred[rows.kept] = False
            deleted = deleted.copy()
            deleted[places[barred]] = True
            # a stamp in the future is no event
            happens = np.ones(len(deleted), dtype=np.bool_)
            happens[places[barred & (given > now)]] = False
            ids, deleted = list(compress(ids, happens.tolist())), deleted[happens]
        self._validate(lambda: rows)
        self._room(rows.count)
        self._updates.upsert(rows, stamps, subjects, ids, np.flatnonzero(deleted))
        return stamps

    def _all_named(self, given: Any, count: int) -> list[str]:
        ids: list[Any] = names_of(given, count, "id", Rows({}, count)) or []
        if len(ids) != count or None in ids:
            raise InputError("expected an id for every record of the batch, or for none", place="id")
        return ids

    def _encode(self, data: Any) -> tuple[Rows, int]:
        rows, _ = self.schema.encode(data)
        return rows, rows.count

    def _validate(self, rows: Any) -> None:
        for statistic in self.specification.statistics.values():
            if type(statistic).validate is not Statistic.validate:
                statistic.validate(rows(), self.schema)

    def _room(self, count: int) -> None:
        """So many records at most, each adding at most ``Layout.largest`` to a total: 2^62 in all. Sums on the way may
        wrap around, since all that is done to totals is addition modulo 2^64; the totals themselves do not."""
        if len(self._ledger) + len(self._updates) + count > self.specification.capacity:
            raise InputError(
                f"expected at most {self.specification.capacity:,} records, the most that 64-bit totals hold for these "
                "statistics: a coarser step makes room"
            )
