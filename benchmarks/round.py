"""One round of ten scalar statistics after a batch of 1,000 updates, and starting the program."""

import importlib.metadata as metadata
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import retroact as ra

SCHEMA = {"amount": ra.Number(0, 500, step=0.01), "age": ra.Integer(0, 120)}


def ten(delta, deletions):
    kinds = [ra.Count(), ra.Sum("amount"), ra.Sum("age"), ra.Count(where={"age": {"min": 65}}), ra.Mean("age")]
    statistics = {f"s{i}": kinds[i % 5] for i in range(10)}
    stream = ra.Stream(SCHEMA, statistics, epsilon=1.0, delta=delta, horizon=65_535, key=ra.Key.for_testing(1))
    rng = np.random.default_rng(0)
    add, close, before = [], [], {}
    for round in range(1, 301):
        columns = {"amount": rng.integers(0, 50_001, 1000) / 100, "age": rng.integers(0, 121, 1000)}
        start = time.perf_counter()
        if deletions and round > 1:
            stream.add({name: column[:800] for name, column in columns.items()})
            stream.delete({name: column[:200] for name, column in before.items()}, stamp=round - 1)
        else:
            stream.add(columns)
        middle = time.perf_counter()
        stream.close_round()
        add.append(middle - start)
        close.append(time.perf_counter() - middle)
        before = columns
    return np.median(add) * 1e3, np.median(close) * 1e3, np.percentile(close, 95) * 1e3


def startup(*command):
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best


def installed_megabytes():
    """The package and everything its core needs, on disk."""
    seen, todo = {}, ["retroact"]
    while todo:
        name = todo.pop()
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another system
        if distribution.name in seen:
            continue
        paths = [file.locate() for file in distribution.files or []]
        seen[distribution.name] = sum(path.stat().st_size for path in paths if path.is_file())
        todo += [re.match(r"[\w.-]+", line)[0] for line in distribution.requires or [] if "extra ==" not in line]
    package = Path(ra.__file__).parent
    return sum(seen.values()) / 1e6 + sum(f.stat().st_size for f in package.rglob("*.py")) / 1e6, sorted(seen)


def main():
    for delta in (1e-6, 0.0):
        for deletions in (False, True):
            add, close, high = ten(delta, deletions)
            what = "800 additions, 200 deletions" if deletions else "1,000 additions"
            print(
                f"ten statistics, delta = {delta:g}, {what}: "
                f"add {add:.2f} ms, close {close:.2f} ms (95 %: {high:.2f} ms)"
            )
    print(f"retroact --help: {startup('-m', 'retroact', '--help'):.2f} s (python alone: {startup('-c', 'pass'):.2f} s)")
    size, names = installed_megabytes()
    print(f"core install: {size:.0f} MB ({', '.join(names)})")


if __name__ == "__main__":
    main()
