"""Operations in columns: a batch of additions, deletions and erasures on its way to the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..arrays import I64, Mask
from ..errors import InputError
from ..schema import Rows, Schema
from ..schema.field import Record
from ..texts import chosen as chosen_texts
from ..texts import joined as joined_texts

Subjects = Sequence[str | None] | str | None
"""One for all records, or one for each."""
Position = tuple[int, ...]
"""How far a source was read."""


class Stamped(msgspec.Struct, frozen=True, eq=False):
    """Encoded records with their stamps, subjects and ids. Rows and lists are not copied: do not change them later."""

    rows: Rows
    stamps: I64
    subjects: Subjects = None
    numbers: I64 | None = None
    """What errors call each record, such as its line in a file; None: its position, from 1."""
    copies: I64 | None = None
    """How many there are of each; None: one."""
    ids: Sequence[str | None] | None = None
    """Of surviving records; None: no record has one. (A batch has the ids of its events.)"""

    @classmethod
    def of(cls, rows: Rows, stamps: I64 | int, subjects: Subjects = None, numbers: I64 | None = None) -> Stamped:
        """With one stamp and subject for all, or one for each."""
        given = np.asarray(stamps, dtype=np.int64 if rows.count == 0 else None)
        if given.dtype.kind not in "iu" or given.shape not in ((), (rows.count,)):
            raise InputError(f"expected one round number, or {rows.count} of them, got {stamps!r}", place="stamp")
        require_length("subject", subjects, rows.count)
        return cls(rows, np.broadcast_to(given.astype(np.int64), rows.count), subjects, numbers)

    def __len__(self) -> int:
        """The number of copies."""
        return self.rows.count if self.copies is None else int(self.copies.sum())

    @property
    def counts(self) -> I64:
        return np.ones(self.rows.count, dtype=np.int64) if self.copies is None else self.copies

    def take(self, chosen: Mask | I64) -> Stamped:
        """The records at these positions, or where a mask is true; without ids."""
        where: I64 = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64, copy=False)
        subjects = self.subjects
        if subjects is not None and not isinstance(subjects, str):
            subjects = chosen_texts(subjects, where)
        numbers, copies = (None if part is None else part[chosen] for part in (self.numbers, self.copies))
        return Stamped(self.rows.take(chosen), self.stamps[chosen], subjects, numbers, copies)

    def owners(self) -> Sequence[str | None]:
        """The subject of each row."""
        if self.subjects is None or isinstance(self.subjects, str):
            return [self.subjects] * self.rows.count
        return self.subjects

    @classmethod
    def concatenate(cls, parts: Sequence[Stamped]) -> Stamped:
        """In this order, without numbers and ids."""
        parts = [part for part in parts if part.rows.count] or [NO_RECORDS]
        if len(parts) == 1:
            return parts[0]
        subjects: Subjects = None
        if any(part.subjects is not None for part in parts):
            subjects = joined_texts([part.owners() for part in parts])
        copies = None
        if any(part.copies is not None for part in parts):
            copies = np.concatenate([part.counts for part in parts])
        stamps = np.concatenate([part.stamps for part in parts])
        return cls(Rows.concatenate([part.rows for part in parts]), stamps, subjects, None, copies)


NO_RECORDS = Stamped(Rows({}, 0), np.zeros(0, dtype=np.int64))


class Single(NamedTuple):
    """A batch of one addition. A round may hold very many of them."""

    record: Record
    stamp: int
    id: str | None = None
    subject: str | None = None


PARTS = len(Single._fields)


class Operations(msgspec.Struct, frozen=True, eq=False):
    """A batch. Order matters only among events on ids: additions come before deletions by value, and erasures last.

    >>> from retroact.schema import Integer
    >>> rows = Rows.from_tuples(Schema({"age": Integer(0, 120)}), [(31,)])
    >>> operations = Operations(placed=Stamped.of(rows, 1), ids=["a", "b"], emptied=[1], erased=["u17"])
    >>> len(operations), operations.places.tolist()
    (3, [0])
    """

    added: Stamped = NO_RECORDS
    """Records without an id."""
    placed: Stamped = NO_RECORDS
    """Records with one: those of the events on ids that are not deletions, in order."""
    deleted: Stamped = NO_RECORDS
    """Deletions of records without an id, one copy each."""
    ids: Sequence[str] = ()
    """The id of every event on an id, in arrival order."""
    emptied: Sequence[int] = ()
    """Which of these events are deletions."""
    erased: Sequence[str] = ()
    """Subjects to erase, with records that come later in the round too."""
    digests: Sequence[bytes] = ()
    """The same by the SHA-256 of their names in UTF-8."""

    def __post_init__(self) -> None:
        for place, given in (("id", self.ids), ("subject", self.erased)):
            if isinstance(given, str):
                raise InputError(f"expected a list, got the text {given!r}", place=place)
        require_length("id", self.ids, len(self.emptied) + self.placed.rows.count)
        if not all(isinstance(subject, str) for subject in self.erased):
            raise InputError(f"expected subjects, got {self.erased!r}", place="subject")
        for part in (self.added, self.placed):
            if part.rows.count and int(part.stamps.min()) < 1:
                raise InputError(f"expected a round number from 1, got {int(part.stamps.min())}", place="stamp")

    def __len__(self) -> int:
        return len(self.added) + len(self.deleted) + len(self.ids) + len(self.erased) + len(self.digests)

    @property
    def records(self) -> int:
        """The number of additions, with an id or without."""
        return len(self.added) + len(self.placed)

    @property
    def places(self) -> I64:
        """Which events place a record."""
        placing = np.ones(len(self.ids), dtype=np.bool_)
        placing[list(self.emptied)] = False
        return np.flatnonzero(placing)

    def without_records(self, barred: Mask, barred_placed: Mask, now: int) -> Operations:
        """Leave out some additions. One with an id still empties the id, unless its stamp is in the future."""
        places = self.places
        happens = np.ones(len(self.ids), dtype=np.bool_)
        happens[places[barred_placed & (self.placed.stamps > now)]] = False
        empties = np.ones(len(self.ids), dtype=np.bool_)
        empties[places[~barred_placed]] = False
        return msgspec.structs.replace(
            self,
            added=self.added.take(~barred),
            placed=self.placed.take(~barred_placed),
            ids=chosen_texts(self.ids, np.flatnonzero(happens)),
            emptied=np.flatnonzero(empties[happens]).tolist(),
        )

    def until(self, round: int) -> Operations:
        """Leave out records that are stamped after a round, as if they had not arrived."""
        added, placed = self.added.stamps > round, self.placed.stamps > round
        return self.without_records(added, placed, round) if added.any() or placed.any() else self

    @classmethod
    def of_singles(cls, schema: Schema, singles: Sequence[Any]) -> Operations:
        """A batch of the fields of single additions, concatenated."""
        records, stamps, ids, subjects = (singles[place::PARTS] for place in range(PARTS))
        owners = None if subjects.count(None) == len(subjects) else list(subjects)
        every = Stamped(Rows.from_tuples(schema, records), np.array(stamps, dtype=np.int64), owners)
        if ids.count(None) == len(ids):
            return cls(added=every)
        named = np.array([id is not None for id in ids], dtype=np.bool_)
        return cls(every.take(~named), every.take(named), ids=[id for id in ids if id is not None])

    @classmethod
    def concatenate(cls, batches: Sequence[Operations]) -> Operations:
        if len(batches) < 2:
            return batches[0] if batches else cls()
        count, emptied = 0, []
        for batch in batches:
            emptied += [count + place for place in batch.emptied]
            count += len(batch.ids)
        ids = joined_texts([batch.ids for batch in batches if len(batch.ids)])
        parts = ((batch.added, batch.placed, batch.deleted) for batch in batches)
        added, placed, deleted = map(Stamped.concatenate, zip(*parts, strict=True))
        erased = [subject for batch in batches for subject in batch.erased]
        return cls(added, placed, deleted, ids, emptied, erased, [each for batch in batches for each in batch.digests])


class Entry(msgspec.Struct, frozen=True, eq=False):
    """What is acknowledged together: operations, how far their source was read, and the requests they belong to."""

    operations: Operations | Single
    source: str | None = None
    position: Position | None = None
    delivered: Sequence[int] = ()
    """Positions, for sources that may deliver twice or out of order."""
    requests: Sequence[Sequence[Any]] = ()


def require_length(place: str, given: Sequence[Any] | str | None, count: int) -> None:
    if given is not None and not isinstance(given, str) and len(given) != count:
        raise InputError(f"expected {count} of them, got {len(given)}", place=place)
