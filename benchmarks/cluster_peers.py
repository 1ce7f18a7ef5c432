"""What clusterings are compared with: diffprivlib's private k-means, and references that are not private at all.

python benchmarks/cluster_peers.py [--seeds N] [SET ...]

diffprivlib needs an older scikit-learn, so both live in an environment of their own (requirements/diffprivlib.txt),
made once by make, and get their points through files. Naive use of diffprivlib, afresh in each of 64 releases,
is `diffprivlib_kmeans` with an epsilon of 1/64 of the whole.
"""

import argparse
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from cluster_data import CACHE, SETS, Points, UnavailableError, available, run, scratch

ROOT = Path(__file__).parent.parent
LOCK, MADE = ROOT / "requirements" / "diffprivlib.txt", ".venv-diffprivlib/.installed"
EPSILON, CLUSTERS, ROWS = 1.0, 10, 22_000
# Beyond so many columns: fewer starts for the references.
WIDE, WIDE_STARTS = 100, 3
CHUNK = 16_384
# From the study (5.1; shuttle: 5.4), k = 10: the cost of one centre, and of diffprivlib, over that of Lloyd.
STUDY = {
    "gmm2": (9.81, 1.17),
    "gmm10": (6.61, 2.41),
    "gmm50": (7.07, 6.75),
    "cities": (30.70, 2.94),
    "flights": (4.49, 2.77),
    "shuttle": (3.84, 2.44),
    "mnist": (1.35, 21.17),
}

_PRIVATE = """
import sys
import numpy as np
from diffprivlib.models import KMeans

folder, k, epsilon, *seeds = sys.argv[1:]
points = np.load(folder + "/points.npy")
found = [
    KMeans(int(k), epsilon=float(epsilon), bounds=(-1, 1), random_state=int(seed)).fit(points).cluster_centers_
    for seed in seeds
]
np.save(folder + "/found.npy", np.array(found))
"""

_LLOYD = """
import sys
import numpy as np
from sklearn.cluster import KMeans

folder, k, starts = sys.argv[1:]
points = np.load(folder + "/points.npy")
np.save(folder + "/found.npy", KMeans(int(k), n_init=int(starts), random_state=0).fit(points).cluster_centers_)
"""


def there(script: str, purpose: str, arrays: Mapping[str, Points], *arguments: float | str) -> Points:
    """What a script in the environment of the peers makes of arrays: it finds them in files, and leaves found.npy."""
    run(["make", "-s", "-C", ROOT, MADE], "making the environment of the peers", f"make {MADE} must work here")
    python = (ROOT / MADE).parent / "bin" / "python"
    with scratch() as folder:
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
        command = [str(part) for part in (python, "-c", script, folder, *arguments)]
        run(command, purpose, f"remove {python.parents[1]} to make it anew")
        return np.load(folder / "found.npy")


def diffprivlib_kmeans(points: Points, k: int, epsilon: float, seeds: Sequence[int]) -> list[Points]:
    """The k centres of diffprivlib's epsilon-private k-means, a release a seed; it is told that coordinates are in +-1.

    It unpacks its split of the budget in the wrong order (0.6.6): with 5 columns or more it spends over epsilon.
    """
    return list(there(_PRIVATE, "diffprivlib", {"points": points}, k, epsilon, *seeds))


# Costs ---------------------------------------------------------------------------------------------------------------


def squared_distances(points: Points, centres: Points) -> Points:
    """From every point (row) to every centre (column)."""
    squares = np.einsum("ij,ij->i", points, points)[:, None] + np.einsum("ij,ij->i", centres, centres)
    squares -= 2 * (points @ centres.T)
    return np.maximum(squares, 0, out=squares)


def _nearest(points: Points, centres: Points) -> Points:
    """The squared distance of every point to the nearest centre."""
    starts = range(0, len(points), CHUNK)
    return np.concatenate([squared_distances(points[i : i + CHUNK], centres).min(axis=1) for i in starts])


def cost(points: Points, centres: Points) -> float:
    """The cost of k-means: the sum of squared distances to the nearest centre."""
    return float(_nearest(points, centres).sum())


def cost_median(points: Points, centres: Points) -> float:
    """The cost of k-median: the sum of distances to the nearest centre."""
    return float(np.sqrt(_nearest(points, centres)).sum())


# References that are not private -------------------------------------------------------------------------------------


def _remembered(name: str, points: Points, k: int, starts: int, make: Callable[[], Points]) -> Points:
    """Centres that were found for the same points before, or else now."""
    content = hashlib.sha256(LOCK.read_bytes() + f"{points.shape} {k} {starts}".encode())
    content.update(np.ascontiguousarray(points))
    file = CACHE / f"{name}-{content.hexdigest()[:32]}.npy"
    if not file.exists():
        centres = make()
        with scratch() as folder:
            np.save(folder / file.name, centres)
            (folder / file.name).replace(file)
    return np.load(file)


def lloyd(points: Points, k: int, *, seeds: int = 10) -> tuple[Points, float]:
    """The centres and the cost of scikit-learn's k-means, the best of so many starts (of 3 beyond 100 columns)."""
    starts = min(seeds, WIDE_STARTS) if points.shape[1] > WIDE else seeds
    centres = _remembered("lloyd", points, k, starts, lambda: there(_LLOYD, "Lloyd", {"points": points}, k, starts))
    return centres, cost(points, centres)


def _seeded(points: Points, k: int, rng: np.random.Generator) -> Points:
    """First centres as in k-means++, by distances: each the best of a few draws."""
    chosen = [int(rng.integers(len(points)))]
    distances = np.sqrt(_nearest(points, points[chosen]))
    while len(chosen) < k and distances.any():
        drawn = rng.choice(len(points), 2 + int(np.log(k)), p=distances / distances.sum())
        closer = np.minimum(distances[:, None], np.sqrt(squared_distances(points, points[drawn])))
        best = int(closer.sum(axis=0).argmin())
        chosen.append(int(drawn[best]))
        distances = closer[:, best]
    return points[chosen]


def _weiszfeld(points: Points, centres: Points, *, most: int = 100, tolerance: float = 1e-5) -> Points:
    """Centres after steps that never raise the cost: every point to its nearest, then one of Weiszfeld's for all."""
    costs = [np.inf]
    for _ in range(most):
        squares = squared_distances(points, centres)
        near = squares.argmin(axis=1)
        distances = np.sqrt(squares[np.arange(len(points)), near])
        costs.append(float(distances.sum()))
        if costs[-1] > (1 - tolerance) * costs[-2]:
            break
        weights = np.zeros_like(squares)
        # A centre that sits on a point may leave it.
        weights[np.arange(len(points)), near] = 1 / np.maximum(distances, 1e-6)
        totals = weights.sum(axis=0)
        # A centre without points stays where it is.
        held = totals > 0
        centres = centres.copy()
        centres[held] = (weights.T @ points)[held] / totals[held, None]
    return centres


def lloyd_median(points: Points, k: int, *, starts: int = 5) -> tuple[Points, float]:
    """The centres and the cost of k-median: the best of so many starts, of one from Lloyd's centres, and of those."""
    starts = min(starts, WIDE_STARTS) if points.shape[1] > WIDE else starts

    def make() -> Points:
        means = lloyd(points, k)[0]
        firsts = [means, *(_seeded(points, k, np.random.default_rng([k, seed])) for seed in range(starts))]
        return min([means, *(_weiszfeld(points, first) for first in firsts)], key=lambda own: cost_median(points, own))

    centres = _remembered("median", points, k, starts, make)
    return centres, cost_median(points, centres)


# The table -----------------------------------------------------------------------------------------------------------


def sample(points: Points, rows: int = ROWS, seed: int = 0) -> Points:
    """Some rows, without replacement."""
    return points[np.random.default_rng(seed).choice(len(points), min(rows, len(points)), replace=False)]


def row(name: str, points: Points, seeds: int) -> str:
    times = [time.perf_counter()]
    means, best = lloyd(points, CLUSTERS)
    times.append(time.perf_counter())
    found = []
    if points.shape[1] <= WIDE:
        found = [cost(points, own) for own in diffprivlib_kmeans(points, CLUSTERS, EPSILON, range(seeds))]
    times.append(time.perf_counter())
    median = lloyd_median(points, CLUSTERS)[1]
    times.append(time.perf_counter())
    single = cost(points, points.mean(axis=0, keepdims=True)) / best
    theirs = f"{np.mean(found) / best:13.2f}" if found else f"{'skipped':>13}"
    study = "".join(f"{value:8.2f}" for value in STUDY[name])
    seconds = "".join(f"{after - before:8.1f}" for before, after in pairwise(times))
    return f"{name:9}{single:8.2f}{theirs}{cost_median(points, means) / median:15.3f}   {study}   {seconds}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Peers and references for the benchmarks of clustering.")
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    names = options.sets or list(SETS)
    if unknown := set(names) - set(SETS):
        parser.error(f"expected sets among {', '.join(SETS)}, got {', '.join(sorted(unknown))}")
    print(f"k = {CLUSTERS}, {ROWS:,} random rows, epsilon = {EPSILON:g}, {options.seeds} seeds; costs over Lloyd's,")
    print("and of Lloyd's centres over those of k-median; seconds: Lloyd, diffprivlib, k-median")
    print(f"{'set':9}{'1-mean':>8}{'diffprivlib':>13}{'as k-median':>15}   {'study':>16}   {'seconds':>24}")
    for name, points in available(names):
        try:
            print(row(name, sample(points), options.seeds), flush=True)
        except UnavailableError as error:
            print(f"{name:9}skipped, {error}")


if __name__ == "__main__":
    main()
