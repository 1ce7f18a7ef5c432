"""What arrives during one round, as it arrives; the ledger makes columns of it when the round is applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from retroact.errors import InputError
from retroact.ledger.folding import Batch, Subjects, folded
from retroact.ledger.sorted_keys import Integers
from retroact.ledger.text_codes import by_digest
from retroact.schema import Rows, Schema
from retroact.schema.field import Record


class Arrivals:
    """Records with stamps and subjects, in arrival order: one by one, or many at a time. Where their order does not
    count, equal ones may be folded."""

    def __init__(self, schema: Schema, *, folds: bool = False) -> None:
        self._schema, self._folds = schema, folds
        self.singles: list[tuple[Record, int, str | None]] = []
        self._batches: list[Batch] = []
        self._settled = 0
        """How many rows the batches have."""
        self._owners: Counter[str | None] = Counter()
        """How many records each subject has in the batches that were counted: none, before somebody asks."""
        self._counted = 0

    def __len__(self) -> int:
        held = (rows.count if counts is None else int(counts.sum()) for rows, _, _, counts in self._batches)
        return len(self.singles) + sum(held)

    def extend(self, rows: Rows, stamps: Integers, subjects: Subjects) -> None:
        if rows.count:
            self._settle()
            self._append(folded(rows, stamps, subjects) if self._folds else (rows, stamps, subjects, None))

    def of_subjects(self, who: Sequence[str | bytes]) -> list[int]:
        """How many records each of these subjects has; they may be named by the SHA-256 of their names."""
        for rows, _, own, counts in self.settled()[self._counted :]:
            if own is None or isinstance(own, str):
                self._owners[own] += rows.count if counts is None else int(counts.sum())
            elif counts is None:
                self._owners.update(own)
            else:
                for owner, number in zip(own, counts.tolist(), strict=True):
                    self._owners[owner] += number
        self._counted = len(self._batches)
        names: dict[Any, Any] = by_digest(who, self._owners)
        return [self._owners[names.get(each, each)] for each in who]

    def mark(self) -> int:
        """How many rows there are: a number that stays right when batches are put together."""
        return self._settled + len(self.singles)

    def go_back(self, mark: int) -> None:
        """Forget what came after."""
        if mark >= self._settled:
            del self.singles[mark - self._settled :]
            return
        self.singles = []
        while self._settled > mark:
            rows, stamps, owners, counts = self._batches.pop()
            self._settled -= rows.count
            if self._settled < mark:
                left = mark - self._settled
                named = owners if owners is None or isinstance(owners, str) else owners[:left]
                copies = None if counts is None else counts[:left]
                self._append((rows.take(np.arange(left)), stamps[:left], named, copies))
        self._recount()

    def _recount(self) -> None:
        self._owners, self._counted = Counter(), 0

    def columns(self) -> Batch:
        """Everything so far; subjects are one for all, or one for each."""
        self._settle()
        if not self._batches:
            return Rows.empty(self._schema), np.zeros(0, dtype=np.int64), None, None
        if len(self._batches) > 1:
            rows, stamps, subjects, counts = zip(*self._batches, strict=True)
            named: list[str | None] = []
            for batch, owners in zip(rows, subjects, strict=True):
                named += [owners] * batch.count if owners is None or isinstance(owners, str) else owners
            nobody = all(owners is None for owners in subjects)
            copies = None
            if any(own is not None for own in counts):
                each = zip(rows, counts, strict=True)
                copies = np.concatenate([np.ones(b.count, np.int64) if own is None else own for b, own in each])
            self._batches = [(Rows.concatenate(rows), np.concatenate(stamps), None if nobody else named, copies)]
            self._recount()
        return self._batches[0]

    def settled(self) -> list[Any]:
        """Batch by batch."""
        self._settle()
        return self._batches

    def _settle(self) -> None:
        if self.singles:
            records, stamps, subjects = zip(*self.singles, strict=True)
            owners = list(subjects) if any(subject is not None for subject in subjects) else None
            rows = Rows.from_tuples(self._schema, records)
            self._append((rows, np.array(stamps, dtype=np.int64), owners, None))
            self.singles = []

    def _append(self, batch: Batch) -> None:
        self._batches.append(batch)
        self._settled += batch[0].count


class Updates:
    """The additions, deletions and erasures of one open round.

    Rows and lists are kept, not copied: whoever hands them in leaves them alone until the round is applied.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.additions = Arrivals(schema, folds=True)
        self.deletions = Arrivals(schema)
        self.placements = Arrivals(schema)
        """Additions with an id."""
        self.event_ids: list[str] = []
        """The id of every event, in arrival order: of the placements, and of the deletions of ids in between."""
        self.emptied: list[int] = []
        """The positions of the latter."""
        self.erased: list[str] = []
        self.erased_digests: list[bytes] = []
        """Subjects by the SHA-256 of their UTF-8 text, for who asks without saying the name."""

    def __len__(self) -> int:
        """The number of operations."""
        erased = len(self.erased) + len(self.erased_digests)
        return len(self.additions) + len(self.deletions) + len(self.event_ids) + erased

    def of_subjects(self, who: Sequence[str | bytes]) -> list[int]:
        """How many records each of these subjects has among the additions, whatever else the round does to them."""
        each = zip(self.additions.of_subjects(who), self.placements.of_subjects(who), strict=True)
        return [plain + placed for plain, placed in each]

    @property
    def placed(self) -> Integers:
        """Which events place a record."""
        places = np.ones(len(self.event_ids), dtype=np.bool_)
        places[self.emptied] = False
        return np.flatnonzero(places)

    def mark(self) -> tuple[int, ...]:
        """How much there is, to go back to."""
        named: tuple[list[Any], ...] = (self.event_ids, self.emptied, self.erased, self.erased_digests)
        return (self.additions.mark(), self.deletions.mark(), self.placements.mark(), *map(len, named))

    def go_back(self, mark: tuple[int, ...]) -> None:
        """Forget what came after."""
        for each, number in zip((self.additions, self.deletions, self.placements), mark, strict=False):
            each.go_back(number)
        named: tuple[list[Any], ...] = (self.event_ids, self.emptied, self.erased, self.erased_digests)
        for part, length in zip(named, mark[3:], strict=True):
            del part[length:]

    def add(
        self, rows: Rows, stamps: Integers | int, subjects: Subjects = None, ids: Sequence[str] | None = None
    ) -> None:
        """Records, all with an id or all without; one stamp and one subject for all, or one for each."""
        each = _rounds(stamps, rows.count)
        _require_length("subject", subjects, rows.count)
        if ids is None:
            self.additions.extend(rows, each, subjects)
            return
        _require_list("id", ids)
        _require_length("id", ids, rows.count)
        self.placements.extend(rows, each, subjects)
        self.event_ids.extend(ids)

    def add_one(self, record: Record, stamp: int, id: str | None = None, subject: str | None = None) -> None:
        if stamp < 1:
            raise InputError(f"expected a round number from 1, got {stamp}", place="stamp")
        if id is None:
            self.additions.singles.append((record, stamp, subject))
        else:
            self.placements.singles.append((record, stamp, subject))
            self.event_ids.append(id)

    def delete(self, rows: Rows, stamps: Integers | int, subjects: Subjects = None) -> None:
        """One copy each of records without id."""
        each = _stamps(stamps, rows.count)
        _require_length("subject", subjects, rows.count)
        self.deletions.extend(rows, each, subjects)

    def delete_one(self, record: Record, stamp: int, subject: str | None = None) -> None:
        self.deletions.singles.append((record, stamp, subject))

    def delete_ids(self, ids: Sequence[str]) -> None:
        _require_list("id", ids)
        self.emptied.extend(range(len(self.event_ids), len(self.event_ids) + len(ids)))
        self.event_ids.extend(ids)

    def upsert(
        self, rows: Rows, stamps: Integers | int, subjects: Subjects, ids: Sequence[str], emptied: Integers
    ) -> None:
        """Events on ids in arrival order: those at the positions `emptied` delete, the others hold the rows in turn."""
        each = _rounds(stamps, rows.count)
        _require_list("id", ids)
        _require_length("id", ids, rows.count + len(emptied))
        _require_length("subject", subjects, rows.count)
        self.placements.extend(rows, each, subjects)
        self.emptied.extend((len(self.event_ids) + emptied).tolist())
        self.event_ids.extend(ids)

    def erase_digests(self, digests: Sequence[bytes]) -> None:
        """Every record of the subjects that have these digests."""
        self.erased_digests.extend(digests)

    def erase(self, subjects: Sequence[str]) -> None:
        """Every record of these subjects, whenever in the round it arrives."""
        _require_list("subject", subjects)
        if not all(isinstance(subject, str) for subject in subjects):
            raise InputError(f"expected subjects, got {subjects!r}", place="subject")
        self.erased.extend(subjects)


def _rounds(stamps: Integers | int, count: int) -> Integers:
    each = _stamps(stamps, count)
    if count and int(each.min()) < 1:
        raise InputError(f"expected a round number from 1, got {int(each.min())}", place="stamp")
    return each


def _stamps(stamps: Integers | int, count: int) -> Integers:
    given = np.asarray(stamps, dtype=np.int64 if count == 0 else None)
    if given.dtype.kind not in "iu" or given.shape not in ((), (count,)):
        raise InputError(f"expected one round number, or {count} of them, got {stamps!r}", place="stamp")
    return np.broadcast_to(given.astype(np.int64), count)


def _require_list(place: str, given: Sequence[str]) -> None:
    if isinstance(given, str):
        raise InputError(f"expected a list, got the text {given!r}", place=place)


def _require_length(place: str, given: Sequence[str | None] | str | None, count: int) -> None:
    if given is not None and not isinstance(given, str) and len(given) != count:
        raise InputError(f"expected {count} of them, got {len(given)}", place=place)
