import os
import secrets
import tempfile
import warnings

import psycopg
import pytest

from retroact.store import postgres_schema
from retroact.store.postgres import PostgresStore
from retroact.store.sqlite import SQLiteStore
from support.zone_rules import rules

__all__ = ["rules"]
SECRET = bytes(range(32))


@pytest.fixture(scope="session")
def postgres_server():
    """A server of this test process alone: in a folder with a short name, as its socket lies there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgserver
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LC_ALL", "C")
        server = pgserver.get_server(tempfile.mkdtemp(prefix="pg"), cleanup_mode="delete")
    yield server
    server.cleanup()
    assert not os.path.exists(server.pgdata)


@pytest.fixture(scope="package", autouse=True)
def few_parts():
    """The table of blocks in three parts: a file for each of 64 is what most tests would wait for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_schema, "PARTS", postgres_schema.PARTS[:3])
        yield


ALL_PARTS = postgres_schema.PARTS


@pytest.fixture
def all_parts(monkeypatch):
    monkeypatch.setattr(postgres_schema, "PARTS", ALL_PARTS)


@pytest.fixture
def impatient():
    """Nobody who has a stream open is waited for, until this is undone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresStore, "patience", 0.1)
        yield patch


@pytest.fixture
def postgres_url(postgres_server):
    """A schema that nobody has used."""
    url, schema = postgres_server.get_uri(), f"t_{secrets.token_hex(8)}"
    yield f"{url}#{schema}"
    with psycopg.connect(url, autocommit=True) as connection:
        # a process that was killed may still hold it
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'retroact'")
        connection.execute(f"set client_min_messages = error; drop schema if exists {schema} cascade")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "orders"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Makes the place of a stream from its name."""
    if request.param == "sqlite":
        return lambda name: str(tmp_path / name)
    url = request.getfixturevalue("postgres_url")
    return lambda name: f"{url}_{name}"


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request, tmp_path):
    """Opens the same place again and again; what is open at the end is closed."""
    stores = []
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None

    def opened(*, create=False):
        store = PostgresStore(url, create=create) if url else SQLiteStore(tmp_path / "orders", create=create)
        stores.append(store)
        store.unlock(SECRET, "5eed")
        return store

    yield opened
    for store in stores:
        store.close()


@pytest.fixture
def store(opened):
    return opened(create=True)
