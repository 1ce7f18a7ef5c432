"""Data_i, the multiset of surviving stamped records, in columns.

It holds what `retroact.ledger.definition` defines and nothing else: no tombstones, no counts of past operations, no
text without a surviving record. Ledgers with equal surviving data give equal bytes, whatever their histories.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec
import numpy as np

from ..arrays import I64, Mask, Words
from ..errors import InputError
from ..schema import Rows, Schema
from ..texts import ABSENT, Texts
from . import many_rounds, multiset, registers, sorted_keys
from .codec import Records, from_bytes, to_bytes
from .many_rounds import RoundChanges
from .operations import Stamped
from .record_keys import RecordKeys
from .text_codes import TextCodes
from .text_table import grouped
from .updates import Updates


class Change(msgspec.Struct, frozen=True, eq=False):
    """Data_i - Data_{i-1} as signed copies, in no particular order, and how many operations had no effect."""

    rows: Rows
    """The records with their stamps."""
    weights: I64
    """Copies gained (above zero) or lost (below)."""
    added: int
    """Copies gained, and copies lost, in total."""
    removed: int
    ignored_deletions: int
    """Deletions by value or id that found nothing."""
    ignored_additions: int
    """Additions with a stamp in the future."""
    plain: multiset.MultisetEdit
    """What it writes, to records without id and to those with one."""
    held: registers.RegisterEdit

    @property
    def stamps(self) -> I64:
        assert self.rows.stamps is not None
        return self.rows.stamps


class Ledger:
    """The surviving records of one stream.

    >>> from retroact.ledger import Operations
    >>> from retroact.schema import Integer, Schema
    >>> schema = Schema({"age": Integer(0, 120)})
    >>> ledger, updates = Ledger(schema), Updates(schema)
    >>> updates.add_one((31,), 1, subject="u17")
    >>> updates.add_one((44,), 1)
    >>> ledger.apply(1, updates).added
    2
    >>> updates = Updates(schema)
    >>> updates.append(Operations(erased=["u17"]))
    >>> ledger.apply(2, updates).removed, len(ledger)
    (1, 1)
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._keys = RecordKeys(schema)
        self._multiset = multiset.Multiset(self._keys.none, np.zeros(0, dtype=np.int64))
        self._registers = registers.Registers(self._keys.none)
        self._planned: Change | RoundChanges | None = None

    def __len__(self) -> int:
        """The number of surviving copies."""
        return self._multiset.copies + len(self._registers)

    def plan(self, round: int, updates: Updates) -> Change:
        """The effect of a round. Nothing is written: until `commit`, the ledger holds the data of the round before."""
        if round < 1:
            raise InputError(f"expected a round number from 1, got {round}", place="round")
        if updates.schema is not self.schema and updates.schema != self.schema:
            raise InputError("expected updates of the ledger's own schema")
        try:
            self._planned = self._plan(round, updates)
        except BaseException:
            self._keys.sweep()
            raise
        return self._planned

    def plan_rounds(self, first: int, rounds: Sequence[Updates]) -> RoundChanges:
        """The effect of several rounds, the same as of one after the other. Nothing is written."""
        if first < 1 or any(each.schema != self.schema for each in rounds):
            raise InputError("expected rounds from 1 on, of the ledger's own schema")
        try:
            whole = [each.whole() for each in rounds]
            self._planned = many_rounds.plan(self._keys, self._multiset, self._registers, first, whole)
        except BaseException:
            self._keys.sweep()
            raise
        return self._planned

    def commit(self, change: Change | RoundChanges) -> None:
        """Write what was planned last, all or nothing."""
        self._require_planned(change)
        try:
            gone = sorted_keys.take(self._multiset.words, change.plain.changed[change.plain.counts == 0])
            self._registers.reserve(change.held)
            self._multiset.apply(change.plain)
            self._registers.apply(change.held)
            self._keys.refer((change.plain.inserted, change.held.gained), (gone, change.held.lost))
        finally:
            self._planned = None
            self._keys.sweep()
        self._keys.compact(self._multiset, self._registers)

    def drop(self, change: Change | RoundChanges) -> None:
        """Forget what was planned last, and the texts that came with it."""
        self._require_planned(change)
        self._planned = None
        self._keys.sweep()

    def apply(self, round: int, updates: Updates) -> Change:
        """Plan and commit."""
        change = self.plan(round, updates)
        self.commit(change)
        return change

    def named(self, change: Change | RoundChanges) -> Stamped:
        """The change that was planned last, of several rounds what they do together, with ids and subjects; copies are
        the weights."""
        self._require_planned(change)
        parts, weights = self._together(change.plain, change.held)
        rows, gained, lost = self._keys.rows(*parts), *change.held.named()
        ids = Texts.of([None] * (rows.count - len(gained) - len(lost))).followed_by(gained, lost)
        assert rows.stamps is not None
        return Stamped(rows, rows.stamps, self._keys.owners(*parts), copies=weights, ids=ids)

    def rows_between(self, first: int, last: int) -> tuple[Rows, I64]:
        """The distinct records with these stamps and their numbers of copies, in no particular order."""
        parts, counts, _ = self._between(first, last)
        return self._keys.rows(*parts), counts

    def data(self, first: int = 1, last: int = sys.maxsize) -> Stamped:
        """Data_i: the distinct surviving records with their numbers of copies, in canonical order.

        Stamps up to l give RevData_{i,l}; the stamps l - window + 1 to l, for the round l = i, give Live_l. The order
        is by stamp, then by the fields as declared (text by its UTF-8 bytes, a missing value as the field's `blank`),
        then by which of them are missing, then id, then subject, None first. It depends on the surviving data alone:
        not on arrival order, batches, codes or hash seeds.
        """
        parts, counts, slots = self._between(first, last)
        words = sorted_keys.concatenate(*parts)
        ids = [*[None] * len(parts[0][0]), *self._registers.ids(slots).strings()]
        subjects = self._keys.owners(words).strings()
        # without codes, keys are in canonical order already
        if self._keys.texts or len(self._keys.subjects) > 1 or len(slots):
            order = self._keys.canonical(words, ids, subjects)
            words, counts = sorted_keys.take(words, order), counts[order]
            ids, subjects = [ids[k] for k in order.tolist()], [subjects[k] for k in order.tolist()]
        rows = self._keys.rows(words)
        assert rows.stamps is not None
        return Stamped(rows, rows.stamps, subjects, copies=counts, ids=ids)

    def of_subjects(self, who: Sequence[str | bytes]) -> list[int]:
        """How many surviving records each of these subjects has, by name or by the SHA-256 of the name."""
        codes = self._keys.subjects.find(who)
        found = np.zeros(self._keys.subjects.size + 1, dtype=np.int64)  # the last one, -1, is for unknown subjects
        theirs = self._keys.of_codes(codes[codes >= 0])
        if theirs is not None:
            own = theirs(self._multiset.words)
            np.add.at(found, theirs.owners(sorted_keys.take(self._multiset.words, own)), self._multiset.counts[own])
            slots = self._registers.belonging_to(theirs)
            np.add.at(found, theirs.owners(sorted_keys.take(self._registers.words, slots)), 1)
        return [int(number) for number in found[codes]]

    def holds(self, ids: Sequence[str], erased: Sequence[str | bytes] = ()) -> Mask:
        """Which of these ids hold a surviving record that belongs to none of these subjects."""
        return self._registers.holds(ids, self._keys.belonging_to(erased))

    def state(self) -> bytes:
        """The surviving data as bytes: equal for equal data."""
        return to_bytes(self.schema, self.data())

    @classmethod
    def from_state(cls, schema: Schema, state: bytes) -> Ledger:
        """The ledger with this `state`."""
        return cls.of(from_bytes(schema, state))

    @classmethod
    def of(cls, records: Records) -> Ledger:
        """The ledger of these records, in whatever order they are."""
        ledger, stamps, counts = cls(records.schema), records.stamps, records.counts
        keys = ledger._keys
        if len(stamps) and min(int(stamps.min()), int(counts.min())) < 1:
            raise InputError("expected stamps and counts from 1")
        if len(counts) and int(counts.max()) * len(counts) >= 1 << 63:
            raise InputError("expected counts whose sum fits 64 bits", place="counts")
        try:
            values = {
                name: _codes(keys.texts[name], column) if isinstance(column, Texts) else column
                for name, column in records.columns.items()
            }
            owners = keys.subjects.intern(records.subjects)
        except UnicodeDecodeError as error:
            raise InputError(f"expected texts in UTF-8 ({error.reason})") from None
        keys.widen(int(stamps.max(initial=1)))
        missing = {name: flags.astype(np.bool_) for name, flags in records.missing.items()}
        words = keys.layout.pack(stamps, values, owners, missing)
        named = records.ids.lengths != ABSENT
        present = records.ids[named]
        plain, counts = sorted_keys.take(words, ~named), counts[~named]
        order = sorted_keys.order(plain)
        plain = sorted_keys.take(plain, order)
        if not sorted_keys.starts(plain).all() or (grouped(present) != np.arange(len(present))).any():
            raise InputError("expected every record and every id once")
        ledger._multiset = multiset.Multiset(plain, counts[order])
        ledger._registers = registers.Registers(keys.none)
        held = sorted_keys.take(words, named)
        ledger._registers.apply(
            ledger._registers.plan(present, np.arange(len(present)), held, None, keys.layout.subjects)
        )
        keys.refer((words,), ())
        keys.sweep()
        return ledger

    def _plan(self, round: int, updates: Updates) -> Change:
        whole = updates.whole()
        timely = whole.until(round)
        added, placed = self._keys.additions(timely.added), self._keys.additions(timely.placed)
        self._keys.widen(round, self._multiset, self._registers)
        deleted, known = self._keys.deletions(whole.deleted)
        erased = self._keys.belonging_to([*whole.erased, *whole.digests])

        plain = self._multiset.plan(self._keys.pack(added), deleted, erased, timely.added.copies)
        places, events = timely.places, np.full(len(timely.ids), -1, dtype=np.int64)
        events[places] = np.arange(len(places))
        held = self._registers.plan(timely.ids, events, self._keys.pack(placed), erased, self._keys.layout.subjects)

        parts, weights = self._together(plain, held)
        return Change(
            rows=self._keys.rows(*parts),
            weights=weights,
            added=int(weights[weights > 0].sum()),
            removed=-int(weights[weights < 0].sum()),
            ignored_deletions=int((~known).sum()) + plain.ignored + held.ignored,
            ignored_additions=whole.records - timely.records,
            plain=plain,
            held=held,
        )

    def _together(self, plain: multiset.MultisetEdit, held: registers.RegisterEdit) -> tuple[tuple[Words, ...], I64]:
        """The keys that two edits change, and the copies gained (above zero) or lost."""
        gained, lost = len(held.gained[0]), len(held.lost[0])
        weights = (
            plain.copies,
            plain.counts - self._multiset.counts[plain.changed],
            np.repeat(np.array([1, -1]), [gained, lost]),
        )
        changed = sorted_keys.take(self._multiset.words, plain.changed)
        return (plain.inserted, changed, held.gained, held.lost), np.concatenate(weights)

    def _require_planned(self, change: Change | RoundChanges) -> None:
        if self._planned is not change:
            raise InputError("expected the change that was planned last")

    def _between(self, first: int, last: int) -> tuple[tuple[Words, Words], I64, I64]:
        """The keys with these stamps, without an id and with one; their counts; and the slots of the latter."""
        where, slots = slice(0, 0), np.zeros(0, dtype=np.int64)
        bounds = self._keys.layout.stamp_range(first, last)
        if bounds is not None:
            word = self._registers.words[0]
            where, slots = self._multiset.between(*bounds), np.flatnonzero((word >= bounds[0]) & (word <= bounds[1]))
        parts = sorted_keys.take(self._multiset.words, where), sorted_keys.take(self._registers.words, slots)
        return parts, np.concatenate([self._multiset.counts[where], np.ones(len(slots), dtype=np.int64)]), slots


def _codes(table: TextCodes, texts: Texts) -> I64:
    first = grouped(texts)
    own = np.flatnonzero(first == np.arange(len(first)))
    codes = np.empty(len(first), dtype=np.int64)
    codes[own] = table.intern(texts[own].strings())
    return codes[first]
