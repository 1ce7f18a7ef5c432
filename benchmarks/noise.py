"""The error of a private count over many rounds: the paper's calibration, exact tree, our defaults, lower bound.

Computed from the processes, and measured: independent copies of the noise are drawn at rounds spread over the horizon
and, more of them, at the worst round. Then what streams get by default, at powers of two, in windows, without a
horizon and as thresholds; and what 100,000 bins cost.

python benchmarks/noise.py [BITS ...]
"""

import math
import sys
import time
from fractions import Fraction

import numpy as np

import retroact as ra
from retroact.coins import Key, integer_cells
from retroact.noise import Bridge, Crossfade, CrossfadeEpochs, Lapped, Mechanism, Schauder, Tree, Unbounded
from retroact.paper import PaperTree
from retroact.params import words
from retroact.privacy import largest_mu, split

EPSILON, DELTA = 1.0, 1e-6
COPIES, COPIES_AT_WORST = 1_500, 60_000


def mechanism(process, delta, copies):
    kind = "gaussian" if delta else "pure"
    share = split(EPSILON, delta, {"n": kind}, {})["n"]
    coins = Key.for_testing(1).coins("benchmark", words(process.spec()), kind)
    one = Fraction(1)
    return Mechanism(process, share, units=(1,) * copies, norm1=one, norm2_squared=one).under(coins)


def mean_square(made, round):
    numerators, denominator = made.draw(int(round))
    return float(np.mean((numerators / denominator) ** 2))


def lower_bound(horizon, gaussian):
    """Of the largest standard deviation, for any oblivious noise: from the two-ended factorisation norm
    (sqrt 2 / pi) ln T + 0.57, certified up to 2^14 rounds and extrapolated beyond."""
    norm = math.sqrt(2) / math.pi * math.log(horizon) + 0.57
    return norm / float(largest_mu(Fraction(EPSILON), Fraction(DELTA))) if gaussian else norm / 2 / math.sinh(0.5)


def main(bits):
    horizon = (1 << bits) - 1
    print(f"\nOne count, epsilon = {EPSILON:g}, {horizon:,} rounds: standard deviation of the error")
    print(f"{'noise':44}{'worst':>9}{'rms':>9}{'measured worst':>16}{'measured rms':>14}{'paper / worst':>15}")
    rows = [
        ("paper: dyadic tree, 2m, Laplace", PaperTree(horizon), 0.0),
        ("dyadic tree, exact sensitivity, Laplace", Tree(horizon), 0.0),
        ("bridge tree, Laplace", Bridge(horizon), 0.0),
        ("lapped tree, Laplace (default, delta = 0)", Lapped(horizon), 0.0),
        (f"dyadic tree, exact, Gaussian, delta = {DELTA:g}", Tree(horizon), DELTA),
        (f"Schauder tree, Gaussian, {DELTA:g}", Schauder(horizon), DELTA),
        (f"crossfade, Gaussian (default, {DELTA:g})", Crossfade(horizon), DELTA),
    ]
    rounds = np.arange(1, min(horizon, 1 << 17) + 1)
    paper = None
    for name, process, delta in rows:
        made = mechanism(process, delta, COPIES)
        scale = made.law(0, 1).variance / made.refinement**2
        variances = process.variances(rounds, 2 if delta else 1) * scale
        worst, mean = math.sqrt(variances.max()), math.sqrt(variances.mean())
        at_worst = mean_square(mechanism(process, delta, COPIES_AT_WORST), rounds[int(np.argmax(variances))])
        sampled = np.mean([mean_square(made, r) for r in np.unique(np.linspace(1, rounds[-1], 400).astype(int))])
        paper = paper or worst
        print(
            f"{name:44}{worst:9.2f}{mean:9.2f}{math.sqrt(at_worst):16.2f}{math.sqrt(sampled):14.2f}"
            f"{paper / worst:14.2f}x"
        )
    print(f"{'lower bound, pure (loose)':44}{lower_bound(horizon, False):9.2f}")
    print(f"{f'lower bound, Gaussian, {DELTA:g}':44}{lower_bound(horizon, True):9.2f}")


def by_default():
    """The largest standard deviations, computed and measured, and thresholds: by default and with Schauder noise."""
    print(f"\nepsilon = {EPSILON:g}, delta = {DELTA:g}, Gaussian noise{'default':>22}{'measured':>10}{'Schauder':>10}")
    cases = [(f"count, {horizon:,} rounds", {"horizon": horizon}) for horizon in (1023, 1024, 65_535, 65_536)]
    cases += [(f"count, window of {window}", {"window": window}) for window in (16, 64, 256, 1024)]
    for title, options in cases:
        found = [
            ra.Specification(
                {"x": ra.Text()}, {"n": ra.Count(noise=noise)}, epsilon=EPSILON, delta=DELTA, law="gaussian", **options
            ).bounds["n"]
            for noise in (None, "schauder")
        ]
        worst = found[0].outlook.worst
        measured = math.sqrt(mean_square(mechanism(found[0].process, DELTA, COPIES_AT_WORST), worst))
        errors = [bound.expected_error(bound.outlook.worst, 0) for bound in found]
        print(f"{title:52}{errors[0]:10.2f}{measured:10.2f}{errors[1]:10.2f}")
    known = [mechanism(process, DELTA, COPIES_AT_WORST) for process in (CrossfadeEpochs(1023), Unbounded(1023))]
    errors, drawn = ([f(made) for made in known] for f in (_worst_to_the_last, lambda made: mean_square(made, 65_535)))
    title = "no horizon, guess 1,023, up to round 65,535"
    print(f"{title:52}{errors[0]:10.2f}{math.sqrt(drawn[0]):10.2f}{errors[1]:10.2f}")
    for horizon in (1023, 65_535):
        values = []
        for noise in (None, "schauder"):
            statistic = {"n": ra.Histogram("x", noise=noise)}
            spec = ra.Specification({"x": ra.Text()}, statistic, epsilon=EPSILON, delta=DELTA, horizon=horizon)
            values.append(float(spec.bounds["n"].threshold.at(1)))
        print(f"{f'threshold of a histogram, {horizon:,} rounds':52}{values[0]:10.1f}{'':10}{values[1]:10.1f}")


def _worst_to_the_last(made, last=65_535):
    return math.sqrt(made.variances_of(0, np.arange(1, last + 1)).max())


def cost(horizon=65_535, cells=100_000, rounds=64):
    """Processor time of the noise of many cells, in rounds spread over the horizon."""
    names, spent = integer_cells(cells), {}
    made = {process: mechanism(process(horizon), DELTA, 1) for process in (Schauder, Crossfade)}
    for one in made.values():
        one.sample(1, names[:10])
    for round in np.linspace(1, horizon, rounds).astype(int).tolist():
        for process, one in made.items():
            before = time.process_time()
            one.sample(round, names)
            spent[process] = spent.get(process, 0.0) + time.process_time() - before
    old, new = (spent[process] / rounds * 1e3 for process in made)
    print(
        f"\n{cells:,} cells, mean of {rounds} rounds: Schauder {old:.1f} ms, crossfade {new:.1f}, {new / old:.2f} times"
    )


if __name__ == "__main__":
    start = time.time()
    for bits in [int(argument) for argument in sys.argv[1:]] or [10, 16]:
        main(bits)
    by_default()
    cost()
    print(f"\n{time.time() - start:.0f} s")
