"""What models are compared with: private gradient descent in each release, and one model of diffprivlib."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import retroact as ra
from cluster_data import UnavailableError
from cluster_peers import there
from model_data import Table
from retroact.oneshot import LinearModel

DELTA = 1e-6
# So many seconds of processor time for one model.
PATIENCE = 60
REGRESSIONS, CLASSIFIERS = ("LinearRegression",), ("LogisticRegression", "GaussianNB", "RandomForestClassifier")
SHORT = {"LinearRegression": "", "LogisticRegression": "LR ", "GaussianNB": "NB ", "RandomForestClassifier": "RF "}
_PEERS = """
import signal, sys, warnings
import numpy as np
from diffprivlib import models

warnings.simplefilter("ignore")
folder, epsilon, norm, low, high, patience, keys, *names = sys.argv[1:]
X, y, others, wanted = (np.load(f"{folder}/{name}.npy") for name in ("X", "y", "others", "wanted"))
given, bounds = {"epsilon": float(epsilon)}, (-np.ones(X.shape[1]), np.ones(X.shape[1]))
options = {
    "LinearRegression": {"bounds_X": bounds, "bounds_y": (float(low), float(high))},
    "LogisticRegression": {"data_norm": float(norm), "max_iter": 500},
    "GaussianNB": {"bounds": bounds},
    "RandomForestClassifier": {"bounds": bounds, "classes": np.unique(y)},
}

def late(*_):
    raise TimeoutError

signal.signal(signal.SIGVTALRM, late)
found = []
for name in names:
    mine = []
    for key in range(int(keys)):
        signal.setitimer(signal.ITIMER_VIRTUAL, float(patience))
        try:
            model = getattr(models, name)(**given, **options[name], random_state=key).fit(X, y)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            said = model.predict(others)
            if name == "LinearRegression":
                said = np.clip(said, float(low), float(high))
                mine.append(1 - np.mean((said - wanted) ** 2) / np.var(wanted))
            else:
                mine.append(np.mean(said == wanted))
        except TimeoutError:
            mine.append(np.nan)
            break
    found.append(np.mean(mine))
np.save(folder + "/found.npy", np.array(found))
"""


def descent(data: Table, epsilon: float, releases: int, keys: int, quality: Any) -> float:
    """Gradient descent with the defaults of `oneshot.LinearModel`, in the first of so many releases."""
    loss = "squared" if isinstance(data.schema[data.target], ra.Number) else "logistic"
    statistic, found = ra.WindowSample(LinearModel(data.inputs, data.target, loss=loss)), []
    for seed in range(1, keys + 1):
        stream = ra.Stream(data.schema, {"m": statistic}, epsilon=epsilon, delta=DELTA, horizon=releases,
                           key=ra.Key.for_testing(seed))  # fmt: skip
        stream.add(data.train)
        found.append(quality(stream.close_round()["m"].value, data.test, data.target))
    return statistics.mean(found)


def encoded(data: Table, part: dict[str, Any]) -> NDArray[np.float64]:
    """Each column within [-1, 1] by what is declared: one 0 or 1 for each but the first level of a category."""
    found = []
    for name in data.inputs:
        field, column = data.schema[name], np.asarray(part[name])
        if isinstance(field, ra.Category):
            found.append(column.astype(str)[:, None] == np.array([str(value) for value in field.values[1:]]))
        elif isinstance(field, ra.Vector):
            found.append(column / float(field.radius))
        else:
            low, high = float(field.lower * field.step), float(field.upper * field.step)
            found.append(((np.clip(column, low, high) - low) / (high - low) * 2 - 1)[:, None])
    return np.concatenate(found, axis=1).astype(np.float64)


def fitting(found: Any, wanted: Any) -> float:
    """The explained variance of numbers, or the part of classes that is right."""
    if found.dtype.kind == "f":
        return float(1 - ((found - wanted) ** 2).sum() / ((wanted - wanted.mean()) ** 2).sum())
    return float((found == wanted).mean())


@cache
def _missing(problem: str) -> None:
    print(f"diffprivlib is absent: {problem}")


def diffprivlib(data: Table, epsilon: float, keys: int) -> str:
    """The figures of its methods for one release alone, with pure epsilon; - where one took too long."""
    names = REGRESSIONS if isinstance(data.schema[data.target], ra.Number) else CLASSIFIERS
    try:
        found = diffprivlib_figures(data, epsilon, keys, names)
    except UnavailableError as error:
        _missing(str(error))
        return "absent"
    return "  ".join(SHORT[name] + ("-" if np.isnan(value) else f"{value:.3f}") for name, value in found.items())


def diffprivlib_figures(data: Table, epsilon: float, keys: int, names: Sequence[str]) -> dict[str, float]:
    """What its regression predicts is clipped at the bounds of the target."""
    field = data.schema[data.target]
    regression = isinstance(field, ra.Number)
    low, high = (float(field.lower * field.step), float(field.upper * field.step)) if regression else (0.0, 1.0)
    # Each column of the schema adds at most 1 to the square of a row's length.
    norm = len(data.inputs) ** 0.5
    wanted = {name: np.asarray(part[data.target]) for name, part in (("y", data.train), ("wanted", data.test))}
    arrays = {"X": encoded(data, data.train), "others": encoded(data, data.test), **wanted}
    found = there(_PEERS, "diffprivlib", arrays, epsilon, norm, low, high, PATIENCE, keys, *names)
    return dict(zip(names, found.tolist(), strict=True))
