"""Data_i: the multiset of surviving stamped records, kept in columns.

It is what `retroact.ledger.definition` defines, and nothing besides: no tombstones, no counts of past operations, no
text that no surviving record holds. Two ledgers with equal surviving data give equal bytes, whatever their histories.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress

import numpy as np

from retroact.arrays import I64, Mask, Words
from retroact.errors import InputError
from retroact.ledger import multiset, registers, sorted_keys
from retroact.ledger.change import Change
from retroact.ledger.codec import Records, from_bytes, to_bytes
from retroact.ledger.key_layout import KeyLayout, Widths
from retroact.ledger.operations import Operations, Stamped, joined
from retroact.ledger.surviving import Surviving, label
from retroact.ledger.text_codes import TextCodes
from retroact.ledger.updates import Updates
from retroact.schema import Rows, Schema
from retroact.schema.dictionary_column import Coded


class Ledger:
    """The surviving records of one stream.

    >>> from retroact.schema import Integer, Schema
    >>> schema = Schema({"age": Integer(0, 120)})
    >>> ledger, updates = Ledger(schema), Updates(schema)
    >>> updates.add_one((31,), 1, subject="u17")
    >>> updates.add_one((44,), 1)
    >>> ledger.apply(1, updates).added
    2
    >>> updates = Updates(schema)
    >>> updates.erase(["u17"])
    >>> ledger.apply(2, updates).removed, len(ledger)
    (1, 1)
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._texts = {name: TextCodes(place=name) for name, field in schema.fields.items() if field.interned}
        self._subjects = TextCodes(place="subject", none=True)
        self._layout = KeyLayout(schema, Widths(8, dict.fromkeys(self._texts, 0), 0))
        self._multiset = multiset.Multiset(_no_keys(self._layout), np.zeros(0, dtype=np.int64))
        self._registers = registers.Registers(_no_keys(self._layout))
        self._planned: Change | None = None

    def __len__(self) -> int:
        """The number of surviving copies."""
        return self._multiset.copies + len(self._registers)

    def plan(self, round: int, updates: Updates) -> Change:
        """What everything that arrived in one round does. Nothing is written yet: `commit` or `drop` comes next, and
        until then the ledger holds the data of the round before."""
        if round < 1:
            raise InputError(f"expected a round number from 1, got {round}", place="round")
        if updates.schema is not self.schema and updates.schema != self.schema:
            raise InputError("expected updates of the ledger's own schema")
        try:
            self._planned = self._plan(round, updates)
        except BaseException:
            self._sweep()
            raise
        return self._planned

    def commit(self, change: Change) -> None:
        """Write what was planned last, all or nothing."""
        self._require_planned(change)
        try:
            # nothing is worked out any more, only written down
            gone = sorted_keys.take(self._multiset.words, change.plain.changed[change.plain.counts == 0])
            self._registers.reserve(change.held)
            self._multiset.apply(change.plain)
            self._registers.apply(change.held)
            self._refer((change.plain.inserted, change.held.gained), (gone, change.held.lost))
        finally:
            self._planned = None
            self._sweep()
        self._compact()

    def drop(self, change: Change) -> None:
        """Forget what was planned last, and every text that came with it."""
        self._require_planned(change)
        self._planned = None
        self._sweep()

    def apply(self, round: int, updates: Updates) -> Change:
        """Plan and commit."""
        change = self.plan(round, updates)
        self.commit(change)
        return change

    def named(self, change: Change) -> Surviving:
        """A change that is planned and not yet written with ids and subjects, copies as in its weights."""
        self._require_planned(change)
        gained, lost = change.held.named()
        plain = change.rows.count - len(gained) - len(lost)
        subjects = self._subjects.texts(self._layout.subjects(*change.parts)).tolist()
        return Surviving(change.rows, change.stamps, [*[None] * plain, *gained, *lost], subjects, change.weights)

    def rows_between(self, first: int, last: int) -> tuple[Rows, I64]:
        """The distinct records of these stamps and how many copies there are of each, in no particular order."""
        where, slots = self._between(first, last)
        parts = sorted_keys.take(self._multiset.words, where), sorted_keys.take(self._registers.words, slots)
        counts = np.concatenate([self._multiset.counts[where], np.ones(len(slots), dtype=np.int64)])
        return self._rows(*parts), counts

    def data(self) -> Surviving:
        """Data_i: everything that survives, in canonical order."""
        return self._surviving(1, None)

    def revised(self, past: int) -> Surviving:
        """RevData_{i,l}: the records with a stamp up to l."""
        return self._surviving(1, past)

    def live(self, round: int, window: int) -> Surviving:
        """Live_l: the records that are fewer than `window` rounds old in a round."""
        if window < 1:
            raise InputError(f"expected a number of rounds from 1, got {window}", place="window")
        return self._surviving(max(1, round - window + 1), round)

    def of_subjects(self, who: Sequence[str | bytes]) -> list[int]:
        """How many surviving records each of these subjects has; they may be named by the SHA-256 of their names."""
        codes = self._subjects.find(who)
        found = np.zeros(self._subjects.size + 1, dtype=np.int64)  # the last one is for those without a code
        if (codes >= 0).any():
            for words, counts in ((self._multiset.words, self._multiset.counts), (self._registers.words, None)):
                owners = self._layout.subjects(words)
                own = np.isin(owners, codes)
                np.add.at(found, owners[own], 1 if counts is None else counts[own])
        return [int(number) for number in found[codes]]

    def state(self) -> bytes:
        """The surviving data as bytes: equal for equal data."""
        return to_bytes(self.schema, self.data())

    def digest(self) -> bytes:
        """SHA-256 of the state. It is a function of personal data: do not store it where they may not be stored."""
        return hashlib.sha256(self.state()).digest()

    @classmethod
    def from_state(cls, schema: Schema, state: bytes) -> Ledger:
        """The ledger that `state` was taken of."""
        return cls.of_records(schema, from_bytes(schema, state))

    @classmethod
    def of(cls, schema: Schema, stored: Surviving) -> Ledger:
        """The ledger that holds these records, in whatever order they come."""
        return cls.of_records(schema, Records.of(stored, schema))

    @classmethod
    def of_records(cls, schema: Schema, records: Records) -> Ledger:
        ledger = cls(schema)
        try:
            values = {
                name: ledger._texts[name].intern(column.words)[column.codes] if isinstance(column, Coded) else column
                for name, column in records.coded().items()
            }
            subjects, ids = records.subjects.distinct(), records.ids.strings()
        except UnicodeDecodeError as error:
            raise InputError(f"expected texts in UTF-8 ({error.reason})") from None
        owners = ledger._subjects.intern(subjects.words)[subjects.codes]
        missing = {name: flags.astype(np.bool_) for name, flags in records.missing.items()}
        ledger._fill((records.stamps, values, owners, missing), ids, records.counts)
        return ledger

    def _fill(self, coded: _Coded, ids: list[str | None], counts: I64) -> None:
        """Into an empty ledger."""
        stamps = coded[0]
        if len(stamps) and min(int(stamps.min()), int(counts.min())) < 1:
            raise InputError("expected stamps and counts from 1")
        if len(counts) and int(counts.max()) * len(counts) >= 1 << 63:
            raise InputError("expected counts whose sum fits 64 bits", place="counts")
        self._widen(int(stamps.max(initial=1)))
        words = self._layout.pack(*coded)
        present = [id for id in ids if id is not None]
        named = np.array([id is not None for id in ids], dtype=np.bool_)
        plain, counts = sorted_keys.take(words, ~named), counts[~named]
        order = sorted_keys.order(plain)
        plain = sorted_keys.take(plain, order)
        if not sorted_keys.starts(plain).all() or len({*present}) < len(present):
            raise InputError("expected every record and every id once")
        self._multiset = multiset.Multiset(plain, counts[order])
        held = sorted_keys.take(words, named)
        self._registers.apply(self._registers.plan(present, np.arange(len(present)), held, None))
        self._refer((words,), ())
        self._sweep()

    def _plan(self, round: int, updates: Updates) -> Change:
        batches = updates.batches()
        added, late, copies, _ = self._arrived(round, joined([batch.added for batch in batches]))
        placed, late_placed, _, timely = self._arrived(round, joined([batch.placed for batch in batches]))
        self._widen(round)
        ids, rows = _events(batches, timely)
        deleted, unknown = self._named(joined([batch.deleted for batch in batches]))
        subjects = [subject for batch in batches for subject in batch.erased]
        erased = self._erased([*subjects, *(digest for batch in batches for digest in batch.digests)])

        plain = self._multiset.plan(self._pack(added), deleted, erased, copies)
        held = self._registers.plan(ids, rows, self._pack(placed), erased)

        parts = (plain.inserted, sorted_keys.take(self._multiset.words, plain.changed), held.gained, held.lost)
        differences = plain.counts - self._multiset.counts[plain.changed]
        gained, lost = len(held.gained[0]), len(held.lost[0])
        weights = (plain.copies, differences, np.ones(gained, dtype=np.int64), np.full(lost, -1, dtype=np.int64))
        return Change(
            rows=self._rows(*parts),
            weights=np.concatenate(weights),
            added=int(plain.copies.sum()) + int(differences[differences > 0].sum()) + gained,
            removed=lost - int(differences[differences < 0].sum()),
            ignored_deletions=unknown + plain.ignored + held.ignored,
            ignored_additions=late + late_placed,
            plain=plain,
            held=held,
            parts=parts,
        )

    def _require_planned(self, change: Change) -> None:
        if self._planned is not change:
            raise InputError("expected the change that was planned last")

    def _sweep(self) -> None:
        for table in (*self._texts.values(), self._subjects):
            table.sweep()

    def _arrived(self, round: int, parts: Iterable[Stamped]) -> tuple[list[_Coded], int, I64 | None, Mask]:
        """Additions in codes, without those from the future: how many those are, copies of each, and which are kept."""
        coded, late, copies, kept = [], 0, [], []
        for part in parts:
            timely = part.stamps <= round
            kept.append(timely)
            if not timely.all():
                late += len(part.take(~timely))
                part = part.take(timely)
            coded.append(self._coded(part, TextCodes.intern))
            copies.append(part.copies)
        counts = None
        if any(own is not None for own in copies):
            each = zip(coded, copies, strict=True)
            counts = np.concatenate([np.ones(len(one[0]), np.int64) if own is None else own for one, own in each])
        return coded, late, counts, np.concatenate([np.ones(0, dtype=np.bool_), *kept])

    def _named(self, parts: Iterable[Stamped]) -> tuple[Words, int]:
        """The keys that deletions name, and how many deletions name nothing that could have a key."""
        coded, unknown = [], 0
        for part in parts:
            stamps, values, owners, missing = self._coded(part, TextCodes.lookup)
            possible = (stamps >= 1) & (stamps <= (1 << self._layout.widths.stamp) - 1) & (owners >= 0)
            for name in self._texts:
                possible &= values[name] >= 0
            if not possible.all():
                unknown += len(stamps) - int(possible.sum())
                stamps, owners = stamps[possible], owners[possible]
                values = {name: column[possible] for name, column in values.items()}
                missing = {name: mask[possible] for name, mask in missing.items()}
            coded.append((stamps, values, owners, missing))
        return self._pack(coded), unknown

    def _coded(self, part: Stamped, code: Callable[[TextCodes, list[str | None]], I64]) -> _Coded:
        rows, subjects = part.rows, part.subjects
        values = {
            name: code(self._texts[name], column.tolist()) if name in self._texts else column
            for name, column in rows.columns.items()
        }
        if subjects is None or isinstance(subjects, str):
            return part.stamps, values, np.broadcast_to(code(self._subjects, [subjects]), rows.count), rows.missing
        return part.stamps, values, code(self._subjects, list(subjects)), rows.missing

    def _pack(self, coded: Sequence[_Coded]) -> Words:
        return sorted_keys.concatenate(_no_keys(self._layout), *(self._layout.pack(*part) for part in coded))

    def _erased(self, who: Sequence[str | bytes]) -> Callable[[Words], Mask] | None:
        """The predicate "belongs to one of these subjects"; None if none of them can have a record."""
        codes = self._subjects.find(who)
        codes = codes[codes >= 0]
        if len(codes) == 0:
            return None
        flags = np.zeros(self._subjects.size, dtype=np.bool_)
        flags[codes] = True
        return lambda words: flags[self._layout.subjects(words)]

    def _refer(self, gained: tuple[Words, ...], lost: tuple[Words, ...]) -> None:
        for name, table in self._texts.items():
            table.refer(self._layout.field(name, *gained), self._layout.field(name, *lost))
        if self._layout.widths.subject:
            self._subjects.refer(self._layout.subjects(*gained), self._layout.subjects(*lost))

    def _widen(self, round: int) -> None:
        """Make room in the keys for stamps up to the round and for all codes in use; the data stay as they are."""
        needed = Widths(
            round.bit_length(), {name: text.bits for name, text in self._texts.items()}, self._subjects.bits
        )
        widths = self._layout.widths.covering(needed)
        if widths != self._layout.widths:
            self._relayout(widths, {}, None)

    def _compact(self) -> None:
        """Number texts anew where most numbers lie idle, so that nothing shows how much there once was."""
        if not any(table.sparse for table in (*self._texts.values(), self._subjects)):
            return
        texts = {name: table.compacted() for name, table in self._texts.items()}
        subjects, owner_codes = self._subjects.compacted()
        bits = {name: table.bits for name, (table, _) in texts.items()}
        widths = Widths(self._layout.widths.stamp, dict.fromkeys(bits, 0), 0).covering(Widths(0, bits, subjects.bits))
        self._relayout(widths, {name: codes for name, (_, codes) in texts.items()}, owner_codes)
        self._texts = {name: table for name, (table, _) in texts.items()}
        self._subjects = subjects

    def _relayout(self, widths: Widths, texts: Mapping[str, I64], subjects: I64 | None) -> None:
        target = KeyLayout(self.schema, widths)
        plain = self._layout.repacked(self._multiset.words, target, texts, subjects)
        held = self._layout.repacked(self._registers.words, target, texts, subjects)
        self._multiset.repack(plain)
        self._registers.repack(held)
        self._layout = target

    def _between(self, first: int, last: int | None) -> tuple[slice, I64]:
        """Where the records with these stamps lie: positions in the multiset, slots of the registers."""
        bounds = self._layout.stamp_range(first, (1 << self._layout.widths.stamp) - 1 if last is None else last)
        if bounds is None:
            return slice(0, 0), np.zeros(0, dtype=np.int64)
        word = self._registers.words[0]
        return self._multiset.between(*bounds), np.flatnonzero((word >= bounds[0]) & (word <= bounds[1]))

    def _rows(self, *parts: Words) -> Rows:
        columns = {}
        for name in self.schema.fields:
            column = self._layout.field(name, *parts)
            columns[name] = self._texts[name].texts(column) if name in self._texts else column
        count, stamps = sum(len(part[0]) for part in parts), self._layout.stamps(*parts)
        return Rows(columns, count, stamps=stamps, missing=self._layout.missing(*parts))

    def _surviving(self, first: int, last: int | None) -> Surviving:
        where, slots = self._between(first, last)
        plain = sorted_keys.take(self._multiset.words, where)
        words = sorted_keys.concatenate(plain, sorted_keys.take(self._registers.words, slots))
        counts = np.concatenate([self._multiset.counts[where], np.ones(len(slots), dtype=np.int64)])
        ids: list[str | None] = [*[None] * len(plain[0]), *self._registers.ids(slots)]
        subjects = self._subjects.texts(self._layout.subjects(words)).tolist()
        # keys without codes are sorted as records are
        if self._texts or len(self._subjects) > 1 or len(slots):
            order = self._canonical(words, ids, subjects)
            words, counts = sorted_keys.take(words, order), counts[order]
            ids, subjects = [ids[k] for k in order.tolist()], [subjects[k] for k in order.tolist()]
        rows = self._rows(words)
        assert rows.stamps is not None
        return Surviving(rows, rows.stamps, ids, subjects, counts)

    def _canonical(self, words: Words, ids: list[str | None], subjects: list[str | None]) -> I64:
        """The permutation into canonical order."""
        ranks = {name: text.ranks(self._layout.field(name, words)) for name, text in self._texts.items()}
        values = self._layout.without_subjects(self._layout.repacked(words, self._layout, ranks))
        order = sorted_keys.order(values)
        run, where = sorted_keys.ties(sorted_keys.take(values, order))
        if len(where):
            names = [label(ids[k], subjects[k]) for k in order[where].tolist()]
            rank = {name: number for number, name in enumerate(sorted(set(names)))}
            within = np.array([rank[name] for name in names], dtype=np.int64)
            order[where] = order[where][np.lexsort((within, run))]
        return order


_Coded = tuple[I64, Mapping[str, I64], I64, Mapping[str, Mask]]
"""Stamps, values and subjects of records, with codes for text, and which values are missing."""


def _no_keys(layout: KeyLayout) -> Words:
    return tuple(np.zeros(0, dtype=np.uint64) for _ in range(layout.words))


def _events(batches: Sequence[Operations], timely: Mask) -> tuple[list[str], I64]:
    """The events on ids in arrival order: for each the row of the record that it places, or -1."""
    ids = [id for batch in batches for id in batch.ids]
    happens = np.ones(len(ids), dtype=np.bool_)
    empties = np.zeros(len(ids), dtype=np.bool_)
    first = 0
    for batch in batches:
        empties[[first + place for place in batch.emptied]] = True
        first += len(batch.ids)
    happens[~empties] = timely
    rows = np.full(len(ids), -1, dtype=np.int64)
    rows[~empties] = np.where(timely, np.cumsum(timely) - 1, -1)
    return (ids, rows) if happens.all() else (list(compress(ids, happens.tolist())), rows[happens])
