"""Many rounds gathered at once are what is gathered of each alone, for every built-in statistic and any history."""

from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.coins import Coins
from retroact.oneshot import Median
from retroact.statistics.tally import Labelled
from support.totals import arrays

COINS = Coins(bytes(32))
SCHEMA = {
    "name": ra.Text(missing="skip"),
    "kind": ra.Category(["x", "y", "z"], missing="skip"),
    "age": ra.Integer(-20, 43, missing="skip"),
    "amount": ra.Number(-1, 1, step=0.5, missing="skip"),
    "near": ra.Vector(2, radius=1, step=0.25, missing="skip"),
    "far": ra.Vector(30, radius=1, step=0.25, missing="skip"),
}


def halves(columns):
    return np.stack([columns["age"] < 0, columns["age"] >= 0], axis=1).astype(int)


STATISTICS = {
    "count": ra.Count(where={"age": {"min": 0}}),
    "sum": ra.Sum("amount"),
    "mean by kind": ra.GroupBy("kind", ra.Mean("age")),
    "variance": ra.Variance("age"),
    "ratio": ra.Ratio(ra.Sum("amount"), ra.Count(), where={"kind": ["x", "y"]}),
    "query": ra.LinearQuery(halves, size=2, name="halves", norm1=1, norm2=1),
    "histogram": ra.Histogram("name"),
    "histogram of two": ra.Histogram(["kind", "name"], where={"age": {"max": 30}}),
    "sums": ra.Histogram("name", sum="age"),
    "declared": ra.Histogram("kind"),
    "distinct": ra.Distinct("name"),
    "distinct by kind": ra.Distinct("age", by="kind"),
    "quantiles": ra.Quantiles("age", [0.5]),
    "quantiles by kind": ra.Quantiles("age", [0.5], by="kind"),
    "restated": ra.Restated(ra.Histogram("name"), [0, 2]),
    "mapped": ra.Quantiles("age", [0.5]).map(str),
    "clusters": ra.KMeans("near", 2),
    "many dimensions": ra.KMeans("far", 2),
    "paper's clusters": ra.KMeans("near", 2, mode="theorem", levels=2, expected=50),
    "sample": ra.WindowSample(Median("age"), window=4, size=3),
}
HISTORIES = 100


def record(random):
    values = {
        "name": random.choice(["a", "b", "c\0", "c", ""]),
        "kind": random.choice("xyz"),
        "age": random.randint(-20, 43),
        "amount": random.choice([-1, -0.5, 0, 1]),
        "near": [random.choice([-0.5, 0, 0.5]) for _ in range(2)],
        "far": [random.choice([0, 0, 0, 0, 0, 0.25]) * random.choice([-1, 1]) for _ in range(30)],
    }
    return {name: None if random.random() < 0.1 else value for name, value in values.items()}


@pytest.fixture(scope="module")
def drawn():
    horizon = {"horizon": 16, "late": False}
    spec = ra.Specification(SCHEMA, STATISTICS, epsilon=20.0, delta=1e-6, **horizon)
    return spec.schema, {name: bound.drawn(COINS) for name, bound in spec.bounds.items()}


def of_one_round(bound, rows, weights, where):
    """Labels come in any order until they are named: then they are sorted."""
    totals = bound.gather(rows.take(where), weights[where])
    return bound.coordinates(totals), comparable(bound, totals)


def comparable(bound, totals):
    named = totals if isinstance(bound.statistic, ra.WindowSample) else bound.named(totals, COINS)
    shown = bound.coordinates(totals) if named is totals and isinstance(totals, Labelled) else None
    return shown if shown is not None else [array.tolist() for array in arrays(named)]


@pytest.mark.parametrize("name", STATISTICS)
def test_any_history_is_gathered_at_once_as_round_by_round(drawn, name):
    """Copies, deletions, records that cancel, missing values, conditions, rounds in which nothing counts."""
    schema, bounds = drawn
    random, bound = Random(name), bounds[name]
    known = [record(random) for _ in range(40)]
    every = schema.encode(known)[0]
    for _ in range(HISTORIES):
        count, last = random.choice([0, 1, 2, 12]), random.choice([1, 3, 40])
        rows = every.take(np.array([random.randrange(40) for _ in range(count)], dtype=np.int64))
        stamps = np.array([random.randint(1, 3) for _ in range(count)], dtype=np.int64)
        rows = type(rows)(rows.columns, rows.count, stamps, rows.missing)
        weights = np.array([random.choice([-2, -1, 1, 1]) for _ in range(count)], dtype=np.int64)
        rounds = np.array([random.randint(1, last) for _ in range(count)], dtype=np.int64)
        found = bound.gather_by(rows, weights, rounds)
        assert list(found) == sorted(set(rounds.tolist()))
        for round, totals in found.items():
            alone = of_one_round(bound, rows, weights, np.flatnonzero(rounds == round))
            assert (bound.coordinates(totals), comparable(bound, totals)) == alone
            assert comparable(bound, found[round]) == alone[1]
            assert all(array.base is None for array in arrays(totals)), "totals of one round share memory with others"


def test_a_round_without_a_change_is_not_there(drawn):
    schema, bounds = drawn
    rows = schema.encode([record(Random(1))])[0]
    one = np.ones(1, dtype=np.int64)
    for wanted in (2, 4):
        with pytest.raises(KeyError):
            bounds["histogram"].gather_by(rows, one, 3 * one)[wanted]
