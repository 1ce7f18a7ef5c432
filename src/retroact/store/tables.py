"""The tables of a store. The data side holds surviving data and the open round; the journal holds no value, id or
subject, not even as an unkeyed hash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_type_hints

Side = Literal["data", "journal"]
SIDES: tuple[Side, ...] = ("data", "journal")
FORMAT = 4
"""The format of the tables; a database may have a later one (`Authenticated.newest`)."""
BEFORE = 3
"""The oldest format that is upgraded when a store is opened."""
_WORDS = {int: "bigint", str: "text", bytes: "bytes"}


class Stored(NamedTuple):
    """A stored release: the line that was published, and its exact noisy values."""

    round: int
    statistic: str
    line: bytes
    exact: bytes


class Request(NamedTuple):
    """A request for erasure. Name and content are keyed hashes."""

    name: bytes
    content: bytes
    state: str
    received: str
    round: int | None = None
    applied: str | None = None
    purged: str | None = None
    prepared: int | None = None
    """The round whose seal applies it."""
    outcome: bytes | None = None
    """Whether records were found, encrypted."""

    def in_order(self) -> Request:
        """Make times not decrease, even if the clock was set back."""
        applied = self.applied and max(self.received, self.applied)
        return self._replace(applied=applied, purged=self.purged and max(applied or self.received, self.purged))


class Prepared(NamedTuple):
    """What the inbox knows of a round that closes."""

    round: int
    sources: Mapping[str, tuple[Sequence[int], bytes]] = {}
    """How far each was read, and which single positions."""
    requests: Sequence[Request] = ()
    erased: Sequence[bytes] = ()
    """Hashes of the subjects whose later records are rejected."""


@dataclass(frozen=True, eq=False)
class StoredTable:
    """Columns with their types (`?`: nullable); the first `keys` are the primary key. A `mac` column comes last."""

    name: str
    side: Side
    keys: int
    columns: dict[str, str]
    since: int = BEFORE
    """The first format that has it."""

    @cached_property
    def key(self) -> tuple[str, ...]:
        return tuple(self.columns)[: self.keys]

    @cached_property
    def select(self) -> str:
        return f"select {self.names} from {self.name}"

    @cached_property
    def insert(self) -> str:
        return f"insert into {self.name}({self.names}) values ({', '.join('?' * (len(self.columns) + 1))})"

    @cached_property
    def names(self) -> str:
        return ", ".join((*self.columns, "mac"))


def _columns(row: type) -> dict[str, str]:
    """The columns of a table with rows of this type."""
    words: dict[Any, str] = {**_WORDS, **{kind | None: f"{word}?" for kind, word in _WORDS.items()}}
    return {name: words[hint] for name, hint in get_type_hints(row).items()}


BLOCK = StoredTable("block", "data", 2, {"stamp": "bigint", "mark": "bigint", "records": "bytes"})
INBOX = StoredTable("inbox", "data", 1, {"number": "bigint", "entry": "bytes"})
STATE = StoredTable("state", "data", 1, {"name": "text", "value": "text"})
NOTE = StoredTable("note", "journal", 1, {"name": "text", "value": "text"})
RELEASE = StoredTable("release", "journal", 2, _columns(Stored))
SOURCE = StoredTable(
    "source", "journal", 2, {"name": "text", "round": "bigint", "position": "text", "delivered": "bytes"}
)
REQUEST = StoredTable("request", "journal", 1, _columns(Request))
ERASED = StoredTable("erased", "journal", 1, {"subject": "bytes", "round": "bigint"})
BOUNDARY = StoredTable("boundary", "journal", 1, {"number": "bigint", "moment": "bigint"}, since=4)
"""Where rounds of a calendar begin and end, in microseconds since 1970. It depends on closed rounds alone, never on
records."""
TABLES = (BLOCK, INBOX, STATE, NOTE, RELEASE, SOURCE, REQUEST, ERASED, BOUNDARY)


def tables(side: Side, format: int = FORMAT) -> tuple[StoredTable, ...]:
    return tuple(table for table in TABLES if table.side == side and table.since <= format)


def described(side: Side, format: int = FORMAT) -> dict[str, tuple[dict[str, str], tuple[str, ...]]]:
    """Columns and key of each table of a side. The last table has one row, the digest of the others (`seals`)."""
    own = {table.name: ({**table.columns, "mac": "bytes"}, table.key) for table in tables(side, format)}
    return {**own, f"{side}_digest": ({"side": "text", "sealed": "bytes"}, ("side",))}


def statements(side: Side, words: Mapping[str, str], format: int = FORMAT) -> list[str]:
    """SQL that makes the tables of a side, and a view of releases as JSON for people. `words` are those of a database
    for types, for `clustered` tables and for the `line` of a release as text."""
    made = _tables_made(described(side, format), words)
    if side == "journal":
        made.append(f"create view published as select round, statistic, {words['line']} as release from release")
    return made


def additions(words: Mapping[str, str], format: int) -> list[str]:
    """SQL that makes the tables that an earlier format has not; all are in the journal."""
    new = described("journal").keys() - described("journal", format).keys()
    return _tables_made({name: described("journal")[name] for name in sorted(new)}, words)


def _tables_made(
    described: Mapping[str, tuple[dict[str, str], tuple[str, ...]]], words: Mapping[str, str]
) -> list[str]:
    made = []
    for name, (columns, key) in described.items():
        written = []
        for column, kind in columns.items():
            word = kind.removesuffix("?")
            written.append(f"{column} {words.get(word, word)}{'' if kind.endswith('?') else ' not null'}")
        made.append(f"create table {name}({', '.join(written)}, primary key({', '.join(key)})){words['clustered']}")
    return made


def differences(found: Mapping[tuple[str, str, str], Any], expected: Mapping[tuple[str, str, str], Any]) -> list[str]:
    """How definitions, by kind, table and name, differ from those of a store."""
    changed = [key for key in expected if key in found and found[key] != expected[key]]
    wrong = [
        *((key, "is missing") for key in sorted(expected.keys() - found.keys())),
        *((key, "is not a store's own") for key in sorted(found.keys() - expected.keys())),
        *((key, "is another") for key in sorted(changed)),
    ]
    return [
        f"{kind} {name[:80]}: it {what}" if table == name else f"table {table[:80]}: {kind} {name[:80]!r} {what}"
        for (kind, table, name), what in wrong
    ]
