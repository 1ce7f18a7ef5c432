"""A stream in a schema of a PostgreSQL database.

PostgreSQL never overwrites: a deleted row stays until VACUUM, and its bytes until the page is reused or the table is
rewritten, which `purge` does. Blocks are divided into tables by a hash, and a note in the journal names those that have
lost rows since they were rewritten: all of them while a transaction changes blocks, since one that is broken off leaves
its rows too. The write-ahead log belongs to the server: see `beyond`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import InputError, VerificationError
from . import postgres_schema
from .authenticated import Row, refusal
from .canonical_blocks import Edit, Place
from .formats import check_format
from .postgres_address import read
from .postgres_reach import out_of_reach
from .postgres_schema import FORMAT, RELATIONS, SMALL, unaccounted
from .store import SELECTED, Store
from .tables import BEFORE, BLOCK, Side, StoredTable

if TYPE_CHECKING:
    from psycopg import Connection

OLDEST = 15
# Set if the session may, and read back on every connection.
SETTINGS = {"synchronous_commit": "on", "fsync": "on", "full_page_writes": "on", "track_counts": "on"}
SESSION = {
    **dict.fromkeys(("statement_timeout", "lock_timeout", "idle_session_timeout", "transaction_timeout"), "0"),
    "idle_in_transaction_session_timeout": "0",
    # so that the lock of a machine that disappears is released within two minutes
    "tcp_keepalives_idle": "60",
    "tcp_keepalives_interval": "20",
    "tcp_keepalives_count": "3",
    "log_parameter_max_length_on_error": "0",
}


HIT = "hit"
"""The note that names the parts with bytes of rows that are gone, each after a space; one word for all."""
EVERY = " every"


class PostgresStore(Store):
    """`postgresql://user:password@host/database#orders`: the schema `orders` of a database.

    Not through a pooler that shares sessions between clients: the lock belongs to the session.
    """

    words = postgres_schema.WORDS
    newest = FORMAT
    reached = (
        "the parts of table block that lost rows, tables inbox, state and data_digest, with their TOAST tables and "
        "indexes: rewritten, without what was deleted",
        "the other tables of the schema: no values are kept there",
    )
    patience = 5.0
    """How many seconds to wait for a session that has the stream open, and a purge for readers of the tables."""

    overwrites = False

    def __init__(self, url: str, *, create: bool = False) -> None:
        try:
            import psycopg
        except ImportError:
            raise InputError("PostgreSQL stores need psycopg: pip install 'retroact[postgres]'") from None
        self.where, self.schema, parameters = read(url)
        self.identity = self.where
        self._barred: dict[str, str] = {}
        options: dict[str, Any] = {"connect_timeout": 10, **parameters, "application_name": "retroact"}
        try:
            self._connection: Connection[tuple[Any, ...]] = psycopg.connect(
                **options, autocommit=True, client_encoding="utf8"
            )
        except psycopg.Error as error:
            raise InputError(
                f"{self.where}: {' '.join(str(error).split())} - check that the server runs, that it listens there, "
                "and that this role may connect to this database (pg_hba.conf)"
            ) from None
        try:
            self._settle()
            self._lock()
            self._tables(create)
            self._look()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def raw_transaction(self, side: Side) -> Iterator[None]:
        with _database_errors(self.where), self._connection.transaction():
            yield

    def changes(self) -> list[str]:
        return postgres_schema.divided()

    def both_sides(self) -> AbstractContextManager[None]:
        return self.raw_transaction("journal")

    def run(self, side: Side, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with _database_errors(self.where), self._connection.cursor(binary=True) as cursor:
            cursor.execute(sql.replace("?", "%s"), parameters)
            return cursor.fetchall() if cursor.description else []

    def many(self, side: Side, sql: str, rows: Iterable[Sequence[Any]]) -> list[Row]:
        returning = "returning" in sql
        found: list[Row] = []
        with _database_errors(self.where), self._connection.cursor(binary=True) as cursor:
            cursor.executemany(sql.replace("?", "%s"), rows, returning=returning)
            while returning and cursor.description:
                found += cursor.fetchall()
                returning = bool(cursor.nextset())
        return found

    def scan(self, side: Side, sql: str) -> Iterator[Row]:
        with self.raw_transaction(side), self._connection.cursor("scan", binary=True) as cursor:
            cursor.itersize = 256
            cursor.execute(sql)
            yield from cursor

    def write(self, table: StoredTable, rows: Sequence[Row]) -> None:
        if table != BLOCK:
            super().write(table, rows)
            return
        copying = f"copy block({table.names}) from stdin (format binary)"
        with _database_errors(self.where), self._connection.cursor() as cursor, cursor.copy(copying) as copy:
            copy.set_types(["int8", "int8", "bytea", "bytea"])
            for row in rows:
                copy.write_row(row)

    @contextmanager
    def changing(self, edit: Edit) -> Iterator[None]:
        """It notes which parts lose rows."""
        before = self.note(HIT) or ""
        unknown = before == EVERY or not (edit.gone or edit.new)
        lost = {*before.split()} if unknown else {*before.split()} | self._parts_of(edit.gone)
        if not unknown:
            self.write_notes({HIT: EVERY})
        with self.raw_transaction("data"):
            with super().changing(edit):
                yield
            if not unknown:
                self.write_notes({HIT: "".join(f" {part}" for part in sorted(lost))})

    def _parts_of(self, places: Sequence[Place]) -> set[str]:
        found = set()
        for first in range(0, len(places), SELECTED):
            some = places[first : first + SELECTED]
            wanted = ", ".join(["(?::bigint, ?::bigint)"] * len(some))
            sql = (
                f"select distinct relname::text from (values {wanted}) as wanted(stamp, mark) join block using (stamp, "
                "mark) join pg_class on pg_class.oid = block.tableoid"
            )
            found |= {name for (name,) in self.run("data", sql, [number for place in some for number in place])}
        return found

    @property
    def _dirty(self) -> list[str]:
        """The tables that may hold rows, or bytes of rows, that are gone."""
        hit = self.note(HIT) or ""
        # and those that somebody else has changed
        dead = {name.removeprefix("TOAST of ") for name, count in self._dead().items() if count}
        parts = [part for part in postgres_schema.PARTS if hit == EVERY or part in hit.split() or part in dead]
        return [*parts, *SMALL, "note"]  # one of the notes is a keyed hash of the data

    def schema_problems(self) -> list[str]:
        return self._problems(self.format)

    def _problems(self, format: int) -> list[str]:
        return postgres_schema.problems(lambda sql, parameters: self.run("data", sql, parameters), self.schema, format)

    def scrub(self) -> bool:
        """Remove dead rows, unless another session still sees them; pages keep their bytes until they are reused."""
        # to truncate a table it would wait for all who read it
        return self._vacuum("index_cleanup on, truncate off") and not any(self._dead().values())

    def purge(self, *, every: bool = False) -> bool:
        """Rewrite tables and indexes. A session that reads them, or has an old snapshot, can prevent that.

        Dead rows are removed before: a rewrite copies those that another session still sees, and what the next scrub
        then removes stays in the pages.
        """
        if every and self.note(HIT) != EVERY:
            self.write_notes({HIT: EVERY})
        until = time.monotonic() + self.patience
        while not (self.scrub() and self._vacuum("full, freeze")):
            if time.monotonic() > until:
                return False
            time.sleep(0.2)
        if self.note(HIT):
            self.write_notes({HIT: ""})
        # in this order: segments before the checkpoint are recycled, and overwritten next
        self._where_allowed("select pg_switch_wal()", "a new segment of the write-ahead log (pg_switch_wal)")
        self._where_allowed("checkpoint", "a checkpoint: files that were replaced may last until the next one")
        self._look()
        return True

    def residue(self) -> list[str]:
        """Dead rows, and bytes in pages that belong to no row, if the role may read files of the server."""
        done = self.scrub()
        found = [
            f"{self.where}: {name}: {count} dead rows, which the snapshot of another session holds"
            for name, count in self._dead().items()
            if count
        ]
        if not done and not found:
            found.append(f"{self.where}: another session has the tables locked")
        unseen = "free space in pages was not looked at: this needs to read files of the server"
        (readable,), *_ = self.run(
            "data", "select has_function_privilege('pg_read_binary_file(text,bigint,bigint,boolean)', 'execute')"
        )
        if readable and self._where_allowed("checkpoint", unseen):
            for oid, name in self.run("data", RELATIONS):
                counts = [count for page in self._pages(oid) if (count := unaccounted(page))]
                if counts:
                    where = f"{self.where}: {name}: {len(counts)} pages"
                    found.append(f"{where} with {sum(counts)} bytes that nothing accounts for")
        elif not readable:
            self._barred["files"] = unseen
        self._look()
        return found

    def close(self) -> None:
        self._connection.close()

    # The session ------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        version = self._connection.info.server_version // 10000
        if version < OLDEST:
            raise InputError(f"{self.where}: expected PostgreSQL {OLDEST} or later, got {version}")
        settings = "select set_config(name, ?, false) from pg_settings where name = ? and context = 'user'"
        for name, value in {**SETTINGS, **SESSION}.items():
            self.run("data", settings, [value, name])
        self.run("data", f'set search_path to "{self.schema}", pg_temp')
        for name, value in SETTINGS.items():
            (got,), *_ = self.run("data", "select current_setting(?)", [name])
            if got != value:
                raise InputError(f"{self.where}: expected {name} = {value}, got {got}: a stream could not rely on it")

    def _lock(self) -> None:
        """A lock that ends with the session. The server may need a moment to see that a process has ended."""
        number = int.from_bytes(hashlib.sha256(f"retroact {self.schema}".encode()).digest()[:8], "big", signed=True)
        until = time.monotonic() + self.patience
        while self.run("data", "select pg_try_advisory_lock(?)", [number]) != [(True,)]:
            if time.monotonic() > until:
                raise InputError(f"{self.where}: another process has this stream open")
            time.sleep(0.05)

    def _tables(self, create: bool) -> None:
        there = "select relname from pg_class where relnamespace = to_regnamespace(?) and relkind <> 'i' limit 1"
        if not self.run("data", there, [f'"{self.schema}"']):
            if not create:
                raise InputError(f"{self.where}: expected the schema of a stream, got none")
            with self.raw_transaction("data"):
                if not self.run("data", "select 1 from pg_namespace where nspname = ?", [self.schema]):
                    self.run("data", f'create schema "{self.schema}"')
                for statement in postgres_schema.made():
                    self.run("data", statement)
        formats = range(FORMAT, BEFORE - 1, -1)
        self.format = next((format for format in formats if not self._problems(format)), FORMAT)
        problems = self._problems(self.format)
        if problems:
            if not any(self.run("data", f"select to_regclass('{table}')::oid") != [(None,)] for table in SMALL):
                raise InputError(f"{self.where}: expected a schema of the stream's own, got one with other tables")
            if self.run("data", "select 1 where to_regclass('state') is not null"):
                for (found,) in self.run("data", "select value from state where name = 'format'"):
                    check_format(self.where, found, FORMAT)
            raise refusal(self.where, problems)
        owned = "select relowner::regrole::text from pg_class where oid = to_regclass('block')"
        for (owner,) in self.run("data", f"{owned} and not pg_has_role(relowner, 'usage')"):
            raise InputError(f"{self.where}: expected tables of this role's own, got {owner}'s: only it can purge them")

    # Deleted data -----------------------------------------------------------------------------------------------------

    def _vacuum(self, options: str) -> bool:
        """Whether it ran; it cannot while another session holds the tables."""
        from psycopg.errors import LockNotAvailable

        patience = "select set_config('lock_timeout', ?, false)"
        self.run("data", patience, [f"{round(self.patience * 1000)}ms"])
        # so that deleted rows are counted now, and not after the vacuum
        self.run("data", "select pg_stat_force_next_flush()")
        with _database_errors(self.where):
            try:
                self._connection.execute(f"vacuum ({options}) {', '.join(self._dirty)}")
            except LockNotAvailable:
                return False
            finally:
                if not self._connection.closed:
                    self.run("data", patience, ["0"])
        return True

    def _dead(self) -> dict[str, int]:
        counted = f"select name, pg_stat_get_dead_tuples(oid::oid) from ({RELATIONS}) as relation(oid, name)"
        return {name: count for name, count in self.run("data", counted) if not name.startswith("index")}

    def _pages(self, oid: int) -> Iterator[bytes]:
        """The pages of a table or index as they are on disk."""
        (path, size, most, total), *_ = self.run(
            "data",
            "select pg_relation_filepath(?::oid::regclass), current_setting('block_size')::int, "
            "(select setting::bigint from pg_settings where name = 'segment_size'), pg_relation_size(?::oid::regclass)",
            [oid, oid],
        )
        step = 512  # pages; a segment is a multiple of it
        for first in range(0, total // size, step):
            part, page = divmod(first, most)
            name = f"{path}.{part}" if part else path
            read = "select pg_read_binary_file(?, ?, ?, true)"
            (content,), *_ = self.run("data", read, [name, page * size, step * size])
            yield from (content[at : at + size] for at in range(0, len(content or b""), size))

    def _where_allowed(self, statement: str, otherwise: str) -> bool:
        from psycopg.errors import InsufficientPrivilege

        with _database_errors(self.where):
            try:
                self._connection.execute(statement)
            except InsufficientPrivilege:
                self._barred[statement] = f"not done, as this role may not: {otherwise}"
                return False
        self._barred.pop(statement, None)
        return True

    def _look(self) -> None:
        """What no purge can reach, given the settings of this server."""
        self.beyond = (*out_of_reach(lambda sql: self.run("data", sql)), *self._barred.values())


@contextmanager
def _database_errors(where: str) -> Iterator[None]:
    """Errors with the message of the database, but without its details, which may hold values."""
    import psycopg

    try:
        yield
    except (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted) as error:
        raise VerificationError(f"{where}: {error.diag.message_primary}") from None
    except psycopg.Error as error:
        message = error.diag.message_primary or " ".join(str(error).split())
        lost = isinstance(error, psycopg.OperationalError) and "connection" in message
        raise InputError(f"{where}: {message}{'; open the stream again' * lost}") from None
