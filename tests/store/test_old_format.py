"""Stores of earlier versions are refused with a sentence that says what to do, and are not touched."""

import sqlite3
from contextlib import closing

import psycopg
import pytest

import retroact as ra
from retroact.errors import InputError

# As version 0.1.0 made them
TABLES = {
    "data": (
        "create table block(stamp bigint not null, mark bigint not null, records {bytes} not null, "
        "primary key(stamp, mark)){clustered}",
        "create table inbox(number bigint primary key, entry {bytes} not null){clustered}",
        "create table state(name text primary key, value text not null){clustered}",
        "insert into state values ('format', '1'), ('stream', '5eed'), ('round', '3')",
    ),
    "journal": (
        "create table note(name text primary key, value text not null){clustered}",
        "insert into note values ('committed', '3')",
    ),
}
SENTENCE = (
    r"expected store format [45], got 1, which only retroact 0\.1\.0 opens\. To erase there, use that version: "
    r"retroact erase .* --subject \.\.\. --close\. Its records cannot be taken over: a new stream begins with the "
    r"source again, and the privacy budget that it spends adds to the old one's"
)


def test_a_folder(tmp_path):
    folder = tmp_path / "orders"
    folder.mkdir()
    for side, statements in TABLES.items():
        with closing(sqlite3.connect(folder / f"{side}.sqlite")) as connection, connection:
            for statement in statements:
                connection.execute(statement.format(bytes="blob", clustered=" without rowid"))
    before = [path.read_bytes() for path in sorted(folder.glob("*.sqlite"))]
    with pytest.raises(InputError, match=SENTENCE):
        ra.Stream.open(folder, key=ra.Key.for_testing(1))
    with pytest.raises(InputError, match=SENTENCE):
        ra.Stream.open(folder, {"age": ra.Integer(0, 9)}, {"n": ra.Count()}, epsilon=1.0, key=ra.Key.for_testing(1))
    assert [path.read_bytes() for path in sorted(folder.glob("*.sqlite"))] == before


def test_a_schema(postgres_url, tmp_path):
    url, _, schema = postgres_url.partition("#")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"create schema {schema}; set search_path to {schema}")
        for statement in (*TABLES["data"], *TABLES["journal"]):
            connection.execute(statement.format(bytes="bytea", clustered=""))
    with pytest.raises(InputError, match=SENTENCE):
        ra.Stream.open(postgres_url, key=ra.Key.for_testing(1), fence=tmp_path / "fence")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("5", "got 5: a later version of retroact made it"),
        ("2", r"only retroact 0\.2\.0 opens"),
        ("0", "only retroact in an earlier version opens"),
    ],
)
def test_other_formats(tmp_path, found, message):
    test_a_folder(tmp_path)
    with closing(sqlite3.connect(tmp_path / "orders" / "data.sqlite")) as connection, connection:
        connection.execute("update state set value = ? where name = 'format'", [found])
    with pytest.raises(InputError, match=message):
        ra.Stream.open(tmp_path / "orders", key=ra.Key.for_testing(1))
