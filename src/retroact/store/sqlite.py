"""A stream in a folder with two SQLite files: `data.sqlite` with the surviving data, and `journal.sqlite`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import os_errors
from .authenticated import Row, refusal
from .formats import check_format
from .lock import Lock
from .sqlite_residue import MAGIC, residue
from .sqlite_wipe import logged, set_version, wipe
from .store import Store
from .tables import BEFORE, FORMAT, SIDES, Side, differences, statements

PAGE = 4096
WORDS = {"bytes": "blob", "clustered": " without rowid", "line": "cast(line as text)"}
Definitions = dict[tuple[str, str, str], str]
"""SQL by kind, table and name."""
SCHEMA = "select type, name, tbl_name, sql from sqlite_master"
CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_TOOBIG}
# A vacuum increments the schema version, but nothing may reveal how many there were.
SAME_VERSION = "pragma schema_version = 1"
CLEAN = 1 << 24
"""The schema version of a data file that nobody has written to since it was last wiped. It is reset before the first
transaction, and by an earlier version of this package when that opens the file."""
LOGGED = 4096 * PAGE
"""A log from this size on is cut."""
# Set and read back on every connection, since the file does not keep them.
PRAGMAS = {"synchronous": 2, "secure_delete": 1, "temp_store": 2, "trusted_schema": 0, "cache_size": -32_768}


class SQLiteStore(Store):
    """
    >>> import tempfile
    >>> store = SQLiteStore(Path(tempfile.mkdtemp()) / "orders", create=True)
    >>> store.unlock(bytes(32), "5eed")
    >>> store.sealed, store.committed
    (0, 0)
    """

    words = WORDS
    reached = (
        "data.sqlite: rows, free pages, gaps in pages, and the layout",
        "data.sqlite-wal, cut to nothing",
        "journal.sqlite, which holds no values, ids or subjects",
    )
    wiped = ("data.sqlite: rows, free pages and gaps in pages", *reached[1:])
    beyond = (
        "blocks of the file system that held earlier versions of these files (an encrypted volume covers them)",
        "backups and copies of the folder made before the purge",
        "the source that the records came from, and where releases went",
        "memory of running processes",
    )

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.where, self.folder = str(folder), folder
        self.identity, self._errors = str(folder.resolve()), _SqliteErrors(str(folder))
        if not create and not any((folder / f"{side}.sqlite").exists() for side in SIDES):
            raise InputError(f"{folder}: expected the folder of a stream, got none")
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: expected the folder of a stream, got a file")
        with os_errors(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.format = self.newest
        self._lock = Lock.of_folder(folder, "another process has this stream open")
        self._sides: dict[Side, sqlite3.Connection] = {}
        self._data, self._log, self._cut_at = folder / "data.sqlite", folder / "data.sqlite-wal", LOGGED
        self._clean = self._known = False  # whether the file is wiped; whether all other pages are in the log
        try:
            self._sides = {"data": self._connect("data"), "journal": self._connect("journal")}
            self._clean = self._known = self.run("data", "pragma schema_version") == [(CLEAN,)]
            self._tidy()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def raw_transaction(self, side: Side) -> Iterator[None]:
        if side == "data":
            self._expect_changes()
        connection = self._sides[side]
        with self._errors:
            connection.execute("begin immediate")
        try:
            yield
            with self._errors:
                connection.execute("commit")
        finally:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("rollback")
        if side == "data" and (size := self._log.stat().st_size) >= self._cut_at:
            # while somebody reads, which may delay it by a second, not at every transaction
            self._cut_at = LOGGED if self._wiped() else size + LOGGED

    @contextmanager
    def both_sides(self) -> Iterator[None]:
        """SQLite commits to two files at once only without write-ahead logs."""
        self._expect_changes()
        self._known = False
        for side in SIDES:
            self._sides.pop(side).close()
        names = {"main": self.folder / "journal.sqlite", "data": self.folder / "data.sqlite"}
        try:
            with self._errors, closing(sqlite3.connect(names["main"], isolation_level=None, timeout=1.0)) as connection:
                connection.execute("attach database ? as data", [str(names["data"])])
                for name, path in names.items():
                    mode = connection.execute(f"pragma {name}.journal_mode = delete").fetchone()[0]
                    if mode != "delete":
                        raise InputError(f"{path}: another process is reading it: it cannot be upgraded now")
                    _set_pragmas(connection, path, f"{name}.")
                self._sides = {"data": connection, "journal": connection}
                with self.raw_transaction("journal"):
                    yield
        finally:
            self._sides = {side: self._connect(side) for side in SIDES}

    def _tidy(self) -> None:
        """Remove the list of files of a transaction on both, which a crash may leave behind. Both have been opened, so
        nothing needs it any more."""
        for left in self.folder.glob("*.sqlite-mj*"):
            with os_errors(left):
                left.unlink()

    def run(self, side: Side, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self._errors:
            return self._sides[side].execute(sql, parameters).fetchall()

    def many(self, side: Side, sql: str, rows: Iterable[Sequence[Any]]) -> list[Row]:
        with self._errors:
            if "returning" in sql:
                return [found for row in rows for found in self._sides[side].execute(sql, row).fetchall()]
            self._sides[side].executemany(sql, rows)
        return []

    def scan(self, side: Side, sql: str) -> Iterator[Row]:
        with self._errors:
            yield from self._sides[side].execute(sql)

    def schema_problems(self) -> list[str]:
        found = ((side, _definitions(self.run(side, SCHEMA))) for side in self._sides)
        return [problem for side, there in found for problem in differences(there, _expected(side, self.format))]

    def scrub(self) -> bool:
        """Write every page to the main file and truncate the log, unless another process is reading.

        SQLite leaves copies of moved rows in its pages (`sqlite_wipe`). They are wiped while the file is closed.
        """
        return self._clean or self._wiped()

    def purge(self, *, every: bool = False) -> bool:
        if not self.scrub():
            return False
        self.run("journal", "pragma wal_checkpoint(truncate)")  # it may hold old notes
        self._expect_changes()
        self.run("data", "vacuum")
        self.run("data", SAME_VERSION)
        return self._wiped()

    @property
    def size(self) -> int:
        return self._data.stat().st_size

    def wind_up(self) -> None:
        if not self._clean and self._wiped():
            self._mark(CLEAN)

    def _expect_changes(self) -> None:
        if self._clean:
            self._mark(1)

    def _mark(self, version: int) -> None:
        """Write outside a transaction: one would leave the first page, and with it the schema, in the log."""
        with self._without_data():
            set_version(self._data, version)
        self._clean = version == CLEAN

    def residue(self) -> list[str]:
        found = [] if self.scrub() or self._cut_log() else [f"{self._data}-wal: another process is reading"]
        if not found:
            try:
                with self._without_data():
                    parts = residue(self._data)
            except InputError as error:
                return [str(error)]  # the file is damaged
            unknown = "bytes that nothing accounts for"
            found = [f"{self._data}: page {each.page}, {each.kind}: {each.nonzero} {unknown}" for each in parts]
        for side in self._sides:
            (result,), *_ = self.run(side, "pragma integrity_check")
            if result != "ok":
                found.append(f"{self.folder / side}.sqlite: {result}")
        return found

    def _wiped(self) -> bool:
        """Cut the log, and wipe the pages that were in it, or all if others may have changed."""
        pages = logged(self._log) if self._known else None
        # what was in a log that was not cut may be overwritten there
        self._known = False
        if not self._cut_log():
            return False
        try:
            if pages is None or pages:
                with self._without_data():
                    wipe(self._data, pages)
        except InputError:
            return False  # `residue` reports the log or page that is not as it should be
        self._known = True
        return True

    def _cut_log(self) -> bool:
        (busy, _, _), *_ = self.run("data", "pragma wal_checkpoint(truncate)")
        return not busy

    @contextmanager
    def _without_data(self) -> Iterator[None]:
        """Close the data to read or write the file directly: a connection would lose its locks, and cache pages."""
        self._sides.pop("data").close()
        try:
            yield
        finally:
            self._sides["data"] = self._connect("data")

    def close(self) -> None:
        for connection in self._sides.values():
            connection.close()
        self._lock.close()

    def _connect(self, side: Side) -> sqlite3.Connection:
        path = self.folder / f"{side}.sqlite"
        _expect_files(path)
        with _SqliteErrors(str(path)):
            connection = sqlite3.connect(path, isolation_level=None, timeout=1.0, check_same_thread=False)
            path.chmod(0o600)
            there = connection.execute(SCHEMA).fetchall()
            if there:
                format = _format_of(path, side, connection, there)
                self.format = format if side == "journal" else self.format
            connection.execute(f"pragma page_size = {PAGE}")
            mode = connection.execute("pragma journal_mode = wal").fetchone()[0]
            if mode != "wal":
                raise InputError(f"{path}: expected a write-ahead log (journal_mode wal), got {mode}")
            _set_pragmas(connection, path)
            if not there:
                connection.executescript(f"begin immediate; {'; '.join(statements(side, WORDS))}; commit")
            if side == "data":
                connection.execute("pragma wal_autocheckpoint = 0")  # `_wiped` needs to know all pages that change
                if connection.execute("pragma schema_version").fetchone()[0] not in (1, CLEAN):
                    connection.execute(SAME_VERSION)
        return connection


def _set_pragmas(connection: sqlite3.Connection, path: Path, schema: str = "") -> None:
    for name, value in PRAGMAS.items():
        connection.execute(f"pragma {schema}{name} = {value}")
        got = connection.execute(f"pragma {schema}{name}").fetchone()[0]
        if got != value:
            raise InputError(f"{path}: expected {name} = {value}, got {got}: this SQLite leaves traces")


@cache
def _expected(side: Side, format: int) -> Definitions:
    """The definitions of a new database of a format."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements(side, WORDS, format):
            connection.execute(statement)
        return _definitions(connection.execute(SCHEMA))


def _definitions(rows: Iterable[Row]) -> Definitions:
    return {(kind, table, name): sql for kind, name, table, sql in rows}


def _format_of(path: Path, side: Side, connection: sqlite3.Connection, there: list[Row]) -> int:
    """The format that a database has by its definitions; one with others is refused."""
    problems = differences(_definitions(there), _expected(side, FORMAT))
    if not problems:
        return FORMAT
    if not differences(_definitions(there), _expected(side, BEFORE)):
        return BEFORE
    with suppress(sqlite3.Error):
        connection.execute("pragma trusted_schema = 0")
        for (found,) in connection.execute("select value from state where name = 'format'"):
            check_format(str(path.parent), str(found), FORMAT)
    raise refusal(str(path), problems)


def _expect_files(path: Path) -> None:
    """Refuse what SQLite would take for missing permissions, or for a new database."""
    for file in (path, *(path.with_name(f"{path.name}-{log}") for log in ("wal", "shm"))):
        if file.exists() and not file.is_file():
            raise refusal(str(file), ["expected a file, got something else"])
    header = b""
    if path.exists():
        with os_errors(path), path.open("rb") as opened:
            header = opened.read(60)
    if not header.startswith(MAGIC):
        return
    if header[18:20] not in (b"", b"\1\1", b"\2\2"):
        raise refusal(str(path), ["expected a database that may be written to, as its header says"])
    # SQLite notices another encoding late, when the data are read together with the journal or rewritten.
    if header[56:] not in (b"", bytes(4), b"\0\0\0\1"):
        raise refusal(str(path), ["expected UTF-8 as the text encoding of its header, got another one"])


class _SqliteErrors:
    """Errors of the database as errors for people. A class, since a generator takes as long as a small statement."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UnicodeDecodeError):
            raise refusal(self._where, ["expected UTF-8, got other bytes"]) from None
        if isinstance(error, sqlite3.DatabaseError):
            text = str(error).partition(" with text")[0]
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in CORRUPT or "decode" in text or "file format" in text:
                raise refusal(self._where, [text]) from None
            raise InputError(f"{self._where}: {error}") from error
