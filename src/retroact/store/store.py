"""A store: tables for data (surviving records, the inbox of the open round) and for the journal (releases, requests).

The data tables hold surviving data and nothing else; the journal holds no value, id or subject, not even hashed without
the key. Each method is one durable transaction. What differs between databases is in `sqlite` and `postgres`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple

import msgspec

from ..errors import VerificationError
from .blocks import Edit, Place

Side = Literal["data", "journal"]
FORMAT = 1

TABLES: dict[Side, tuple[str, ...]] = {
    "data": (
        "create table if not exists block(stamp bigint not null, mark bigint not null, records {bytes} not null, "
        "primary key(stamp, mark)) {clustered}",
        "create table if not exists inbox(number integer primary key, entry {bytes} not null) {clustered}",
        "create table if not exists state(name text primary key, value text not null) {clustered}",
    ),
    "journal": (
        "create table if not exists note(name text primary key, value text not null) {clustered}",
        "create table if not exists release(round bigint not null, statistic text not null, line {bytes} not null, "
        "exact {bytes} not null, mac {bytes} not null, primary key(round, statistic)) {clustered}",
        "create table if not exists source(name text not null, round bigint not null, position text not null, "
        "delivered {bytes} not null, primary key(name, round)) {clustered}",
        "create table if not exists request(name {bytes} primary key, content {bytes} not null, state text not null, "
        "received text not null, round bigint, applied text, purged text, prepared bigint, outcome {bytes}) "
        "{clustered}",
        "create table if not exists erased(subject {bytes} primary key, round bigint not null) {clustered}",
        # for people: each release as JSON
        "{view} published as select round, statistic, {line} as release from release",
    ),
}


class Stored(NamedTuple):
    """A release as it is kept: the line that was published, all that noise decided, exactly, and a keyed hash of it."""

    round: int
    statistic: str
    line: bytes
    exact: bytes
    mac: bytes = b""


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


class Store(ABC):
    """Where a stream lasts. One process has it open at a time."""

    where: str
    """For people; without a password."""
    identity: str
    """The same place under one name."""
    overwrites = True
    """Whether a scrub also overwrites; where not, old bytes stay until a purge."""
    reached: tuple[str, ...]
    """What a purge goes through."""
    beyond: tuple[str, ...]
    """What no purge can reach."""

    # What a database has to offer ------------------------------------------------------------------------------------

    @abstractmethod
    def transaction(self, side: Side) -> AbstractContextManager[None]:
        """All or nothing, and on disk when it ends."""

    @abstractmethod
    def run(self, side: Side, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """One statement, with ? for parameters, and all of its rows."""

    @abstractmethod
    def many(self, side: Side, sql: str, rows: Iterable[Sequence[Any]]) -> None: ...

    @abstractmethod
    def insert_blocks(self, blocks: Sequence[tuple[Place, bytes]]) -> None: ...

    @abstractmethod
    def scrub(self) -> bool:
        """After deletions: leave no old version of the data behind. Whether that went through."""

    @abstractmethod
    def purge(self) -> bool:
        """The same, and nothing in the layout tells of what was deleted."""

    @abstractmethod
    def residue(self) -> list[str]:
        """What the files hold beside live content, in words."""

    @abstractmethod
    def close(self) -> None: ...

    # Data ------------------------------------------------------------------------------------------------------------

    def state(self, name: str) -> str | None:
        rows = self.run("data", "select value from state where name = ?", [name])
        return rows[0][0] if rows else None

    @property
    def sealed(self) -> int:
        """The last round that the surviving data are of."""
        return int(self.state("round") or 0)

    def places(self) -> list[Place]:
        return [(row[0], row[1]) for row in self.run("data", "select stamp, mark from block order by stamp, mark")]

    def blocks(self) -> list[tuple[Place, bytes]]:
        rows = self.run("data", "select stamp, mark, records from block order by stamp, mark")
        return [((stamp, mark), bytes(records)) for stamp, mark, records in rows]

    def read_blocks(self, places: Sequence[Place]) -> list[bytes]:
        found = []
        for place in places:
            rows = self.run("data", "select records from block where stamp = ? and mark = ?", place)
            if not rows:
                raise VerificationError(f"{self.where}: expected a block at {place}, got none")
            found.append(bytes(rows[0][0]))
        return found

    def inbox(self) -> list[bytes]:
        return [bytes(row[0]) for row in self.run("data", "select entry from inbox order by number")]

    def receive(self, number: int, entry: bytes) -> None:
        with self.transaction("data"):
            self.run("data", "insert into inbox values (?, ?)", [number, entry])

    def empty_inbox(self) -> None:
        """Drop the open round. First what the journal may know of it; the inbox, as long as it is there, knows more."""
        self.forget_unsealed()
        with self.transaction("data"):
            self.run("data", "delete from inbox")

    def replace_inbox(self, entries: Sequence[bytes]) -> None:
        """The open round holds these entries and nothing else."""
        with self.transaction("data"):
            self._fill_inbox(entries)

    def _fill_inbox(self, entries: Sequence[bytes]) -> None:
        self.run("data", "delete from inbox")
        self.many("data", "insert into inbox values (?, ?)", enumerate(entries, start=1))

    def amend(self, edit: Edit, entries: Sequence[bytes]) -> None:
        """Other surviving data and another open round, while the round stays what it is."""
        with self.transaction("data"):
            self._edit_blocks(edit)
            self._fill_inbox(entries)

    def found(self, stream: str) -> None:
        """Begin: whose data these are."""
        with self.transaction("data"):
            self.many("data", "insert into state values (?, ?)", [("format", str(FORMAT)), ("stream", stream)])

    def seal(self, round: int, edit: Edit) -> None:
        """The surviving data of a round in place of those of the round before, and an empty inbox."""
        with self.transaction("data"):
            self._edit_blocks(edit)
            self.run("data", "delete from inbox")
            self.run("data", "delete from state where name = ?", ["round"])
            self.run("data", "insert into state values (?, ?)", ["round", str(round)])

    def _edit_blocks(self, edit: Edit) -> None:
        self.many("data", "delete from block where stamp = ? and mark = ?", edit.gone)
        self.insert_blocks(edit.new)

    # Journal ---------------------------------------------------------------------------------------------------------

    def note(self, name: str) -> str | None:
        rows = self.run("journal", "select value from note where name = ?", [name])
        return rows[0][0] if rows else None

    def write_notes(self, notes: Mapping[str, str]) -> None:
        with self.transaction("journal"):
            self._write_notes(notes)

    def _write_notes(self, notes: Mapping[str, str]) -> None:
        self.many("journal", "delete from note where name = ?", [(name,) for name in notes])
        self.many("journal", "insert into note values (?, ?)", list(notes.items()))

    def number(self, name: str) -> int:
        """A note that is a number, 0 where it was not written."""
        return int(self.note(name) or 0)

    @property
    def committed(self) -> int:
        return self.number("committed")

    def sources(self) -> dict[str, tuple[int, ...]]:
        """How far each source was read in sealed rounds: what was prepared for one that never came does not count."""
        sql = "select name, position from source where round <= ? order by round"
        rows = self.run("journal", sql, [self.sealed])
        return {name: tuple(msgspec.json.decode(position)) for name, position in rows}

    def delivered(self) -> list[tuple[str, bytes]]:
        """Which positions were taken in sealed rounds, round by round."""
        sql = "select name, delivered from source where round <= ? order by name, round"
        return [(name, bytes(ranges)) for name, ranges in self.run("journal", sql, [self.sealed]) if ranges]

    def prepare(
        self,
        round: int,
        sources: Mapping[str, tuple[Sequence[int], bytes]],
        requests: Sequence[Request] = (),
        erased: Iterable[bytes] = (),
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Before a seal: what the inbox knew of sources (how far, and which positions) and of requests, and forgets."""
        with self.transaction("journal"):
            self._write_notes(notes or {})
            self.many("journal", "delete from source where name = ? and round = ?", [(name, round) for name in sources])
            rows = [
                (name, round, msgspec.json.encode(list(position)).decode(), delivered)
                for name, (position, delivered) in sources.items()
            ]
            self.many("journal", "insert into source values (?, ?, ?, ?)", rows)
            self.many(
                "journal", "delete from request where name = ? and state = ?", [(r.name, "received") for r in requests]
            )
            prepared = [each._replace(prepared=round) for each in requests]
            self.many(
                "journal", "insert into request values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing", prepared
            )
            hashes = [(subject, round) for subject in erased]
            self.many("journal", "insert into erased values (?, ?) on conflict do nothing", hashes)

    def forget_unsealed(self, waiting: Iterable[bytes] = ()) -> None:
        """What the journal knows of rounds that the data do not have, because these are an older copy; requests that
        wait in the inbox stay."""
        with self.transaction("journal"):
            for table in ("source", "erased"):
                self.run("journal", f"delete from {table} where round > ?", [self.sealed])
            kept = {*waiting}
            rows = self.run(
                "journal",
                "select name from request where prepared > ? and (round is not null or state = ?)",
                [self.sealed, "received"],
            )
            gone = [(bytes(row[0]),) for row in rows if bytes(row[0]) not in kept]
            self.many("journal", "delete from request where name = ?", gone)

    def commit(self, round: int, releases: Sequence[Stored], now: str, notes: Mapping[str, str] | None = None) -> None:
        """The releases of a round, for ever. A round that is there already must be the same, byte for byte."""
        with self.transaction("journal"):
            for release in releases:
                there = self.run(
                    "journal",
                    "select line, exact from release where round = ? and statistic = ?",
                    [release.round, release.statistic],
                )
                if not there:
                    self.run("journal", "insert into release values (?, ?, ?, ?, ?)", release)
                elif (bytes(there[0][0]), bytes(there[0][1])) != (release.line, release.exact):
                    raise VerificationError(
                        f"{self.where}: round {round} of {release.statistic} was released on other data; it is not "
                        "released again"
                    )
            self._write_notes({**(notes or {}), "committed": str(max(round, self.committed))})
            self.run(
                "journal",
                "update request set state = ?, round = ?, applied = ? where state = ? and prepared = ?",
                ["applied", round, now, "received", round],
            )

    def applied_without_round(self, round: int, now: str) -> None:
        """What was prepared for the open round is applied to the data as they are; no round comes of it."""
        with self.transaction("journal"):
            self.run(
                "journal",
                "update request set state = ?, applied = ? where state = ? and prepared = ?",
                ["applied", now, "received", round],
            )
            self.run("journal", "update erased set round = ? where round = ?", [self.sealed, round])

    def purged(self, now: str) -> None:
        with self.transaction("journal"):
            self.run("journal", "update request set state = ?, purged = ? where state = ?", ["purged", now, "applied"])

    @property
    def unpurged(self) -> bool:
        """Whether an erasure was applied and not purged."""
        return bool(self.run("journal", "select 1 from request where state = ? limit 1", ["applied"]))

    def releases(self, first: int = 1, last: int | None = None) -> list[Stored]:
        until = (1 << 62) if last is None else last
        rows = self.run(
            "journal",
            f"select {', '.join(Stored._fields)} from release where round between ? and ? order by round, statistic",
            [first, until],
        )
        return [Stored(*row[:2], *map(bytes, row[2:])) for row in rows]

    def request(self, name: bytes) -> Request | None:
        rows = self.run("journal", f"select {', '.join(Request._fields)} from request where name = ?", [name])
        return _request(rows[0]) if rows else None

    def requests(self) -> list[Request]:
        rows = self.run("journal", f"select {', '.join(Request._fields)} from request order by received, name")
        return [_request(row) for row in rows]

    def erased(self) -> set[bytes]:
        """The keyed hashes of the subjects whose later records are rejected."""
        return {bytes(row[0]) for row in self.run("journal", "select subject from erased")}


def _request(row: Sequence[Any]) -> Request:
    request = Request(*row)
    outcome = None if request.outcome is None else bytes(request.outcome)
    return request._replace(name=bytes(request.name), content=bytes(request.content), outcome=outcome)
