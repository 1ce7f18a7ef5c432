"""The protocol of the benchmark of clustering: streams of additions and deletions, and releases of what survives.

65,536 updates, each a deletion of a random survivor (probability 1/3) or else the addition of the next point, are 64
rounds of 1,024 updates with a release each; noise is by the release, so this is a stream of 65,536 rounds with
`every=1024`. About 22,000 points survive. A release is a function of the key, its number and the surviving points
(that is what retroactive means), so `Direct` gives any release of any specification without running the rounds before
it; `clustering.py` checks this against the streams that it does run.
"""

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import retroact as ra
from cluster_data import SETS, Points, gmm
from cluster_peers import cost
from retroact.noise.process import some_rounds
from retroact.privacy import GaussianDP, largest_mu
from retroact.statistics.bound import At

EPSILON, DELTA, CLUSTERS = 1.0, 1e-6, 10
UPDATES, RELEASES = 1 << 16, 64
SURVIVORS = 22_000
SAMPLED = 1 << 12

warnings.simplefilter("ignore", ra.HorizonWarning)


@dataclass(frozen=True)
class Round:
    """Numbers of points: those that come, and then those that go."""

    added: list[int]
    deleted: list[int]


def updates(seed: int) -> tuple[list[Round], list[int]]:
    """The rounds, and who survives them all."""
    rng = np.random.default_rng([seed, 65])
    coins, picks = rng.random(UPDATES), rng.random(UPDATES)
    rounds, alive, count = [], [], 0
    for start in range(0, UPDATES, UPDATES // RELEASES):
        own = Round([], [])
        for i in range(start, start + UPDATES // RELEASES):
            if alive and coins[i] < 1 / 3:
                where = int(picks[i] * len(alive))
                alive[where], alive[-1] = alive[-1], alive[where]
                own.deleted.append(alive.pop())
            else:
                own.added.append(count)
                alive.append(count)
                count += 1
        rounds.append(own)
    return rounds, sorted(alive)


class History:
    """A set of points in random order, and what a stream does with them."""

    def __init__(self, points: Points, seed: int) -> None:
        self.rounds, alive = updates(seed)
        order = np.random.default_rng([seed, 66]).permutation(len(points))
        self.points = points[order[: self.rounds[-1].added[-1] + 1]]
        self.survivors = self.points[alive]


def points_of(name: str, seed: int) -> Points:
    """A skewed mixture for each seed, which nothing was tuned on; the other sets are the same for all seeds."""
    return gmm(10, CLUSTERS, 50_000, 100 + seed, skew=True) if name == "skewed10" else SETS[name]()


def histories(name: str, seeds: int) -> Iterator[tuple[int, History]]:
    for seed in range(seeds):
        yield seed, History(points_of(name, seed), seed)
        print(f"  {name}, seed {seed + 1} of {seeds} done at {time.process_time():,.0f} s", file=sys.stderr, flush=True)


def schema(dimension: int, finer: float = 1) -> ra.Schema:
    """Points of the unit ball; finer steps where they lie in a small part of it."""
    return ra.Schema({"p": ra.Vector(dimension, radius=1, step=2.0 ** -(16 + math.ceil(math.log2(finer))), clip=True)})


def statistic(kind: type[ra.KMeans] = ra.KMeans, k: int = CLUSTERS, **hints: Any) -> ra.KMeans:
    return kind("p", k, **{"expected": SURVIVORS, **hints})


def specification(own: Any, dimension: int, *, finer: float = 1, **budget: Any) -> ra.Specification:
    budget = {"epsilon": EPSILON, "delta": DELTA, "horizon": RELEASES, **budget}
    return ra.Specification(schema(dimension, finer), {"c": own}, **budget)


class Direct:
    """Releases of given points under a key."""

    def __init__(self, points: Points, own: Any, seed: int, **budget: Any) -> None:
        spec = specification(own, points.shape[1], **budget)
        self.noise = spec.mechanism("c", ra.Key.for_testing(seed).coins("stream"))
        self.own = spec.bounds["c"].drawn(self.noise.coins)
        self.schema, self.horizon = spec.schema, spec.horizon
        self.rows, _ = spec.schema.encode({"p": points})
        self.totals = self.own.gather(self.rows, np.ones(len(points), dtype=np.int64))

    def at(self, index: int) -> Any:
        return self.own.release([self.totals], self.noise, At(index, index)).answer.value

    @cached_property
    def _variances(self) -> tuple[NDArray[np.int64], Points]:
        """Of some releases; all coordinates have their share of the same process."""
        sampled = some_rounds(self.horizon, SAMPLED)
        return sampled, self.noise.variances_of(0, sampled)

    @property
    def noisiest(self) -> int:
        rounds, variances = self._variances
        return int(rounds[variances.argmax()])

    @property
    def typical(self) -> int:
        """The release whose noise is nearest to the median."""
        rounds, variances = self._variances
        return int(rounds[np.abs(variances - np.median(variances)).argmin()])

    def deviation(self, index: int) -> float:
        return self.noise.deviation_of(0, index)


def streamed(history: History, own: Any, seed: int, **budget: Any) -> Any:
    """The last release of a stream in which points come and go by their ids."""
    spec = specification(own, history.points.shape[1], **budget)
    stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(seed))
    for round in history.rounds:
        stream.add({"p": history.points[round.added]}, id=[str(i) for i in round.added])
        if round.deleted:
            stream.delete(id=[str(i) for i in round.deleted])
        released = stream.close_round()["c"]
    assert stream.records == len(history.survivors)
    return released.value


def naive_budget(times: int = RELEASES) -> dict[str, float]:
    """What each of so many runs with fresh Gaussian noise may spend: mu / sqrt(times), as an epsilon at the delta."""
    mu = float(largest_mu(EPSILON, DELTA)) / math.sqrt(times)
    return {"epsilon": GaussianDP(mu).epsilon(DELTA), "delta": DELTA, "horizon": 1}


# Drift ---------------------------------------------------------------------------------------------------------------


class Drift:
    """Clusters on their way from one place to another while points come and go; the first is erased after half."""

    def __init__(self, dimension: int, k: int, seed: int) -> None:
        self.rounds, _ = updates(seed)
        self.k, self.half = k, RELEASES // 2
        rng = np.random.default_rng([seed, dimension, k, 67])
        ends = rng.standard_normal((2, k, dimension))
        ends *= 0.8 * rng.random((2, k, 1)) ** (1 / dimension) / np.linalg.norm(ends, axis=2, keepdims=True)
        count = self.rounds[-1].added[-1] + 1
        when = np.concatenate([np.full(len(r.added), number) for number, r in enumerate(self.rounds)])
        late = when >= self.half
        # What is erased does not come again.
        self.cluster = np.where(late, rng.integers(1, k, count), rng.integers(0, k, count))
        way = (when / RELEASES)[:, None]
        points = (1 - way) * ends[0][self.cluster] + way * ends[1][self.cluster]
        points += 0.3 / math.sqrt(dimension) * rng.standard_normal((count, dimension))
        self.points = points * ((1 - 1e-12) / np.maximum(1, np.linalg.norm(points, axis=1, keepdims=True)))

    def releases(self, seed: int, *, without: bool = False) -> list[tuple[Any, Points]]:
        """Every release and the points it is about; or of the stream that the first cluster never came to."""
        spec = specification(statistic(k=self.k), self.points.shape[1])
        stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(seed))
        alive = np.zeros(len(self.points), dtype=bool)
        out = []
        for number, round in enumerate(self.rounds):
            added = [i for i in round.added if not without or self.cluster[i] > 0]
            names = [f"cluster {self.cluster[i]}" for i in added]
            stream.add({"p": self.points[added]}, id=[str(i) for i in added], subject=names)
            if round.deleted:
                stream.delete(id=[str(i) for i in round.deleted])
            alive[added] = True
            alive[round.deleted] = False
            if number == self.half:
                stream.erase(subject="cluster 0")
                alive &= self.cluster > 0
            out.append((stream.close_round()["c"], self.points[alive]))
        return out


# Numbers -------------------------------------------------------------------------------------------------------------


def over(points: Points, centres: Any, best: float, measure: Callable[[Points, Points], float] = cost) -> float:
    """The cost of centres over the best that is known."""
    return measure(points, np.asarray(centres)) / best


def ends(values: Sequence[float]) -> str:
    return f"{np.mean(values):.2f} ({min(values):.2f}-{max(values):.2f})" if len(values) else "-"


def mean(values: Sequence[float]) -> str:
    return f"{np.mean(values):.2f}" if len(values) else "-"


def size_of(totals: Any) -> int:
    """Bytes of the arrays that are kept between rounds."""
    return sum(sum(a.nbytes for a in (*t.words, t.amounts)) if hasattr(t, "words") else t.nbytes for t in totals)


def best_of(function: Callable[[], object], calls: int = 7) -> tuple[float, float]:
    """Milliseconds of the processor and on the clock, the least of some calls each."""
    taken = []
    for _ in range(calls):
        start = time.process_time(), time.perf_counter()
        function()
        taken.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    return 1e3 * min(one for one, _ in taken), 1e3 * min(other for _, other in taken)
