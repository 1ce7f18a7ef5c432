"""Records with ids into a store, beside SQLite's own `executemany`; and what an erasure there costs.

python benchmarks/ingest.py [--count 1000000] [--only ingest | erase]

A stream takes batches of 20,000 and closes a round after five: from `add` to the end of `close_round`, with fsync,
keyed hashes, and a count. The peer inserts the same records, as tuples made before, into a table with the id as primary
key, with as many commits. Ids come in order, the best that can happen to its index, or not. Medians of three, in turns.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow

import retroact as ra
from ids import A_SUBJECT, COLUMNS, REPEATS, SCHEMA, as_table

BATCH, ROUND = 20_000, 100_000
Times = tuple[float, float]


def batches(count: int, ordered: bool) -> list[pyarrow.Table]:
    random, made = np.random.default_rng(1), []
    for first in range(0, count, BATCH):
        table = as_table(np.arange(first, min(count, first + BATCH)), random)
        if not ordered:
            ids = [hashlib.md5(id.encode()).hexdigest()[:12] for id in table["order"].to_pylist()]
            table = table.set_column(0, "order", pyarrow.array(ids))
        made.append(table)
    return made


def timed(work: Callable[[], object]) -> Times:
    elapsed, spent = time.perf_counter(), time.process_time()
    work()
    return time.process_time() - spent, time.perf_counter() - elapsed


def opened(folder: Path) -> ra.Stream:
    spec: dict[str, Any] = {"epsilon": 1.0, "horizon": 1 << 16, "columns": COLUMNS, "key": ra.Key.for_testing(1)}
    return ra.Stream.open(folder / "orders", SCHEMA, {"orders": ra.Count()}, fence=folder / "fence", **spec)


def stream(tables: list[Any], folder: Path) -> Times:
    with opened(folder) as orders:

        def work() -> None:
            for number, table in enumerate(tables, 1):
                orders.add(table)
                if number % (ROUND // BATCH) == 0 or number == len(tables):
                    orders.close_round()

        found = timed(work)
    shutil.rmtree(folder / "orders")
    (folder / "fence").unlink()
    return found


def peer(batches: list[list[tuple[Any, ...]]], folder: Path) -> Times:
    connection = sqlite3.connect(folder / "peer.sqlite", isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table orders(id text primary key, subject text, amount real, age int, items int)")

    def commit(rows: list[tuple[Any, ...]]) -> None:
        connection.execute("begin immediate")
        connection.executemany("insert into orders values (?, ?, ?, ?, ?)", rows)
        connection.execute("commit")

    found = timed(lambda: [commit(rows) for rows in batches])
    connection.close()
    for file in folder.glob("peer.sqlite*"):
        file.unlink()
    return found


def ingest(count: int, folder: Path) -> None:
    for kind, ordered in (("in order", True), ("in no order", False)):
        tables = batches(count, ordered)
        lists = [{name: table[name].to_pylist() for name in table.column_names} for table in tables]
        rows = [list(zip(*columns.values(), strict=True)) for columns in lists]
        ways: dict[str, Callable[[], Times]] = {
            "SQLite, tuples": lambda rows=rows: peer(rows, folder),
            "stream, Arrow": lambda tables=tables: stream(tables, folder),
            "stream, lists": lambda lists=lists: stream(lists, folder),
        }
        found: dict[str, list[Times]] = {name: [] for name in ways}
        for _ in range(REPEATS):
            for name, way in ways.items():
                found[name].append(way())
        print(f"{count:,} records with ids {kind}: processor time, elapsed time, and how many times as fast as SQLite")
        theirs = [median(times) for times in zip(*found["SQLite, tuples"], strict=True)]
        for name, times in found.items():
            spent, elapsed = (median(each) for each in zip(*times, strict=True))
            print(
                f"  {name:15} {spent:7.3f} s {elapsed:7.3f} s {theirs[0] / spent:7.2f} x {theirs[1] / elapsed:6.2f} x"
            )


def erase(count: int, folder: Path) -> None:
    print("an erasure of ten records and the close, processor time: erased bytes wiped, layout later; layout at once")
    wiped = {}
    for size in (count // 10, count):
        with opened(folder) as orders:
            for first in range(0, size, ROUND):
                orders.add(as_table(np.arange(first, min(size, first + ROUND)), np.random.default_rng(1)))
            orders.close_round()
            found = []
            for at_once in (0, 1 << 40):
                orders.compact(at_once=at_once)
                times = []
                for k in range(7):

                    def work(who: int = k + 10 * (at_once > 0)) -> None:
                        orders.erase(subject=f"customer-{who:06d}")
                        assert orders.close_round().applied.removed == A_SUBJECT

                    times.append(timed(work)[0])
                found.append(1e3 * median(times))
        wiped[size] = found[0]
        print(f"  {size:>10,} records {found[0]:8.1f} ms {found[1]:8.1f} ms")
        shutil.rmtree(folder / "orders")
        (folder / "fence").unlink()
    few, many = wiped.values()
    print(f"  growth {many / few:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["ingest", "erase"])
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="retroact-ingest-", dir="."))
    try:
        if arguments.only != "erase":
            ingest(arguments.count, folder)
        if arguments.only != "ingest":
            erase(arguments.count, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
