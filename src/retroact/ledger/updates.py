"""What arrives during one round: batches, in the order in which they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from retroact.errors import InputError
from retroact.ledger.folding import folded
from retroact.ledger.operations import PARTS, Operations, Single
from retroact.ledger.text_codes import by_digest
from retroact.schema import Schema
from retroact.schema.field import Record

UpdatesMark = tuple[int, int, int]
"""How many batches there were, how many parts of single records had come since, and how many operations before."""


class Updates:
    """The additions, deletions and erasures of one open round. Single records are kept as they are until it closes.

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
        """Each with the parts of the single records that came between it and the next one, one behind the other."""
        self._owners: Counter[str | None] = Counter()
        """How many records each subject has in the batches that were counted: none, before somebody asks."""
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
            self._begin(batch if added is batch.added else replace(batch, added=added))

    def add_one(self, record: Record, stamp: int, id: str | None = None, subject: str | None = None) -> None:
        if stamp < 1:
            raise InputError(f"expected a round number from 1, got {stamp}", place="stamp")
        self._singles.extend((record, stamp, id, subject))

    def whole(self) -> Operations:
        """All of them, in columns."""
        return self._joined(0, 0)

    def since(self, mark: UpdatesMark) -> Operations | Single:
        """What came after a mark, as one batch."""
        number, singles, _ = mark
        if number == len(self._batches) and len(self._singles) == singles + PARTS:
            return Single(*self._singles[-PARTS:])
        return self._joined(number, singles)

    def mark(self) -> UpdatesMark:
        """How much there is, to go back to."""
        return len(self._batches), len(self._singles), self._settled

    def go_back(self, mark: UpdatesMark) -> None:
        """Forget what came after."""
        number, singles, self._settled = mark
        del self._batches[number:]
        self._singles = self._batches[-1][1]
        del self._singles[singles:]
        self._owners, self._counted = Counter(), 0

    def of_subjects(self, who: Sequence[str | bytes]) -> list[int]:
        """How many records each of these subjects has among the additions, whatever else the round does to them."""
        for batch, singles in self._batches[self._counted :]:
            for part in (batch.added, batch.placed):
                if part.copies is None:
                    self._owners.update(part.owners())
                else:
                    for owner, number in zip(part.owners(), part.copies.tolist(), strict=True):
                        self._owners[owner] += number
            self._owners.update(singles[PARTS - 1 :: PARTS])
        self._counted = len(self._batches)
        self._begin(Operations())  # what comes from now on is counted when somebody asks again
        names: dict[Any, Any] = by_digest(who, self._owners)
        return [self._owners[names.get(each, each)] for each in who]

    def _begin(self, batch: Operations) -> None:
        """A batch, and room for the single records that come after it."""
        self._settled += len(self._singles) // PARTS + len(batch)
        self._singles = []
        self._batches.append((batch, self._singles))

    def _joined(self, number: int, singles: int) -> Operations:
        """What came after so many batches, and after so many parts of the single records behind them."""
        begun = self._batches[number - 1][1][singles:] if number else []
        parts = [Operations.of_singles(self.schema, begun)] if begun else []
        for batch, own in self._batches[number:]:
            if len(batch):
                parts.append(batch)
            if own:
                parts.append(Operations.of_singles(self.schema, own))
        return Operations.concatenate(parts)
