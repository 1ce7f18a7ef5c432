"""Is the default the best that can be had? For streams of one statistic and many horizons: the 95 % half-width in the
worst round, of the default and of all that can be selected with the same promises (noise, form, law).

    python benchmarks/defaults.py [HORIZON ...]   all statistics, computed; fails if a default loses by more than 3 %
    python benchmarks/defaults.py --measure       medians, measured: errors and half of the intervals, in ranks
"""

import argparse
import sys

import numpy as np

import retroact as ra
from retroact.errors import InputError
from retroact.noise.default_process import NAMES

EPSILON, DELTA = 1.0, 1e-6
HORIZONS = (1, 2, 3, 7, 12, 15, 52, 63, 255, 365, 1000, 1023, 1024, 4095, 10_000, 65_535, 65_536)
# How much better than the default an alternative may be.
ALLOWED = 1.03
SCHEMA = {
    "x": ra.Number(0, 500, step=0.01),
    "kind": ra.Category(["a", "b", "c"]),
    "city": ra.Text(),
    "age": ra.Integer(0, 120),
    "wide": ra.Integer(0, 2**32 - 1),
    "widest": ra.Integer(0, 2**63 - 1),
}
STATISTICS = {
    "count": ra.Count(),
    "sum": ra.Sum("x"),
    "mean": ra.Mean("x"),
    "variance": ra.Variance("x"),
    "ratio": ra.Ratio(ra.Sum("x"), ra.Count()),
    "declared bins": ra.Histogram("kind"),
    "undeclared bins": ra.Histogram("city"),
    "groups": ra.GroupBy("kind", ra.Sum("x")),
    "median of ages": ra.Quantiles("age", [0.5]),
    "median of 2^32": ra.Quantiles("wide", [0.5]),
    "median of 2^63": ra.Quantiles("widest", [0.5]),
    "quartiles of 2^32": ra.Quantiles("wide", [0.25, 0.5, 0.75]),
    "0.99 quantile by kind": ra.Quantiles("wide", [0.99], by="kind"),
    "distinct": ra.Distinct("city"),
    "count of a week": ra.Count(window=7),
    "median of a week": ra.Quantiles("wide", [0.5], window=7),
    "median of a day": ra.Quantiles("wide", [0.5], window=1),
    "0.99 quantile of a day": ra.Quantiles("wide", [0.99], window=1),
}


def spec_of(statistic, horizon, delta=DELTA, law=None):
    return ra.Specification(SCHEMA, {"s": statistic}, epsilon=EPSILON, delta=delta, horizon=horizon, law=law)


def half_width(spec):
    bound = spec.bounds["s"]
    return bound.expected_error(bound.outlook.worst, spec.records_of("s"), 0.95)


def alternatives(statistic, horizon, delta):
    """All that a user can write instead, with the same promises."""
    for law in ("gaussian", "laplace") if delta else ("laplace",):
        for noise in (None, *NAMES, *statistic.own_noise):
            try:
                yield f"{law} {noise or 'default'}", spec_of(statistic.replace(noise=noise), horizon, delta, law)
            except (InputError, TypeError):
                continue  # not for this statistic


def compared(statistic, horizon, delta=DELTA):
    """The default and its half-width, and the best alternative and its half-width."""
    own = spec_of(statistic, horizon, delta)
    others = {name: half_width(spec) for name, spec in alternatives(statistic, horizon, delta)}
    best = min(others, key=others.__getitem__)
    return f"{own.choice.law} {own.choice.noise['s']}", half_width(own), best, others[best]


def computed(horizons):
    worst = 0.0
    for delta in (DELTA, 0.0):
        print(f"\nepsilon = {EPSILON:g}, delta = {delta:g}: 95 % half-width in the worst round")
        for name, statistic in STATISTICS.items():
            if not delta and name == "undeclared bins":
                continue
            print(name)
            for horizon in horizons:
                default, own, best, other = compared(statistic, horizon, delta)
                worst = max(worst, own / other)
                print(f"  {horizon:>7,} {own:>12.5g}  {default:32} best: {best:28} {own / other:.4f}")
    print(f"\nworst ratio {worst:.4f}, allowed {ALLOWED}")
    return worst <= ALLOWED


def in_ranks(noise, horizon, seeds, records=10_000):
    """Mean error and mean half-width of the median in the worst round, over skewed values: in ranks; coverage."""
    errors, halves, held = [], [], 0
    random = np.random.default_rng(1)
    for seed in range(seeds):
        values = np.sort((np.clip(random.lognormal(0, 1, records) * 0.02, 0, 0.999) * 2**32).astype(np.int64))
        statistic = ra.Quantiles("wide", [0.5], noise=noise)
        spec = spec_of(statistic, horizon)
        stream = ra.Stream(
            {"wide": SCHEMA["wide"]},
            {"s": statistic},
            epsilon=EPSILON,
            delta=DELTA,
            horizon=horizon,
            key=ra.Key.for_testing(seed),
        )
        for _ in range(spec.bounds["s"].outlook.worst - 1):
            stream.close_round()
        stream.add({"wide": values})
        release = stream.close_round()["s"]
        low, high = release.interval(0.95)[0.5]
        under, upto = np.searchsorted(values, low), np.searchsorted(values, high, side="right")
        errors.append(abs(int(np.searchsorted(values, release.value[0.5])) - records // 2))
        halves.append((upto - under) / 2)
        held += under <= records // 2 <= upto
    return np.mean(errors), np.quantile(errors, 0.95), np.mean(halves), held / seeds


def measured(seeds=40):
    print("2^32 skewed values, 10,000 records, worst round: mean rank error, its 95th percentile, half-width, coverage")
    for horizon in (1, 2, 3, 7, 12, 15, 52, 127, 365):
        for noise in ("exponential", "crossfade"):
            found = in_ranks(noise, horizon, seeds)
            print(f"{horizon:>6,}  {noise:12}" + "".join(f"{number:>10.4g}" for number in found))


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("horizons", nargs="*", type=int, default=HORIZONS)
    asked.add_argument("--measure", action="store_true")
    asked.add_argument("--seeds", type=int, default=40)
    options = asked.parse_args()
    if options.measure:
        measured(options.seeds)
    else:
        sys.exit(0 if computed(options.horizons) else 1)
