"""Codes for subjects: 0 for nobody, and for each subject with a record one more than its number in a table of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import I64
from ..texts import Texts
from .references import References
from .text_codes import by_digest
from .text_table import TextTable, grouped, marks

_BLOCK = 1 << 16


class SubjectCodes:
    """Subjects with their codes and reference counts.

    `intern` gives codes without references; `sweep` forgets subjects that have none.
    """

    def __init__(self, table: TextTable | None = None, counts: I64 | None = None) -> None:
        self._table = TextTable() if table is None else table
        self._references = References(counts)
        """By the number in the table."""

    def __len__(self) -> int:
        return len(self._table) + 1

    @property
    def size(self) -> int:
        """The number of codes, used or free."""
        return self._table.size + 1

    @property
    def bits(self) -> int:
        """The width of the largest code."""
        return (self.size - 1).bit_length()

    def intern(self, names: Sequence[str | None]) -> I64:
        """The code of each name, which the next `sweep` forgets if it is new and `refer` is not called for it."""
        texts = Texts.of(names, place="subject")
        if len(texts) <= _BLOCK:
            return self._interned(texts)
        # the same subjects come again and again: block by block, the table stays small
        blocks = (slice(start, start + _BLOCK) for start in range(0, len(texts), _BLOCK))
        return np.concatenate([self._interned(texts[block]) for block in blocks])

    def _interned(self, texts: Texts) -> I64:
        mark = marks(texts)
        codes = self._codes(texts, self._table.find(texts, mark))
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            first = grouped(texts[unknown], mark[unknown])
            fresh = np.flatnonzero(first == np.arange(len(first)))
            own = texts[unknown[fresh]]
            own.require_utf8(place="subject")
            numbers = self._table.insert(own, mark[unknown[fresh]])
            self._references.begin(numbers)
            found = np.empty(len(first), dtype=np.int64)
            found[fresh] = numbers
            codes[unknown] = found[first] + 1
        return codes

    def lookup(self, names: Sequence[str | None]) -> I64:
        """The code of each name, or -1."""
        texts = Texts.of(names, place="subject")
        return self._codes(texts, self._table.find(texts))

    @staticmethod
    def _codes(texts: Texts, numbers: I64) -> I64:
        codes = numbers + 1
        codes[numbers < 0] = -1
        if not texts.complete:
            codes[texts.lengths < 0] = 0
        return codes

    def find(self, who: Sequence[str | bytes]) -> I64:
        """Find the codes of names, or of their SHA-256."""
        names: dict[Any, Any] = {}
        if any(isinstance(each, bytes) for each in who):
            names = by_digest(who, self._table[self._table.numbers()])
        codes = np.full(len(who), -1, dtype=np.int64)
        there = [k for k, each in enumerate(who) if isinstance(each, str) or each in names]
        codes[there] = self.lookup([names.get(who[k], who[k]) for k in there])
        return codes

    def texts(self, codes: I64) -> Texts:
        held = self._table[np.maximum(codes - 1, 0)] if len(self._table) else Texts.of([None] * len(codes))
        return held.without(codes == 0)

    def refer(self, gained: I64, lost: I64) -> None:
        """Count one reference more, or one less, for every code."""
        self._references.count(gained[gained > 0] - 1, lost[lost > 0] - 1)

    def sweep(self) -> None:
        """Forget every subject without a reference."""
        self._table.remove(self._references.unused())
        self._table.shrink()

    @property
    def sparse(self) -> bool:
        return self._table.sparse

    def compacted(self) -> tuple[SubjectCodes, I64]:
        """The same subjects with consecutive codes in the same order, and the new code of each old one."""
        table, old = self._table.compacted()
        new = np.zeros(self.size, dtype=np.int64)
        new[old + 1] = np.arange(1, len(old) + 1)
        return SubjectCodes(table, self._references.counts[old]), new
