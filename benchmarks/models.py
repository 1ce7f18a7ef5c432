"""How good models are that forget, and what forgetting costs: beside exact models, naive recomputation and refits.

Run with `python benchmarks/models.py`; `--keys 1 --rows 2000` is a quick run; `--only digits cancer` has no downloads.
Every figure is the mean over keys of one release in the worst round: the explained variance or the accuracy on rows
that were not used, or for PCA the variance along the components over that of the exact ones. *exact* is the same method
with almost no noise; *naive* the same method with fresh noise in each of the T releases. *descent* is
`oneshot.LinearModel` with its defaults. Bars are those that the defaults were built for; one with a
star is the distance from the exact value that was measured with other features or rows. *refit* and *SISA* (ten
shards) are linear models of scikit-learn, without any privacy. *diffprivlib* is one release alone with all of epsilon,
in an environment of its own.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import retroact as ra
from cluster_data import UnavailableError
from model_data import TABLES, Table
from model_figures import figures, quality
from model_peers import DELTA, descent, diffprivlib
from model_refits import refits, times

Make = Callable[[list[str], str], Any]


def ridge(columns: list[str], target: str) -> Any:
    return ra.Ridge(columns, target)


def classifier(columns: list[str], target: str) -> Any:
    return ra.Classifier(columns, target)


def curved(columns: list[str], target: str) -> Any:
    return ra.Classifier(columns, target, knots=4)


CASES: list[tuple[str, str, Make, float, int, float | None]] = [
    ("diamonds", "Ridge", ridge, 1, 63, 0.955),
    ("diamonds", "Ridge, knots=4", lambda c, t: ra.Ridge(c, t, knots=4), 1, 63, 0.963),
    ("flights", "Ridge", ridge, 1, 1023, 0.797),
    ("gss", "Ridge", ridge, 1, 63, 0.417),
    ("gss", "Ridge", ridge, 1, 1023, 0.405),
    ("gss 5k", "Ridge", ridge, 1, 63, None),
    ("gss, above", "Classifier", classifier, 1, 1023, 0.757),
    ("gss 5k, above", "Classifier", classifier, 1, 63, 0.745),
    ("flights 30k", "Classifier, knots=4", curved, 1, 63, 0.896),
    ("flights 30k", "CategoricalNB", lambda c, t: ra.CategoricalNB(c, t), 1, 63, None),
    ("shuttle 5k", "Classifier", classifier, 1, 1023, 0.990),
    ("MNIST 64", "Classifier", classifier, 1, 63, 0.892),
    ("MNIST 64", "Classifier", classifier, 4, 63, 0.911),
    ("MNIST 64, 10k", "Classifier", classifier, 1, 1023, 0.785),
    ("Fashion", "Classifier", classifier, 1, 63, 0.772),
    ("digits", "Classifier", classifier, 4, 15, 0.88),
    ("digits", "NearestMean", lambda c, t: ra.NearestMean(c, t), 1, 63, None),
    ("cancer", "Classifier", classifier, 4, 15, 0.89),
    ("MNIST pixels", "PCA, k=10", lambda c, t: ra.PCA(c, 10, most=1024), 1, 63, 0.95),
    ("computers", "Ridge", ridge, 1, 63, None),
    ("insurance", "Classifier", classifier, 1, 63, None),
]
# The exact values that bars were set beside, where features or the split into rows are not the same any more: a bar is
# a distance from exact then, and has a star.
ORIGINAL = {"gss": 0.434, "MNIST 64": 0.929, "MNIST 64, 10k": 0.931, "Fashion": 0.798}


def row(case: tuple[str, str, Make, float, int, float | None], data: Table, keys: int, *, peers: bool) -> str:
    name, title, make, epsilon, releases, bar = case
    own, naive, exact = figures(data, make(data.inputs, data.target), epsilon, releases, keys)
    shown = f"{name:15}{title:20}{epsilon:>3g}{releases:>6,}{own:>9.3f}{naive:>8.3f}{exact:>8.3f}"
    if name in ORIGINAL and bar is not None and abs(exact - ORIGINAL[name]) > 0.003:
        bar += exact - ORIGINAL[name]
        shown += f"{bar:>7.3f}*"
    else:
        shown += f"{bar:>7.3f} " if bar is not None else f"{'':8}"
    if title.startswith("PCA"):
        return shown
    refit, sisa = refits(data)
    shown += f"{refit:>8.3f}{sisa:>8.3f}"
    if not peers:
        return shown
    short = releases < 100 and len(data.train[data.target]) < 100_000
    shown += f"{descent(data, epsilon, releases, 1, quality):>9.3f}" if short else f"{'':9}"
    return f"{shown}  {diffprivlib(data, epsilon, min(keys, 3))}"


def forgetting(width: int, count: int) -> None:
    """Seconds of processor time to forget records and publish, beside refits."""
    random = np.random.default_rng(1)
    X = random.normal(0, 1, (count, width)) / np.sqrt(width)
    y = (X @ random.normal(0, 1, width) * 3).clip(-10, 10)
    schema = {"x": ra.Vector(width, radius=2, step=2**-14, clip=True), "y": ra.Number(-10, 10)}
    stream = ra.Stream(
        schema, {"m": ra.Ridge("x", "y")}, epsilon=1.0, delta=DELTA, horizon=63, key=ra.Key.for_testing(1)
    )
    stream.add({"x": X, "y": y}, id=range(count))
    stream.close_round()
    took = {}
    for gone in (range(1), range(1, 1001)):
        gc.collect()
        start = time.process_time()
        stream.delete(id=gone)
        stream.close_round()
        took[f"forget {len(gone):,} and publish"] = time.process_time() - start
    took |= dict(times(X, y))
    print(f"\n{count:,} records of {width} columns, processor time")
    for name, seconds in took.items():
        print(f"  {name:<42} {seconds:8.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=5)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--picture", type=Path, help="draw curves for one table, and nothing else")
    parser.add_argument("--only", nargs="+", choices=TABLES, metavar="TABLE", default=list(TABLES))
    parser.add_argument("--without-peers", action="store_true", help="neither gradient descent nor diffprivlib")
    parser.add_argument("--without-models", action="store_true", help="only the times of forgetting")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.picture is not None:
        from model_pictures import picture

        picture(TABLES["gss"](arguments.rows), TABLES["gss, above"](arguments.rows), arguments.keys, arguments.picture)
        return
    heads = {
        "": 35,
        "ε": 3,
        "T": 6,
        "forgets": 9,
        "naive": 8,
        "exact": 8,
        "bar": 7,
        "refit": 9,
        "SISA": 8,
        "descent": 9,
    }
    print("".join(f"{head:>{width}}" for head, width in heads.items()), " diffprivlib")
    for name, cases in itertools.groupby(CASES, key=lambda case: case[0]):
        if arguments.without_models or name not in arguments.only:
            continue
        try:
            data = TABLES[name](arguments.rows)
        except UnavailableError as error:
            print(f"{name}: skipped, {error}", flush=True)
            continue
        for case in cases:
            print(row(case, data, arguments.keys, peers=not arguments.without_peers), flush=True)
    forgetting(arguments.width, 100_000 if arguments.rows is None else arguments.rows)


if __name__ == "__main__":
    main()
