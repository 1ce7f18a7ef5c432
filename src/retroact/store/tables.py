"""The tables of a store. Those of the data hold surviving data and the open round; those of the journal hold no value,
id or subject, not even hashed without the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_type_hints

Side = Literal["data", "journal"]
SIDES: tuple[Side, ...] = ("data", "journal")
_WORDS = {int: "bigint", str: "text", bytes: "bytes"}


class Stored(NamedTuple):
    """A release as it is kept: the line that was published, and all that noise decided, exactly."""

    round: int
    statistic: str
    line: bytes
    exact: bytes


class Request(NamedTuple):
    """An erasure that was asked for. Name and content are keyed hashes."""

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
    """Whether records were found, sealed."""

    def in_order(self) -> Request:
        """No step before the one that it follows: the clock may have gone back meanwhile."""
        applied = self.applied and max(self.received, self.applied)
        return self._replace(applied=applied, purged=self.purged and max(applied or self.received, self.purged))


@dataclass(frozen=True, eq=False)
class StoredTable:
    """Columns with their types (`?`: may be null), the first `keys` of which are the key. A `mac` follows them."""

    name: str
    side: Side
    keys: int
    columns: dict[str, str]

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
        """All columns."""
        return ", ".join((*self.columns, "mac"))


def _columns(row: type) -> dict[str, str]:
    """The columns of a table whose rows are of this type."""
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
TABLES = (BLOCK, INBOX, STATE, NOTE, RELEASE, SOURCE, REQUEST, ERASED)


def tables(side: Side) -> tuple[StoredTable, ...]:
    return tuple(table for table in TABLES if table.side == side)


def described(side: Side) -> dict[str, tuple[dict[str, str], tuple[str, ...]]]:
    """Columns and key of each table that a database has for a side. The last one has one row: the digests of the others
    (`seals`)."""
    own = {table.name: ({**table.columns, "mac": "bytes"}, table.key) for table in tables(side)}
    return {**own, f"{side}_digest": ({"side": "text", "sealed": "bytes"}, ("side",))}


def statements(side: Side, words: Mapping[str, str]) -> list[str]:
    """What makes the tables of a side, and for people a view of each release as JSON; with the words of a database for
    types, for `clustered` tables and for the `line` of a release as text."""
    made = []
    for name, (columns, key) in described(side).items():
        written = []
        for column, kind in columns.items():
            word = kind.removesuffix("?")
            written.append(f"{column} {words.get(word, word)}{'' if kind.endswith('?') else ' not null'}")
        made.append(f"create table {name}({', '.join(written)}, primary key({', '.join(key)})){words['clustered']}")
    if side == "journal":
        made.append(f"create view published as select round, statistic, {words['line']} as release from release")
    return made


def differences(found: Mapping[tuple[str, str, str], Any], expected: Mapping[tuple[str, str, str], Any]) -> list[str]:
    """How definitions, by kind, table and name, differ from those that a store has."""
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
