"""Counts, histograms and distinct counts over the last W rounds, beside the whole stream and beside fresh noise.

The peer recomputes the window in every round and adds fresh noise. A record is in W releases, so by composition the
standard deviation is sqrt(W) / mu with Gaussian noise and sqrt(2) * W / epsilon with Laplace noise. What is computed is
also measured: independent copies of the noise are drawn at the worst round.

python benchmarks/windows.py [WINDOW ...]
"""

import math
import sys
import time
from fractions import Fraction

import numpy as np

import retroact as ra
from retroact.coins import Key
from retroact.noise import Mechanism
from retroact.privacy import largest_mu
from retroact.stream import Specification

EPSILON, DELTA, HORIZON = 1.0, 1e-6, 65_535
WINDOWS = (16, 64, 256, 1024, 4096)
COPIES = 40_000
SCHEMA = {"user": ra.Text(), "amount": ra.Integer(0, 1023)}
MU = float(largest_mu(Fraction(EPSILON), Fraction(DELTA)))


def specified(statistic, delta=DELTA):
    law = "gaussian" if delta else "laplace"
    return Specification(SCHEMA, {"x": statistic}, epsilon=EPSILON, delta=delta, horizon=HORIZON, law=law)


def worst(statistic, delta=DELTA):
    """(standard deviation computed, standard deviation measured) in the worst of all rounds."""
    made = specified(statistic, delta)
    variances = made.bounds["x"].noise.variances_of(0, np.arange(1, HORIZON + 1))
    one, coins = Fraction(1), Key.for_testing(1).coins("windows", repr(made.processes["x"]))
    copies = Mechanism(
        made.processes["x"],
        made.shares["x"],
        units=(1,) * COPIES,
        norm1=one,
        norm2_squared=one,
    ).under(coins)
    numerators, denominator = copies.draw(int(np.argmax(variances)) + 1)
    return math.sqrt(variances.max()), math.sqrt(float(np.mean((numerators / denominator) ** 2)))


def threshold(window):
    """From which noisy count on a bin of an unknown universe is shown, in the round where that is most."""
    found = specified(ra.Histogram("user", window=window)).bounds["x"].threshold
    return max(float(found.at(release)) for release in range(1, 2 + 2 * min(window or 0, 2048)))


def median(window):
    """The standard deviation of the rank of a median over 1,024 values."""
    made = specified(ra.Quantiles("amount", [0.5], window=window))
    deviations = np.sqrt(made.bounds["x"].noise.variances_of(0, np.arange(1, HORIZON + 1)))
    return made.bounds["x"].error(np.array([deviations.max()]), 10_000)


def counts(windows):
    print(
        f"One count, worst standard deviation over {HORIZON:,} rounds (with a window it is the same without a horizon)"
    )
    print(f"{'':>12}{f'epsilon = {EPSILON:g}, delta = {DELTA:g}':>44}{f'epsilon = {EPSILON:g}, delta = 0':>44}")
    one = f"{'computed':>12}{'measured':>10}{'fresh':>11}{'ratio':>11}"
    print(f"{'window':>12}{one}{one}")
    for window in (*windows, None):
        live = window or HORIZON
        line = f"{f'{window:,}' if window else 'none':>12}"
        for delta, fresh in ((DELTA, math.sqrt(live) / MU), (0.0, math.sqrt(2) * live / EPSILON)):
            computed, measured = worst(ra.Count(window=window), delta)
            line += f"{computed:12.2f}{measured:10.2f}{fresh:11,.1f}{fresh / computed:10,.2f}x"
        print(line)


def others(windows):
    print(f"\nOther statistics, epsilon = {EPSILON:g}, delta = {DELTA:g}, {HORIZON:,} rounds")
    print(f"{'window':>12}{'median, sd of rank':>20}{'bin shown from':>16}{'distinct, sd':>14}{'fresh':>9}{'ratio':>8}")
    for window in (*windows, None):
        distinct, _ = worst(ra.Distinct("user", window=window))
        fresh = math.sqrt(window or HORIZON) / MU
        print(
            f"{f'{window:,}' if window else 'none':>12}{median(window):20.1f}{threshold(window):16.1f}{distinct:14.1f}"
            f"{fresh:9,.1f}{fresh / distinct:7.2f}x"
        )


def zcdp():
    """How much more noise the usual conversion from zCDP asks for than exact composition."""
    log = math.log(1 / DELTA)
    rho = (math.sqrt(log + EPSILON) - math.sqrt(log)) ** 2
    return MU / math.sqrt(2 * rho)


if __name__ == "__main__":
    start = time.time()
    chosen = [int(argument) for argument in sys.argv[1:]] or WINDOWS
    counts(chosen)
    others(chosen)
    print(f"\nFresh noise is composed exactly; the usual conversion from zCDP asks for {zcdp():.2f} times as much.")
    print(f"{time.time() - start:.0f} s")
