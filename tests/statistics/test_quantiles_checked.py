"""Quantiles pass every generic check, keep nothing of what was deleted, and planted bugs are caught."""

import types
from datetime import date
from random import Random
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import retroact as ra
from retroact.ledger import Ledger
from retroact.noise import Mechanism, Spread
from retroact.schema import Rows
from retroact.statistics.tally import Tally
from retroact.statistics.value_tree import ValueTree, nodes_of
from retroact.testing import (
    CheckFailedError,
    Shape,
    StreamAlgorithm,
    check_statistic,
    check_twin,
    history,
    uniting_pairs,
    values_of,
)
from support.in_bound import Planted
from support.quantile_streams import BOTH, HIGHEST, LOWEST, PROBABILITIES, Silent, specification, tally, totals_of
from support.tiers import in_full, in_turns

SCHEMA = {
    "age": ra.Integer(0, 99),
    "amount": ra.Number(-10, 500, step=0.25),
    "day": ra.Date("2020-01-01", "2029-12-31"),
    "at": ra.Timestamp("2020-01-01T00:00:00Z", "2020-01-08T00:00:00Z", step=60),
    "member": ra.Boolean(),
}
WIDE = {"v": ra.Integer(LOWEST, HIGHEST)}
ONE = {"v": ra.Integer(5, 5)}
VARIANTS = {
    "quartiles": (ra.Quantiles("age"), SCHEMA),
    "both ends": (ra.Quantiles("age", [0, 1, 0.5]), SCHEMA),
    "window": (ra.Quantiles("age", window=3), SCHEMA),
    "every": (ra.Quantiles("age", every=2), SCHEMA),
    "where": (ra.Quantiles("age", where={"member": True, "age": {"min": 10}}), SCHEMA),
    "with cdf and counts": (ra.Quantiles("age", [0.5], cdf=[50, 17], counts=[(0, 9), (5, 99)]), SCHEMA),
    "counts alone": (ra.Quantiles("age", [], counts=[(18, 65)]), SCHEMA),
    "numbers": (ra.Quantiles("amount", cdf=[0.0, 99.75]), SCHEMA),
    "dates": (ra.Quantiles("day", counts=[(date(2021, 1, 1), date(2021, 12, 31))]), SCHEMA),
    "moments": (ra.Quantiles("at", cdf=["2020-01-02T00:00:00Z"]), SCHEMA),
    "64 bits": (ra.Quantiles("v", cdf=[0], counts=[(LOWEST, HIGHEST)]), WIDE),
    "one value": (ra.Quantiles("v", cdf=[5], counts=[(5, 5)]), ONE),
    "mapped": (ra.Quantiles("age").map(lambda value: value[0.5], name="median"), SCHEMA),
}


def plenty(statistic, schema, delta):
    """Enough for the few records of generated histories to be told from none."""
    return (10.0 if delta else 4.0) * float(statistic.layout(ra.Schema(schema)).norm1)


# What is not of quantiles alone is checked of other statistics too: here in the slow tier, with all other pairs.
COMMON = ("every", "counts alone", "dates", "mapped")
CASES = [
    in_full(*case) if type(case) is tuple and case[0] in COMMON else case
    for case in in_turns(VARIANTS, (0.0, 1e-6), always=["quartiles"])
]


# All the generic checks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draws", [300, in_full(500)])
@pytest.mark.parametrize(("name", "delta"), CASES)
def test_every_variant_passes_every_check(name, delta, draws):
    statistic, schema = VARIANTS[name]
    ran = check_statistic(
        statistic,
        schema,
        epsilon=plenty(statistic, schema, delta),
        deltas=(delta,),
        horizons=(8, None) if name == "quartiles" and delta else (8,),
        pairs=15 if name == "quartiles" and not delta else 4,
        draws=draws,
    )
    assert {"twin", "sensitivity", "noise law", "oblivious noise", "bounded state"} <= set(ran)


def busy(schema, random):
    """Histories with enough in them for descents to go their ways."""
    return Shape(values_of(ra.Schema(schema), random, 30), rounds=6, updates=15)


@pytest.mark.parametrize(("name", "delta"), CASES)
def test_busy_histories_that_unite(name, delta):
    statistic, schema = VARIANTS[name]
    epsilon = plenty(statistic, schema, delta)
    spec = ra.Specification(schema, {"q": statistic}, epsilon=epsilon, delta=delta, horizon=6)
    pairs = uniting_pairs(busy(schema, Random(0)), Random(12), 8)
    assert check_twin(lambda key: StreamAlgorithm(spec, key), pairs, keys=(1,)) > 8


@BOTH
@pytest.mark.parametrize("name", ["quartiles", "numbers", "64 bits"])
def test_the_checks_see_values(name, delta):
    """In most rounds of these histories there is a median, and it moves."""
    statistic, schema = VARIANTS[name]
    epsilon = plenty(statistic, schema, delta)
    spec = ra.Specification(schema, {"q": statistic}, epsilon=epsilon, delta=delta, horizon=6)
    shape, random = busy(schema, Random(0)), Random(3)
    medians = []
    for seed in range(8):
        algorithm = StreamAlgorithm(spec, ra.Key.for_testing(seed))
        medians += [algorithm.release(updates)["q"].value[0.5] for updates in history(shape, random)]
    assert sum(m is not None for m in medians) > 0.6 * len(medians)
    assert len(set(medians)) > 10


# Retroactivity --------------------------------------------------------------------------------------------------------


@BOTH
def test_a_history_with_junk_answers_like_one_without(delta):
    """Much junk comes, shuffled among the records, and goes again in two portions: from then on every byte is equal."""
    random = np.random.default_rng(8)
    quantiles = ra.Quantiles("v", PROBABILITIES, cdf=[100, 50_000], counts=[(0, 30_000)])
    spec = specification(quantiles, ra.Integer(0, 65_535), delta=delta, horizon=8)
    clean, dirty = (ra.Stream.from_specification(spec, key=ra.Key.for_testing(1)) for _ in range(2))
    junk = random.integers(0, 65_536, 2000)
    for round in range(1, 9):
        values = random.integers(10_000, 40_000, 500)
        clean.add({"v": values})
        dirty.add({"v": random.permutation(np.concatenate([values, junk]) if round == 2 else values)})
        if round in (4, 5):
            dirty.delete({"v": random.permutation(junk[round - 4 :: 2])}, stamp=2)
        one, other = clean.close_round()["q"], dirty.close_round()["q"]
        united = round not in (2, 3, 4)
        assert (one == other) is united
        assert (one.to_dict() == other.to_dict()) is united
        assert (one.interval(0.5) == other.interval(0.5)) is united
        if united:
            assert one.encode() == other.encode()
            assert one.value.cdf_interval() == other.value.cdf_interval()
            assert clean.state() == dirty.state()


def inside(thing):
    """Everything that can be got at from a thing without leaving the package: attributes, closures, containers."""
    seen, todo = {}, [thing]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | types.ModuleType | str | int | float):
            continue
        seen[id(one)] = one
        if isinstance(one, types.FunctionType):
            todo += [*(cell.cell_contents for cell in one.__closure__ or ()), *(one.__defaults__ or ())]
        elif isinstance(one, types.MethodType):
            todo += [one.__self__, one.__func__]
        elif isinstance(one, dict | types.MappingProxyType):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            todo += one
        if type(one).__module__.startswith("retroact"):
            todo += vars(one).values() if hasattr(one, "__dict__") else ()
            slots = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
            todo += [getattr(one, name) for name in slots if name != "__dict__" and hasattr(one, name)]
    return list(seen.values())


RAW = (Tally, ValueTree, Ledger, Rows, ra.Stream, Mechanism)


def test_a_release_keeps_no_data():
    quantiles = ra.Quantiles("v", [0.5], cdf=[100], counts=[(0, 300)])
    spec = specification(quantiles, ra.Integer(0, 1000), epsilon=5.0)
    stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(1))
    stream.add({"v": list(range(1000))})
    release = stream.close_round()["q"]
    release.interval(0.95), release.value.cdf_interval(), release.value.counts_interval()
    found = inside(release)
    assert not [one for one in found if isinstance(one, RAW)]
    assert any(isinstance(one, Spread) for one in found)
    # It would be found.
    tree = ValueTree(totals_of(spec, [1, 2]), 10, Silent(), 1)
    assert {type(one) for one in inside(lambda level: tree.below(0))} >= {ValueTree, Tally}


class Hysteresis(Planted, ra.Quantiles):
    """Stays where it was as long as the quantile has not moved far: smoother to look at."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.last = WeakKeyDictionary()

    class InBound:
        def release(self, totals, noise, at):
            published = super().release(totals, noise, at)
            value = published.answer.value
            before = self.statistic.last.get(noise, {})
            for p, new in list(value.items()):
                old = before.get(p)
                if None not in (old, new) and abs(old - new) < 20:
                    value[p] = old
            self.statistic.last[noise] = dict(value)
            return published


class Numbered(ValueTree):
    """A node gets the next noise there is when a descent first comes to it, in whatever round."""

    numbers: ClassVar = WeakKeyDictionary()

    def _draw(self, nodes):
        numbers = self.numbers.setdefault(self._noise, {})
        for node in nodes:
            numbers.setdefault(node, len(numbers))
        right, self._noise = self._noise, Renamed(self._noise, numbers)
        try:
            super()._draw(nodes)
        finally:
            self._noise = right


class Renamed:
    def __init__(self, noise, numbers):
        self.noise, self.numbers = noise, numbers

    def sample(self, index, cells):
        return self.noise.sample(
            index, np.array([[self.numbers[int(a), int(b)], 0] for a, b in cells], dtype=np.uint64)
        )


class Visited(ValueTree):
    """Noise by how many nodes this release has visited so far: retroactive, but not the noise of the node."""

    def _draw(self, nodes):
        right = self._noise
        fresh = sorted({node for node in nodes if node not in self._known})
        self._noise = Renamed(right, {node: len(self._known) + i for i, node in enumerate(fresh)})
        try:
            super()._draw(nodes)
        finally:
            self._noise = right


def twin_check(statistic):
    schema = {"age": ra.Integer(0, 99)}
    spec = ra.Specification(schema, {"q": statistic}, epsilon=40.0, horizon=6)
    pairs = uniting_pairs(busy(schema, Random(0)), Random(9), 15)
    return check_twin(lambda key: StreamAlgorithm(spec, key), pairs, keys=(1,))


# What is planted is caught --------------------------------------------------------------------------------------------


def test_an_answer_that_sticks_is_caught():
    assert twin_check(ra.Quantiles("age")) > 15
    with pytest.raises(CheckFailedError, match="unite"):
        twin_check(Hysteresis("age"))


def test_noise_by_the_order_of_visits_is_caught(monkeypatch):
    monkeypatch.setattr("retroact.statistics.quantiles.ValueTree", Numbered)
    with pytest.raises(CheckFailedError, match="unite"):
        twin_check(ra.Quantiles("age"))


def noise_of_the_names(kind):
    """Whether every node that descents come to has the noise of its own name on, whatever the data."""
    spec = specification(ra.Quantiles("v"), ra.Integer(0, 1023))
    noise = spec.mechanism("q", ra.Key.for_testing(1).coins("stream"))
    random = Random(10)
    for index in range(1, 9):
        tree = kind(tally([random.randrange(1024) for _ in range(400)]), 10, noise, index)
        tree.descend([tree.rank(p) for p in random.sample(PROBABILITIES, 4)])
        tree.below(random.randrange(1024))
        exact = nodes_of(tree._tally, 10)
        for node, value in tree._known.items():
            own, denominator = noise.sample(index, np.array([node], dtype=np.uint64))
            if value != exact.get((node, 0), 0) * denominator + own[0, 0]:
                return False
    return True


def test_every_node_has_the_noise_of_its_name():
    assert noise_of_the_names(ValueTree)
    assert not noise_of_the_names(Visited)
