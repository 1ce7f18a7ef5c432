"""What a line of input becomes: an event, in one form for all formats."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import attrgetter
from typing import Any, Literal

import msgspec

from retroact.errors import InputError, RetroactError, Unit
from retroact.messages import show

Op = Literal["add", "delete", "erase", "close"]
OPS: tuple[Op, ...] = ("add", "delete", "erase", "close")
Name = str | int
ColumnReader = Callable[[list[Any]], list[Any]]

# A schema has at least one field, and a count needs none: this one has the same value in every record.
EVERY_RECORD = "*"


# There are no cycles in what is read, so the garbage collector need not look for them.
class Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One operation, or the end of a round. The record is one of `Records`, or None."""

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


@dataclass
class Block:
    """Consecutive events, each with the number of its line and, where they are asked for, its time and position."""

    lines: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)
    positions: list[int | None] = field(default_factory=list)

    def pairs(self) -> Iterator[tuple[int, Event]]:
        """Lines with their events."""
        return zip(self.lines, self.events, strict=True)

    def cut(self, line: int) -> None:
        """Leave out what stands on this line and after it."""
        end = next((index for index, number in enumerate(self.lines) if number >= line), len(self.lines))
        for part in (self.lines, self.events, self.times, self.positions):
            del part[end:]

    def where(self, kept: Sequence[bool]) -> Block:
        """The events that are kept."""
        return Block(*(list(compress(part, kept)) for part in (self.lines, self.events, self.times, self.positions)))


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


class Records:
    """The type of the records: structs with an attribute for every field, which are read and taken apart quickly.

    Fields beyond the declared ones and those ``beside`` are refused when ``strict``, and skipped otherwise. Fields that
    are ``optional`` are None where they are left out.

    >>> records = Records(["country", "amount"], strict=True)
    >>> row = msgspec.json.decode('{"country": "DE", "amount": 3}', type=records.row)
    >>> records.columns([row, row])
    {'country': ['DE', 'DE'], 'amount': [3, 3]}
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        strict: bool,
        readers: Mapping[str, ColumnReader] | None = None,
        beside: Sequence[str] = (),
        optional: Collection[str] = (),
    ) -> None:
        self.names = tuple(names)
        self.optional = optional
        self.strict = strict
        self._readers = dict(readers or {})
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
        """The names that a file must have."""
        return tuple(name for name in self.names if name != EVERY_RECORD)

    def columns(self, rows: Sequence[Any]) -> dict[str, list[Any]]:
        """The values by field, read from their cells where they are cells."""
        columns: dict[str, list[Any]] = {}
        for name, attribute in self.attributes.items():
            column = list(map(attrgetter(attribute), rows))
            columns[name] = self._readers[name](column) if name in self._readers else column
        return columns

    def as_dict(self, row: Any) -> dict[str, Any]:
        return {name: column[0] for name, column in self.columns([row]).items()}


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
