"""The tables of a store. Those of the data hold surviving data and the open round; those of the journal hold no value,
id or subject, not even hashed without the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Side = Literal["data", "journal"]
SIDES: tuple[Side, ...] = ("data", "journal")


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

    def create(self, types: Mapping[str, str]) -> str:
        """The statement that makes it, with the words of a database for `bytes`, `text` and `clustered`."""
        return _create(self.name, {**self.columns, "mac": "bytes"}, self.key, types)


BLOCK = StoredTable("block", "data", 2, {"stamp": "bigint", "mark": "bigint", "records": "bytes"})
INBOX = StoredTable("inbox", "data", 1, {"number": "bigint", "entry": "bytes"})
STATE = StoredTable("state", "data", 1, {"name": "text", "value": "text"})
NOTE = StoredTable("note", "journal", 1, {"name": "text", "value": "text"})
RELEASE = StoredTable(
    "release", "journal", 2, {"round": "bigint", "statistic": "text", "line": "bytes", "exact": "bytes"}
)
SOURCE = StoredTable(
    "source", "journal", 2, {"name": "text", "round": "bigint", "position": "text", "delivered": "bytes"}
)
REQUEST = StoredTable(
    "request",
    "journal",
    1,
    {
        "name": "bytes",
        "content": "bytes",
        "state": "text",
        "received": "text",
        "round": "bigint?",
        "applied": "text?",
        "purged": "text?",
        "prepared": "bigint?",
        "outcome": "bytes?",
    },
)
ERASED = StoredTable("erased", "journal", 1, {"subject": "bytes", "round": "bigint"})
TABLES = (BLOCK, INBOX, STATE, NOTE, RELEASE, SOURCE, REQUEST, ERASED)


def tables(side: Side) -> tuple[StoredTable, ...]:
    return tuple(table for table in TABLES if table.side == side)


def create_digest(side: Side, types: Mapping[str, str]) -> str:
    """One row: the digests of the tables of this side (`seals`)."""
    return _create(f"{side}_digest", {"side": "text", "sealed": "bytes"}, ("side",), types)


def create_view(line: str) -> str:
    """For people: each release as JSON."""
    return f"create view published as select round, statistic, {line} as release from release"


def _create(name: str, columns: Mapping[str, str], key: tuple[str, ...], types: Mapping[str, str]) -> str:
    written = []
    for column, kind in columns.items():
        word = kind.removesuffix("?")
        written.append(f"{column} {types.get(word, word)}{'' if kind.endswith('?') else ' not null'}")
    return f"create table {name}({', '.join(written)}, primary key({', '.join(key)})){types['clustered']}"
