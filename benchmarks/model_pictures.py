"""Curves for the page on models: accuracy over the number of releases and over epsilon, for a number and for classes.

`python benchmarks/models.py --picture docs/pictures/models.svg`
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import retroact as ra
from cluster_data import UnavailableError
from model_data import Table
from model_figures import figures, quality
from model_peers import CLASSIFIERS, REGRESSIONS, descent, diffprivlib_figures

Point = tuple[float, int]
"""Epsilon, and how many releases."""
RELEASES: list[Point] = [(1.0, count) for count in (1, 3, 7, 15, 31, 63, 127, 255, 511, 1023)]
EPSILONS: list[Point] = [(epsilon, 63) for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)]
# Gradient descent in each of more releases is far below all others.
MOST_STEPS = 100


def picture(numbers: Table, classes: Table, keys: int, out: Path) -> None:
    import matplotlib

    matplotlib.use("agg" if out.suffix == ".png" else "svg")
    matplotlib.rcParams.update({"svg.hashsalt": "retroact", "font.size": 10})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(9, 7.5), sharey="row", layout="constrained")
    rows = [
        ("explained variance of log income", (0.0, 0.5), numbers, ra.Ridge, REGRESSIONS),
        ("accuracy: income above 20,000", (0.68, 0.78), classes, ra.Classifier, CLASSIFIERS[:1]),
    ]
    for beside, (label, reach, data, make, names) in zip(axes, rows, strict=True):
        alone = _Alone(data, keys, names[0])
        for ax, under, points in zip(beside, ("releases, ε = 1", "ε, 63 releases"), (RELEASES, EPSILONS), strict=True):
            ax.set(xscale="log", xlabel=under, ylim=reach)
            _draw(ax, data, make(data.inputs, data.target), points, keys, alone)
        beside[0].set(ylabel=label)
        beside[0].legend(loc="lower left", frameon=False, fontsize=9)
    figure.savefig(out, metadata=None if out.suffix == ".png" else {"Date": None})


class _Alone:
    """One release of diffprivlib with all of epsilon; not a number where it is not there."""

    def __init__(self, data: Table, keys: int, name: str) -> None:
        self._data, self._keys, self._name = data, keys, name
        self.known: dict[float, float] = {}

    def __call__(self, epsilon: float) -> float:
        if epsilon not in self.known:
            try:
                found = diffprivlib_figures(self._data, epsilon, self._keys, (self._name,))[self._name]
            except UnavailableError as error:
                print(f"diffprivlib is absent: {error}")
                found = float("nan")
            self.known[epsilon] = found
        return self.known[epsilon]


def _draw(
    ax: Any, data: Table, statistic: Any, points: list[Point], keys: int, alone: Callable[[float], float]
) -> None:
    over_epsilon = len({epsilon for epsilon, _ in points}) > 1
    x = [epsilon if over_epsilon else count for epsilon, count in points]
    lines = np.array([figures(data, statistic, epsilon, count, keys) for epsilon, count in points])
    steps = [descent(data, *point, keys, quality) for point in points if point[1] < MOST_STEPS]
    once = [alone(epsilon) for epsilon, count in points if over_epsilon or count == 1]
    name = type(statistic).__name__
    ax.plot(x, lines[:, 2], color="0.5", linestyle="--", label="the same without noise")
    ax.plot(x, lines[:, 0], color="C0", marker="o", label=f"{name}, which forgets")
    ax.plot(x[: len(steps)], steps, color="C2", marker="^", label="gradient descent in each release")
    ax.plot(x, lines[:, 1], color="C3", marker="s", label="a new private model each time")
    below = " (below 0)" if max(once) < 0 else ""
    ax.plot(x[: len(once)], once, color="C1", marker="D", label=f"diffprivlib, one release alone{below}")
    ax.minorticks_off()
    ax.set_xticks(x[:: 1 if len(x) < 8 else 3], [f"{value:g}" for value in x[:: 1 if len(x) < 8 else 3]])
    for row in zip(x, lines.round(4).tolist(), strict=True):
        print(name, *row, flush=True)
    print(name, "descent", np.round(steps, 4).tolist(), "diffprivlib", np.round(once, 4).tolist(), flush=True)
