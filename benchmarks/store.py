"""Streams that last: records a second into a store with full durability, opening again, deletions, and what they leave.

The peer is the database itself: the same records as rows of a table, a row for each (`executemany` in SQLite, COPY in
PostgreSQL), with the same durability and no statistics.

    python benchmarks/store.py            # 10 million records to open, 1 million to put in
    python benchmarks/store.py 1000000    # so many to open
    python benchmarks/store.py 1000000 postgresql://...   # also there
    python benchmarks/store.py --against ../other         # processor time, beside another checkout of the source

Against another checkout, runs of both alternate, and the medians of five are compared.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
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


def processor_times(url=None, records=6 * ROUND):
    """Seconds of this process for each part of the work."""
    folder, times, random = Path(tempfile.mkdtemp(prefix="retroact-store-", dir=".")), {}, np.random.default_rng(1)

    def timed(name, work, *arguments, **options):
        start = time.process_time()
        made = work(*arguments, **options)
        times[name] = times.get(name, 0.0) + time.process_time() - start
        return made

    try:
        where, fence = url or folder / "orders", folder / "the.fence"
        stream = opened(where, fence)
        for first in range(0, records, ROUND):
            for k in range(ROUND // BATCH):
                columns, ids, subjects = batch(random, first + k * BATCH)
                timed("batches of 20,000 in", stream.add, columns, id=ids, subject=subjects)
            timed("rounds of 100,000 closed", stream.close_round)
        columns, ids, subjects = batch(random, records, 1000)
        each = [dict(zip(columns, row, strict=True)) for row in zip(*map(list, columns.values()), strict=True)]
        for record, id, subject in zip(each, ids, subjects, strict=True):
            timed("1,000 records in, one by one", stream.add, record, id=id, subject=subject)
        timed("a round of 1,000 closed", stream.close_round)
        stream.delete(id=[f"order-{k}" for k in random.integers(0, records, 1000)])
        timed("1,000 scattered deletions closed", stream.close_round)
        for _ in range(100):
            timed("100 empty rounds closed", stream.close_round)
        stream.erase(subject="u17", request="r")
        timed("an erasure closed and purged", stream.close_round)
        stream.close()
        timed("opened again", opened, where, fence).close()
    finally:
        shutil.rmtree(folder)
    return times


def against(other, url=None, runs=5):
    """This checkout and another one, in turns, each in a process of its own."""
    found = {}
    for run in range(runs):
        for source in (Path(other), Path(__file__).parent.parent)[:: 1 if run % 2 else -1]:
            environment = {**os.environ, "PYTHONPATH": str(source.resolve() / "src")}
            place = [] if url is None else [f"{url}#benchmark_{os.urandom(4).hex()}"]
            command = [sys.executable, __file__, "--measure", *place]
            done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            for name, spent in json.loads(done.stdout).items():
                found.setdefault(name, {}).setdefault(source, []).append(spent)
    print(f"processor time, medians of {runs}; before, now, and now as a part of before")
    for name, times in found.items():
        before, now = (statistics.median(times[source]) for source in (Path(other), Path(__file__).parent.parent))
        print(f"{name:34} {before:8.3f} s {now:8.3f} s {now / before:8.3f}")


def main() -> None:
    if sys.argv[1:2] == ["--against"]:
        against(*sys.argv[2:4])
        return
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(processor_times(*sys.argv[2:3])))
        return
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
