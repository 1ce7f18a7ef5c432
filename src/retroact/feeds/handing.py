"""A batch of rows into the open round of a stream: as few calls as there are kinds of operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from retroact.arrays import I64, Mask
from retroact.errors import InputError, RetroactError
from retroact.feeds.changes import ADD, DELETE, ERASE, UPDATE, Layout
from retroact.feeds.columns import Batch
from retroact.feeds.events import EVERY_RECORD, located
from retroact.feeds.missed import unfound
from retroact.stream import Stream

T = TypeVar("T")
_NEEDS_ID = "an update replaces what an id holds: name the column of the id"
_NEEDS_STAMP = (
    "a deletion without id names the round that its record was added in: name the column of the id, or of the stamp"
)
Position = tuple[int, ...]
_VERSION = "_commit_version"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that are handed over together, all of them changes."""

    batch: Batch
    codes: NDArray[np.int8]
    copies: I64 | None = None
    stamps: I64 | None = None
    """Where a grid gives them."""

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Any) -> Rows:
        copies, stamps = (None if part is None else part[rows] for part in (self.copies, self.stamps))
        return Rows(self.batch.take(rows), self.codes[rows], copies, stamps)

    @classmethod
    def concatenate(cls, parts: list[Rows]) -> Rows:
        if len(parts) == 1:
            return parts[0]
        whole = [part if part.copies is not None else part._counted() for part in parts]
        copies = None if all(part.copies is None for part in parts) else [part.copies for part in whole]
        stamps = [part.stamps for part in parts if part.stamps is not None]
        return cls(
            Batch.concatenate([part.batch for part in parts]),
            np.concatenate([part.codes for part in parts]),
            None if copies is None else np.concatenate(copies),  # type: ignore[arg-type]
            np.concatenate(stamps) if stamps else None,
        )

    def _counted(self) -> Rows:
        return Rows(self.batch, self.codes, np.ones(len(self), np.int64), self.stamps)


class Origin:
    """How far a source was read, which the stream keeps; nothing of that for a source without a name."""

    def __init__(self, stream: Stream, name: str | None) -> None:
        self.name = name
        self._stream = stream

    def reached(self) -> Position | None:
        return None if self.name is None else self._stream.position(self.name)

    def settled(self) -> Position | None:
        return None if self.name is None else self._stream.settled(self.name)

    def delivered(self, position: int) -> bool:
        return self.name is not None and self._stream.delivered(self.name, position)

    def receiving(self, position: Position, delivered: Sequence[int] = ()) -> AbstractContextManager[None]:
        return nullcontext() if self.name is None else self._stream.receiving(self.name, position, delivered)


class Versions:
    """Of a Delta table, whose changes come in no order unless they are sorted: they never decrease."""

    def __init__(self, names: Sequence[str], layout: Layout) -> None:
        known = {*layout.fields, *(column for _, column in layout.roles.items())}
        self.columns = {_VERSION} & ({*names} - known)
        """What is read for this."""
        self._last: int | None = None

    def check(self, batch: Batch) -> None:
        if not self.columns:
            return
        cells = batch.columns[_VERSION]
        rows = np.flatnonzero(cells.there())
        if not len(rows):
            return
        versions = cells.whole(_VERSION)[rows]
        before = np.concatenate([versions[:1] if self._last is None else [self._last], versions[:-1]])
        odd = versions < before
        if odd.any():
            first = int(np.argmax(odd))
            raise InputError(
                f"changes must come oldest first: sort by {_VERSION} (got {versions[first]} after {before[first]})",
                place=_VERSION,
                row=rows[first] + 1,
            )
        self._last = int(versions[-1])


class Hand:
    """What gives rows to a stream, and says which row was refused."""

    def __init__(self, stream: Stream, layout: Layout, name: str) -> None:
        self.stream = stream
        self._layout = layout
        self._name = name
        self._constant = EVERY_RECORD in stream.schema.fields

    def over(self, rows: Rows) -> list[int]:
        """The rows of erasures that found nothing."""
        codes = rows.codes
        named = self._named(rows.batch)
        if rows.copies is not None:
            rows = self._copied(rows, named)
            codes, named = rows.codes, self._named(rows.batch)
        adds, deletes = (codes == ADD) | (codes == UPDATE), codes == DELETE
        if not named.all() and bool((~named & (codes == UPDATE)).any()):
            self._refuse(rows, ~named & (codes == UPDATE), InputError(_NEEDS_ID, place="id"))
        self._upsert(rows, named & (adds | deletes))
        self._add(rows, ~named & adds)
        self._delete(rows, ~named & deletes)
        return self._erase(rows, codes == ERASE, adds)

    def located(self, error: RetroactError, numbers: I64) -> RetroactError:
        """With the name of the source and, where the error tells one of these rows, its number there."""
        if isinstance(error, InputError):
            return error.at(numbers, self._name)
        first, last = int(numbers[0]), int(numbers[-1])
        if first == last:
            return located(error, self._name, row=first)
        return located(error, self._name, during=f"rows {first}-{last}")

    def _named(self, batch: Batch) -> Mask:
        column = self._layout.roles.id
        return np.zeros(len(batch), np.bool_) if not column else batch.columns[column].there()

    def _copied(self, rows: Rows, named: Mask) -> Rows:
        assert rows.copies is not None
        odd = named & (rows.copies > 1)
        if odd.any():
            got = int(rows.copies[int(np.argmax(odd))])
            wrong = f"expected -1, 0 or 1 for a record with an id, which holds one, got {got}"
            self._refuse(rows, odd, InputError(wrong, place=self._layout.operation))
        return Rows(rows.batch, rows.codes, None, rows.stamps).take(np.repeat(np.arange(len(rows)), rows.copies))

    def _upsert(self, rows: Rows, chosen: Mask) -> None:
        if not chosen.any():
            return
        rows = rows if chosen.all() else rows.take(chosen)
        deleted = rows.codes == DELETE
        ids = rows.batch.columns[self._layout.roles.id or ""].names()
        placed = rows.take(~deleted) if deleted.any() else rows
        everything = rows.batch.numbers

        def numbers(path: str | None) -> I64:
            return everything if path == "id" else placed.batch.numbers

        self._call(
            numbers,
            lambda: self.stream.upsert(
                self._data(placed) if len(placed) else None,
                id=ids,
                deleted=deleted,
                subject=self._subjects(placed),
                stamp=self._stamps(placed),
            ),
        )

    def _add(self, rows: Rows, chosen: Mask) -> None:
        if chosen.any():
            some = rows if chosen.all() else rows.take(chosen)
            self._call(
                lambda _: some.batch.numbers,
                lambda: self.stream.add(self._data(some), subject=self._subjects(some), stamp=self._stamps(some)),
            )

    def _delete(self, rows: Rows, chosen: Mask) -> None:
        if not chosen.any():
            return
        some = rows if chosen.all() else rows.take(chosen)
        column = self._layout.roles.stamp
        known = np.ones(len(some), np.bool_)
        if column:
            known = some.batch.columns[column].there()
        elif some.stamps is None:
            known = ~known
        if not known.all() and some.stamps is None:
            self._refuse(some, ~known, InputError(_NEEDS_STAMP, place="stamp"))
        self._call(
            lambda _: some.batch.numbers,
            lambda: self.stream.delete(
                self._data(some), stamp=self._stamps(some, always=True), subject=self._subjects(some)
            ),
        )

    def _erase(self, rows: Rows, chosen: Mask, adds: Mask) -> list[int]:
        if not chosen.any():
            return []
        some = rows.take(chosen)
        column = self._layout.roles.subject
        known = np.zeros(len(some), np.bool_) if not column else some.batch.columns[column].there()
        if self.stream.specification.has_subjects and not known.all():
            self._refuse(some, ~known, InputError("expected a subject to erase, got none", place="subject"))
        names = some.batch.columns[column].names() if column else []
        found = self._call(lambda _: some.batch.numbers, lambda: self.stream.erase(subject=names))
        added = (self._subjects(rows.take(adds)) or []) if adds.any() else []
        before = np.cumsum(adds)[chosen].tolist()
        return [int(some.batch.numbers[place]) for place in unfound(found.outcomes, (added, before))]

    def _data(self, rows: Rows) -> dict[str, Any]:
        columns = {name: rows.batch.columns[name].column() for name in self._layout.fields}
        return {**columns, **({EVERY_RECORD: np.zeros(len(rows), np.int64)} if self._constant else {})}

    def _subjects(self, rows: Rows) -> list[Any] | None:
        column = self._layout.roles.subject
        if not column or not rows.batch.columns[column].there().any():
            return None
        return rows.batch.columns[column].names()

    def _stamps(self, rows: Rows, *, always: bool = False) -> I64 | None:
        """None where all are the open round, which is quicker."""
        column, now = self._layout.roles.stamp, self.stream.round
        stamps = np.full(len(rows), now) if rows.stamps is None else rows.stamps
        if column:
            cells = rows.batch.columns[column]
            stamps = np.where(cells.there(), cells.whole(column), stamps)
        return stamps if always or bool((stamps != now).any()) else None

    def _call(self, numbers: Callable[[str | None], I64], call: Callable[[], T]) -> T:
        try:
            return call()
        except InputError as error:
            raise self.located(error, numbers(error.path)) from None

    def _refuse(self, rows: Rows, odd: Mask, error: InputError) -> None:
        raise error.found_in(self._name, row=rows.batch.numbers[int(np.argmax(odd))])
