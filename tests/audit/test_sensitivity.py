"""Exact searches: correct calibrations are just large enough, and wrong ones are found without a single draw."""

from fractions import Fraction
from random import Random

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

import retroact as ra
from retroact.audit import Seeds, Target
from retroact.audit.likelihood import likelihood, nodes
from retroact.audit.sensitivity import sensitivity, threshold_tail
from retroact.coins import Key
from retroact.noise import FewChanges, GaussianThreshold, Schauder, Threshold, Tree, Windowed
from retroact.testing.worst_pair import candidates, worst
from support.tiers import in_full

SCHEMA = {"age": ra.Integer(0, 120), "height": ra.Number(-5, 5, step=0.5), "country": ra.Text()}


def searched(statistic, *, pairs=5, **options):
    spec = ra.Specification(SCHEMA, {"x": statistic}, **{"epsilon": 1.0, "horizon": 100, **options})
    return sensitivity(Target.stream(spec), Seeds(1), pairs=pairs)


@pytest.mark.parametrize(
    ("statistic", "options", "least"),
    [
        (ra.Count(noise="tree"), {}, 1),
        (ra.Count(noise="tree"), {"horizon": 1000}, 1),
        (ra.Count(), {"horizon": 1 << 20}, 1),
        (ra.Count(), {"horizon": 1 << 20, "delta": 1e-6}, 0.99),
        (ra.Count(), {"horizon": None}, 1),
        (ra.Count(noise="doubling"), {"horizon": None}, 0.85),
        (ra.Sum("age", window=30), {"horizon": None}, 1),
        (ra.Mean("height", window=7, every=3), {"delta": 1e-6}, 0.98),
        (ra.Variance("age"), {}, 1),
        (ra.Quantiles("age", noise="schauder"), {"delta": 1e-6}, 0.99),
        (ra.Quantiles("age", noise="crossfade"), {"delta": 1e-6}, 0.98),
        (ra.Histogram("country", bins=["a", ""]), {"horizon": 16}, 1),
        (ra.Distinct("country"), {"delta": 1e-6, "horizon": 30}, 0.97),
        (ra.Distinct("country", form="flips", flips=4), {"delta": 1e-6, "horizon": 40}, 0.9),
        (
            ra.Distinct("country", form="blocks", additions=2, block=4),
            {"delta": 1e-6, "late": False, "horizon": 24},
            0.9,
        ),
        (ra.Restated(ra.Sum("age"), [0, 3]), {}, 1),
        (ra.Restated(ra.Count(), [0, 1], across="rectangle"), {"delta": 1e-6, "horizon": 30}, 0.97),
    ],
    ids=str,
)
def test_the_worst_pair_costs_nearly_all_that_is_granted_and_never_more(statistic, options, least):
    result = searched(statistic, **options)[0]
    assert (result.verdict, result.void) == ("passed", False)
    assert least - 1e-9 <= float(result.measured["cost, of the share"]) <= 1
    assert Fraction(result.measured["exact cost, of the share"]) <= 1


def test_the_worst_pair_of_a_small_tree_moves_seven_nodes():
    spec = ra.Specification(SCHEMA, {"n": ra.Count(noise="tree")}, epsilon=1.0, horizon=16)
    (node,) = nodes(spec, "n", worst(spec, "n", Random(1), pairs=3))
    assert (node.count, node.shift, node.claimed, node.law.scale) == (7, 1, 7, 7)


def test_the_search_finds_the_maximum_over_all_intervals():
    for process in (Tree(13), Schauder(13)):
        every = [
            sum(v * v if process.l1 != process.l2_squared else abs(v) for v in process.shift_hiding(pattern).values())
            for s in range(13)
            for e in range(s + 1, 14)
            if (pattern := [0] * s + [1] * (e - s) + [0] * (13 - e))
        ]
        name = "tree" if isinstance(process, Tree) else "schauder"
        spec = ra.Specification(SCHEMA, {"n": ra.Count(noise=name)}, epsilon=1.0, delta=1e-6, horizon=13)
        found = worst(spec, "n", Random(1), pairs=3)
        assert sum(value**2 for moved in found.moved for value in moved.shift.values()) == max(every)


PLANTED = [
    ("the norm of a tree without the two ends", Tree, "charge", lambda self, p: Fraction(self.height), {}),
    ("two levels forgotten", Schauder, "charge", lambda self, p: Fraction(2 * self.levels), {"delta": 1e-6}),
    ("no border", Windowed, "charge", lambda self, p: self.tree.charge(p) - 1, {"delta": 1e-6}),
]


@pytest.mark.parametrize(("bug", "process", "what", "wrong", "options"), PLANTED, ids=[bug for bug, *_ in PLANTED])
def test_wrong_norms_are_found(monkeypatch, bug, process, what, wrong, options):
    noise = {Tree: "tree", Schauder: "schauder", Windowed: "schauder"}[process]
    window = 70 if process is Windowed else None
    monkeypatch.setattr(process, what, wrong)
    (result,) = searched(ra.Count(noise=noise, window=window), horizon=None if window else 64, **options)
    assert result.verdict == "violation"
    assert result.counterexample


def test_a_wrong_layout_is_found(monkeypatch):
    right = ra.Mean.layout
    monkeypatch.setattr(ra.Mean, "layout", lambda self, schema: replace(right(self, schema), norm1=Fraction(1)))
    (result,) = searched(ra.Mean("age"))
    assert result.verdict == "violation"
    assert float(result.measured["cost, of the share"]) == 2


def test_a_change_that_the_noise_is_not_made_for_is_found(monkeypatch):
    # a distinct count with the noise of a linear statistic: values come and go in any pattern
    right = ra.Distinct.design
    monkeypatch.setattr(
        ra.Distinct,
        "design",
        lambda self, grant: msgspec.structs.replace(right(self, grant), process=Schauder(grant.releases)),
    )
    (result,) = searched(ra.Distinct("country"), pairs=60, horizon=8, delta=1e-6)
    assert (result.verdict, result.void) == ("violation", False)
    assert any("expected one interval" in line for line in result.counterexample)
    spec = ra.Specification(SCHEMA, {"x": ra.Distinct("country")}, epsilon=1.0, delta=1e-6, horizon=8)
    (attacked,) = likelihood(Target.stream(spec), Seeds(1), pairs=60)
    assert attacked.verdict == "violation"


def test_flips_are_searched_beyond_one_interval():
    spec = ra.Specification(
        SCHEMA, {"x": ra.Distinct("country", form="flips", flips=6)}, epsilon=1.0, delta=1e-6, horizon=60
    )
    assert isinstance(spec.processes["x"], FewChanges)
    lines = worst(spec, "x", Random(1), pairs=3).describe()
    assert "a value that changes after the releases" in lines[0]


def test_candidates_depend_on_the_seed_alone():
    spec = ra.Specification(SCHEMA, {"x": ra.Sum("age")}, epsilon=1.0, horizon=20)
    costs = [[c.cost for c in candidates(spec, "x", Random(seed), pairs=5)] for seed in (1, 1, 2)]
    assert costs[0] == costs[1]
    assert costs[0] != costs[2]


# Thresholds --------------------------------------------------------------------------------------------------------


def failing(delta=1e-6, horizon=100, law="gaussian", **options):
    histogram = {key: options.pop(key) for key in ("noise", "window", "adaptive", "most_bins") if key in options}
    stats = {"h": ra.Histogram("country", **histogram)}
    spec = ra.Specification(SCHEMA, stats, epsilon=1.0, delta=delta, horizon=horizon, law=law, **options)
    return spec, threshold_tail(Target.stream(spec))[0]


LONG = {"horizon": 1 << 18}
OPTIONS = [
    {},
    {"window": 7},
    {"horizon": None},
    {"horizon": None, "window": 30},
    LONG,
    {"adaptive": True, "most_bins": 50},
    {"noise": "paper"},
]


# A tail of Laplace noise is an integral for every release: endless streams have them all.
@pytest.mark.parametrize(
    ("options", "law"),
    [
        in_full(options, law) if (options, law) == (LONG, "laplace") else (options, law)
        for law in ("gaussian", "laplace")
        for options in OPTIONS
    ],
    ids=str,
)
def test_thresholds_fail_as_rarely_as_is_allowed_and_hardly_less(options, law):
    spec, result = failing(law=law, **options)
    assert (result.verdict, result.void) == ("passed", False)
    chance, allowed = (float(result.measured[key]) for key in ("probability at most", "allowed"))
    assert chance <= allowed == float(spec.failures["h"])
    if "noise" not in options:  # the paper's own threshold is far above what is needed
        # the tail of Laplace noise has a bound that is not the tail itself
        assert chance > (0.6 if law == "gaussian" else 0.1) * allowed


def test_the_sum_is_what_happens():
    # a large delta, so that failures can be counted: a single record, seen in eight releases under many keys
    spec, result = failing(delta=0.5, horizon=8, noise="schauder")
    noise = spec.mechanism("h", Key.for_testing(1).coins("stream"))
    cells = np.random.default_rng(1).integers(0, 2**63, (40_000, 2), dtype=np.uint64)
    shown = []
    for release in range(1, 9):
        drawn, denominator = noise.sample(release, cells)
        shown.append(drawn[:, 0] + denominator >= spec.bounds["h"].threshold.at(release) * denominator)
    total = float(np.mean(shown, axis=1).sum())
    assert total == pytest.approx(float(result.measured["probability at most"]), rel=0.1)
    assert np.any(shown, axis=0).mean() <= float(result.measured["allowed"])


def test_a_threshold_that_forgets_the_releases_is_found(monkeypatch):
    common = GaussianThreshold._common
    monkeypatch.setattr(GaussianThreshold, "_common", lambda self, releases: common(self, 1))
    _, result = failing()
    assert result.verdict == "violation"
    monkeypatch.setattr(Threshold, "_part", lambda self, release: self._failure)
    _, result = failing(law="laplace")
    assert result.verdict == "violation"


def test_no_threshold_no_result():
    spec = ra.Specification(SCHEMA, {"n": ra.Count()}, epsilon=1.0, delta=1e-6, horizon=8)
    assert threshold_tail(Target.stream(spec)) == []
    assert [r.test for r in sensitivity(Target.stream(spec), Seeds(1), pairs=3)] == ["sensitivity: n"]
