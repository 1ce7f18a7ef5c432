"""Streams that last: records a second into a store with full durability, opening again, deletions, and what they leave.

The peer is the database itself: the same records as rows of a table, a row for each (`executemany` in SQLite, COPY in
PostgreSQL), with the same durability and no statistics.

    python benchmarks/store.py            # 10 million records to open, 1 million to put in
    python benchmarks/store.py 1000000    # so many to open
    python benchmarks/store.py 1000000 postgresql://...   # also there
"""

from __future__ import annotations

import resource
import shutil
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import retroact as ra

SCHEMA = {"country": ra.Text(), "amount": ra.Number(0, 500, step=0.01), "age": ra.Integer(0, 120)}
STATISTICS = {"orders": ra.Count(), "revenue": ra.Sum("amount"), "countries": ra.Histogram("country")}
BATCH, ROUND = 20_000, 100_000


def batch(random, first, count=BATCH):
    columns = {
        "country": [f"c{k}" for k in random.integers(0, 30, count)],
        "amount": random.integers(0, 50_000, count) / 100,
        "age": random.integers(0, 120, count),
    }
    ids = [f"order-{k}" for k in range(first, first + count)]
    return columns, ids, [f"u{k}" for k in random.integers(0, 1_000_000, count)]


def opened(where, fence):
    return ra.Stream.open(
        where, SCHEMA, STATISTICS, epsilon=1.0, delta=1e-6, horizon=1000, key=ra.Key.for_testing(1), fence=fence
    )


def rate(count, seconds):
    return f"{count / seconds:12,.0f}/s"


def put_in(where, fence, records, ids):
    """Seconds for everything, and the stream."""
    random, spent = np.random.default_rng(1), 0.0
    stream = opened(where, fence)
    for first in range(0, records, ROUND):
        made = [batch(random, first + k * BATCH) for k in range(ROUND // BATCH)]
        start = time.perf_counter()
        for columns, names, subjects in made:
            stream.add(columns, id=names if ids else None, subject=subjects)
        stream.close_round()
        spent += time.perf_counter() - start
    return spent, stream


def rows_in_sqlite(folder, records):
    connection = sqlite3.connect(folder / "peer.sqlite", isolation_level=None)
    for pragma in ("journal_mode = wal", "synchronous = full", "secure_delete = on"):
        connection.execute(f"pragma {pragma}")
    connection.execute(
        "create table ledger(stamp, country, amount, age, subject, id, primary key(stamp, id)) without rowid"
    )
    random, spent = np.random.default_rng(1), 0.0
    for first in range(0, records, BATCH):
        columns, ids, subjects = batch(random, first)
        listed = [columns["country"], columns["amount"].tolist(), columns["age"].tolist(), subjects, ids]
        rows = zip([first // ROUND] * BATCH, *listed, strict=True)
        start = time.perf_counter()
        connection.execute("begin immediate")
        connection.executemany("insert into ledger values (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("commit")
        spent += time.perf_counter() - start
    return spent


def rows_in_postgres(url, records):
    import psycopg

    random, spent = np.random.default_rng(1), 0.0
    with psycopg.connect(url.partition("#")[0], autocommit=True) as connection:
        connection.execute("drop table if exists retroact_peer")
        connection.execute(
            "create table retroact_peer(stamp int, country text, amount float, age int, subject text, id text, "
            "primary key(stamp, id))"
        )
        for first in range(0, records, BATCH):
            columns, ids, subjects = batch(random, first)
            listed = [columns["country"], columns["amount"].tolist(), columns["age"].tolist(), subjects, ids]
            start = time.perf_counter()
            with connection.transaction(), connection.cursor().copy("copy retroact_peer from stdin") as copy:
                for row in zip([first // ROUND] * BATCH, *listed, strict=True):
                    copy.write_row(row)
            spent += time.perf_counter() - start
        connection.execute("drop table retroact_peer")
    return spent


def deletions(stream, count=1000):
    random = np.random.default_rng(2)
    lines = []
    for many in (1, count):
        gone = [f"order-{k}" for k in random.integers(0, stream.records, many)]
        start = time.perf_counter()
        stream.delete(id=gone)
        stream.close_round()
        lines.append(f"{many:,} scattered deletions and a release: {1000 * (time.perf_counter() - start):,.0f} ms")
    start = time.perf_counter()
    stream.erase(subject="u17", request="r")
    stream.close_round()
    lines.append(f"an erasure, purged: {1000 * (time.perf_counter() - start):,.0f} ms")
    return lines


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    records = min(many, 1_000_000)
    folder = Path(tempfile.mkdtemp(prefix="retroact-store-", dir="."))
    try:
        peer = rows_in_sqlite(folder, records)
        print(f"SQLite alone, a row a record            {rate(records, peer)}")
        for name, ids in (("without ids", False), ("with ids", True)):
            spent, stream = put_in(folder / name.replace(" ", "-"), folder / f"{name}.fence", records, ids)
            ratio = peer / spent
            print(f"a stream on SQLite, {name:12}, 3 stat. {rate(records, spent)}   {ratio:.2f} x SQLite alone")
            stream.close()
        if len(sys.argv) > 2:
            peer = rows_in_postgres(sys.argv[2], records)
            print(f"PostgreSQL alone, COPY                  {rate(records, peer)}")
            spent, stream = put_in(f"{sys.argv[2]}#benchmark", folder / "pg.fence", records, True)
            print(f"a stream on PostgreSQL, with ids        {rate(records, spent)}   {peer / spent:.2f} x COPY alone")
            stream.close()
        spent, stream = put_in(folder / "large", folder / "large.fence", many, False)
        stream.close()
        size = (folder / "large" / "data.sqlite").stat().st_size
        print(f"{many:,} records: {rate(many, spent).strip()}, {size / 1e6:,.0f} MB, {size / many:.0f} bytes a record")
        del stream
        start = time.perf_counter()
        stream = opened(folder / "large", folder / "large.fence")
        spent = time.perf_counter() - start
        print(
            f"opening {stream.records:,} surviving records, totals rebuilt: {spent:.1f} s ({rate(many, spent).strip()})"
        )
        stream.close()
        stream = opened(folder / "with-ids", folder / "with ids.fence")
        print(f"of {stream.records:,} records:")
        for line in deletions(stream):
            print(f"  {line}")
        print(f"  residue: {stream.store.residue() or 'none'}")
        stream.close()
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
