"""k-means and k-median of a stream: costs over those of Lloyd, with tight and loose hints, under drift; and times.

python benchmarks/clustering.py [--quick] [--seeds N] [costs] [noise] [hints] [medians] [drift] [times]

The protocol is in `cluster_protocol`, the data are in `cluster_data`, what they are compared with in `cluster_peers`.
A ratio is the cost of the released centres on the surviving points over that of the best of ten runs of Lloyd (three
beyond 100 columns) on the same points; means over seeds, each with points, deletions and a key of its own.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import retroact as ra
from cluster_data import SCALING, SETS, Points, UnavailableError, gmm, loose
from cluster_peers import WIDE, cost, cost_median, diffprivlib_kmeans, lloyd, lloyd_median
from cluster_protocol import (
    CLUSTERS,
    DELTA,
    EPSILON,
    RELEASES,
    SURVIVORS,
    UPDATES,
    Direct,
    Drift,
    History,
    best_of,
    ends,
    histories,
    mean,
    naive_budget,
    over,
    points_of,
    size_of,
    statistic,
    streamed,
)

TARGETS = {"gmm2": 1.05, "cities": 1.12, "flights": 1.30, "gmm10": 1.20, "gmm50": 1.40, "mnist": 1.28}
HELD_OUT = ("shuttle", "skewed10")
SEEDS, WIDE_SEEDS, FEWER, QUICK = 10, 3, 5, 2
HINTED = ("gmm2", "cities", "flights", "gmm10", "gmm50")
PURE = ("gmm2", "gmm10", "flights")
QUANTILES = (0.99, 0.95)
# Of the budget: for the radius, and for the centres.
FINDING = {"epsilon": EPSILON / 4, "delta": DELTA / 4}
LEFT = {"epsilon": EPSILON * 3 / 4, "delta": DELTA * 3 / 4}

ABOUT_COSTS = f"""
Costs over Lloyd's: k = {CLUSTERS}, {UPDATES:,} updates, {RELEASES} releases, ({EPSILON:g}, {DELTA:g})-private together.
typical, worst: the same points under the noise of that release, as if they had all come before it.
naive x64: static in each of 64 releases, afresh, mu / 8 each. Targets are for the last release.
dpl: diffprivlib, epsilon = 1, and 1/64 for naive: pure, but it spends more than that above 5 columns; not for mnist.
skewed10: clusters of sizes 1, 1/2, 1/3, ..., another mixture for each seed. Below 1: ten starts of Lloyd missed it."""

ABOUT_HINTS = f"""
Hints. Set from the data in the table of costs: expected = {SURVIVORS:,}, and the radius, which is the largest norm.
Found privately: a quantile of Distances, with a quarter of the budget over 64 releases, at the last one, is the radius,
with clip=True, and the rest of the budget is for the centres. Radius: found on average (at most) and the true quantile,
over the largest norm. Notes: how many seeds have any, and those of the first that does."""

# Costs ---------------------------------------------------------------------------------------------------------------

COLUMNS = ("last", "typical", "worst", "every round", "static", "naive x64", "dpl static", "dpl naive", "1 mean")


def measured(seed: int, history: History, peers: bool, run: bool) -> tuple[dict[str, float], tuple[float, float]]:
    """Ratios by column; the estimated cost over the true one, and how many of its standard errors it is off."""
    points = history.survivors
    best = lloyd(points, CLUSTERS)[1]
    ours, every = Direct(points, statistic(), seed), Direct(points, statistic(), seed, horizon=UPDATES)
    last = streamed(history, statistic(), seed) if run else ours.at(RELEASES)
    # Deletions by id leave no trace: the same centres, to the last bit.
    assert np.array_equal(last.centres, ours.at(RELEASES).centres)
    found = {
        "last": last,
        "typical": ours.at(ours.typical),
        "worst": ours.at(ours.noisiest),
        "every round": every.at(every.typical),
        "static": Direct(points, statistic(), seed, horizon=1).at(1),
        "naive x64": Direct(points, statistic(), seed, **naive_budget()).at(1),
        "1 mean": points.mean(axis=0, keepdims=True),
    }
    if peers:
        for column, epsilon in (("dpl static", EPSILON), ("dpl naive", EPSILON / RELEASES)):
            (found[column],) = diffprivlib_kmeans(points, CLUSTERS, epsilon, [seed])
    true = cost(points, last.centres)
    estimate = last.cost / true, (last.cost - true) / last.cost_error
    return {column: over(points, own, best) for column, own in found.items()}, estimate


def show_noise() -> None:
    """Deviations of the same counters: by these, and by as many regions as they bear, the first six columns differ."""
    points = SETS["gmm2"]()[:SURVIVORS]
    budgets = {}, {"horizon": UPDATES}, {"horizon": 1}, naive_budget()
    ours, every, one, naive = (Direct(points, statistic(), 0, **budget) for budget in budgets)
    cases = [
        (f"last release, {RELEASES}", ours, RELEASES),
        (f"typical (of median noise), {ours.typical}", ours, ours.typical),
        (f"worst, {ours.noisiest}", ours, ours.noisiest),
        (f"every round, typical, {every.typical:,}", every, every.typical),
        (f"every round, worst, {every.noisiest:,}", every, every.noisiest),
        ("naive", naive, 1),
    ]
    print("Noise over that of one release at the full budget:")
    for text, own, index in cases:
        print(f"  {text:36}{own.deviation(index) / one.deviation(1):6.2f}")


def show_costs(seeds: int, quick: bool) -> None:
    print(ABOUT_COSTS, f"{seeds} seeds (mnist {WIDE_SEEDS}, diffprivlib {FEWER}).")
    show_noise()
    print(f"{'set':9}{'points':>7}{'last release':>19}" + "".join(f"{c:>12}" for c in COLUMNS[1:]) + f"{'target':>8}")
    estimates = {}
    for name in (*TARGETS, *HELD_OUT):
        if quick and name == "mnist":
            continue
        try:
            own = min(seeds, WIDE_SEEDS) if name == "mnist" else seeds
            rows, estimates[name], sizes = [], [], []
            for seed, history in histories(name, own):
                wide = history.points.shape[1] > WIDE
                ratios, estimate = measured(seed, history, not (quick or wide or seed >= FEWER), not wide or seed == 0)
                rows.append(ratios)
                estimates[name].append(estimate)
                sizes.append(len(history.survivors))
        except UnavailableError as error:
            print(f"{name:9}skipped, {error}")
            continue
        table = {c: [row[c] for row in rows if c in row] for c in COLUMNS}
        met = np.mean(table["last"]) <= TARGETS.get(name, np.inf)
        verdict = f"{TARGETS[name]:.2f} {'met' if met else 'NOT met'}" if name in TARGETS else "held out"
        others = "".join(f"{mean(table[c]):>12}" for c in COLUMNS[1:])
        print(f"{name:9}{np.mean(sizes):7,.0f}{ends(table['last']):>19}{others}  {verdict}", flush=True)
    print("\nThe published cost, which is of sending every region as a whole to one centre, at the last release:")
    print(f"{'set':9}{'over the true cost of the centres':>36}   (estimate - true) / its standard error, by seed")
    for name, own in estimates.items():
        print(f"{name:9}{ends([one for one, _ in own]):>36}   {' '.join(f'{z:+.1f}' for _, z in own)}")


# Crossfade and Schauder noise ----------------------------------------------------------------------------------------


def show_noises(seeds: int, quick: bool) -> None:
    """The same points, keys and runs of Lloyd for both."""
    print(f"\nThe default beside Schauder noise: costs over Lloyd's, {seeds} seeds (mnist {WIDE_SEEDS})")
    print(f"{'set':9}{'noise':12}{'typical release':>19}{'worst release':>19}   less than Schauder: typical, worst")
    for name in (*TARGETS, *HELD_OUT):
        if quick and name == "mnist":
            continue
        ratios: dict[str, list[list[float]]] = {"schauder": [], "crossfade": []}
        try:
            for seed, history in histories(name, min(seeds, WIDE_SEEDS) if name == "mnist" else seeds):
                points = history.survivors
                best = lloyd(points, CLUSTERS)[1]
                for noise, found in ratios.items():
                    ours = Direct(points, statistic(noise=noise), seed)
                    found.append([over(points, ours.at(index), best) for index in (ours.typical, ours.noisiest)])
        except UnavailableError as error:
            print(f"{name:9}skipped, {error}")
            continue
        less = np.subtract(ratios["schauder"], ratios["crossfade"])
        errors = less.std(axis=0) / np.sqrt(max(1, len(less) - 1))
        apart = ", ".join(f"{mean:.3f} +- {error:.3f}" for mean, error in zip(less.mean(axis=0), errors, strict=True))
        for noise, found in ratios.items():
            columns = "".join(f"{ends(column):>19}" for column in np.transpose(found).tolist())
            print(f"{name:9}{noise:12}{columns}   {apart if noise == 'crossfade' else ''}", flush=True)


# Hints ---------------------------------------------------------------------------------------------------------------


def found_radius(points: Points, p: float, seed: int, factor: float) -> tuple[float, float]:
    """The private quantile of the distances, and the true one."""
    spent = Direct(points, ra.Distances("p", [p], radius=1), seed, finer=factor, **FINDING)
    return max(float(spent.at(RELEASES)[p]), 2.0**-16), float(np.quantile(np.linalg.norm(points, axis=1), p))


def hints(dimension: int) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """What is told, how loose the radius is, and the arguments; a quantile is the one to find the radius by."""
    for factor in (1, 2, 5, 50):
        yield f"radius {factor}x too large" if factor > 1 else "as in the table of costs", factor, {}
        if dimension <= 3 and factor > 2:
            yield from ((f"  with {levels} levels", factor, {"levels": levels}) for levels in (5, 7))
        if factor != 2:
            yield from ((f"  found, {p:g} quantile", factor, {"quantile": p}) for p in QUANTILES)
    if dimension > 3:
        yield "expected 10x too small", 1, {"expected": SURVIVORS // 10}
        yield "expected 10x too large", 1, {"expected": SURVIVORS * 10}
        yield "expected: the default", 1, {"expected": ra.KMeans("p", 1).expected}


def show_hints(seeds: int) -> None:
    print(ABOUT_HINTS, f"{seeds} seeds.")
    for name in HINTED:
        print(f"  {name}: {SCALING[name.rstrip('0123456789')]}")
    print(f"{'set':9}{'':26}{'last release':>19}{'worst':>7}{'bits':>6}{'radius':>23}   notes (seeds that have any)")
    for name in HINTED:
        for text, factor, given in hints(SETS[name]().shape[1]):
            last, worst, notes, bits, radii = [], [], [], "", []
            for seed in range(seeds):
                history = History(points_of(name, seed), seed)
                points, best = loose(history.survivors, factor), lloyd(history.survivors, CLUSTERS)[1] / factor**2
                own, budget = dict(given), {}
                if "quantile" in own:
                    radii.append(np.array(found_radius(points, own.pop("quantile"), seed, factor)))
                    own, budget = {"radius": float(radii[-1][0]), "clip": True}, LEFT
                ours = Direct(points, statistic(**own), seed, finer=factor, **budget)
                released = ours.at(RELEASES)
                last.append(over(points, released, best))
                worst.append(over(points, ours.at(ours.noisiest), best))
                notes.append(released.notes)
                bits = ours.own.bits or ""
            radius, true = (factor * np.transpose(radii)) if radii else ([], [])
            shown = f"{mean(radius)} ({max(radius):.2f}) of {mean(true)}" if radii else ""
            said = f"{sum(map(bool, notes))}: {'; '.join(next(filter(None, notes)))}" if any(notes) else "none"
            print(f"{name:9}{text:26}{ends(last):>19}{mean(worst):>7}{bits:>6}{shown:>23}   {said}", flush=True)


# Medians, pure privacy, drift ----------------------------------------------------------------------------------------


def show_medians(seeds: int) -> None:
    print(f"\nk-median over non-private k-median, and pure privacy (epsilon = {EPSILON:g}, delta = 0); {seeds} seeds")
    print(f"{'set':9}{'':22}{'last release':>19}{'worst':>7}{'every round':>13}{'static':>8}")
    cases = [(name, ra.KMedian, DELTA) for name in HINTED]
    cases += [(name, kind, 0.0) for name in PURE for kind in (ra.KMeans, ra.KMedian)]
    for name, kind, delta in cases:
        last, worst, every, static = [], [], [], []
        measure, reference = (cost_median, lloyd_median) if kind is ra.KMedian else (cost, lloyd)
        for seed, history in histories(name, seeds):
            points = history.survivors
            best = reference(points, CLUSTERS)[1]
            budgets = [{"horizon": horizon, "delta": delta} for horizon in (RELEASES, UPDATES, 1)]
            ours, long, one = (Direct(points, statistic(kind), seed, **budget) for budget in budgets)
            chosen = ours.at(RELEASES), ours.at(ours.noisiest), long.at(long.typical), one.at(1)
            for column, centres in zip((last, worst, every, static), chosen, strict=True):
                column.append(over(points, centres, best, measure))
        text = f"{kind.__name__}, {'pure' if not delta else 'Gaussian'}"
        print(f"{name:9}{text:22}{ends(last):>19}{mean(worst):>7}{mean(every):>13}{mean(static):>8}", flush=True)


def show_drift(seeds: int, k: int = 5) -> None:
    shown = (8, 16, 32, 33, 48, 64)
    print(
        f"\nDrift: {k} moving clusters, one erased whole after release 32, k = {k}; {seeds} seeds (points of the last)"
    )
    print(f"{'':7}" + "".join(f"{f'release {r}':>16}" for r in shown))
    for dimension in (2, 10):
        ratios: dict[int, list[float]] = {release: [] for release in shown}
        sizes: dict[int, int] = {}
        for seed in range(seeds):
            drift = Drift(dimension, k, seed)
            out = drift.releases(seed)
            if seed == 0:
                twin = drift.releases(seed, without=True)
                same = [one[0].encode() == other[0].encode() for one, other in zip(out, twin, strict=True)]
            for release in shown:
                released, points = out[release - 1]
                ratios[release].append(over(points, released.value, lloyd(points, k)[1]))
                sizes[release] = len(points)
        print(f"d = {dimension:<3}" + "".join(f"{f'{mean(ratios[r])} ({sizes[r]:,})':>16}" for r in shown))
        united = 1 + len(same) - same[::-1].index(False)
        print(f"       a stream which the erased cluster never came to publishes the same from release {united} on")


# Times ---------------------------------------------------------------------------------------------------------------


def show_times(peers: bool) -> None:
    print(f"\nTimes, the best of seven: of the processor (on the clock); {SURVIVORS:,} points, k = {CLUSTERS}")
    print(f"{'':5}{'':9}{'rounds':>7}{'encode':>10}{'gather 22k':>12}{'gather 1,024':>14}{'release':>20}{'totals':>10}")
    print(f"{'':21}{'us/point':>10}{'us/point':>12}{'us/point':>14}{'ms':>20}{'kB':>10}")
    for dimension in (2, 10, 50):
        points = gmm(dimension, CLUSTERS, SURVIVORS, 1)
        for kind, horizon in ((k, h) for k in (ra.KMeans, ra.KMedian) for h in (RELEASES, UPDATES)):
            ours = Direct(points, statistic(kind), 0, horizon=horizon)
            rows, ones = ours.rows.take(np.arange(1024)), np.ones(len(points), dtype=np.int64)
            encode = best_of(lambda: ours.schema.encode({"p": points}))[0] / SURVIVORS  # noqa: B023
            whole = best_of(lambda: ours.own.gather(ours.rows, ones))[0] / SURVIVORS  # noqa: B023
            part = best_of(lambda: ours.own.gather(rows, ones[:1024]))[0] / 1024  # noqa: B023
            release = best_of(lambda: ours.at(ours.typical))  # noqa: B023
            text = f"{release[0]:.0f} ({release[1]:.0f})"
            row = (
                f"{1e3 * encode:10.2f}{1e3 * whole:12.2f}{1e3 * part:14.2f}{text:>20}{size_of(ours.totals) / 1e3:10.0f}"
            )
            print(f"d={dimension:<3}{kind.__name__:9}{horizon:7,}{row}", flush=True)
        if peers:
            taken = []
            for runs in (1, 11):
                start = time.perf_counter()
                diffprivlib_kmeans(points, CLUSTERS, EPSILON, range(runs))
                taken.append(time.perf_counter() - start)
            print(
                f"d={dimension:<3}diffprivlib, one fit on the clock: {1e3 * (taken[1] - taken[0]) / 10:,.0f} ms",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="k-means and k-median of a stream beside Lloyd and diffprivlib.")
    parts = ("costs", "noise", "hints", "medians", "drift", "times")
    parser.add_argument("parts", nargs="*", choices=[*parts, []], metavar="PART", help=", ".join(parts))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} seeds, no mnist, no diffprivlib")
    options = parser.parse_args()
    seeds = QUICK if options.quick else options.seeds
    few = min(seeds, FEWER)
    run = {
        "costs": lambda: show_costs(seeds, options.quick),
        "noise": lambda: show_noises(seeds, options.quick),
        "hints": lambda: show_hints(few),
        "medians": lambda: show_medians(few),
        "drift": lambda: show_drift(min(seeds, 3)),
        "times": lambda: show_times(not options.quick),
    }
    start = time.perf_counter(), time.process_time()
    for part in options.parts or parts:
        run[part]()
    spent = time.process_time() - start[1], time.perf_counter() - start[0]
    print(f"\n{spent[0]:,.0f} s of the processor, {spent[1]:,.0f} s on the clock")


if __name__ == "__main__":
    main()
