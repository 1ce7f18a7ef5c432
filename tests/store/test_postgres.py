"""What is PostgreSQL's own: the session, the lock, and what is left of deleted rows in the files of a real server."""

import secrets
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import psycopg
import pytest

from retroact.errors import InputError
from retroact.store import postgres
from retroact.store.canonical_blocks import Edit
from retroact.store.postgres import PostgresStore
from support.postgres_files import files


def opened(url, *, create=False):
    store = PostgresStore(url, create=create)
    store.unlock(bytes(32), "5eed")
    return store


@pytest.fixture
def store(postgres_url):
    store = opened(postgres_url, create=True)
    yield store
    store.close()


@pytest.fixture
def admin(postgres_server):
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def role(admin):
    name = f"r_{secrets.token_hex(4)}"
    admin.execute(f"create role {name} login")
    yield name
    admin.execute(f"drop owned by {name} cascade")
    admin.execute(f"drop role {name}")


# The address


@pytest.mark.parametrize(
    ("url", "where", "schema"),
    [
        ("postgresql://ann:pass@host/shop#Orders_2", "postgresql://ann@host/shop#Orders_2", "Orders_2"),
        ("postgres://ann:pass@host:5433/shop", "postgresql://ann@host:5433/shop#retroact", "retroact"),
        ("postgresql://ann:pa?ss#word@host/shop#o", "postgresql://ann@host/shop#o", "o"),
        ("postgresql://ann:p%40ss%2F@host/shop#o", "postgresql://ann@host/shop#o", "o"),
        ("postgresql:///shop?host=/run/pg&password=pass#o", "postgresql:///shop?host=/run/pg#o", "o"),
    ],
)
def test_where_it_is_said_without_the_password(url, where, schema):
    *shown, parameters = postgres.read(url)
    assert shown == [where, schema]
    assert parameters["password"].startswith("p")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:secret@x@host/shop#o",
        "postgresql://ann:sec/secret@host/shop#o",
        "postgresql://ann:secret/shop#o",
        "postgresql://ann:x#secret@host/shop",
        "postgresql://ann:x@host/shop#secret-x",
        "postgresql://ann:x@host/shop#secret; drop table block",
        f"postgresql://ann:x@host/shop#{'secret' * 11}",
        "postgresql://ann:%zzsecret@host/shop",
        "postgresql//ann:secret@host/shop",
        "mysql://ann:secret@host/shop",
        "host=h password=secret",
        "secret",
    ],
)
def test_an_address_that_is_not_understood_is_not_shown(url):
    with pytest.raises(InputError, match=r"expected (postgresql|the name of a schema)") as caught:
        PostgresStore(url)
    assert "secret" not in "".join(traceback.format_exception(caught.value)).split("InputError", 1)[1]


@pytest.mark.parametrize("schema", ["information_schema", "pg_catalog", "pg_toast", "pg_temp_3"])
def test_a_schema_of_the_system_is_refused(postgres_server, schema):
    with pytest.raises(InputError, match=f"expected a schema for this stream, got {schema}, which is the system's own"):
        PostgresStore(f"{postgres_server.get_uri()}#{schema}", create=True)


def test_a_schema_with_other_tables_is_refused(postgres_url, admin):
    schema = postgres_url.partition("#")[2]
    admin.execute(f"create schema {schema}; create table {schema}.customers(name text)")
    with pytest.raises(InputError, match="expected a schema of the stream's own, got one with other tables"):
        PostgresStore(postgres_url, create=True)


def test_no_server_there():
    with pytest.raises(
        InputError, match=r"ann@127\.0\.0\.1:1/shop#o: .*refused.* - check that the server runs"
    ) as caught:
        PostgresStore("postgresql://ann:sesame@127.0.0.1:1/shop#o")
    assert "sesame" not in str(caught.value)


def test_the_password_is_nowhere_to_be_seen(postgres_url):
    url = postgres_url.replace("postgres:@", "postgres:open%20sesame@")
    store = opened(url, create=True)
    store.receive([(1, b"a")])
    with pytest.raises(InputError) as caught:
        store.receive([(1, b"a")])
    for text in (repr(store), store.where, str(caught.value), *store.reached, *store.beyond):
        assert "sesame" not in text
    store.close()
    with pytest.raises(InputError, match="does not exist") as caught:
        PostgresStore(url.replace("/postgres?", "/nowhere?"))
    assert "sesame" not in str(caught.value)


def test_without_the_driver(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"need psycopg: pip install 'retroact\[postgres\]'"):
        PostgresStore("postgresql://host/shop")


# The session


def test_the_session_is_as_it_must_be(postgres_url, all_parts):
    url, _, schema = postgres_url.partition("#")
    wanted = f"{url}&options=-c%20statement_timeout%3D5000%20-c%20synchronous_commit%3Doff#{schema.upper()}"
    store = PostgresStore(wanted, create=True)
    expected = {
        "synchronous_commit": "on", "statement_timeout": "0", "lock_timeout": "0", "application_name": "retroact",
        "idle_in_transaction_session_timeout": "0", "idle_session_timeout": "0", "client_encoding": "UTF8",
        "log_parameter_max_length_on_error": "0", "search_path": f'"{schema.upper()}", pg_temp',
    }  # fmt: skip
    assert {name: store.run("data", "select current_setting(?)", [name])[0][0] for name in expected} == expected
    tables = store.run("data", "select count(*) from pg_tables where schemaname = ?", [schema.upper()])
    assert tables == [(75,)]  # 64 of them are parts of one
    store.run("data", f'drop schema "{schema.upper()}" cascade')
    store.close()


def test_a_setting_that_cannot_be_had_is_refused(postgres_url, monkeypatch):
    monkeypatch.setitem(postgres.SETTINGS, "wal_level", "minimal")
    with pytest.raises(InputError, match="expected wal_level = minimal, got replica"):
        PostgresStore(postgres_url, create=True)
    monkeypatch.undo()
    monkeypatch.setattr(postgres, "OLDEST", 99)
    with pytest.raises(InputError, match="expected PostgreSQL 99 or later, got"):
        PostgresStore(postgres_url, create=True)


def test_streams_of_one_database_are_apart(store, postgres_url):
    other = opened(f"{postgres_url}_2", create=True)
    other.receive([(1, b"other")])
    assert (store.inbox(), other.inbox()) == ([], [b"other"])
    other.run("data", f"drop schema {other.schema} cascade")
    other.close()


def test_a_lost_session(store, postgres_url, admin):
    admin.execute("select pg_terminate_backend(%s)", [store._connection.info.backend_pid])
    for _ in range(2):
        with pytest.raises(InputError, match=r"connection.*; open the stream again"):
            store.receive([(1, b"a")])
    again = opened(postgres_url)
    again.receive([(1, b"b")])
    assert again.inbox() == [b"b"]
    again.close()


def test_errors_show_no_values(store):
    place = (secrets.randbits(62), secrets.randbits(62))
    store.seal(1, Edit([], [(place, b"records")]))
    with pytest.raises(InputError, match="duplicate key value") as caught:
        store.seal(2, Edit([], [(place, b"records")]))
    text = "".join(traceback.format_exception(caught.value))
    assert not any(str(number) in text for number in place)


def test_tables_of_another_role_are_refused(store, postgres_url, admin, role):
    admin.execute(f"grant all on schema {store.schema} to {role}")
    store.close()
    with pytest.raises(InputError, match="expected tables of this role's own, got postgres's"):
        PostgresStore(postgres_url.replace("//postgres:", f"//{role}:"))


KILLED = """
import sys, time
from retroact.store.canonical_blocks import Edit
from retroact.store.postgres import PostgresStore

class Slow(PostgresStore):
    def edit_blocks(self, edit):
        super().edit_blocks(edit)
        assert len(self.places()) == 2
        print("in the middle", flush=True)
        time.sleep(60)

store = Slow(sys.argv[1])
store.unlock(bytes(32), "5eed")
store.seal(2, Edit([(0, 0)], [((5, 5), b"new" * 9999), ((6, 6), b"new")]))
"""


def test_kill_in_the_middle_of_a_seal(all_parts, store, postgres_url, impatient):
    old = [((0, 0), b"old")]
    store.seal(1, Edit([], old))
    store.receive([(1, b"entry")])
    store.close()
    with subprocess.Popen([sys.executable, "-c", KILLED, postgres_url], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "in the middle\n"
        with pytest.raises(InputError, match="another process has this stream open"):
            PostgresStore(postgres_url)
        process.send_signal(signal.SIGKILL)
    impatient.undo()
    again = opened(postgres_url)
    assert (again.sealed, again.blocks(), again.inbox()) == (1, old, [b"entry"])
    again.seal(2, Edit([(0, 0)], []))
    assert (again.sealed, again.blocks()) == (2, [])
    again.close()


# What was deleted


def values_in(paths, values):
    contents = [path.read_bytes() for path in paths]
    return {value for value in values if any(value in content for content in contents)}


def filled(store):
    """Small and large blocks and entries, each with a value of its own: those that were deleted, and those left."""
    values = [secrets.token_bytes(16) for _ in range(256)]
    blocks = [((1, at), value + bytes(20_000 * (at % 2))) for at, value in enumerate(values[:224])]
    store.seal(1, Edit([], blocks))
    for number, value in enumerate(values[224:]):
        store.receive([(number, value + bytes(70_000 * (number % 2)))])
    store.seal(2, Edit([place for place, _ in blocks[:192]], []))
    return {*values[:192], *values[224:]}, {*values[192:224]}


def test_deleted_values_are_gone_after_a_purge(store, admin):
    deleted, kept = filled(store)
    assert values_in(files(store, admin), deleted | kept) == deleted | kept
    log = Path(admin.execute("show data_directory").fetchone()[0]) / "pg_wal"
    wanted = {min(deleted)}  # one of them: the log may have a gigabyte
    before = values_in((path for path in log.iterdir() if path.is_file()), wanted)
    assert store.purge()
    assert values_in(files(store, admin), deleted | kept) == kept
    assert store.residue() == []
    assert before == wanted
    assert any("write-ahead log" in text and "max_wal_size" in text for text in store.beyond)


def test_what_a_scrub_leaves_in_pages_is_reported(store):
    store.seal(1, Edit([], [((1, at), secrets.token_bytes(500)) for at in range(200)]))
    store.seal(2, Edit([(1, at) for at in range(0, 200, 2)], []))
    assert store.scrub()
    found = store.residue()
    assert any(": block_" in text and "bytes that nothing accounts for" in text for text in found)
    assert store.purge()
    assert store.residue() == []


def test_the_server_keeps_no_samples_of_values(store, admin):
    filled(store)
    store.receive([(100, b"a value")])
    admin.execute(f"analyze {store.schema}.block, {store.schema}.block_02, {store.schema}.inbox")
    assert admin.execute("select * from pg_stats where schemaname = %s", [store.schema]).fetchall() == []
    plain = "select attname from pg_attribute where attrelid = any(%s::regclass[]) and attstorage = 'e'"
    names = admin.execute(plain, [[f"{store.schema}.{table}" for table in ("block", "block_02", "inbox")]]).fetchall()
    assert sorted(names) == [("entry",), ("records",), ("records",)]


def test_a_snapshot_elsewhere_bars_the_purge(store, postgres_server, admin, impatient):
    with psycopg.connect(postgres_server.get_uri()) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("select 1 from pg_class")
        deleted, _ = filled(store)
        assert not store.scrub()
        assert not store.purge()
        assert any("dead rows, which the snapshot of another session holds" in text for text in store.residue())
        assert values_in(files(store, admin), deleted)
    assert store.purge()
    assert not values_in(files(store, admin), deleted)
    assert store.residue() == []


def test_a_purge_waits_for_a_snapshot_to_end(store, postgres_server, admin):
    """To rewrite a table would copy rows that another session still sees: nothing accounts for them later."""
    other = psycopg.connect(postgres_server.get_uri())
    other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    other.execute("select 1 from pg_class")
    deleted, _ = filled(store)
    ending = threading.Timer(0.5, other.close)
    ending.start()
    assert store.purge()
    ending.join()
    assert not values_in(files(store, admin), deleted)
    assert store.residue() == []


def test_a_reader_elsewhere_bars_the_purge(store, postgres_server, impatient):
    with psycopg.connect(postgres_server.get_uri()) as other:
        filled(store)
        other.execute(f"select * from {store.schema}.block")
        assert not store.purge()
        assert store.run("data", "show lock_timeout") == [("0",)]
        store.receive([(1, b"goes on")])
    assert store.purge()


def test_a_role_that_may_not_do_all_says_so(postgres_url, admin, role):
    schema = postgres_url.partition("#")[2]
    admin.execute(f"create schema {schema} authorization {role}")
    store = opened(postgres_url.replace("//postgres:", f"//{role}:"), create=True)
    before = len(store.beyond)
    deleted, kept = filled(store)
    assert store.purge()
    assert [text for text in store.beyond if "as this role may not" in text] == [*store.beyond[before:]]
    assert len(store.beyond) == before + 2
    assert store.residue() == []
    assert any("free space in pages was not looked at" in text for text in store.beyond)
    assert values_in(files(store, admin), deleted | kept) == kept
    store.close()


def test_what_the_server_sends_elsewhere_is_listed(store, postgres_url, admin):
    assert not any("replica" in text or "log of the server" in text for text in store.beyond)
    admin.execute("select pg_create_physical_replication_slot('standby')")
    store.purge()
    assert "replicas: 0 connected now, 1 replication slots" in store.beyond
    admin.execute("select pg_drop_replication_slot('standby')")
    store.close()
    url, _, schema = postgres_url.partition("#")
    store = PostgresStore(f"{url}&options=-clog_statement%3Dall#{schema}")
    assert any("log of the server" in text for text in store.beyond)
    store.close()
