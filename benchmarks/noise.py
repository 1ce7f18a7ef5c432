"""The error of a private count over many rounds: the paper's calibration, exact tree, our defaults, lower bound.

Computed from the processes, and measured: independent copies of the noise are drawn at rounds spread over the horizon
and, more of them, at the worst round.
"""

import math
import sys
import time
from fractions import Fraction

import numpy as np

from retroact.coins import Key
from retroact.noise import Bridge, Lapped, Mechanism, Schauder, Tree
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
        (f"Schauder tree, Gaussian (default, {DELTA:g})", Schauder(horizon), DELTA),
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


if __name__ == "__main__":
    start = time.time()
    for bits in [int(argument) for argument in sys.argv[1:]] or [10, 16]:
        main(bits)
    print(f"\n{time.time() - start:.0f} s")
