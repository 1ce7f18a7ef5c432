"""What is published of every statistic, process and option: streams by name, each a function that yields releases.

Law and noise are named everywhere, and where a statistic takes no ``noise=``, the process is fixed by ``chosen``: what
a stream takes by default may change one day, and these may not.
"""

import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
from golden_history import ROUNDS, SCHEMA, happen

import retroact as ra
from retroact.coins import DiscreteLaplace
from retroact.compilers.maps import GaussianMap, RankMap
from retroact.ledger.definition import Add, Delete
from retroact.noise import Oblivious
from retroact.oneshot import BlockCDF, InteriorPoint, Median, Own, Quantile, QuantilePoints
from retroact.paper import TreeLog
from retroact.stateful import FlippancyTracker, MedianTracker
from retroact.stream.choosing import Choice

Stream = Callable[[], Iterator[bytes]]
DELTAS = {"laplace": 0.0, "gaussian": 1e-6}


def specification(statistics, *, law, chosen=None, epsilon=12.0, horizon=ROUNDS, **options):
    spec = ra.Specification(
        SCHEMA, statistics, law=law, epsilon=epsilon, horizon=horizon, **{"delta": DELTAS[law], **options}
    )
    return spec.replace(choice=Choice(law, {**spec.choice.noise, **chosen})) if chosen else spec


def planned(statistics, **options):
    """A specification that is made when it is asked for."""
    return partial(specification, statistics, **options)


def published(make):
    """The whole history in one stream."""
    stream = ra.Stream.from_specification(make(), key=ra.Key.for_testing(1))
    yield from played(stream, range(1, ROUNDS + 1))


def played(stream, rounds):
    for round in rounds:
        happen(stream, round, late=stream.specification.late)
        for release in stream.close_round().values():
            yield release.encode()


# Statistics that are linear ------------------------------------------------------------------------------------------


def _ages(columns):
    return np.stack([columns["age"] < 18, columns["age"] >= 65, columns["country"] == 0], axis=1).astype(np.int64)


def _tens(value):
    return round(value, -1)


def _jittered(value, shared, fresh):
    return value + sum(int(coins.words([0], [0]).block(0)[0][0, 0] % 7) for coins in (shared, fresh))


def linear(noise, **options):
    given = {"noise": noise, **options}
    return {
        "count": ra.Count(**given),
        "count, where": ra.Count(
            where={"country": ["DE", "IT"], "age": {"min": 20, "max": 80}, "city": "Köln"}, **given
        ),
        "sum": ra.Sum("amount", weight=2.5, **given),
        "sum, truth values": ra.Sum("member", where={"size": 3}, **given),
        "sum, vector": ra.Sum("place", **given),
        "mean": ra.Mean("age", **given),
        "variance": ra.Variance("amount", **given),
        "query": ra.LinearQuery(
            _ages, size=3, norm1=2, norm2=2, name="ages", labels=["young", "old", "DE"], fields=["age", "country"],
            **given,
        ),
        "groups": ra.GroupBy("country", ra.Count(**given)),
        "groups of two": ra.GroupBy(["country", "member"], ra.Mean("age", **given)),
        "bins": ra.Histogram("country", **given),
        "bins, listed": ra.Histogram("city", bins=["Lyon", "Köln", "Rom"], sum="amount", **given),
        "mapped": ra.Count(**given).map(_tens, name="tens"),
        "mapped with coins": ra.Sum("amount", **given).map(_jittered, name="jitter", coins=True),
    }  # fmt: skip


def one(noise, **options):
    """The smaller half of them."""
    wanted = ("count", "sum", "mean", "groups", "bins, listed", "mapped with coins")
    return {name: statistic for name, statistic in linear(noise, **options).items() if name in wanted}


def linear_streams():
    for law in DELTAS:
        for noise in ("schauder", "bridge", "tree", "fresh", "paper"):
            make = linear if noise in ("schauder", "bridge") else one
            yield f"linear, {law}, {noise}", planned(make(noise), law=law, epsilon=30.0)
        for noise in ("schauder", "bridge"):
            yield f"windows, {law}, {noise}", planned(one(noise, window=3) | {"all": ra.Count(noise=noise)}, law=law)
            yield f"a window without end, {law}, {noise}", planned(one(noise), law=law, window=3, horizon=None)
            yield f"without end, {law}, {noise}", planned(one(noise), law=law, horizon=None)
            yield f"every second round, {law}, {noise}", planned(one(noise, every=2), law=law)
            yield (
                f"windows every second round, {law}, {noise}",
                planned(one(noise, every=2, window=4), law=law, horizon=None),
            )
        yield f"windows, {law}, fresh", planned(one("fresh"), law=law, window=3)
        yield f"a window without end, {law}, fresh", planned(one("fresh", window=2), law=law, horizon=None)
        yield f"without end, {law}, doubling", planned(one("doubling"), law=law, horizon=None)
        mine = Oblivious(DiscreteLaplace(50), "fifty", epsilon=0.02)
        yield (
            f"law of one's own, {law}",
            planned(
                {
                    "own": ra.Count(noise=mine),
                    "own groups": ra.GroupBy("country", ra.Sum("amount", noise=mine)),
                    "beside": ra.Count(noise="schauder"),
                },
                law=law,
            ),
        )
        yield (
            f"no late data, {law}",
            planned(
                {"n": ra.Count(noise="schauder"), "h": ra.Histogram("country", noise="bridge")},
                law=law,
                late=False,
                records=500,
                weights={"n": 2, "h": 0.5},
            ),
        )


# Statistics by key ---------------------------------------------------------------------------------------------------


def bins(noise):
    return {
        "one field": ra.Histogram("city", noise=noise),
        "several fields": ra.Histogram(["country", "member"], sum="amount", noise=noise),
        "bytes": ra.Histogram("tag", noise=noise, where={"amount": {"min": 5}}),
        "days": ra.Histogram("day", noise=noise, window=4)
        if noise not in ("paper", "tree")
        else ra.Histogram("day", noise=noise),
        "adaptive": ra.Histogram("size", bins=["small", 3], noise=noise, adaptive=True, weight=0.02),
        "at most": ra.Histogram("city", most_bins=5, adaptive=True, noise=noise, every=2, weight=0.3),
    }


def values(noise):
    return {
        "ages": ra.Quantiles("age", [0.1, 0.5, 0.9], cdf=[18, 65], counts=[(10, 20), (30, 30)], noise=noise),
        "amounts": ra.Quantiles("amount", [0.5], noise=noise, where={"member": True}),
        "days": ra.Quantiles("day", [0.25, 0.75], cdf=["2026-06-30"], noise=noise),
        "moments": ra.Quantiles("at", [0.5], counts=[("2026-02-01T00:00:00Z", "2026-09-01T00:00:00Z")], noise=noise),
        "distances": ra.Distances("place", [0.5, 0.9], radius=3, noise=noise),
        "distances of numbers": ra.Distances(
            ["x", "y"], [0.5], cdf=[1], radius=6, centre=[0.5, 0], scale=[1, 2], noise=noise
        ),
    }


def clusters(noise):
    return {
        "grid": ra.KMeans(["x", "y"], 2, 5, mode="grid", levels=3, clip=True, noise=noise),
        "grid, medians": ra.KMedian("place", 2, mode="grid", levels=2, expected=50, noise=noise),
        "hash": ra.KMeans("deep", 2, mode="hash", bits=3, expected=50, noise=noise),
        "hash, medians": ra.KMedian("deep", 2, 0.5, mode="hash", bits=2, clip=True, noise=noise),
        "scaled": ra.KMeans(
            ["x", "y", "age"], 3, 8, mode="grid", levels=2, centre=[0, 0, 50], scale=[1, 1, "12.5"], clip=True,
            where={"country": ["DE", "FR"]}, noise=noise,
        ),
    }  # fmt: skip


def theorem(noise):
    return {
        "means": ra.KMeans(["x", "y"], 2, 6, mode="theorem", levels=2, expected=50, noise=noise),
        "medians": ra.KMedian("place", 2, mode="theorem", levels=2, expected=50, noise=noise),
    }


def keyed_streams():
    for law in DELTAS:
        for noise, epsilon in {"schauder": 60.0, "bridge": 60.0, "tree": 90.0, "fresh": 120.0, "paper": 240.0}.items():
            yield f"bins, {law}, {noise}", planned(bins(noise), law=law, epsilon=epsilon, delta=0.05)
        for noise in ("schauder", "bridge"):
            yield f"values, {law}, {noise}", planned(values(noise), law=law, epsilon=100.0)
            yield f"clusters, {law}, {noise}", planned(clusters(noise), law=law, epsilon=200.0)
        yield f"clusters of the theorem, {law}", planned(theorem("schauder"), law=law, epsilon=100.0)
        yield f"values, {law}, tree", planned(values("tree"), law=law, epsilon=100.0)
        yield f"clusters without end, {law}", planned(clusters("schauder"), law=law, epsilon=300.0, horizon=None)
        yield (
            f"bins and values of a window, {law}",
            planned(
                {
                    "bins": ra.Histogram("city", noise="bridge"),
                    "ages": ra.Quantiles("age", [0.5], noise="schauder"),
                    "two": ra.KMeans("place", 2, mode="grid", levels=2, noise="schauder"),
                },
                law=law,
                epsilon=30.0,
                delta=0.05,
                window=3,
                horizon=None,
            ),
        )
        yield f"bins without end, {law}", planned(
            {"bins": ra.Histogram("city", noise="schauder"), "doubling": ra.Histogram("tag", noise="doubling")},
            law=law, epsilon=30.0, delta=0.05, horizon=None,
        )  # fmt: skip


def restated_streams():
    for law in DELTAS:
        for across in ("lags", "rectangle"):
            noise = "schauder" if law == "gaussian" else "bridge"
            statistics = {
                "count": ra.Count(noise=noise),
                "sum": ra.Sum("amount", noise="schauder", every=2),
                "groups": ra.GroupBy("country", ra.Mean("age", noise=noise)),
                "bins": ra.Histogram("city", noise=noise),
                "ages": ra.Quantiles("age", [0.5], noise=noise),
                "two": ra.KMeans("place", 2, mode="grid", levels=2, noise=noise),
                "hash": ra.KMeans("deep", 2, mode="hash", bits=2, noise=noise),
                "mapped": ra.Count(noise=noise).map(_jittered, name="jitter", coins=True),
            }
            restated = {name: ra.Restated(each, [0, 1, 3], across=across) for name, each in statistics.items()}
            yield f"restated, {across}, {law}", planned(restated, law=law, epsilon=300.0, delta=1e-2)
        windowed = {
            "count": ra.Restated(ra.Count(noise="bridge", window=3), [0, 2], across="lags"),
            "bins": ra.Restated(ra.Histogram("country", noise="schauder", window=2), [1], across="lags"),
        }
        yield f"restated windows, {law}", planned(windowed, law=law, horizon=None)
        inside = ra.Restated(ra.Count(noise="tree"), [1, 2], across="lags")
        yield (
            f"restated and mapped, {law}",
            planned({"mapped": inside.map(_jittered_all, name="jitter", coins=True)}, law=law),
        )


def _jittered_all(value, shared, fresh):
    return {past: _jittered(each, shared, fresh) for past, each in value.items()}


def distinct_streams():
    for law in DELTAS:
        for process in ("any rounds", "fresh", "by size"):
            statistics = {
                "cities": ra.Distinct("city", form="releases"),
                "pairs": ra.Distinct(["country", "tag"], form="releases", where={"age": {"min": 20}}),
            }
            chosen = dict.fromkeys(statistics, process)
            yield f"distinct, {process}, {law}", planned(statistics, law=law, chosen=chosen)
        for process in ("any rounds", "fresh"):
            yield (
                f"distinct of a window, {process}, {law}",
                planned(
                    {"ages": ra.Distinct("age", form="releases", window=3)},
                    law=law,
                    chosen={"ages": process},
                    horizon=None,
                    epsilon=3.0,
                ),
            )
        yield (
            f"distinct without end, {law}",
            planned(
                {"days": ra.Distinct("day", form="releases", every=2)},
                law=law,
                chosen={"days": "any rounds"},
                horizon=None,
            ),
        )
        yield f"distinct, flips, {law}", planned(
            {"cities": ra.Distinct("city", form="flips", flips=3), "ages": ra.Distinct("age", form="flips", flips=1)},
            law=law, chosen={"cities": "flips", "ages": "flips"},
        )  # fmt: skip
        yield f"distinct, blocks, {law}", planned(
            {"cities": ra.Distinct("city", form="blocks", block=2, additions=6),
             "ages": ra.Distinct("age", form="blocks", block=4, additions=6, every=2)},
            law=law, chosen={"cities": "blocks 2", "ages": "blocks 4"}, late=False,
        )  # fmt: skip


# Samples -------------------------------------------------------------------------------------------------------------


def _size(columns, coins):
    return len(columns["age"]) + int(DiscreteLaplace(4).sample(coins.words([0], [0]))[0, 0])


def sample_streams():
    """The process is that of the gate; without one it is `fresh`, and nothing is drawn from it."""
    algorithms = {
        "median": Median("age"),
        "interior point": InteriorPoint("amount"),
        "quantile": Quantile("day", 0.25),
        "quantiles": QuantilePoints("age", [0.1, 0.5, 0.9]),
        "own": Own(_size, epsilon=0.25, name="size", fields=["age"]),
        "priced": Median("at", epsilon=0.5),
    }
    for law, delta in (("laplace", 0.1), ("gaussian", 0.1)):
        forms = {
            "whole": {},
            "fresh": {"size": 8, "occupancy": 10},
            "Poisson": {"rate": 0.5},
            "ranks": {"size": 8, "occupancy": 10, "persistent": True},
            "coins": {"rate": Fraction(1, 2), "persistent": True},
        }
        for form, options in forms.items():
            statistics = {name: ra.WindowSample(of, window=4, **options) for name, of in algorithms.items()}
            yield f"samples, {form}, {law}", planned(
                statistics, law=law, chosen=dict.fromkeys(statistics, "fresh"), epsilon=100.0, delta=delta,
                late=form not in ("ranks", "coins"),
            )  # fmt: skip
        rich = {
            "tree": ra.WindowSample(TreeLog("age", delta=1e-4, depth=1), window=8, weight=0.3),
            "deeper tree": ra.WindowSample(TreeLog("amount", delta=1e-4, beta=0.5, depth=2), window=8, rate=0.75),
            "blocks": ra.WindowSample(BlockCDF("age", 3, delta=1e-4), window=4),
            "blocks of a sample": ra.WindowSample(BlockCDF("age", 4, delta=1e-4), window=6, rate=0.5),
        }
        yield (
            f"samples with much to spend, {law}",
            planned(rich, law=law, chosen=dict.fromkeys(rich, "fresh"), epsilon=1000.0, delta=delta),
        )
        gated = {
            "gate": ra.WindowSample(Median("age"), window=4, size=6, gate=8),
            "gate of one's own price": ra.WindowSample(
                Median("age"), window=4, rate=0.5, gate=ra.Gate(10, epsilon=4.0)
            ),
            "every": ra.WindowSample(Median("amount"), window=4, every=2, gate=12, where={"country": ["DE", "FR"]}),
        }
        for process in ("fresh", "windowed schauder", "windowed bridge"):
            yield (
                f"gates, {process}, {law}",
                planned(gated, law=law, chosen=dict.fromkeys(gated, process), epsilon=200.0, delta=delta, horizon=64),
            )
        paper = {
            "paper": ra.WindowSample(Median("age"), window=4, size=2, occupancy=10, accounting="paper"),
            "gate": ra.WindowSample(
                Median("age"), window=4, size=2, gate=ra.Gate(12, epsilon=40.0, noise="paper"), accounting="paper"
            ),
        }
        yield (
            f"samples of the paper, {law}",
            planned(paper, law=law, chosen={"paper": "fresh", "gate": "paper"}, epsilon=200.0, delta=delta),
        )
        yield f"samples beside a count, {law}", planned(
            {"n": ra.Count(noise="bridge", weight=0.05),
             "median": ra.WindowSample(Median("age"), window=3).map(_tens_of_some, name="tens")},
            law=law, chosen={"median": "fresh"}, epsilon=20.0, delta=1e-3,
        )  # fmt: skip


def _tens_of_some(value):
    return None if value is None else str(value)


# Streams that last, and those that go on -----------------------------------------------------------------------------


def lasting(law):
    return specification(
        {
            "count": ra.Count(noise="schauder"),
            "window": ra.Sum("amount", window=3, noise="bridge"),
            "bins": ra.Histogram(["city", "tag"], noise="schauder"),
            "ages": ra.Quantiles("age", [0.5], noise="bridge"),
            "two": ra.KMeans("place", 2, mode="grid", levels=2, noise="schauder"),
            "past": ra.Restated(ra.Count(noise="bridge"), [0, 2], across="lags"),
            "cities": ra.Distinct("city", form="releases"),
            "median": ra.WindowSample(Median("age"), window=3),
        },
        law=law, chosen={"cities": "any rounds", "median": "fresh"}, epsilon=100.0, delta=1e-2,
    )  # fmt: skip


def restored(law):
    """In memory: every two rounds it goes on from its state."""
    spec, key = lasting(law), ra.Key.for_testing(1)
    stream = ra.Stream.from_specification(spec, key=key)
    for first in range(1, ROUNDS, 2):
        yield from played(stream, (first, first + 1))
        stream = ra.Stream.from_state(spec, stream.state(), key=key)


def reopened(law):
    """In a store: it is closed and opened again within rounds and between them."""
    key = ra.Key.for_testing(1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "shop"
        ra.Stream.open(place, specification=lasting(law), key=key).close()
        for round in range(1, ROUNDS + 1):
            with ra.Stream.open(place, key=key) as stream:
                happen(stream, round)
            with ra.Stream.open(place, key=key) as stream:
                for release in stream.close_round().values():
                    yield release.encode()


def followed(law):
    """By a successor, in the middle of a round, under a key of its own."""
    spec = lasting(law)
    stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(1))
    yield from played(stream, range(1, 4))
    happen(stream, 4)
    later = stream.successor(epsilon=100.0, delta=1e-2, horizon=ROUNDS, key=ra.Key.for_testing(2))
    for release in later.close_round().values():
        yield release.encode()
    yield from played(later, range(5, ROUNDS + 1))


# Algorithms that remember --------------------------------------------------------------------------------------------


def updates(round):
    """Values that come, go and come back."""
    added = [Add(value) for value in (round, round * 7 % 20, round * 7 % 20)]
    return [*added, Delete((round - 1) * 7 % 20, round - 1)] if round > 1 else added


def tracked(algorithm):
    base = algorithm()
    for round in range(1, ROUNDS + 1):
        yield base.close(updates(round)).encode()


def tracker(**options):
    return FlippancyTracker(ROUNDS, epsilon=20.0, delta=1e-3, key=ra.Key.for_testing(1), **options)


def median_tracker():
    return MedianTracker(0, 31, ROUNDS, epsilon=60.0, delta=1e-2, records=100, key=ra.Key.for_testing(1))


def smoothed(base, map, **options):
    return ra.smooth(base(), map=map, key=ra.Key.for_testing(2), **options)


def stateful_streams():
    yield "tracker", tracker
    yield "tracker of few flips", partial(tracker, flips=2)
    yield "median tracker", median_tracker
    yield "smoothed count", partial(smoothed, tracker, GaussianMap(), failure=1e-3, error=30.0, alpha=2.0, beta=1e-3)
    yield (
        "smoothed count, as in the paper",
        partial(
            smoothed, tracker, GaussianMap(calibration="paper"), failure=1e-3, error=30.0, alpha=0.5, beta=1e-3, block=2
        ),
    )
    yield "smoothed median", partial(smoothed, median_tracker, RankMap(0, 31), failure=1e-3, alpha=4.0)


def streams() -> dict[str, Stream]:
    """By name; each is run when it is called."""
    found: dict[str, Stream] = {}
    for every in (linear_streams, keyed_streams, restated_streams, distinct_streams, sample_streams):
        found |= {name: partial(published, make) for name, make in every()}
    for name, own in (("restored", restored), ("reopened", reopened), ("followed", followed)):
        found |= {f"{name}, {law}": partial(own, law) for law in DELTAS}
    return found | {name: partial(tracked, algorithm) for name, algorithm in stateful_streams()}
