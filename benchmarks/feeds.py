"""How fast changes go from a file into a stream, beside pyarrow that only reads and groups the same file.

Run with `python benchmarks/feeds.py`; `--rows 200000 --lines 20000` is a quick run. The files have 90 % additions with
id and subject and 10 % deletions by id, in 100 rounds; one file has additions without ids. The peer knows neither
privacy nor deletions: it reads the columns that the statistics need, and counts, sums and groups them by round. Every
case has a process of its own, so that its memory is its own.

Where the system is slow to hand out memory (some sandboxes are), MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ set
to a few gigabytes make glibc keep what it has.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

import retroact as ra
from retroact import feeds
from retroact.stream.grid import Grid

ROUNDS = 100
CHUNK = 500_000
FIELDS = ("country", "amount", "age")
COUNTRIES = [f"country {k}" for k in range(30)]
START, HOUR = 1_767_225_600, 3600
COLUMNS = {role: {"column": role, "optional": True} for role in ("id", "subject", "op", "round")}
COLUMNS["time"] = {"column": "at", "optional": True}
Spent = tuple[float, float, float]
"""Seconds by the clock, seconds of processor time (which other programs do not count in), gigabytes at most."""


def changes(rows: int, *, ids: bool) -> Iterator[pa.Table]:
    """Additions, and deletions of what was added before (or, without ids, additions alone)."""
    random = np.random.default_rng(1)
    before = 0
    for start in range(0, rows, CHUNK):
        count = min(CHUNK, rows - start)
        deleted = random.random(count) < 0.1 if ids else np.zeros(count, bool)
        added = before + np.cumsum(~deleted)
        before = int(added[-1])
        round = (start + np.arange(count)) * ROUNDS // rows + 1
        countries = pa.array(random.integers(0, len(COUNTRIES), count), mask=deleted)
        columns = {
            "op": pa.DictionaryArray.from_arrays(deleted.astype(np.int8), ["add", "delete"]),
            "round": pa.array(round),
            "at": pa.array(START + (round - 1) * HOUR + random.integers(0, HOUR, count)),
            "amount": pa.array(np.round(random.random(count) * 500, 2), mask=deleted),
            "country": pa.DictionaryArray.from_arrays(countries, COUNTRIES),
            "age": pa.array(random.integers(0, 121, count), mask=deleted),
        }
        if ids:
            columns["id"] = named("order-", np.where(deleted, (added * random.random(count)).astype(np.int64), added))
            columns["subject"] = named("user-", random.integers(0, max(1, rows // 5), count))
        yield pa.table(columns)


def named(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pc.cast(pa.array(numbers), pa.string()), "")


def write(path: Path, rows: int, *, ids: bool) -> None:
    chunks = changes(rows, ids=ids)
    if path.suffix == ".parquet":
        first = next(chunks)
        with pq.ParquetWriter(path, first.schema) as writer:
            writer.write_table(first)
            for chunk in chunks:
                writer.write_table(chunk)
    elif path.suffix == ".csv":
        plain = pa.concat_tables(chunks).drop_columns(["at"])
        words = [
            pa.field(field.name, pa.string() if field.name in ("op", "country") else field.type)
            for field in plain.schema
        ]
        pyarrow.csv.write_csv(plain.cast(pa.schema(words)), path)
    else:
        events = (event(row) for chunk in chunks for row in chunk.to_pylist())
        path.write_bytes(b"\n".join(map(msgspec.json.encode, events)))


def event(row: dict) -> dict:
    shared = {"op": row["op"], "id": row["id"], "round": row["round"]}
    if row["op"] == "delete":
        return shared
    return {**shared, "subject": row["subject"], "record": {name: row[name] for name in FIELDS}}


def play(path: Path, *, grid: bool = False, lasting: bool = False) -> None:
    schema = {"country": ra.Text(), "amount": ra.Number(0, 500, step=0.01), "age": ra.Integer(0, 120)}
    statistics = {"orders": ra.Count(), "revenue": ra.Sum("amount"), "countries": ra.Histogram("country")}
    budget = {"epsilon": 1.0, "delta": 1e-6, "horizon": 128, "columns": COLUMNS}
    if lasting:
        stream = ra.Stream.open(path.with_suffix(""), schema, statistics, **budget)
    else:
        stream = ra.Stream(schema, statistics, **budget)
    if grid:
        feeds.play(stream, path, time="at", grid=Grid(START, "1h", START + ROUNDS * HOUR))
    else:
        feeds.play(stream, path, rounds=ROUNDS)
    assert stream.round == ROUNDS + 1


def peer(path: Path) -> None:
    table = pq.read_table(path, columns=["round", "amount", "country"])
    table.group_by(["round", "country"]).aggregate([("amount", "count")])
    table.group_by("round").aggregate([("amount", "count"), ("amount", "sum")])


def spent(work: Callable[[], None]) -> Spent:
    clock, processor = time.perf_counter(), time.process_time()
    work()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return time.perf_counter() - clock, time.process_time() - processor, memory


def alone(work: Callable[[], None]) -> Spent:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(spent, work).result()


def report(name: str, rows: int, mine: Spent, theirs: Spent | None = None) -> None:
    clock, processor, memory = mine
    ratio = "" if theirs is None else f"{clock / theirs[0]:6.0f} x {memory / theirs[2]:5.1f} x"
    print(f"{name:<36} {rows / clock:12,.0f} {rows / processor:12,.0f} {memory:8.2f} GB {ratio}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="changes in the Parquet files")
    parser.add_argument("--lines", type=int, default=1_000_000, help="changes in the JSON lines and CSV files")
    arguments = parser.parse_args()
    rows, lines = arguments.rows, arguments.lines
    print(f"{rows:,} changes ({lines:,} in lines) in {ROUNDS} rounds; a count, a sum and a histogram\n")
    print(f"{'changes a second':<36} {'clock':>12} {'processor':>12} {'memory':>11} {'beside pyarrow alone':>17}")
    with tempfile.TemporaryDirectory() as folder:
        for name, ids in (("additions without ids", False), ("changes with ids", True)):
            path = Path(folder) / f"{ids}.parquet"
            write(path, rows, ids=ids)
            theirs = alone(partial(peer, path))
            report(f"{name}, pyarrow alone", rows, theirs)
            report(f"{name}, Parquet", rows, alone(partial(play, path)), theirs)
            if not ids:
                report(f"{name}, into a store", rows, alone(partial(play, path, lasting=True)), theirs)
            else:
                report(f"{name}, Parquet by time", rows, alone(partial(play, path, grid=True)), theirs)
            path.unlink()
        for suffix in ("jsonl", "csv"):
            path = Path(folder) / f"changes.{suffix}"
            write(path, lines, ids=True)
            report(f"changes with ids, {suffix}", lines, alone(partial(play, path)))


if __name__ == "__main__":
    main()
