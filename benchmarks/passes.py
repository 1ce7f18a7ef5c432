"""A file of changes in one pass against round by round: processor time, reading included, and memory.

    python benchmarks/passes.py [CHANGES]     300,000 by default
    python benchmarks/passes.py write FILE    6,000,000 changes, for the figures of docs/performance.md
    python benchmarks/passes.py "one pass" FILE     seconds, gigabytes, hash; PYTHONPATH may name an earlier version

80 % of the changes are new ids, 10 % updates and 10 % deletions; 2 % are late; 40 erasures; 100 rounds; 8 statistics.
Every way runs in a process of its own. Then: 1,000 rounds of one row against one round of 1,000 rows, in one pass, with
the releases of the rounds and without them.
"""

import hashlib
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import retroact as ra
from retroact.feeds import play

ROUNDS, ERASURES = 100, 40
SCHEMA = {"country": ra.Text(), "amount": ra.Number(0, 500, step=0.01), "age": ra.Integer(0, 120)}
STATISTICS = {
    "orders": ra.Count(),
    "revenue": ra.Sum("amount"),
    "average": ra.Mean("amount"),
    "one": ra.Count(where={"country": "C001"}),
    "recent": ra.Sum("amount", window=7),
    "countries": ra.Histogram("country", sum="amount"),
    "age": ra.Quantiles("age", [0.25, 0.5, 0.75]),
    "amount": ra.Quantiles("amount", [0.5, 0.9]),
}
WAYS = ("round by round", "one pass")


def changes(count):
    random = np.random.default_rng(5)
    kind = random.choice(3, count, p=[0.8, 0.1, 0.1])
    born = np.cumsum(kind == 0)
    ids = np.where(kind == 0, born - 1, (random.random(count) * np.maximum(born, 1)).astype(np.int64))
    rounds = np.arange(count) * ROUNDS // count + 1
    stamps = np.where(random.random(count) < 0.02, np.maximum(1, rounds - random.integers(0, 30, count)), rounds)
    subjects = ids * 2654435761 % (count // 10)
    op = np.where(kind == 2, 1, 0)
    erased = np.sort(random.choice(np.arange(count // 5, count), ERASURES, replace=False))
    op[erased] = 2
    gone = op > 0
    country = random.zipf(1.3, count).clip(1, 200) - 1

    def named(letter, numbers, absent):
        return pa.array(
            [None if no else f"{letter}{n}" for n, no in zip(numbers.tolist(), absent.tolist(), strict=True)]
        )

    ops = pa.DictionaryArray.from_arrays(pa.array(op, pa.int8()), ["upsert", "delete", "erase"])
    words = pa.DictionaryArray.from_arrays(pa.array(country, pa.int32(), mask=gone), [f"C{k:03d}" for k in range(200)])
    return pa.table(
        {
            "round": rounds,
            "op": ops.cast(pa.string()),
            "id": named("o-", ids, op == 2),
            "subject": named("u", subjects, op == 1),
            "stamp": pa.array(stamps, mask=gone),
            "country": words.cast(pa.string()),
            "amount": pa.array(np.round(random.gamma(2.0, 40.0, count).clip(0, 500), 2), mask=gone),
            "age": pa.array(random.integers(0, 121, count), mask=gone),
        }
    )


def stream(horizon):
    roles = {role: role for role in ("id", "subject", "stamp", "round", "op")}
    options = {"epsilon": 1.0, "delta": 1e-6, "horizon": horizon, "columns": roles}
    return ra.Stream(SCHEMA, STATISTICS, **options, key=ra.Key.for_testing(1))


def played(source, rounds):
    into, published = stream(max(100, rounds)), hashlib.sha256()
    start = time.process_time()
    play(into, source, rounds=rounds, publish=lambda round: published.update(round.encode()))
    return time.process_time() - start, published.hexdigest()


def run(way, path):
    if way == "write":
        pq.write_table(changes(6_000_000), path, row_group_size=1 << 17)
        return
    if way == WAYS[0]:
        from retroact.stream.passes import Pass

        Pass.possible = staticmethod(lambda core: False)
    seconds, published = played(path, ROUNDS)
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, published)


def compare(count):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changes.parquet"
        pq.write_table(changes(count), path, row_group_size=1 << 17)
        found = {}
        for way in WAYS:
            program = [sys.executable, __file__, way, str(path)]
            seconds, memory, published = subprocess.run(
                program, capture_output=True, text=True, check=True
            ).stdout.split()
            found[way] = float(seconds), published
            print(f"{count:,} changes, {way:15}{float(seconds):8.2f} s{float(memory):7.2f} GB")
    (slow, one), (fast, other) = found.values()
    print(f"{'':24}{fast / slow:8.2f} of round by round, releases {'equal' if one == other else 'DIFFERENT'}")


def small_rounds():
    from retroact.stream import engine

    table = changes(1000).slice(0, 1000)
    many = table.set_column(0, "round", pa.array(np.arange(1, 1001)))
    many = many.set_column(4, "stamp", pa.nulls(1000, pa.int64()))
    one = many.set_column(0, "round", pa.array(np.ones(1000, np.int64)))
    for released in ("with", "without"):
        if released == "without":
            engine.Engine.releases = lambda self, round, totals: {}
        times = [min(played(source, rounds)[0] for _ in range(3)) for source, rounds in ((many, 1000), (one, 2))]
        words = f"1,000 rounds of one row, {released} releases"
        print(f"{words:44}{times[0]:8.3f} s; one round of 1,000 {times[1]:.3f} s; {times[0] / times[1]:.1f} times")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ra.HorizonWarning)
    if len(sys.argv) == 3:
        run(*sys.argv[1:])
    else:
        compare(int(sys.argv[1]) if len(sys.argv) > 1 else 300_000)
        small_rounds()
