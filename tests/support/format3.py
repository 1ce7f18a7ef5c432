"""A store of format 3, as retroact 0.3.0 left it: three closed rounds, an erasure that was purged, another one that
waits in the open round."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

import retroact as ra

KEPT = json.loads((Path(__file__).parent.parent / "store" / "format3.json").read_text())
KEY = ra.Key.for_testing(3)
# in this order
TYPES = {
    "cast(line as text)": "convert_from(line, 'UTF8')",
    "blob": "bytea",
    " text": ' text collate "C"',
    " without rowid": "",
}


def fence(path: Path) -> Path:
    path.write_text(json.dumps(KEPT["fence"], separators=(",", ":")))
    return path


def rows():
    for side in ("data", "journal"):
        for table, content in KEPT[side]["rows"].items():
            for row in content:
                yield side, table, [bytes.fromhex(cell["hex"]) if isinstance(cell, dict) else cell for cell in row]


def folder(path: Path) -> Path:
    path.mkdir()
    for side in ("data", "journal"):
        with closing(sqlite3.connect(path / f"{side}.sqlite", isolation_level=None)) as connection:
            connection.execute("pragma journal_mode = wal")
            for statement in KEPT[side]["statements"]:
                connection.execute(statement)
            for own, table, row in rows():
                if own == side:
                    connection.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)
            connection.execute("pragma schema_version = 1")
    return path


def schema(url: str) -> str:
    address, _, name = url.partition("#")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"create schema {name}; set search_path to {name}")
        for side in ("data", "journal"):
            for statement in KEPT[side]["statements"]:
                for old, new in TYPES.items():
                    statement = statement.replace(old, new)
                connection.execute(statement)
        for table, column in (("block", "records"), ("inbox", "entry")):
            connection.execute(f"alter table {table} alter column {column} set storage external")
        for table in ("block", "inbox", "state", "data_digest"):
            names = connection.execute(
                "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0", [table]
            )
            for (column,) in names.fetchall():
                connection.execute(f"alter table {table} alter column {column} set statistics 0")
        for _, table, row in rows():
            connection.execute(f"insert into {table} values ({', '.join(['%s'] * len(row))})", row)
    return url
