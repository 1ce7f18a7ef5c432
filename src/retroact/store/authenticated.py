"""Authenticated rows: the only way in which rows of a store are written, deleted and read.

Every row has a keyed hash, which is checked when the row is read; a table that is read whole is also checked against
its digest. `seals` says what that proves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..errors import InputError, VerificationError
from .seals import Digest, Seals
from .tables import BLOCK, FORMAT, NOTE, RELEASE, SIDES, STATE, Side, StoredTable, additions, tables

Row = tuple[Any, ...]
DIGESTED = "insert into {}_digest(side, sealed) values (?, ?) on conflict (side) do update set sealed = excluded.sealed"
_DIGEST_CHANGED = "table {}_digest: the digest of the other tables is not as it was written"
SHOWN = 3
"""How many wrong rows of a table an error names."""


class Authenticated(ABC):
    """A database whose rows belong to one stream."""

    where: str
    """The name of the place in messages, without a password."""
    words: Mapping[str, str]
    """What the database calls types, and the like."""
    newest: int = FORMAT
    """The format of new stores."""
    format: int
    """The version of the format of its tables."""
    """SQL that brings the tables of an earlier format into their present form."""
    _seals: Seals | None = None
    _digests: dict[Side, Digest]

    # What each database implements -----------------------------------------------------------------------------------

    @abstractmethod
    def raw_transaction(self, side: Side) -> AbstractContextManager[None]:
        """All or nothing, and on disk when it ends."""

    @abstractmethod
    def both_sides(self) -> AbstractContextManager[None]:
        """Run one transaction on both sides at once."""

    @abstractmethod
    def run(self, side: Side, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run a statement, with ? for parameters; all rows that it returns."""

    @abstractmethod
    def many(self, side: Side, sql: str, rows: Iterable[Sequence[Any]]) -> list[Row]:
        """Run a statement for each of these parameters; all rows that they return."""

    @abstractmethod
    def scan(self, side: Side, sql: str) -> Iterator[Row]:
        """The rows of a statement, a few at a time."""

    @abstractmethod
    def schema_problems(self) -> list[str]:
        """How tables, indexes, views, triggers and so on differ from those of a store."""

    def changes(self) -> Sequence[str]:
        """Statements of an upgrade, after those that add tables."""
        return ()

    # Rows ------------------------------------------------------------------------------------------------------------

    def unlock(self, secret: bytes, stream: str) -> None:
        """Check what is stored, and from now on every row that is read. Required before anything is written.

        `release` and `block` are checked when they are read whole.
        """
        self._seals = Seals(secret, stream, format=self.format)
        self._digests = {side: Digest() for side in SIDES}
        rows = [(table, row) for table in (STATE, NOTE) for row in self._rows(table)]
        if rows and not any(self._fits(*each) for each in rows):
            self._seals = None
            raise InputError(
                f"{self.where}: expected the key that this stream was made under, got another (or the fence of another "
                "stream under this key)",
                place="key",
            )
        problems = []
        for side in SIDES:
            digest = self._stored_digest(side)
            if digest is None:
                problems.append(_DIGEST_CHANGED.format(side))
                continue
            self._digests[side] = digest
            for table in tables(side, self.format):
                if table not in (BLOCK, RELEASE):
                    problems += self._compare(table)
        if problems:
            raise refusal(self.where, problems)

    def upgrade(self, secret: bytes, stream: str) -> None:
        """Bring a store of an earlier format to this one: all or nothing. What is stored was checked when the store was
        unlocked. After a failure it is opened again."""
        if self.format == self.newest:
            return
        with self.both_sides():
            for statement in (*additions(self.words, self.format), *self.changes()):
                self.run("journal", statement)
            self.format, self._seals = self.newest, Seals(secret, stream)
            if self.select(STATE, "where name = ?", ["format"]):
                self.replace(STATE, [("format", str(self.newest))])
            for side in SIDES:
                self.run(side, DIGESTED.format(side), [side, self._seals.sealed(side, self._digests[side])])

    @contextmanager
    def transaction(self, side: Side) -> Iterator[None]:
        """All or nothing, together with the digest, and on disk when it ends."""
        assert self._seals is not None, "a store is unlocked before it is written"
        digest = self._digests[side]
        before = Digest(digest.round, dict(digest.sums))
        try:
            with self.raw_transaction(side):
                yield
                if digest != before:
                    self.run(side, DIGESTED.format(side), [side, self._seals.sealed(side, digest)])
        except BaseException:
            self._digests[side] = before
            raise

    def insert(self, table: StoredTable, rows: Iterable[Sequence[Any]], *, unless_known: bool = False) -> None:
        assert self._seals is not None
        made = [(*row, self._seals.mac(table, row)) for row in rows]
        if not made:
            return
        if unless_known:
            known = " on conflict do nothing returning mac"
            macs = [bytes(mac) for (mac,) in self.many(table.side, table.insert + known, made)]
        else:
            self.write(table, made)
            macs = [row[-1] for row in made]
        self._digests[table.side].add(table, self._seals.sum(macs))

    def write(self, table: StoredTable, rows: Sequence[Row]) -> None:
        """Insert rows with their hashes, in the fastest way."""
        self.many(table.side, table.insert, rows)

    def delete(self, table: StoredTable, where: str = "", parameters: Sequence[Sequence[Any]] = ((),)) -> None:
        """Delete the rows that match, for each of these parameters."""
        assert self._seals is not None
        if not parameters:
            return
        sql = f"delete from {table.name} {where} returning mac"
        gone = self.many(table.side, sql, parameters)
        self._digests[table.side].add(table, -self._seals.sum(bytes(mac) for (mac,) in gone))

    def replace(self, table: StoredTable, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows in place of those with the same keys."""
        where = " and ".join(f"{column} = ?" for column in table.key)
        self.delete(table, f"where {where}", [row[: table.keys] for row in rows])
        self.insert(table, rows)

    def select(self, table: StoredTable, where: str = "", parameters: Sequence[Any] = ()) -> list[Row]:
        rows = self.run(table.side, f"{table.select} {where}", parameters)
        return [self.checked(table, row) for row in rows]

    def whole(self, table: StoredTable, problems: list[str] | None = None) -> Iterator[Row]:
        """All rows in the order of their keys. What is wrong is added to `problems`, if given, or raised."""
        found: list[str] = []
        macs = []
        for row in self._rows(table):
            macs.append(row[-1])
            if self._seals is None or self._fits(table, row):
                yield row[:-1]
            elif len(found) < SHOWN:
                found.append(_changed(table, row))
        if self._seals is not None and not found:
            total = self._seals.sum(macs)
            if total != self._digests[table.side].sums[table.name]:
                found.append(f"table {table.name}: rows were added, taken away or put back, as its digest says")
        if found and problems is None:
            raise refusal(self.where, found)
        if problems is not None:
            problems += found

    def problems(self) -> list[str]:
        """What is wrong with anything that is stored."""
        found = self.schema_problems()
        if found:
            return found
        for side in SIDES:
            if self._stored_digest(side) != self._digests[side]:
                found.append(_DIGEST_CHANGED.format(side))
            for table in tables(side, self.format):
                found += self._compare(table)
        return found

    def checked(self, table: StoredTable, row: Row) -> Row:
        """A row without its hash, which must fit."""
        if self._seals is not None and not self._fits(table, row):
            raise refusal(self.where, [_changed(table, row)])
        return row[:-1]

    # Inside ----------------------------------------------------------------------------------------------------------

    def _rows(self, table: StoredTable) -> Iterator[Row]:
        return self.scan(table.side, f"{table.select} order by {', '.join(table.key)}")

    def _stored_digest(self, side: Side) -> Digest | None:
        """None if it is not this stream's, or missing although there are rows."""
        assert self._seals is not None
        rows = self.run(side, f"select side, sealed from {side}_digest")
        own = tables(side, self.format)
        if not rows and not any(self.run(side, f"select 1 from {table.name} limit 1") for table in own):
            return Digest()
        if len(rows) != 1 or rows[0][0] != side or not isinstance(rows[0][1], bytes):
            return None
        return self._seals.opened(side, rows[0][1])

    def _compare(self, table: StoredTable) -> list[str]:
        problems: list[str] = []
        for _ in self.whole(table, problems):
            pass
        return problems

    def _fits(self, table: StoredTable, row: Row) -> bool:
        assert self._seals is not None
        return bool(row[-1] == self._seals.mac(table, row[:-1]))


def refusal(where: str, problems: Sequence[str]) -> VerificationError:
    return VerificationError(
        f"{where}: {'; '.join(problems)}. It was changed by something else than this stream: restore it from a backup "
        "(docs/operations.md)"
    )


def _changed(table: StoredTable, row: Row) -> str:
    shown = (value.hex() if isinstance(value, bytes) else repr(value) for value in row[: table.keys])
    return f"table {table.name}: the row {', '.join(each[:80] for each in shown)} is not as it was written"
