"""A store whose tables and files are changed by hand, and put back as they were."""

import shutil
import sqlite3
from contextlib import closing

import psycopg

from retroact.store.postgres import PostgresStore
from retroact.store.tables import SIDES, TABLES

DIGESTS = {side: f"{side}_digest" for side in SIDES}
COLUMNS = {table.name: [*table.columns, "mac"] for table in TABLES} | {
    name: ["side", "sealed"] for name in DIGESTS.values()
}
SIDE = {table.name: table.side for table in TABLES} | {name: side for side, name in DIGESTS.items()}


class Folder:
    """A store of SQLite, and its states at some times."""

    def __init__(self, path):
        self.path = path
        self.where, self.fence = str(path / "orders"), path / "orders.fence"

    def run(self, side, sql, *parameters):
        with closing(sqlite3.connect(f"{self.where}/{side}.sqlite")) as connection, connection:
            return connection.execute(sql, parameters).fetchall()

    def take(self, name):
        shutil.copytree(self.where, self.path / name / "orders")
        shutil.copy(self.fence, self.path / name)

    def put(self, name, sides=SIDES, *, fence=True):
        for side in sides:
            for suffix in ("", "-wal", "-shm"):
                target, source = (f"{each}/{side}.sqlite{suffix}" for each in (self.where, self.path / name / "orders"))
                shutil.rmtree(target, ignore_errors=True)
                (self.path / target).unlink(missing_ok=True)
                if (self.path / source).exists():
                    shutil.copy(source, target)
        if fence:
            shutil.copy(self.path / name / self.fence.name, self.fence)


class Schema:
    """The same in PostgreSQL; a state is the rows of all tables."""

    def __init__(self, path, url):
        self.path, self.where, self.schema = path, url, url.partition("#")[2]
        self.fence = path / "orders.fence"
        self.connection = psycopg.connect(url.partition("#")[0], autocommit=True)
        self.connection.execute(f"set search_path to {self.schema}; set client_min_messages = error")
        self.connection.execute("set synchronous_commit = off")
        self.taken = {}

    def run(self, side, sql, *parameters):
        cursor = self.connection.execute(sql.replace("?", "%s"), parameters)
        return cursor.fetchall() if cursor.description else []

    def take(self, name):
        self.taken[name] = rows_of(self)
        (self.path / name).mkdir()
        shutil.copy(self.fence, self.path / name)

    def put(self, name, sides=SIDES, *, fence=True):
        with self.connection.transaction():
            for table, rows in self.taken[name].items():
                if SIDE[table] in sides:
                    refill(self, table, rows)
        if fence:
            shutil.copy(self.path / name / self.fence.name, self.fence)

    def make_again(self):
        """Without what was done to the schema."""
        self.connection.execute(f"drop publication if exists spies; drop schema {self.schema} cascade")
        PostgresStore(self.where, create=True).close()


def rows_of(place):
    return {
        table: place.run(SIDE[table], f"select {', '.join(columns)} from {table} order by {columns[0]}, {columns[1]}")
        for table, columns in COLUMNS.items()
    }


def add(place, table, *rows):
    holes = ", ".join("?" * len(COLUMNS[table]))
    for row in rows:
        place.run(SIDE[table], f"insert into {table}({', '.join(COLUMNS[table])}) values ({holes})", *row)


def refill(place, table, rows):
    place.run(SIDE[table], f"delete from {table}")
    add(place, table, *rows)
