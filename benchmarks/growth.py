"""How the work of a stream grows with its records: events with ids, small rounds, erasures, stores, and memory.

python benchmarks/growth.py [--sizes 10000 100000 1000000] [--picture FOLDER] [--results FILE]

Times are processor time, medians of three for what takes long, each size in a process of its own. Beside them stands
what a million insertions into a dict and one fsync take here. The picture has the exponents: the slopes of the lines in
logarithms. `--results` keeps what was measured, and draws it again with what is measured now.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean, median

import numpy as np
import pyarrow

import retroact as ra
from ids import A_SUBJECT, COLUMNS, SCHEMA, as_table, filled, spent

PART = 500_000
"""Records made at a time."""
ROUNDS, ERASURES = 1000, 11
GROUPS = {
    "whole rounds": ("n new records with ids, a round", "n events on n held ids, a round", "n records into a store",
                     "opening a store of n records"),
    "rounds and erasures beside n records": ("100 events, a round (mean)", "erasing ten records, in memory",
                                             "erasing ten records, in a store: wiped"),
}  # fmt: skip


def tables(count: int, random: np.random.Generator, shuffled: bool = False) -> Iterable[pyarrow.Table]:
    for start in range(0, count, PART):
        here = min(PART, count - start)
        numbers = random.integers(0, count, here) if shuffled else np.arange(start, start + here)
        yield as_table(numbers, random)


def fill(stream: ra.Stream, parts: Iterable[pyarrow.Table]) -> float:
    """Processor seconds of one round with these records, without making them."""
    took = 0.0
    for part in parts:
        took += spent(lambda part=part: stream.add(part))
    return took + spent(stream.close_round)


def in_memory(count: int, repeats: int) -> dict[str, float]:
    found: dict[str, list[float]] = {"new": [], "events": []}
    for _ in range(repeats):
        random, orders = np.random.default_rng(1), filled(0)
        found["new"].append(fill(orders, tables(count, random)))
        found["events"].append(fill(orders, tables(count, random, shuffled=True)))
    closes = small_rounds(orders, count, random)
    return {
        "n new records with ids, a round": median(found["new"]),
        "n events on n held ids, a round": median(found["events"]),
        "100 events, a round (mean)": mean(closes),
        "100 events, a round (longest)": max(closes),
        "erasing ten records, in memory": median(erasures(orders, count)),
    }


def small_rounds(orders: ra.Stream, count: int, random: np.random.Generator) -> list[float]:
    """Of updates, new records and deletions; with whatever the ledger merges and moves meanwhile."""
    closes = []
    for round in range(ROUNDS):
        some = np.concatenate([random.integers(0, count, 60), np.arange(30) + count + 30 * round])
        orders.add(as_table(some, random))
        orders.delete(id=[f"ord-{k:08d}" for k in random.integers(0, count, 10).tolist()])
        closes.append(spent_in(orders.close_round))
    return closes


def erasures(orders: ra.Stream, count: int) -> list[float]:
    """After a first one, which makes the index of subjects."""
    times = []
    for k in np.random.default_rng(4).choice(count // A_SUBJECT, ERASURES + 1, replace=False).tolist():

        def erase(k: int = k) -> None:
            orders.erase(subject=f"customer-{k:06d}")
            orders.close_round()

        times.append(spent_in(erase))
    return times[1:]


def spent_in(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def in_a_store(count: int, folder: Path) -> dict[str, float]:
    def opened() -> ra.Stream:
        spec = {"epsilon": 1.0, "horizon": 1 << 16, "columns": COLUMNS, "key": ra.Key.for_testing(1)}
        return ra.Stream.open(folder / "orders", SCHEMA, {"orders": ra.Count()}, fence=folder / "fence", **spec)

    with opened() as orders:
        took = fill(orders, tables(count, np.random.default_rng(1)))
        orders.compact(at_once=0)
        erased = median(erasures(orders, count))
        size = (folder / "orders" / "data.sqlite").stat().st_size / count
    gc.collect()
    start = time.process_time()
    opened().close()
    return {
        "n records into a store": took,
        "erasing ten records, in a store: wiped": erased,
        "opening a store of n records": time.process_time() - start,
        "bytes a record in a store": size,
    }


def memory(count: int) -> float:
    program = Path(__file__).with_name("ids.py")
    sizes = [int(subprocess.check_output([sys.executable, program, "--hold", str(n)])) for n in (0, count)]
    return (sizes[1] - sizes[0]) / count


def yardsticks(folder: Path) -> dict[str, float]:
    """What a machine needs for two things that everybody knows."""
    names = [f"ord-{k:08d}" for k in range(1_000_000)]

    def insert() -> None:
        held = {}
        for name in names:
            held[name] = name

    inserted = median([spent(insert) for _ in range(3)])
    waits = []
    with (folder / "one").open("wb") as file:
        for _ in range(21):
            file.write(bytes(4096))
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            waits.append(time.perf_counter() - start)
    block = np.ones(1 << 25, dtype=np.uint64)
    copied = min(spent_in(block.copy) for _ in range(5)) * (1 << 30) / block.nbytes
    return {
        "a million dict insertions": inserted,
        "one fsync (elapsed)": median(waits),
        "copying a gigabyte of memory": copied,
    }


def measured(count: int) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="retroact-growth-", dir="."))
    try:
        found = in_memory(count, 3 if count <= 1_000_000 else 1)
        held = {"bytes a record in memory": memory(count)} if count >= 1_000_000 else {}
        return {**found, **in_a_store(count, folder), **held, **yardsticks(folder)}
    finally:
        shutil.rmtree(folder)


def exponent(points: dict[int, float]) -> float:
    """The slope of a line through the logarithms."""
    if len(points) < 2:
        return math.nan
    return float(np.polyfit(np.log([*points]), np.log([*points.values()]), 1)[0])


def lines(found: dict[int, dict[str, float]]) -> dict[str, dict[int, float]]:
    names = dict.fromkeys(name for each in found.values() for name in each)
    return {name: {size: found[size][name] for size in sorted(found) if name in found[size]} for name in names}


def draw(found: dict[int, dict[str, float]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    series = lines(found)
    for panel, (title, names) in zip(panels, GROUPS.items(), strict=True):
        for name, marker in zip(names, "osD^", strict=False):
            points = series[name]
            label = f"{name}: exponent {exponent(points):.2f}"
            panel.loglog([*points], [1e3 * each for each in points.values()], marker=marker, label=label)
        panel.set(title=title, xlabel="records that survive (n)", ylabel="processor time, milliseconds")
        panel.grid(alpha=0.3)
        panel.set_ylim(top=panel.get_ylim()[1] * 10)  # room for the legend
        panel.legend(fontsize="small", loc="upper left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--measure", type=int)
    arguments = parser.parse_args()
    if arguments.measure is not None:
        print(json.dumps(measured(arguments.measure)))
        return
    kept = arguments.results
    found = (
        {} if kept is None or not kept.exists() else {int(n): each for n, each in json.loads(kept.read_text()).items()}
    )
    for size in arguments.sizes:
        found[size] = json.loads(subprocess.check_output([sys.executable, __file__, "--measure", str(size)]))
        if kept is not None:
            kept.write_text(json.dumps({str(n): found[n] for n in sorted(found)}, indent=1) + "\n")
    for name, points in lines(found).items():
        values = "".join(f"{1e3 * value if 'bytes' not in name else value:12,.2f}" for value in points.values())
        print(f"{name:42} {'bytes' if 'bytes' in name else 'ms':>5} {values}   exponent {exponent(points):5.2f}")
    if arguments.picture is not None:
        draw(found, arguments.picture / "growth.png")


if __name__ == "__main__":
    main()
