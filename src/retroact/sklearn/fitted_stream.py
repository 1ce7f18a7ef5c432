"""What a fitted estimator continues from: its stream, in memory or in a store, and how records are named.

**Privacy.** Nothing is taken from the records: the specification follows from parameters and the number of columns.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..checks import is_integral
from ..coins import Key
from ..errors import ExhaustedError, InputError
from ..ledger import Entry, Operations
from ..messages import show
from ..stream import Release, Specification, Stream
from ..stream.door import Door, required
from ..stream.open import exists
from ..stream.stored import described, differences


@dataclass
class FittedStream:
    """It stays in its process: copies and pickles of an estimator do not have it."""

    stream: Stream
    next: int | None
    """The next id; None where the caller gives them all."""

    @classmethod
    def begin(cls, specification: Specification, *, key: Any, store: Any, named: bool) -> FittedStream:
        if store is None:
            return cls(Stream.from_specification(specification, key=_key(key)), None if named else 0)
        if not named:
            raise InputError("expected ids: in a store, records are known by them after a restart", place="ids")
        if exists(store):
            raise InputError(
                "expected a place for a new stream, got one that holds a stream: continue it with add, forget, update "
                "or partial_fit",
                place="store",
            )
        return cls(Stream.open(store, specification=specification, key=_key(key)), None)

    @classmethod
    def reopened(cls, store: str | Path, key: Any) -> FittedStream | None:
        """The stream in a store; None if there is none yet."""
        return cls(Stream.open(store, key=_key(key)), None) if exists(store) else None

    def require_same(self, specification: Specification) -> None:
        """Refuse to continue under other parameters."""
        of_store, given = described(self.stream.specification), described(specification)
        for each in (of_store, given):
            each.pop("choice", None)
        if changed := [*differences(of_store, given)]:
            raise InputError(
                f"expected the parameters that the stream in the store was made with: {'; '.join(changed)}",
                place="store",
            )

    def require_room(self) -> None:
        if self.stream.over:
            raise ExhaustedError(
                f"all {self.stream.specification.horizon:,} releases (max_releases) are published; the noise is "
                "calibrated to that many and no more. To go on: fit again, with a budget that adds to this one's"
            )

    def names(self, ids: Any, count: int) -> list[str]:
        """The ids of a batch, one for each record; numbers in the order of arrival if none are given."""
        if (ids is None) != (self.next is not None):
            raise InputError("expected ids in every call since the stream began, or in none", place="ids")
        if self.next is not None:
            return [str(number) for number in range(self.next, self.next + count)]
        return checked_ids(ids, count)

    def apply(self, columns: dict[str, Any] | None, ids: list[str], subjects: Any, forget: list[str]) -> None:
        """Add records, and delete those of other ids: all or nothing."""
        self.stream.apply(self._entry(columns, ids, subjects, forget))
        self._count(ids)

    def publish(
        self, columns: dict[str, Any] | None, ids: list[str], subjects: Any, forget: list[str]
    ) -> tuple[Release, list[Warning]]:
        """The same, and close the round. Warnings are returned, so that none of them interrupts it."""
        entry = self._entry(columns, ids, subjects, forget)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            round = self.stream.apply(entry, close=True).round
        self._count(ids)
        assert round is not None
        [release] = round.values()
        return release, [each.message for each in caught if isinstance(each.message, Warning)]

    def forget(self, ids: list[str]) -> list[bool]:
        """Delete the records with these ids: which of them held one."""
        known = self.stream.holds(ids)
        self.apply(None, [], None, ids)
        return known

    def forget_subjects(self, names: list[str]) -> list[bool]:
        """Delete all records of these subjects: which of them had some."""
        known = self.stream.holds(subject=names)
        self.stream.erase(subject=names)
        return known

    def _entry(self, columns: dict[str, Any] | None, ids: list[str], subjects: Any, forget: list[str]) -> Entry:
        emptied = range(len(ids), len(ids) + len(forget))
        if columns is None:
            return Entry(Operations(ids=forget, emptied=emptied))
        placed = self.stream.stamped(columns, subject=subjects)
        return Entry(Operations(placed=placed, ids=[*ids, *forget], emptied=emptied))

    def _count(self, ids: list[str]) -> None:
        if self.next is not None:
            self.next += len(ids)

    def close(self) -> None:
        if self.stream.durable:
            self.stream.close()  # type: ignore[attr-defined]


def checked_ids(ids: Any, count: int) -> list[str]:
    """
    >>> checked_ids(["a", 7], 2)
    ['a', '7']
    >>> checked_ids(["7", 7], 2)
    Traceback (most recent call last):
    retroact.errors.InputError: expected another id for each record, got '7' twice - at ids, row 2
    """
    names = required(ids, "ids")
    if len(names) != count:
        raise InputError(f"expected {count:,} ids, one for each record, got {len(names):,}", place="ids")
    if len({*names}) < count:
        first: dict[str, int] = {}
        row = next(row for row, name in enumerate(names) if first.setdefault(name, row) != row)
        raise InputError(f"expected another id for each record, got {show(names[row])} twice", place="ids", row=row + 1)
    return names


def check_batch(specification: Specification, columns: dict[str, Any], ids: list[str], subjects: Any) -> None:
    """Refuse the first records of a stream before it is made: it would hold its key, and its place in a store."""
    door = Door(specification)
    door.admit(Operations(placed=door.stamped(columns, 1, subject=subjects), ids=ids), 1, None)


def _key(given: Any) -> Any:
    """A whole number is a seed. The stream refuses anything else that is not a key."""
    return Key.for_testing(int(given)) if is_integral(given) else given
