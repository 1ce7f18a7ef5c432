"""k-means as the paper describes it (`mode="theorem"`) beside the default: costs over those of Lloyd.

python benchmarks/cluster_theorem.py [--seeds N] [--most BITS]

Ten Gaussians of equal weight in the unit ball, the last of 64 releases, (1, 10^-6)- or 1-private for all of them
together. *Overlapping* clusters are those of `cluster_data.gmm`: a deviation of 0.3 over centres anywhere in the
ball of radius 0.8. *Separated* ones have a deviation of 0.1 (over the square root of the dimension in each coordinate)
and centres at least 0.35 apart: a centre that is missed, or that two clusters share, costs many times what Lloyd does.
The radius and the number of records are told, and are right. Means over seeds, each with points and a key of its own.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

from cluster_data import Points, gmm
from cluster_peers import lloyd
from cluster_protocol import CLUSTERS, DELTA, EPSILON, RELEASES, Direct, ends, mean, over, statistic

BITS = (14, 16, 18, 20)
SEEDS = 3
APART, DEVIATION = 0.35, 0.1


def centres(d: int, k: int, rng: np.random.Generator) -> Points:
    """One after another, anywhere in the ball of radius 0.8 that is not near another one."""
    found = np.empty((0, d))
    while len(found) < k:
        drawn = rng.standard_normal(d)
        drawn *= 0.8 * rng.random() ** (1 / d) / np.linalg.norm(drawn)
        if (np.linalg.norm(found - drawn, axis=1) >= APART).all():
            found = np.vstack([found, drawn])
    return found


def separated(d: int, k: int, n: int, seed: int) -> Points:
    rng = np.random.default_rng([seed, d, k, 68])
    points = centres(d, k, rng)[rng.integers(0, k, n)] + DEVIATION / np.sqrt(d) * rng.standard_normal((n, d))
    return points * ((1 - 1e-12) / np.maximum(1, np.linalg.norm(points, axis=1, keepdims=True)))


CASES: Sequence[tuple[str, Callable[[int, int, int, int], Points], int, float]] = (
    ("overlapping", gmm, 2, DELTA),
    ("overlapping", gmm, 10, DELTA),
    ("overlapping", gmm, 2, 0.0),
    ("separated", separated, 2, DELTA),
    ("separated", separated, 10, DELTA),
)


def ratios(points: Points, seed: int, delta: float) -> tuple[float, float]:
    """Of the theorem and of the default."""
    best = lloyd(points, CLUSTERS)[1]
    found = []
    for mode in ("theorem", None):
        own = statistic(expected=len(points), mode=mode)
        released = Direct(points, own, seed, epsilon=EPSILON, delta=delta).at(RELEASES)
        found.append(over(points, released, best))
    return found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Theorem mode of k-means beside the default.")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--most", type=int, default=BITS[-1], help="at most 2^BITS records")
    options = parser.parse_args()
    start = time.process_time()
    print(
        f"Cost over Lloyd's, k = {CLUSTERS}, release {RELEASES} of {RELEASES}: mean (least-most), {options.seeds} seeds"
    )
    print(f"{'clusters':13}{'d':>3}{'delta':>8}{'records':>9}{'theorem':>19}{'default':>9}")
    for name, draw, dimension, delta in CASES:
        for bits in BITS:
            if bits > options.most:
                continue
            pairs = [ratios(draw(dimension, CLUSTERS, 1 << bits, seed), seed, delta) for seed in range(options.seeds)]
            theorem, default = zip(*pairs, strict=True)
            print(
                f"{name:13}{dimension:>3}{delta:>8g}{f'2^{bits}':>9}{ends(theorem):>19}{mean(default):>9}", flush=True
            )
    print(f"{time.process_time() - start:,.0f} s of the processor, beside Lloyd's")


if __name__ == "__main__":
    main()
