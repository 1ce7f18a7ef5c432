"""The smoothing compiler: how tight its promise is, what it hides, and what it costs beside an exact median.

python benchmarks/smoothing.py [--runs N] [--additions N] [--rounds T]

The median: values in 0 .. 65,535 (u^1.6), every round adds records, 70 % of them are deleted about 10 rounds later.
Rank errors over the last three quarters of the rounds.
"""

import argparse
import time
import warnings

import numpy as np

import retroact as ra
from block_attack import audit_blocks, audit_tracker
from retroact.compilers.maps import RankMap
from retroact.compilers.smooth import smooth
from retroact.ledger.definition import Add, Delete
from retroact.stateful import MedianTracker, Stateful

UPPER, DELTA, FAILURE = 2**16 - 1, 1e-6, 1e-4
NAMES = (
    "exactly retroactive (Quantiles)",
    "stateful base, not retroactive",
    "the base, smoothed",
    "any value at random",
)


class Watched(Stateful):
    """A base whose own answers are kept beside what is published."""

    def __init__(self, base):
        self.base, self.answer = base, None

    @property
    def guarantee(self):
        return self.base.guarantee

    def error(self, beta):
        return self.base.error(beta)

    def close(self, updates):
        self.answer = self.base.close(updates)
        return self.answer


def show_blocks(runs):
    print(
        f"Worst base, alpha = 1, beta_K = 1e-6, noise of the paper; {runs:,} runs on each side, confidence 99 % a row"
    )
    print(f"{'block':>6}{'beta':>10}{'theorem':>10}{'exact':>10}{'audited':>10}{'/ exact':>9}")
    for row in audit_blocks(runs=runs):
        print(f"{row}{row.audited / row.exact:9.3f}", flush=True)


def show_tracker(runs):
    print(f"\nFlippancy tracker, epsilon = 8, beta = 1e-3, {runs} runs on each side: alpha shown (claimed), by block")
    error, rows = audit_tracker(runs=runs)
    print(f"E = {error:.0f}, the largest error seen; {'sigma':>8}" + "".join(f"{b:>8} {'':9}" for b in rows[0].blocks))
    for row in rows:
        print(f"{'':36}{row}", flush=True)


def rank_error(ordered, value):
    """How many ranks a value is from being a median."""
    if value is None:
        return len(ordered) / 2
    below, upto = (int(np.searchsorted(ordered, value, side=side)) for side in ("left", "right"))
    return max(0.0, below - len(ordered) / 2, len(ordered) / 2 - upto)


def medians(rounds, additions, epsilon, alpha):
    """For all methods the rank errors of the later rounds; E; what the smoothed one promises; the records."""
    rng = np.random.default_rng(1)
    count = rounds * additions
    values = (rng.random(count) ** 1.6 * 2**16).astype(np.int64)
    added = np.repeat(np.arange(1, rounds + 1), additions)
    gone = np.where(rng.random(count) < 0.7, added + rng.integers(6, 15, count), rounds + 1)
    key = ra.Key.for_testing
    tracker = MedianTracker(0, UPPER, rounds, epsilon=epsilon, delta=DELTA, records=count, failure=FAILURE, key=key(1))
    base = Watched(tracker)
    smoothed = smooth(base, failure=FAILURE, alpha=alpha, map=RankMap(0, UPPER), key=key(2))
    stream = ra.Stream(
        {"v": ra.Integer(0, UPPER)}, {"q": ra.Quantiles("v", [0.5])},
        epsilon=epsilon, delta=DELTA, horizon=rounds, key=key(3),
    )  # fmt: skip
    errors = [[] for _ in NAMES]
    for round in range(1, rounds + 1):
        new, old = np.flatnonzero(added == round), np.flatnonzero(gone == round)
        stream.add({"v": values[new]})
        if len(old):
            stream.delete({"v": values[old]}, stamp=added[old].tolist())
        exact = stream.close_round()["q"].value[0.5]
        updates = [Add(v) for v in values[new].tolist()]
        updates += [Delete(v, s) for v, s in zip(values[old].tolist(), added[old].tolist(), strict=True)]
        published = smoothed.close(updates).value
        answers = (exact, base.answer.median, published, int(rng.integers(0, UPPER + 1)))
        if round > rounds // 4:
            ordered = np.sort(values[(added <= round) & (round < gone)])
            for own, answer in zip(errors, answers, strict=True):
                own.append(rank_error(ordered, answer))
    return errors, float(smoothed.error), smoothed.accuracy(rounds, 1e-3).error, len(ordered)


def show_medians(rounds, additions):
    print(f"\nMedian with deletions, {rounds} rounds, {additions:,} additions a round, 2^16 values, delta = {DELTA:g}")
    print(f"{'epsilon':>8}{'alpha':>7}  {'method':34}{'mean':>10}{'95 %':>10}{'/ exact':>11}")
    for epsilon, alpha in ((1.0, 1.0), (8.0, 1.0), (8.0, 8.0)):
        start = time.time()
        errors, bound, promised, records = medians(rounds, additions, epsilon, alpha)
        ours = np.mean(errors[0])
        for name, own in zip(NAMES, errors, strict=True):
            mean, high = np.mean(own), np.percentile(own, 95)
            print(f"{epsilon:8g}{alpha:7g}  {name:34}{mean:10,.0f}{high:10,.0f}{mean / ours:10,.0f}x")
        print(
            f"{'':17}E = {bound:,.0f}, promised E + E_K = {promised:,.0f}, {records:,} records in the end, "
            f"{time.time() - start:.0f} s",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description="The smoothing compiler.")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--tracker-runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=63)
    parser.add_argument("--additions", type=int, default=25_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ra.HorizonWarning)
    start = time.time()
    show_blocks(options.runs)
    show_tracker(options.tracker_runs)
    show_medians(options.rounds, options.additions)
    print(f"\n{time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
