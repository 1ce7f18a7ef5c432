"""The door of a stream: data that callers pass in become operations, and a batch is accepted or refused as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..arrays import I64, Mask
from ..errors import InputError, Place
from ..ledger import Operations, Single, Stamped
from ..ledger.operations import NO_RECORDS
from ..messages import show
from ..schema import Rows
from ..schema.field import encode_each
from ..texts import Texts, lacks_some
from .columns import Splitter
from .specification import Specification

Name = str | int
Names = Name | Sequence[Name | None] | None
Stamps = int | Sequence[int] | I64 | None
FARTHEST = 1 << 40
LARGE = 64
"""From this many on, names are put into columns at the door."""
Barred = Callable[[Sequence[str | None]], set[str]]
"""Which of these subjects may have no more records."""


class Door:
    def __init__(self, specification: Specification) -> None:
        self._spec, self._schema = specification, specification.schema
        self._splitter = Splitter(specification.schema, specification.columns)
        role = specification.columns.subject
        self._checks_owners = role is None or not role.optional
        self._refusing = [bound for bound in specification.bounds.values() if bound.refuses]

    def stamped(
        self, data: Any, now: int, *, subject: Names = None, stamp: Stamps = None, numbers: I64 | None = None
    ) -> Stamped:
        """See `Stream.stamped`."""
        with _numbered(numbers):
            rows, _ = self._schema.encode(data)
            stamps, subjects = stamps_of(stamp, rows.count, now), names_of(subject, rows.count, "subject")
            return Stamped.of(rows, stamps, subjects, numbers)

    def addition(
        self, data: Any, id: Names, subject: Names, stamp: Stamps, now: int
    ) -> tuple[Operations | Single, int | None]:
        """See `Stream.add`: the operations, and their stamp if they share one."""
        if not self._splitter.all_fields(data):
            data, found = self._splitter.split(data, {"id": id, "subject": subject, "stamp": stamp})
            id, subject, stamp = found.get("id"), found.get("subject"), found.get("stamp")
        one = self._is_record(data)
        if one and is_single(id) and is_single(subject):
            owner, at = name_of(subject, "subject"), stamp_of(stamp, now)
            return Single(self._schema.encode_record(data), at, name_of(id, "id"), owner), at
        if not one:
            _require_one_each(id=id, subject=subject)
        part = self.stamped(data, now, subject=subject, stamp=stamp)
        common = stamp_of(stamp, now) if is_single(stamp) else None
        if id is None:
            return Operations(added=part), common
        return Operations(placed=part, ids=_ids(id, part.rows.count)), common

    def upsert(
        self, data: Any, id: Names, deleted: Sequence[bool] | Mask, subject: Names, stamp: Stamps, now: int
    ) -> Operations:
        flags = np.asarray(deleted, dtype=np.bool_)
        part = NO_RECORDS if data is None else self.stamped(data, now, subject=subject, stamp=stamp)
        if not self._is_record(data):
            _require_one_each(id=id, subject=subject)
        held = int((~flags).sum())
        if flags.ndim != 1 or held != part.rows.count:
            raise InputError(
                f"expected one event that is not deleted for each of {part.rows.count} records, got {held}",
                place="deleted",
            )
        return Operations(placed=part, ids=_ids(id, len(flags)), emptied=np.flatnonzero(flags).tolist())

    def deletion(self, data: Any, stamp: Stamps, id: Names, subject: Names, now: int) -> Operations:
        if (data is None) == (id is None):
            raise InputError("expected either id=... or a record with its stamp")
        if id is not None:
            if stamp is not None or subject is not None:
                raise InputError("expected an id alone: it holds at most one record", place="id")
            ids = required(id, "id")
            return Operations(ids=ids, emptied=range(len(ids)))
        if stamp is None:
            raise InputError(
                "a deletion by value names its stamp, the round the record was added in: "
                "'the oldest copy' would let one operation change every later round",
                place="stamp",
            )
        if not self._is_record(data):
            _require_one_each(subject=subject)
        return Operations(deleted=self.stamped(data, now, subject=subject, stamp=stamp))

    def erasure(self, subject: Names, sha256: Sequence[bytes] | bytes | None) -> Operations:
        self._require_subjects()
        names = [] if subject is None else required(subject, "subject")
        digests: list[Any] = list(sha256) if isinstance(sha256, list | tuple) else [sha256]
        digests = [] if sha256 is None else digests
        for digest in digests:
            if not isinstance(digest, bytes) or len(digest) != 32:
                raise InputError(f"expected 32 bytes, got {digest!r}", place="sha256")
        if not names and not digests:
            raise InputError("expected a subject, or the SHA-256 of one", place="subject")
        return Operations(erased=names, digests=digests)

    def admit(self, batch: Operations | Single, now: int, barred: Barred | None) -> tuple[Operations | Single, int]:
        """The part of a batch that is let in, and how many records of barred subjects were left out."""
        if isinstance(batch, Single):
            if barred is None or not barred([batch.subject]):
                if self._checks_owners:
                    self._require_owned([batch.subject])
                if batch.stamp < now:
                    require_timely(np.array([batch.stamp]), now, self._spec.late)
                if self._refusing:
                    self._refuse(Rows.from_tuples(self._schema, [batch.record]))
                return batch, 0
            batch = Operations.of_singles(self._schema, batch)
        if batch.erased or batch.digests:
            self._require_subjects()
        for part in (batch.added, batch.placed):
            if part.rows.count:
                with _numbered(part.numbers):
                    owners = [part.subjects] if isinstance(part.subjects, str) else part.subjects
                    self._require_owned(owners, part.rows.count)
        rejected = 0
        if barred is not None:
            added, placed = (_belong_to(part, barred) for part in (batch.added, batch.placed))
            rejected = int(added.sum()) + int(placed.sum())
            batch = batch.without_records(added, placed, now) if rejected else batch
        for part in (batch.added, batch.placed):
            if part.rows.count:
                with _numbered(part.numbers):
                    require_timely(part.stamps, now, self._spec.late)
                    self._refuse(part.rows)
        return batch, rejected

    def _refuse(self, rows: Rows) -> None:
        for bound in self._refusing:
            bound.refuse(rows)

    def _is_record(self, data: Any) -> bool:
        return isinstance(data, Mapping) and self._schema.is_record(data)

    def _require_subjects(self) -> None:
        if not self._spec.has_subjects:
            raise InputError(
                "this stream has no subjects, so nobody can be erased: its specification names no column of them. Make "
                'a new stream with subjects (subject = "COLUMN" in [columns], or `retroact run --subject COLUMN`), or '
                'delete a record by its id (stream.delete(id=...), or {"op": "delete", "id": ...} in the feed)',
                place="subject",
            )

    def _require_owned(self, subjects: Sequence[str | None] | None, count: int = 1) -> None:
        """The specification decides whether records have subjects, and whether every record must have one."""
        role = self._spec.columns.subject
        if role is None:
            if subjects is not None and any(name is not None for name in subjects):
                raise InputError(
                    "this stream has no subjects: its specification names no column of them "
                    '(subject = "..." in [columns])',
                    place="subject",
                )
        elif not role.optional and (subjects is None or lacks_some(subjects)):
            error = InputError(
                "expected whom the record belongs to, got none (the role may be optional: "
                f'subject = {{ column = "{role.column}", optional = true }} in [columns])',
                place="subject",
            )
            if count == 1:
                raise error
            owned = [False] * count if subjects is None else [name is not None for name in subjects]
            raise error.for_rows(np.flatnonzero(~np.array(owned)) + 1)


def _require_one_each(**given: Names) -> None:
    """A batch needs a name for each record: a single text may just as well be meant as the name of a column."""
    for place, name in given.items():
        if name is not None and is_single(name):
            raise InputError(
                f"expected one for each record, got {show(name)} alone. Give them all, such as "
                f"{place}=frame[{name!r}]; or name their column when the stream is made: "
                f"columns={{{place!r}: {name!r}}}",
                place=place,
            )


def _ids(given: Any, count: int) -> Sequence[str]:
    named = names_of(given, count, "id")
    ids = [named] * count if named is None or isinstance(named, str) else named
    if lacks_some(ids):
        raise InputError("expected an id for every record of the batch, or for none", place="id")
    return ids  # type: ignore[return-value]


def _belong_to(part: Stamped, barred: Barred) -> Mask:
    """Which records belong to barred subjects."""
    owners = list(part.owners())
    those = barred(owners)
    return np.fromiter((owner in those for owner in owners), dtype=np.bool_, count=len(owners))


@contextmanager
def _numbered(numbers: I64 | None) -> Iterator[None]:
    """Errors inside name rows by these numbers."""
    try:
        yield
    except InputError as error:
        if numbers is None or (error.row is None and len(numbers) != 1):
            raise
        raise error.renumbered(numbers) from None


# Ids, subjects and stamps: one for a record, or one for each record of a batch ----------------------------------------


def is_single(name: Any) -> bool:
    return name is None or isinstance(name, str | int | np.integer)


def name_of(value: Any, place: str) -> str | None:
    """An id or a subject is a text; a whole number becomes its decimal text."""
    if value is None or (type(value) is str and value.isascii()):
        if value == "":
            raise InputError("expected a non-empty text, got ''", place=place)
        return value
    # numpy's timedelta64 is a subclass of its integers
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_ | np.timedelta64):
        return str(int(value))
    if not isinstance(value, str):
        raise InputError(f"expected a text or a whole number, got {type(value).__name__}", place=place)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError("expected valid Unicode text, got a lone surrogate", place=place) from None
    return str(value)


def _are_plain(values: list[Any]) -> bool:
    """Whether all are non-empty ASCII texts, which need no further checks."""
    return {*map(type, values)} <= {str} and "" not in values and "".join(values).isascii()


def as_list(given: Any, place: str) -> list[Any]:
    """A column of names or stamps of any common type, as a list of Python values."""
    listed: Any = None
    method = next((name for name in ("to_pylist", "tolist", "to_list") if hasattr(given, name)), None)
    if method is not None:
        listed = getattr(given, method)()  # no list for a single value of numpy, such as NaT
    elif hasattr(given, "__iter__") and not isinstance(given, Mapping | bytes):
        listed = list(given)
    if not isinstance(listed, list):
        raise InputError(f"expected one value or a list of them, got {type(given).__name__}", place=place)
    return listed


def names_of(given: Any, count: int, place: str) -> Sequence[str | None] | str | None:
    """One name for each record, or one for all."""
    if is_single(given):
        return name_of(given, place)
    if isinstance(given, Texts) and len(given) == count and given.lengths.all():
        return given
    listed = as_list(given, place)
    if len(listed) != count:
        raise InputError(f"expected {count}, one for each record, got {len(listed)}", place=place)
    if len(listed) >= LARGE and {*map(type, listed)} == {str}:
        texts = Texts.of(listed)
        if texts.ascii and texts.lengths.all():
            return texts
    elif _are_plain(listed):
        return listed
    return encode_each(name_of, listed, lambda index: Place(place, index + 1))


def required(given: Any, place: str) -> list[str]:
    """One name or several, none of them missing."""
    names, alone = [], is_single(given)
    for row, value in enumerate([given] if alone else as_list(given, place), 1):
        at = place if alone else Place(place, row)
        name = name_of(value, at)
        if name is None:
            raise InputError("expected a text or a whole number, got None", place=at)
        names.append(name)
    return names


def stamp_of(stamp: Any, now: int, row: int | None = None) -> int:
    if stamp is None:
        return now
    if isinstance(stamp, bool | np.bool_ | np.timedelta64) or not isinstance(stamp, int | np.integer) or stamp < 1:
        raise InputError(f"expected a round from 1 on, got {stamp!r}", place="stamp", row=row)
    return min(int(stamp), FARTHEST)


def stamps_of(stamp: Any, count: int, now: int) -> I64 | int:
    if stamp is None or isinstance(stamp, int | np.integer | bool):
        return stamp_of(stamp, now)
    if (
        isinstance(stamp, np.ndarray)
        and stamp.dtype.kind in "iu"
        and stamp.shape == (count,)
        and stamp.min(initial=1) >= 1
    ):
        return np.minimum(stamp, FARTHEST).astype(np.int64)
    listed = as_list(stamp, "stamp")
    if len(listed) != count:
        raise InputError(f"expected {count} stamps, one for each record, got {len(listed)}", place="stamp")
    return np.array([stamp_of(each, now, row) for row, each in enumerate(listed, 1)], dtype=np.int64)


def require_timely(stamps: I64, now: int, late: bool) -> None:
    """Refuse past stamps if the stream takes no late data."""
    if late:
        return
    past = stamps < now
    if past.any():
        first = int(np.argmax(past))
        raise InputError(
            f"this stream takes no late data (late=False): expected round {now}, got {stamps[first]}. What it "
            "publishes rests on stamps that are never used again",
            place="stamp",
            row=None if (stamps == stamps[0]).all() else first + 1,
        )
