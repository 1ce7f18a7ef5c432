"""Records as keys, with the codes of texts and subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..arrays import I64, Mask, Words
from ..schema import Rows, Schema
from ..texts import Texts
from . import sorted_keys
from .key_layout import KeyLayout, Widths
from .multiset import Multiset
from .operations import Stamped
from .registers import Registers
from .subject_codes import SubjectCodes
from .subject_index import Erased
from .text_codes import TextCodes

Coding = tuple[I64, Mapping[str, I64], I64, Mapping[str, Mask]]
"""Stamps, values and subjects with codes for text, and which values are missing."""
Held = Multiset | Registers


class RecordKeys:
    """The codes of all texts in use, and the layout of keys."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.texts = {name: TextCodes(place=name) for name, field in schema.fields.items() if field.interned}
        self.subjects = SubjectCodes()
        self._tables: list[TextCodes | SubjectCodes] = [*self.texts.values(), self.subjects]
        self.layout = KeyLayout(schema, Widths(8, dict.fromkeys(self.texts, 0), 0))

    @property
    def none(self) -> Words:
        """No keys."""
        return tuple(np.zeros(0, dtype=np.uint64) for _ in range(self.layout.words))

    def additions(self, part: Stamped) -> Coding | None:
        """Additions in codes; new texts get one."""
        return self._coded(part, new=True) if part.rows.count else None

    def deletions(self, part: Stamped) -> tuple[Words, Mask]:
        """The keys of deletions, and which deletions have one; the others name nothing."""
        if not part.rows.count:
            return self.none, np.zeros(0, dtype=np.bool_)
        stamps, values, owners, missing = self._coded(part, new=False)
        possible = (stamps >= 1) & (stamps <= (1 << self.layout.widths.stamp) - 1) & (owners >= 0)
        for name in self.texts:
            possible &= values[name] >= 0
        if possible.all():
            return self.layout.pack(stamps, values, owners, missing), possible
        values = {name: column[possible] for name, column in values.items()}
        missing = {name: mask[possible] for name, mask in missing.items()}
        words = self.layout.pack(stamps[possible], values, owners[possible], missing)
        return words, possible

    def _coded(self, part: Stamped, *, new: bool) -> Coding:
        rows, subjects = part.rows, part.subjects
        values = {}
        for name, column in rows.columns.items():
            table = self.texts.get(name)
            values[name] = column if table is None else (table.intern if new else table.lookup)(column.tolist())
        code = self.subjects.intern if new else self.subjects.lookup
        if subjects is None or isinstance(subjects, str):
            return part.stamps, values, np.broadcast_to(code([subjects]), rows.count), rows.missing
        return part.stamps, values, code(subjects), rows.missing

    def pack(self, coded: Coding | None) -> Words:
        return self.none if coded is None else self.layout.pack(*coded)

    def belonging_to(self, who: Sequence[str | bytes]) -> Erased | None:
        """Which records belong to these subjects; None if none of them has a record."""
        codes = self.subjects.find(who)
        return self.of_codes(codes[codes >= 0])

    def of_codes(self, codes: I64) -> Erased | None:
        if len(codes) == 0:
            return None
        flags = np.zeros(self.subjects.size, dtype=np.bool_)
        flags[codes] = True
        return Erased(codes, flags, self.layout.subjects)

    def refer(self, gained: tuple[Words, ...], lost: tuple[Words, ...]) -> None:
        for name, table in self.texts.items():
            table.refer(self.layout.field(name, *gained), self.layout.field(name, *lost))
        if self.layout.widths.subject:
            self.subjects.refer(self.layout.subjects(*gained), self.layout.subjects(*lost))

    def sweep(self) -> None:
        """Forget every text without a record."""
        for table in self._tables:
            table.sweep()

    def widen(self, round: int, *held: Held) -> None:
        """Make room for stamps up to this round and for all codes in use."""
        needed = Widths(round.bit_length(), {name: text.bits for name, text in self.texts.items()}, self.subjects.bits)
        widths = self.layout.widths.covering(needed)
        if widths != self.layout.widths:
            self._repack(widths, {}, None, held)

    def compact(self, *held: Held) -> None:
        """Renumber texts if most codes are unused, so that nothing shows how many there once were."""
        if not any(table.sparse for table in self._tables):
            return
        texts = {name: table.compacted() for name, table in self.texts.items()}
        subjects, owner_codes = self.subjects.compacted()
        bits = {name: table.bits for name, (table, _) in texts.items()}
        widths = Widths(self.layout.widths.stamp, dict.fromkeys(bits, 0), 0).covering(Widths(0, bits, subjects.bits))
        self._repack(widths, {name: codes for name, (_, codes) in texts.items()}, owner_codes, held)
        self.texts = {name: table for name, (table, _) in texts.items()}
        self.subjects = subjects
        self._tables = [*self.texts.values(), subjects]

    def _repack(self, widths: Widths, texts: Mapping[str, I64], subjects: I64 | None, held: Sequence[Held]) -> None:
        """Move the records to another layout, computed before anything is written."""
        target = KeyLayout(self.schema, widths)
        repacked = [self.layout.repacked(each.words, target, texts, subjects) for each in held]
        for each, words in zip(held, repacked, strict=True):
            each.repack(words)
        self.layout = target

    def rows(self, *parts: Words) -> Rows:
        """The records of keys."""
        columns = {}
        for name in self.schema.fields:
            column = self.layout.field(name, *parts)
            columns[name] = self.texts[name].texts(column) if name in self.texts else column
        count, stamps = sum(len(part[0]) for part in parts), self.layout.stamps(*parts)
        return Rows(columns, count, stamps=stamps, missing=self.layout.missing(*parts))

    def owners(self, *parts: Words) -> Texts:
        """The subject of each key."""
        return self.subjects.texts(self.layout.subjects(*parts))

    def canonical(self, words: Words, ids: list[str | None], subjects: list[str | None]) -> I64:
        """The permutation into canonical order."""
        ranks = {name: text.ranks(self.layout.field(name, words)) for name, text in self.texts.items()}
        values = self.layout.without_subjects(self.layout.repacked(words, self.layout, ranks))
        order = sorted_keys.order(values)
        run, where = sorted_keys.ties(sorted_keys.take(values, order))
        if len(where):
            pairs = ((ids[k], subjects[k]) for k in order[where].tolist())
            # by id, then by subject, None first
            names = [(id is not None, id or "", who is not None, who or "") for id, who in pairs]
            rank = {name: number for number, name in enumerate(sorted(set(names)))}
            within = np.array([rank[name] for name in names], dtype=np.int64)
            order[where] = order[where][np.lexsort((within, run))]
        return order
