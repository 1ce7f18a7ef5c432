"""The pictures and the table of docs/noise.md: how the error of a count grows with the number of rounds.

python benchmarks/noise_pictures.py [FOLDER]

Everything is computed from the processes, but for two things that were found once and are written down here. The
parameters of buffered linear Toeplitz noise (BLT) were fitted by us to intervals with two ends, since published ones
are for one end; their errors are computed here, exactly. The factorisation norms of large horizons took minutes to
hours; those of small ones are computed here in the same way.
"""

import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

from noise import DELTA, EPSILON, lower_bound, mechanism
from retroact.noise import (
    Bridge,
    Crossfade,
    CrossfadeEpochs,
    CrossfadeWindow,
    Fresh,
    Lapped,
    Schauder,
    Tree,
    Unbounded,
    Windowed,
)
from retroact.paper import PaperTree
from retroact.privacy import largest_mu

LONGEST = 65_535
# The first and the last horizon of every height of a tree.
HORIZONS = [1, *(h for m in range(1, 16) for h in (1 << m, (2 << m) - 1))]
# 1 - a and 1 - b of R(z) = product of (1 - a z) / (1 - b z), by horizon.
BLT = {
    256: ([0.75311, 0.12592, 0.0096341], [0.35886, 0.036724, 0]),
    1024: ([0.81803, 0.22405, 0.030889, 0.0024012], [0.4776, 0.090552, 0.0090745, 0]),
    4096: ([0.84509, 0.28039, 0.057199, 0.0077224, 0.00059933], [0.53525, 0.13162, 0.022712, 0.0022653, 0]),
    16384: ([0.7648, 0.15375, 0.019703, 0.0020645, 0.00015141], [0.38338, 0.056169, 0.0066675, 0.00058174, 0]),
    65536: (
        [0.79563, 0.19394, 0.030283, 0.0043041, 0.0004987, 3.7626e-5],
        [0.43664, 0.078201, 0.011517, 0.0015466, 0.00014329, 0],
    ),
}
# Lower ends of the factorisation norm of all intervals.
NORMS = {256: 3.0907, 1024: 3.7024, 4096: 4.3186, 16384: 4.9288}
SMALL = [1, 2, 3, 7, 15, 31, 63]
# The deviation of Gaussian noise for a change of norm 1.
UNIT = 1 / float(largest_mu(Fraction(EPSILON), Fraction(DELTA)))
STYLES = {
    "fresh noise in each round": ("#999999", "-"),
    "paper's calibration (pure ε = 1)": ("#c2410c", "-"),
    "dyadic tree, exact": ("#e8a33d", "-"),
    "bridge tree": ("#2a9d8f", "-"),
    "lapped tree": ("#1d4e89", "-"),
    "best for one end, charged twice": ("#8a5fb0", ":"),
    "Schauder": ("#2a9d8f", "-"),
    "BLT (our fit)": ("#8a5fb0", "s"),
    "crossfade": ("#1d4e89", "-"),
    "lower bound": ("#111111", "--"),
}


def worst(process, delta, last):
    """The largest standard deviation over rounds 1 .. last."""
    made = mechanism(process, delta, 1)
    return math.sqrt(made.variances_of(0, np.array([process.outlook(2 if delta else 1, last).worst]))[0])


def grown(kinds, delta):
    """By the name of a process, its error at every horizon."""
    return {name: [(h, worst(kind(h), delta, h)) for h in HORIZONS] for name, kind in kinds.items()}


def powers(zeros, poles, horizon):
    """The coefficients of product of (1 - a z) / product of (1 - b z), by partial fractions, from 1 - a and 1 - b."""
    found = np.zeros(horizon)
    for i, own in enumerate(poles):
        others = [p for k, p in enumerate(poles) if k != i]
        # 1 - a/b = ((1 - a) - (1 - b)) / b loses no digits.
        factor = math.prod((z - own) / (1 - own) for z in zeros) / math.prod((p - own) / (1 - own) for p in others)
        found += factor * (1 - own) ** np.arange(horizon)
    found[0] = 1
    return found


def blt(horizon):
    zeros, poles = BLT[horizon]
    hidden, added = powers(zeros, poles, horizon), powers(poles[:-1], zeros, horizon)
    spectrum = np.fft.rfft(hidden, 2 * horizon)
    together = np.fft.irfft(abs(spectrum) ** 2)[: horizon + 1]  # hidden with itself, moved by d rounds
    squares = np.concatenate([[0], np.cumsum(hidden**2)])
    # From round 1 to round d: the first end moves all rounds, the second one the last T - d.
    sensitivity = (squares[-1] + squares[::-1] - 2 * together).max()
    return UNIT * math.sqrt(sensitivity * (added**2).sum())


def one_end(horizon):
    """Twice the error of the best lower triangular Toeplitz noise for changes that never end."""
    j = np.arange(1, horizon)
    return 2 * UNIT * float((np.concatenate([[1], np.cumprod((2 * j - 1) / (2 * j))]) ** 2).sum())


def norm(horizon, steps=200):
    """A lower end of the factorisation norm of all intervals: tr sqrt(sqrt(P) Q sqrt(P)) for any weights p of rounds
    and q of intervals, P = diag(p), Q = sum of q 1 1'. Each step makes the weights better."""
    ends = [(s, e) for s in range(horizon) for e in range(s + 1, horizon + 1)]
    patterns = np.array([[s <= t < e for s, e in ends] for t in range(horizon)], dtype=float)
    p, q = np.full(horizon, 1 / horizon), np.full(len(ends), 1 / len(ends))
    best = 0.0
    for _ in range(steps):
        half = np.sqrt(p)
        values, vectors = np.linalg.eigh(half[:, None] * ((patterns * q) @ patterns.T) * half)
        roots = np.sqrt(np.maximum(values, 0))
        best = max(best, float(roots.sum()))
        covariance = (vectors * roots) @ vectors.T / np.outer(half, half)
        p, q = p * np.diag(covariance), q * (patterns * np.linalg.solve(covariance, patterns)).sum(axis=0)
        p, q = p / p.sum(), q / q.sum()
    return best


def bounds():
    known = {h: norm(h) for h in SMALL} | NORMS
    return [(h, UNIT * value) for h, value in known.items()] + [(LONGEST, lower_bound(LONGEST, True))]


def axes(title, across, *, height=4.2):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "retroact", "font.size": 11, "axes.titlesize": 11})
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=(6.4, height), layout="constrained")
    ax.set(title=title, xlabel=across, ylabel="standard error in the worst round")
    ax.grid(color="0.9")
    ax.set_axisbelow(True)
    return figure, ax


def draw(ax, series):
    for name, points in series.items():
        colour, style = STYLES[name]
        marks = {"linestyle": "", "marker": style} if style == "s" else {"linestyle": style}
        ax.plot(*zip(*points, strict=True), color=colour, label=name, linewidth=1.8, markersize=5, **marks)


def rounds_axis(ax, last=LONGEST):
    ax.set_xscale("log", base=2)
    ticks = [t for t in (1, 16, 256, 4096, LONGEST + 1) if t <= 2 * last]
    ax.set_xticks(ticks, [f"{t:,}" for t in ticks])


def finished(figure, ax, place="upper left"):
    ax.legend(loc=place, frameon=False, fontsize=10)
    return figure


def growth(series):
    figure, ax = axes("A count at ε = 1, δ = 10⁻⁶", "rounds (the horizon)")
    draw(ax, series)
    rounds_axis(ax)
    ax.set_yscale("log")
    ax.set_yticks([5, 10, 25, 50, 100, 200, 500, 1000], ["5", "10", "25", "50", "100", "200", "500", "1,000"])
    ax.minorticks_off()
    return finished(figure, ax)


def limit(series):
    figure, ax = axes("The same, near the lower bound", "rounds (the horizon)")
    chosen = ["best for one end, charged twice", "Schauder", "crossfade", "BLT (our fit)", "lower bound"]
    draw(ax, {name: series[name] for name in chosen})
    (extrapolated,) = series["lower bound"][-1:]
    ax.plot(*extrapolated, "o", mfc="white", color="#111111", markersize=6, label="its end: extrapolated")
    rounds_axis(ax)
    ax.set_ylim(0, 42)
    return finished(figure, ax)


def pure(series):
    figure, ax = axes("A count at ε = 1, δ = 0", "rounds (the horizon)")
    draw(ax, series)
    rounds_axis(ax)
    ax.set_ylim(0, 200)
    return finished(figure, ax)


def by_round(horizon=1024):
    figure, ax = axes("Round by round: a horizon of 1,024, and of 1,023", "round", height=3.6)
    rounds = np.arange(1, horizon + 1)
    cases = [
        ("Schauder, 1,024", Schauder(horizon), "#2a9d8f", "-"),
        ("crossfade, 1,024", Crossfade(horizon), "#1d4e89", "-"),
    ]
    cases += [("crossfade, 1,023", Crossfade(horizon - 1), "#1d4e89", ":")]
    for name, process, colour, style in cases:
        own = rounds[: process.horizon]
        errors = np.sqrt(mechanism(process, DELTA, 1).variances_of(0, own))
        ax.plot(own, errors, color=colour, linestyle=style, label=name, linewidth=0.8 if "Sch" in name else 1.8)
        print(f"{name}: first {errors[0]:.1f}, last {errors[-1]:.1f}, worst {errors.max():.1f}")
    ax.plot(horizon, mechanism(cases[0][1], DELTA, 1).deviation_of(0, horizon), "o", color="#2a9d8f", clip_on=False)
    ax.set(ylabel="standard error", ylim=(0, 33), xlim=(0, horizon))
    ax.legend(loc="upper center", frameon=False, fontsize=10, ncols=3, columnspacing=1, handlelength=1.5)
    return figure


def windows():
    figure, ax = axes("Windows: a count over the last W rounds", "W")
    widths = [1, *(w for m in range(1, 10) for w in (1 << m, (1 << m) + 1)), 1024]
    cases = [("fresh noise in each round", Fresh), ("Schauder", Windowed), ("crossfade", CrossfadeWindow)]
    series = {name: [(w, worst(kind(w), DELTA, LONGEST)) for w in widths] for name, kind in cases}
    draw(ax, series)
    whole = worst(Crossfade(LONGEST), DELTA, LONGEST)
    ax.plot([1, 1024], [whole, whole], ":", color="#1d4e89", label="no window: crossfade over 65,535 rounds")
    ax.set_xscale("log", base=2)
    ax.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1,024"])
    ax.set_ylim(0, 48)
    for width in (16, 64, 256, 1024):
        print(f"window {width:,}: " + ", ".join(f"{name} {dict(found)[width]:.1f}" for name, found in series.items()))
    return finished(figure, ax)


def unbounded():
    figure, ax = axes("No horizon, guess 1,023: the worst error so far", "round")
    rounds = np.arange(1, LONGEST + 1)
    shown = np.unique(np.geomspace(1, LONGEST, 400).astype(int))
    for name, process in {"Schauder": Unbounded(1023), "crossfade": CrossfadeEpochs(1023)}.items():
        made = mechanism(process, DELTA, 1)
        parts = [made.variances_of(0, part) for part in np.array_split(rounds, 64)]
        errors = np.sqrt(np.maximum.accumulate(np.concatenate(parts)))
        ax.plot(shown, errors[shown - 1], color=STYLES[name][0], label=f"{name}, in epochs", linewidth=1.8)
        ends = ", ".join(f"{errors[round - 1]:.1f} at {round:,}" for round in (1023, 1024, 16_383, LONGEST))
        print(f"no horizon, {name}: {ends}")
    whole = worst(Crossfade(LONGEST), DELTA, LONGEST)
    ax.plot([1, LONGEST], [whole, whole], ":", color="#1d4e89", label="crossfade that knows 65,535")
    rounds_axis(ax)
    ax.set_ylim(0, 62)
    return finished(figure, ax)


def table(series):
    columns = [15, 255, 1023, 1024, 16_383, LONGEST]
    print("| noise | " + " | ".join(f"{h:,}" for h in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name, points in series.items():
        # What is known at powers of two alone stands in the column of one round less too.
        near = {h - 1: value for h, value in points if h in BLT} | dict(points)
        cells = (f"{near[h]:,.1f}" if h in near else "–" for h in columns)
        print(f"| {name} | " + " | ".join(cells) + " |")


def main():
    kinds = {
        "fresh noise in each round": Fresh,
        "dyadic tree, exact": Tree,
        "Schauder": Schauder,
        "crossfade": Crossfade,
    }
    gaussian, paper = grown(kinds, DELTA), grown({"paper's calibration (pure ε = 1)": PaperTree}, 0.0)
    others = {
        "best for one end, charged twice": [(h, one_end(h)) for h in HORIZONS],
        "BLT (our fit)": [(h, blt(h)) for h in BLT],
        "lower bound": bounds(),
    }
    found = {name: (gaussian | paper | others)[name] for name in STYLES if name in gaussian | paper | others}
    without = grown({"dyadic tree, exact": Tree, "bridge tree": Bridge, "lapped tree": Lapped}, 0.0)
    table(found)
    table(paper | without)
    shown = {name: points for name, points in found.items() if name != "best for one end, charged twice"}
    figures = {"growth": growth(shown), "limit": limit(found), "pure": pure(paper | without)}
    figures |= {"rounds": by_round(), "windows": windows(), "unbounded": unbounded()}
    for name, figure in figures.items():
        if len(sys.argv) > 1:
            figure.savefig(Path(sys.argv[1]) / f"noise-{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
