"""How often intervals hold the truth: means, variances, quantiles and the distribution function.

python benchmarks/coverage.py [--pairs N] [--records N ...]

Each statistic is alone in its stream. A cell is a number of records, an epsilon, a number of rounds and a law; it has
so many independent pairs of key and data, and three rounds of each by random access. Values are beta variables whose
shape is drawn with the data, on a lattice of 100,000 steps: on a coarse one, ties make intervals of quantiles cover
more. A row has the shares of releases whose interval held the truth at 95 % and 50 %; for quantiles and fractions the
lowest and the highest of several. Rounds of one pair share noise, so errors are those of averages over pairs.

Asked for: at least the level, and at most .985 and .65 where the deviation of the noise is below a tenth of the
records, up to the 99.9 % interval of the measurement. Elsewhere the mean width of the 95 % interval, as a part of the
declared range, stands for the upper bound.
"""

import argparse
import math
import time
from statistics import NormalDist

import numpy as np

import retroact as ra
from retroact.statistics.bound import At

RECORDS, EPSILONS, ROUNDS, DELTAS = (2_000, 10_000, 100_000), (0.5, 2.0), (15, 1_023), (0.0, 1e-6)
LEVELS = {0.95: 0.985, 0.5: 0.65}
UPPER = 1_000
FIELD = ra.Number(0, UPPER, step="0.01")
PROBABILITIES, POINTS = [0.25, 0.5, 0.9], [150.5, 400.25, 633.0]
STATISTICS = {
    "mean": ra.Mean("v"),
    "variance": ra.Variance("v"),
    "quantiles": ra.Quantiles("v", PROBABILITIES),
    "distribution function": ra.Quantiles("v", [], cdf=POINTS),
}
# Two sides of 99.9 %.
BEYOND = NormalDist().inv_cdf(0.9995)


def drawn(records, seed):
    """Some values, in order."""
    random = np.random.default_rng([records, seed])
    first, second = random.uniform(1, 5, 2)
    return np.sort(np.round(UPPER * random.beta(first, second, records), 2))


def truth(name, values):
    if name == "mean":
        return [values.mean()]
    if name == "variance":
        return [values.var()]
    if name == "quantiles":
        return [values[math.ceil(p * len(values)) - 1] for p in PROBABILITIES]
    return [np.searchsorted(values, point, side="right") / len(values) for point in POINTS]


def intervals(name, answer, level):
    if name in ("mean", "variance"):
        return [answer.interval(level)]
    found = answer.interval(level)
    return list(found.values() if name == "quantiles" else found.cdf.values())


class Cell:
    """One statistic under one budget: what it held and how wide it was, by pair."""

    def __init__(self, name, epsilon, rounds, delta, records):
        self.name, self.budget, self.records = name, (epsilon, rounds, delta), records
        self.spec = ra.Specification(
            {"v": FIELD}, {"x": STATISTICS[name]}, epsilon=epsilon, delta=delta, horizon=rounds
        )
        self.bound = self.spec.bounds["x"]
        self.rounds = np.unique(np.linspace(1, rounds, 5).astype(int)[1:4]).tolist()
        noise = self._noise(0)
        self.law = "Laplace" if noise.share.kind == "pure" else "Gaussian"
        self.deviation = max(noise.deviation_of(0, round) for round in self.rounds)
        self.held = {level: [] for level in LEVELS}
        self.widths = []

    def _noise(self, seed):
        return self.spec.mechanism("x", ra.Key.for_testing(seed).coins("stream"))

    def add(self, seed, totals, values):
        noise, exact = self._noise(seed), truth(self.name, values)
        held, widths = {level: [] for level in LEVELS}, []
        for round in self.rounds:
            answer = self.bound.release([totals], noise, At(round, round)).answer
            for level in LEVELS:
                found = intervals(self.name, answer, level)
                held[level].append([low <= value <= high for value, (low, high) in zip(exact, found, strict=True)])
                if level == 0.95:
                    widths.append(np.mean([high - low for low, high in found]))
        for level in LEVELS:
            self.held[level].append(np.mean(held[level], axis=0))
        self.widths.append(np.mean(widths))

    @property
    def quiet(self):
        return self.deviation < self.records / 10

    def shares(self, level):
        """The lowest and the highest share, each with its error."""
        held = np.array(self.held[level])
        mean, error = held.mean(axis=0), held.std(axis=0) / math.sqrt(len(held))
        return [(float(mean[i]), float(error[i])) for i in (int(mean.argmin()), int(mean.argmax()))]

    def faults(self):
        """What is not as asked for, beyond doubt."""
        for level, most in LEVELS.items():
            (low, low_error), (high, high_error) = self.shares(level)
            if low + BEYOND * low_error < level:
                yield f"{level:.0%} covers {low:.3f}"
            if self.quiet and high - BEYOND * high_error > most:
                yield f"{level:.0%} covers {high:.3f}, at most {most} wanted"

    def row(self):
        epsilon, rounds, _ = self.budget
        text = f"{self.name:24}{self.records:9,}{epsilon:9g}{rounds:8,}  {self.law:10}{self.deviation:10.1f}  "
        for level in LEVELS:
            (low, _), (high, _) = self.shares(level)
            text += f"{low:.3f} – {high:.3f}   " if len(self.held[level][0]) > 1 else f"{low:.3f}           "
        full = {"mean": UPPER, "variance": UPPER**2 / 4, "quantiles": UPPER, "distribution function": 1.0}[self.name]
        return text + f"{np.mean(self.widths) / full:.4f}" + ("" if self.quiet else "  noisy")


def measure(records, pairs):
    cells = [Cell(name, e, t, d, records) for name in STATISTICS for d in DELTAS for e in EPSILONS for t in ROUNDS]
    for seed in range(pairs):
        values = drawn(records, seed)
        rows, _ = cells[0].spec.schema.encode({"v": values})
        ones, totals = np.ones(records, dtype=np.int64), {}
        for cell in cells:
            kind = cell.bound.statistic.kind
            if kind not in totals:
                totals[kind] = cell.bound.gather(rows, ones)
            cell.add(seed, totals[kind], values)
    return cells


def main():
    parser = argparse.ArgumentParser(description="Coverage of intervals.")
    parser.add_argument("--pairs", type=int, default=1_000)
    parser.add_argument("--records", type=int, nargs="*", default=RECORDS)
    options = parser.parse_args()
    start, faults, quiet = time.process_time(), [], 0
    print(
        f"{options.pairs:,} pairs of key and data in each cell, 3 rounds each; shares of releases that held the truth"
    )
    print(
        f"{'':24}{'records':>9}{'epsilon':>9}{'rounds':>8}  {'law':10}{'deviation':>10}  "
        f"{'at 95 %':16}{'at 50 %':16}width (95 %)"
    )
    for records in options.records:
        for cell in measure(records, options.pairs):
            print(cell.row(), flush=True)
            quiet += cell.quiet
            faults += [f"{cell.row()}: {fault}" for fault in cell.faults()]
    print(f"\n{quiet} cells where the deviation is below a tenth of the records")
    print("\n".join(faults) or "every cell covers what is asked for")
    print(f"{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
