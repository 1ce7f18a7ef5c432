"""What arrives during one round: batches, in arrival order.

Equal records of a batch are kept once, with their number: a small file can hold a hundred million of them. A batch is
folded only where a sample has few different records, so other batches pay almost nothing; the effect is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..arrays import I64
from ..errors import InputError
from ..schema import Schema
from ..schema.field import Record
from ..texts import Texts, chosen
from .operations import PARTS, Operations, Single, Stamped
from .text_codes import by_digest, whose
from .text_table import grouped

UpdatesMark = tuple[int, int, int]
"""The number of batches, of fields of single records since the last one, and of operations before these."""
# Smaller batches are kept as they are; larger ones are folded if a sample of this size has few different records.
_SMALLEST, _SAMPLE, _FEW = 4096, 64, 16


class Updates:
    """The additions, deletions and erasures of one open round. Single records become columns when it closes.

    >>> from retroact.schema import Integer
    >>> updates = Updates(Schema({"age": Integer(0, 120)}))
    >>> updates.add_one((31,), 1, subject="u17")
    >>> updates.append(Operations(erased=["u18"]))
    >>> len(updates), updates.of_subjects(["u17", "u18"])
    (2, [1, 0])
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._batches: list[tuple[Operations, list[Any]]] = []
        """Each with the fields, concatenated, of the single records between it and the next one."""
        self._owners: Counter[str | None] = Counter()
        """How many records each subject has in the batches that `of_subjects` has counted."""
        self._counted = self._settled = 0
        self._singles: list[Any] = []
        self._begin(Operations())

    def __len__(self) -> int:
        """The number of operations."""
        return self._settled + len(self._singles) // PARTS

    def append(self, batch: Operations | Single) -> None:
        if isinstance(batch, Single):
            self._singles.extend(batch)
        elif len(batch):
            added = folded(batch.added)
            self._begin(batch if added is batch.added else msgspec.structs.replace(batch, added=added))

    def add_one(self, record: Record, stamp: int, id: str | None = None, subject: str | None = None) -> None:
        if stamp < 1:
            raise InputError(f"expected a round number from 1, got {stamp}", place="stamp")
        self._singles.extend((record, stamp, id, subject))

    def whole(self) -> Operations:
        """All of them, in columns."""
        return self._joined(0, 0)

    def erased(self) -> list[str]:
        """The subjects that are erased by name, in order."""
        return [name for batch, _ in self._batches for name in batch.erased]

    def erases(self) -> list[str | bytes]:
        """The same, and the subjects that are erased by the SHA-256 of their names."""
        return [*self.erased(), *(digest for batch, _ in self._batches for digest in batch.digests)]

    def since(self, mark: UpdatesMark) -> Operations | Single:
        """What arrived after a mark, as one batch."""
        number, singles, _ = mark
        if number == len(self._batches) and len(self._singles) == singles + PARTS:
            return Single(*self._singles[-PARTS:])
        return self._joined(number, singles)

    def mark(self) -> UpdatesMark:
        return len(self._batches), len(self._singles), self._settled

    def go_back(self, mark: UpdatesMark) -> None:
        """Forget what arrived after a mark."""
        number, singles, self._settled = mark
        del self._batches[number:]
        self._singles = self._batches[-1][1]
        del self._singles[singles:]
        self._owners, self._counted = Counter(), 0

    def of_subjects(self, who: Sequence[str | bytes]) -> list[int]:
        """How many additions each of these subjects has, whatever else the round does to them."""
        for batch, singles in self._batches[self._counted :]:
            for part in (batch.added, batch.placed):
                if part.copies is None:
                    self._owners.update(part.owners())
                else:
                    for owner, number in zip(part.owners(), part.copies.tolist(), strict=True):
                        self._owners[owner] += number
            self._owners.update(singles[PARTS - 1 :: PARTS])
        self._counted = len(self._batches)
        self._begin(Operations())  # what arrives from now on is counted next time
        names: dict[Any, Any] = by_digest(who, self._owners)
        return [self._owners[names.get(each, each)] for each in who]

    def leaves(self, ids: Sequence[str], round: int) -> dict[str, bool]:
        """For each of these ids that has events: whether it holds a record when all of them are done."""
        whole, wanted = self.whole().until(round), {*ids}
        last = {id: event for event, id in enumerate(whole.ids) if id in wanted}
        placed = dict(zip(whole.places.tolist(), whole.placed.owners(), strict=True))
        gone = whose(self.erases(), placed.values())
        return {id: event in placed and placed[event] not in gone for id, event in last.items()}

    def _begin(self, batch: Operations) -> None:
        """A batch, and room for the single records after it."""
        self._settled += len(self._singles) // PARTS + len(batch)
        self._singles = []
        self._batches.append((batch, self._singles))

    def _joined(self, number: int, singles: int) -> Operations:
        """What arrived after this many batches, and this many fields of the single records behind them."""
        begun = self._batches[number - 1][1][singles:] if number else []
        parts = [Operations.of_singles(self.schema, begun)] if begun else []
        for batch, own in self._batches[number:]:
            if len(batch):
                parts.append(batch)
            if own:
                parts.append(Operations.of_singles(self.schema, own))
        return Operations.concatenate(parts)


def folded(batch: Stamped) -> Stamped:
    """
    >>> from retroact.schema import Integer, Schema
    >>> rows, _ = Schema({"n": Integer(0, 9)}).encode({"n": [7, 8] * 5000})
    >>> folded(Stamped.of(rows, 1)).copies
    array([5000, 5000])
    """
    rows, subjects = batch.rows, batch.subjects
    if rows.count < _SMALLEST or batch.copies is not None:
        return batch
    columns: list[NDArray[Any]] = [batch.stamps, *rows.missing.values()]
    for column in rows.columns.values():
        columns += [column] if column.ndim == 1 else list(column.T)
    some = np.linspace(0, rows.count - 1, _SAMPLE).astype(np.int64)
    sample = [column[some].tolist() for column in columns]
    several = not (subjects is None or isinstance(subjects, str))
    if several:
        sample.append(list(chosen(batch.owners(), some)))
    if len({*zip(*sample, strict=True)}) > _FEW:
        return batch
    if several:
        columns.append(grouped(Texts.of(batch.owners(), place="subject")))
    codes = np.zeros(rows.count, dtype=np.int64)
    for column in columns:
        own = _codes(column)
        # codes are below the number of records, so for up to 2^31 records their product is below 2^62
        codes = np.unique(codes * (int(own.max()) + 1) + own, return_inverse=True)[1]
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    return msgspec.structs.replace(batch.take(first), numbers=None, copies=counts.astype(np.int64))


def _codes(column: NDArray[Any]) -> I64:
    """Equal numbers for equal values."""
    if column.dtype != object:
        return np.unique(column, return_inverse=True)[1].astype(np.int64)
    known: dict[Any, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in column.tolist()], dtype=np.int64)
