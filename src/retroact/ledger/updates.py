"""What arrives during one round: batches, in the order in which they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from retroact.arrays import I64
from retroact.errors import InputError
from retroact.ledger.folding import folded
from retroact.ledger.operations import Operations, Single, Stamped, Subjects
from retroact.ledger.text_codes import by_digest
from retroact.schema import Rows, Schema
from retroact.schema.field import Record

UpdatesMark = tuple[int, int, int]
"""How many batches there were, how many single records the last of them held, and how many operations in all."""


class Updates:
    """The additions, deletions and erasures of one open round. Single records are kept as they are until it closes."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._batches: list[Operations | list[Single]] = []
        self._count = 0
        self._owners: Counter[str | None] = Counter()
        """How many records each subject has in what was counted: nothing, before somebody asks."""
        self._counted = (0, 0)

    def __len__(self) -> int:
        """The number of operations."""
        return self._count

    def append(self, batch: Operations | Single) -> None:
        if isinstance(batch, Single):
            if not self._batches or not isinstance(self._batches[-1], list):
                self._batches.append([])
            self._batches[-1].append(batch)  # type: ignore[union-attr]
            self._count += 1
        elif len(batch):
            added = batch.added
            self._batches.append(batch if added is None else replace(batch, added=folded(added)))
            self._count += len(batch)

    def batches(self) -> list[Operations]:
        """All of them, in columns."""
        return [_columns(self.schema, batch) for batch in self._batches]

    def since(self, mark: UpdatesMark) -> Operations | Single:
        """What came after a mark, as one batch."""
        first, singles, _ = mark
        begun = self._batches[first - 1 : first] if first else []
        rest = [batch[singles:] for batch in begun if isinstance(batch, list) and len(batch) > singles]
        found = [*rest, *self._batches[first:]]
        if len(found) == 1 and isinstance(found[0], list) and len(found[0]) == 1:
            return found[0][0]
        return Operations.concatenate([Operations(), *(_columns(self.schema, batch) for batch in found)])

    def mark(self) -> UpdatesMark:
        """How much there is, to go back to."""
        last = self._batches[-1] if self._batches else ()
        return len(self._batches), len(last) if isinstance(last, list) else 0, self._count

    def go_back(self, mark: UpdatesMark) -> None:
        """Forget what came after."""
        first, singles, self._count = mark
        del self._batches[first:]
        if first and isinstance(last := self._batches[-1], list):
            del last[singles:]
        self._owners, self._counted = Counter(), (0, 0)

    def of_subjects(self, who: Sequence[str | bytes]) -> list[int]:
        """How many records each of these subjects has among the additions, whatever else the round does to them."""
        first, singles = self._counted
        for batch in islice(self._batches, first, None):
            if isinstance(batch, list):
                self._owners.update(one.subject for one in islice(batch, singles, None))
            else:
                for part in (batch.added, batch.placed):
                    self._count_owners(part)
            singles = 0
        last = self._batches[-1] if self._batches else ()
        # more may come to a last batch of single records
        self._counted = (len(self._batches) - 1, len(last)) if isinstance(last, list) else (len(self._batches), 0)
        names: dict[Any, Any] = by_digest(who, self._owners)
        return [self._owners[names.get(each, each)] for each in who]

    def _count_owners(self, part: Stamped | None) -> None:
        if part is None:
            return
        if part.subjects is None or isinstance(part.subjects, str):
            self._owners[part.subjects] += len(part)
        elif part.copies is None:
            self._owners.update(part.subjects)
        else:
            for owner, number in zip(part.subjects, part.copies.tolist(), strict=True):
                self._owners[owner] += number

    # By hand ---------------------------------------------------------------------------------------------------------

    def add(self, rows: Rows, stamps: I64 | int, subjects: Subjects = None, ids: Sequence[str] | None = None) -> None:
        """Records, all with an id or all without; one stamp and one subject for all, or one for each."""
        stamped = Stamped.of(rows, stamps, subjects)
        self.append(Operations(added=stamped) if ids is None else Operations(placed=stamped, ids=ids))

    def add_one(self, record: Record, stamp: int, id: str | None = None, subject: str | None = None) -> None:
        if stamp < 1:
            raise InputError(f"expected a round number from 1, got {stamp}", place="stamp")
        self.append(Single(record, stamp, id, subject))

    def delete(self, rows: Rows, stamps: I64 | int, subjects: Subjects = None) -> None:
        """One copy each of records without id."""
        self.append(Operations(deleted=Stamped.of(rows, stamps, subjects)))

    def delete_ids(self, ids: Sequence[str]) -> None:
        self.append(Operations(ids=ids, emptied=range(len(ids))))

    def erase(self, subjects: Sequence[str]) -> None:
        """Every record of these subjects, whenever in the round it arrives."""
        self.append(Operations(erased=subjects))


def _columns(schema: Schema, batch: Operations | list[Single]) -> Operations:
    return Operations.of_singles(schema, batch) if isinstance(batch, list) else batch
