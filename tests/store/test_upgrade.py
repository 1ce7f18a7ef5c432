"""A store of the format before is upgraded when it is opened: all or nothing, wherever it is interrupted."""

import os
import random
import shutil
import signal
import sqlite3
from contextlib import closing

import psycopg
import pytest

import retroact as ra
from retroact.errors import InputError, VerificationError
from retroact.store.postgres import PostgresStore
from retroact.store.sqlite import SQLiteStore
from retroact.stream.erasure import Hashes
from support import format3


@pytest.fixture(params=["sqlite", "postgres"])
def old(request, tmp_path):
    format3.fence(tmp_path / "fence")
    if request.param == "sqlite":
        return str(format3.folder(tmp_path / "orders"))
    return format3.schema(request.getfixturevalue("postgres_url"))


def opened(where, tmp_path):
    return ra.Stream.open(where, key=format3.KEY, fence=tmp_path / "fence")


def published():
    return [row[2:4] for _, table, row in format3.rows() if table == "release"]


def require_upgraded(where, tmp_path):
    with opened(where, tmp_path) as stream:
        newest = stream.store.newest
        assert (stream.store.format, stream.store.state("format")) == (newest, str(newest))
        assert stream.store.boundaries() == []
        assert [[each.line, each.exact] for each in stream.store.releases()] == published()
        assert stream.round == 4
        assert stream.position("feed") == (4, 1)
        assert [request.state for request in stream.requests()] == ["purged", "received"]
        result = stream.verify()
        assert result.ok, result.problems
        assert result.compared == 2


def test_it_goes_on_as_if_nothing_had_been(old, tmp_path):
    require_upgraded(old, tmp_path)
    with opened(old, tmp_path) as stream:
        stream.close_round()
        assert stream.store.state("format") == str(stream.store.newest)
        assert [request.state for request in stream.requests()] == ["purged", "purged"]
        assert stream.verify().ok
    if "://" not in old:
        assert sorted(os.listdir(old)) == ["data.sqlite", "journal.sqlite"]


def test_the_same_releases_follow_as_without_an_upgrade(tmp_path):
    """The fourth round, computed from what survives, in a store that is made now."""
    format3.fence(tmp_path / "fence")
    with opened(format3.folder(tmp_path / "orders"), tmp_path) as stream:
        upgraded = stream.close_round()
        spec, now = stream.specification, stream.state()
    twin = ra.Stream.from_state(spec, now, key=format3.KEY)
    assert upgraded["orders"].round == 4
    with opened(tmp_path / "orders", tmp_path) as stream:
        assert stream.close_round()["orders"].encode() == twin.close_round()["orders"].encode()


def run_killed(where, tmp_path, step):
    """In a process that is killed before its n-th statement of the upgrade, or after the last one (0)."""
    child = os.fork()
    if child == 0:
        seen = [0]

        def dying(run, upgrading):
            def wrapped(self, *arguments):
                seen[0] += upgrading[0]
                if upgrading[0] and seen[0] == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return run(self, *arguments)

            return wrapped

        upgrading = [0]

        def upgrade(usual):
            def wrapped(self, *arguments):
                upgrading[0] = 1
                usual(self, *arguments)
                os.kill(os.getpid(), signal.SIGKILL)

            return wrapped

        try:
            for kind in (SQLiteStore, PostgresStore):
                for method in ("run", "many", "scrub", "_connect"):
                    if method in vars(kind):
                        setattr(kind, method, dying(vars(kind)[method], upgrading))
            SQLiteStore.upgrade = upgrade(SQLiteStore.upgrade)
            PostgresStore.upgrade = upgrade(PostgresStore.upgrade)
            opened(where, tmp_path)
        finally:
            os._exit(seen[0] % 100)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("step", range(1, 16))
def test_killed_in_the_middle(old, tmp_path, step):
    assert run_killed(old, tmp_path, step) == -signal.SIGKILL
    if "://" not in old and step < 6:
        # nothing is done before all is done: the version before would still open it
        with (
            closing(sqlite3.connect(f"{old}/data.sqlite")) as data,
            closing(sqlite3.connect(f"{old}/journal.sqlite")) as journal,
        ):
            assert data.execute("select value from state where name = 'format'").fetchone() == ("3",)
            assert journal.execute("select 1 from sqlite_master where name = 'boundary'").fetchall() == []
    require_upgraded(old, tmp_path)
    if "://" not in old:
        assert sorted(os.listdir(old)) == ["data.sqlite", "journal.sqlite"]


def test_killed_at_any_moment(tmp_path):
    """By a timer, so also while SQLite commits."""
    format3.fence(tmp_path / "fence")
    format3.folder(tmp_path / "orders")
    choose, formats = random.Random(7), []
    for number in range(30):
        where = tmp_path / f"copy{number}"
        shutil.copytree(tmp_path / "orders", where)
        child = os.fork()
        if child == 0:
            usual = SQLiteStore.upgrade

            def upgrade(self, *arguments, usual=usual):
                signal.setitimer(signal.ITIMER_REAL, choose.uniform(0.0002, 0.02))
                usual(self, *arguments)
                os.kill(os.getpid(), signal.SIGKILL)

            SQLiteStore.upgrade = upgrade
            opened(where, tmp_path)
            os._exit(1)
        choose.random()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (-signal.SIGALRM, -signal.SIGKILL)
        for side, query in (
            ("data", "value from state where name = 'format'"),
            ("journal", "count(*) from sqlite_master"),
        ):
            with closing(sqlite3.connect(where / f"{side}.sqlite")) as connection:
                formats.append(connection.execute(f"select {query}").fetchone()[0])
        with opened(where, tmp_path) as stream:
            assert stream.store.state("format") == "4"
            assert stream.store.problems() == []
        assert sorted(os.listdir(where)) == ["data.sqlite", "journal.sqlite"]
        shutil.rmtree(where)
    # both files are of one format, always
    assert {*zip(formats[::2], formats[1::2], strict=True)} <= {("3", 7), ("4", 8)}


def test_what_is_wrong_is_refused_and_left_alone(tmp_path):
    format3.fence(tmp_path / "fence")
    folder = format3.folder(tmp_path / "orders")
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection, connection:
        connection.execute("update note set value = '2' where name = 'committed'")
    before = [path.read_bytes() for path in sorted(folder.glob("*.sqlite"))]
    with pytest.raises(VerificationError, match="table note: the row 'committed' is not as it was written"):
        opened(folder, tmp_path)
    assert [path.read_bytes() for path in sorted(folder.glob("*.sqlite"))] == before
    with pytest.raises(InputError, match="expected the key that this stream was made under"):
        ra.Stream.open(folder, key=ra.Key.for_testing(4), fence=tmp_path / "another")


def test_files_of_two_formats_are_refused(tmp_path):
    format3.fence(tmp_path / "fence")
    old, new = format3.folder(tmp_path / "orders"), tmp_path / "new"
    shutil.copytree(old, new)
    opened(new, tmp_path).close()
    shutil.copy(old / "data.sqlite", new / "data.sqlite")
    with pytest.raises(VerificationError, match=r"the data have store format 3, and the journal has 4: restore both"):
        opened(new, tmp_path)
    shutil.copy(new / "journal.sqlite", tmp_path / "journal.sqlite")
    shutil.copy(old / "journal.sqlite", new / "journal.sqlite")
    require_upgraded(new, tmp_path)


def test_somebody_who_reads_bars_it(tmp_path):
    format3.fence(tmp_path / "fence")
    folder = format3.folder(tmp_path / "orders")
    with closing(sqlite3.connect(folder / "journal.sqlite", isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from note").fetchone()
        with pytest.raises(InputError, match=r"locked|another process is reading it: it cannot be upgraded now"):
            opened(folder, tmp_path)
    require_upgraded(folder, tmp_path)


def test_what_a_crash_leaves_of_a_transaction_on_both_files_is_removed(tmp_path):
    format3.fence(tmp_path / "fence")
    folder = format3.folder(tmp_path / "orders")
    (folder / "journal.sqlite-mj6952489FA").write_bytes(b"data.sqlite-journal\0")
    require_upgraded(folder, tmp_path)
    assert sorted(os.listdir(folder)) == ["data.sqlite", "journal.sqlite"]


@pytest.fixture
def undivided(postgres_url, tmp_path, monkeypatch):
    """A store of format 4 in PostgreSQL, where blocks are one table."""
    format3.fence(tmp_path / "fence")
    where = format3.schema(postgres_url)
    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "newest", 4)
        patch.setattr(PostgresStore, "changes", lambda self: [])
        store = PostgresStore(where)
        own, name = format3.KEY.derive("rows of the store"), Hashes(format3.KEY).stream
        store.unlock(own, f"{name} ")
        store.upgrade(own, f"{name} ")
        assert (store.format, store.state("format")) == (4, "4")
        store.close()
    return where


def tables_of(where):
    address, _, schema = where.partition("#")
    with psycopg.connect(address, autocommit=True) as connection:
        found = connection.execute("select tablename from pg_tables where schemaname = %s", [schema]).fetchall()
    return {name for (name,) in found}


# it has 17 statements before it commits; the last ones copy the blocks and drop the table that was
@pytest.mark.parametrize("step", [*range(1, 19), 0])
def test_killed_while_blocks_are_divided(undivided, tmp_path, step):
    assert run_killed(undivided, tmp_path, step) == -signal.SIGKILL
    assert ("block_00" in tables_of(undivided)) == (step in (18, 0))
    require_upgraded(undivided, tmp_path)
    assert "whole" not in tables_of(undivided)
