"""Records with ids in a stream in memory: large rounds, many small rounds, erasures, and memory.

Run with `python benchmarks/ids.py`. Times are processor time, medians of three. A plain dict does the work of the large
round in the same run: it gets its strings and tuples ready made, and neither checks nor publishes anything.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import mean, median

import numpy as np
import pyarrow

import retroact as ra

SCHEMA = {"amount": ra.Number(0, 500, step="0.01"), "age": ra.Integer(0, 120), "items": ra.Integer(0, 1000)}
COLUMNS = {"id": "order", "subject": "customer"}
REPEATS = 3
A_SUBJECT = 10
"""Records of a subject."""


def stream(horizon: int = 1 << 16) -> ra.Stream:
    count = {"orders": ra.Count()}
    return ra.Stream(SCHEMA, count, epsilon=1.0, horizon=horizon, columns=COLUMNS, key=ra.Key.for_testing(1))


def names(numbers: np.ndarray) -> tuple[list[str], list[str]]:
    """Ids of twelve characters, and subjects."""
    ids = [f"ord-{k:08d}" for k in numbers.tolist()]
    return ids, [f"customer-{k // A_SUBJECT:06d}" for k in numbers.tolist()]


def fields(count: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    amounts = random.integers(0, 50_001, count) / 100
    return {"amount": amounts, "age": random.integers(0, 121, count), "items": random.integers(0, 1001, count)}


def as_table(numbers: np.ndarray, random: np.random.Generator) -> pyarrow.Table:
    ids, subjects = names(numbers)
    return pyarrow.table({"order": ids, "customer": subjects, **fields(len(numbers), random)})


def spent(work: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    start = time.process_time()
    work()
    took = time.process_time() - start
    gc.enable()
    return took


def filled(count: int) -> ra.Stream:
    orders = stream()
    orders.add(as_table(np.arange(count), np.random.default_rng(1)))
    orders.close_round()
    return orders


def one_round(orders: ra.Stream, data: object) -> float:
    def work() -> None:
        orders.add(data)
        orders.close_round()

    return spent(work)


def large_round(count: int) -> None:
    """Events on held ids, some of them several times."""
    random = np.random.default_rng(2)
    taken: dict[str, list[float]] = {"Arrow": [], "lists": [], "dict": []}
    orders, listed = filled(count), filled(count)
    for _ in range(REPEATS):
        numbers = random.integers(0, count, count)
        table = as_table(numbers, random)
        taken["Arrow"].append(one_round(orders, table))
        ids, subjects = names(numbers)
        columns = {name: table[name].to_numpy() for name in SCHEMA}
        taken["lists"].append(one_round(listed, {"order": ids, "customer": subjects, **columns}))
        held_ids, held_subjects = names(np.arange(count))
        held = dict(zip(held_ids, zip(held_subjects, range(count), strict=True), strict=True))
        records = list(zip(subjects, *(column.tolist() for column in columns.values()), strict=True))

        def plain(held: dict = held, ids: list = ids, records: list = records) -> None:
            for id, record in zip(ids, records, strict=True):
                held[id] = record

        taken["dict"].append(spent(plain))
    against = median(taken["dict"])
    print(f"a round of {count:,} events on {count:,} held ids, processor time")
    for way, times in taken.items():
        took = median(times)
        print(f"  {way:<6} {took:7.3f} s {count / took / 1e6:7.2f} M/s {against / took:6.2f} x the dict")


def small_rounds(count: int, rounds: int) -> float:
    """Rounds of 100 events: updates, new ids and deletions."""
    orders, random = filled(count), np.random.default_rng(3)
    times = []
    for round in range(rounds):
        old = random.integers(0, count, 60)
        new = np.arange(30) + count + 30 * round
        table = as_table(np.concatenate([old, new]), random)
        gone = [f"ord-{k:08d}" for k in random.integers(0, count, 10).tolist()]
        orders.add(table)
        orders.delete(id=gone)
        times.append(spent_quickly(orders.close_round))
    print(f"  {count:>9,} records {1e3 * mean(times):8.3f} ms mean {1e3 * max(times):8.2f} ms longest")
    return mean(times)


def spent_quickly(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def erasures(count: int, *, ids: bool) -> float:
    """One subject at a time, each of ten records, and a close."""
    orders, random = stream(), np.random.default_rng(4)
    table = as_table(np.arange(count), np.random.default_rng(1))
    orders.add(table if ids else table.drop_columns(["order"]))
    orders.close_round()
    times = []
    for k in random.choice(count // A_SUBJECT, 31, replace=False).tolist():

        def work(k: int = k) -> None:
            orders.erase(subject=f"customer-{k:06d}")
            assert orders.close_round().applied.removed == A_SUBJECT

        times.append(spent_quickly(work))
    kind = "with ids" if ids else "without "
    print(f"  {count:>9,} records {kind} {1e3 * median(times):8.3f} ms median, {1e3 * times[0]:.2f} ms the first")
    return median(times)


def memory(count: int) -> None:
    """Of a process that holds the records, less that of one that holds none; Arrow's own memory is given back."""
    sizes = [int(subprocess.check_output([sys.executable, __file__, "--hold", str(n)])) for n in (0, count)]
    print(f"memory: {(sizes[1] - sizes[0]) / count:.0f} bytes a record")


def hold(count: int) -> None:
    orders = stream()
    for start in range(0, count, 50_000):
        numbers = np.arange(start, min(count, start + 50_000))
        orders.add(as_table(numbers, np.random.default_rng(1)))
        orders.close_round()
    gc.collect()
    pyarrow.default_memory_pool().release_unused()
    import ctypes

    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        print(int(file.read().split()[1]) * 4096)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--only", choices=["large", "small", "erase", "memory"])
    parser.add_argument("--hold", type=int)
    arguments = parser.parse_args()
    count, only = arguments.count, arguments.only
    if arguments.hold is not None:
        hold(arguments.hold)
        return
    if only in (None, "large"):
        large_round(count)
    if only in (None, "small"):
        print(f"{arguments.rounds:,} rounds of 100 events, processor time of a close")
        few, many = (small_rounds(size, arguments.rounds) for size in (10_000, count))
        print(f"  ratio {many / few:.2f}")
    if only in (None, "erase"):
        print("an erasure of ten records and the close, processor time")
        for ids in (True, False):
            few, many = (erasures(size, ids=ids) for size in (count // 10, count))
            print(f"  ratio {many / few:.2f}")
    if only in (None, "memory"):
        memory(count)


if __name__ == "__main__":
    main()
