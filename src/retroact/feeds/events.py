"""What a JSON line becomes before it is a row of a batch: an event, in one form for all envelopes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

import msgspec
import numpy as np

from retroact.errors import InputError, RetroactError, Unit
from retroact.feeds.batch import ADD, CLOSE, DELETE, ERASE, Changes, ColumnValues
from retroact.messages import show

Op = Literal["add", "delete", "erase", "close"]
OPS: tuple[Op, ...] = ("add", "delete", "erase", "close")
Name = str | int

# A schema has at least one field, and a count needs none: this one has the same value in every record.
EVERY_RECORD = "*"


# There are no cycles in what is read, so the garbage collector need not look for them.
class Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One operation, or the end of a round. The record is a row of a `RecordType`, or None."""

    op: Op
    record: Any = None
    id: Name | None = None
    subject: Name | None = None
    stamp: int | None = None
    round: int | None = None


@dataclass(frozen=True)
class Moment:
    """A stamp that is still a time: a grid makes a round of it."""

    time: Any


@dataclass(frozen=True)
class Roles:
    """Which column, or key of a plain record, names what is not part of the record itself."""

    id: str | None = None
    subject: str | None = None
    stamp: str | None = None
    round: str | None = None

    def items(self) -> list[tuple[str, str]]:
        """Role and column, of those that are there."""
        every = (("id", self.id), ("subject", self.subject), ("stamp", self.stamp), ("round", self.round))
        return [(role, column) for role, column in every if column]


ROLES = ("id", "subject", "stamp", "round")


class RecordType:
    """The type of the records: structs with an attribute for every field, which are read and taken apart quickly.

    Fields beyond the declared ones and those ``beside`` are refused when ``strict``, and skipped otherwise. Fields that
    are ``optional`` are None where they are left out.

    >>> records = RecordType(["country", "amount"], strict=True)
    >>> row = msgspec.json.decode('{"country": "DE", "amount": 3}', type=records.row)
    >>> [getattr(row, attribute) for attribute in records.attributes.values()]
    ['DE', 3]
    """

    def __init__(
        self, names: Sequence[str], *, strict: bool, beside: Sequence[str] = (), optional: Collection[str] = ()
    ) -> None:
        self.names = tuple(names)
        self.optional = optional
        self.strict = strict
        self.attributes = {name: f"f{position}" for position, name in enumerate(self.names)}
        required = [
            (attribute, Any, msgspec.field(name=key_of(name)))
            for name, attribute in self.attributes.items()
            if name != EVERY_RECORD and name not in optional
        ]
        constant = [
            (attribute, Any, msgspec.field(name=name, default=None if name in optional else 0))
            for name, attribute in self.attributes.items()
            if name == EVERY_RECORD or name in optional
        ]
        others = [
            (f"beside{position}", Any, msgspec.field(name=key_of(name), default=None))
            for position, name in enumerate(beside)
            if strict and name not in self.attributes
        ]
        fields = [*required, *constant, *others]
        self.row: Any = msgspec.defstruct("Row", fields, forbid_unknown_fields=strict, gc=False)

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The names that a line must have."""
        return tuple(name for name in self.names if name != EVERY_RECORD)


@dataclass
class Events:
    """Consecutive events, each with the number of its line and, where they are asked for, its time and position."""

    lines: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)
    positions: list[int | None] = field(default_factory=list)

    def cut(self, place: int) -> None:
        """Leave out what comes from there on."""
        for part in (self.lines, self.events, self.times, self.positions):
            del part[place:]

    def first_refused(self, *, closes: bool) -> tuple[int, InputError] | None:
        """The first event that has not what it needs, or has more; those that end rounds are looked at if they do."""
        for place, event in enumerate(self.events):
            if event.op == "add" and event.record is not None:
                continue
            if event.op == "close" and not closes:
                continue
            wrong = _refusal(event)
            if wrong is not None:
                return place, wrong
        return None

    def changes(self, records: RecordType) -> Changes:
        """In columns."""
        events, count = self.events, len(self.events)
        codes = np.fromiter(map(_CODES.__getitem__, map(attrgetter("op"), events)), np.int8, count)
        rows = [_NO_RECORD if event.record is None else event.record for event in events]
        fields = {
            name: ColumnValues(np.fromiter(map(attrgetter(records.attributes[name]), rows), object, count))
            for name in records.columns_read
        }
        given = {role: list(map(attrgetter(role), events)) for role in ROLES}
        given |= {"time": self.times, "position": self.positions}
        roles: dict[str, ColumnValues] = {}
        for role, column in given.items():
            if column.count(None) == len(column):
                continue
            if role == "stamp" and any(isinstance(stamp, Moment) for stamp in column):
                roles["born"] = ColumnValues.of([stamp if isinstance(stamp, Moment) else None for stamp in column])
                column = [None if isinstance(stamp, Moment) else stamp for stamp in column]
            roles[role] = _integers(column) if role in ("stamp", "round", "position") else ColumnValues.of(column)
        readers = dict.fromkeys(fields, _as_they_are)
        return Changes(np.array(self.lines, np.int64), codes, fields, roles, None, readers)


_CODES = {"add": ADD, "delete": DELETE, "erase": ERASE, "close": CLOSE}


class _NoRecord:
    """All its fields are missing."""

    def __getattr__(self, name: str) -> None:
        return None


_NO_RECORD = _NoRecord()


def _as_they_are(column: list[Any]) -> list[Any]:
    return column


def _integers(column: list[Any]) -> ColumnValues:
    """Numbers of rounds, or positions; those that 64 bits do not hold are as far away as can be."""
    present = None
    if None in column:
        present = np.fromiter((value is not None for value in column), np.bool_, len(column))
        column = [value or 0 for value in column]
    try:
        return ColumnValues(np.array(column, np.int64), present)
    except OverflowError:
        return ColumnValues(np.array([max(-(2**63), min(value, 2**63 - 1)) for value in column], np.int64), present)


def _refusal(event: Event) -> InputError | None:
    """What is wrong with an event that is no good addition."""
    record, id, subject, stamp = event.record, event.id, event.subject, event.stamp
    if event.op == "add":
        return InputError("expected a record to add, got none", place="record")
    if event.op == "erase":
        if record is not None or id is not None or stamp is not None:
            return InputError("expected a subject alone", place="erase")
        return None if subject is not None else InputError("expected a subject to erase, got none", place="subject")
    if event.op == "close":
        more = any(part is not None for part in (record, id, subject, stamp))
        return InputError("expected nothing beside it, except a round", place="close") if more else None
    if (record is None) == (id is None):
        return InputError("expected either id=... or a record with its stamp")
    if id is not None and (stamp is not None or subject is not None):
        return InputError("expected an id alone: it holds at most one record", place="id")
    if id is None and stamp is None:
        return InputError(
            "a deletion by value names its stamp, the round the record was added in: 'the oldest copy' would let one "
            "operation change every later round",
            place="stamp",
        )
    return None


def key_of(name: str) -> str:
    """A name of a field or column as decoders of lines take it.

    >>> key_of('so called "x"')
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected names without quotes, backslashes and control characters in JSON lines and
    CSV, got 'so called "x"'
    """
    if any(c in '"\\' or c < " " for c in name):
        raise InputError(
            f"expected names without quotes, backslashes and control characters in JSON lines and CSV, got {show(name)}"
        )
    return name


def located(
    error: RetroactError, source: str, *, row: int | None = None, unit: Unit = "row", during: str = ""
) -> RetroactError:
    """The same error, beginning with the source, and the row or line of it.

    >>> print(located(InputError("expected a number, got 'x'", place="amount"), "events.jsonl", row=17, unit="line"))
    events.jsonl:17: expected a number, got 'x' - at amount
    """
    if isinstance(error, InputError):
        return error.found_in(source, row=row, unit=unit, during=during)
    number = "" if row is None else f":{row}" if unit == "line" else f": row {row}"
    return type(error)(f"{source}{number}{', ' if during else ''}{during}: {error}")
