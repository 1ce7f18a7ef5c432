"""What is published is totals with their noise: plants in the code that publishes are violations."""

import math
from types import SimpleNamespace

import pytest

import retroact as ra
from retroact.audit import Seeds, Target
from retroact.audit.releases import releases
from retroact.audit.run import TESTS
from retroact.statistics import answer
from retroact.stream import engine
from retroact.testing import check_statistic
from support.crooked import CASES, Bare, Tenth, crooked, specification

SCHEMA = {"age": ra.Integer(0, 63), "city": ra.Text()}


def target(statistic=None, **options):
    budget = {"epsilon": 1.0, "delta": 1e-6, "horizon": 16} | options
    return Target.stream(ra.Specification(SCHEMA, {"n": statistic or ra.Count()}, **budget))


def published(given):
    return releases(given, Seeds(1), histories=4)[0]


@pytest.mark.parametrize(
    "statistic", [ra.Count(), ra.Sum("age"), ra.Distinct("age"), ra.Histogram("city"), ra.Quantiles("age", [0.5])]
)
def test_streams_pass(statistic):
    for result in releases(target(statistic), Seeds(1), histories=3):
        assert (result.verdict, result.control.caught) == ("passed", True)


def test_noise_that_depends_on_the_data_is_a_violation(monkeypatch):
    honest = answer.with_noise

    def smaller(totals, noise, denominator):
        return honest(totals, noise // 3 if totals.any() else noise, denominator)

    monkeypatch.setattr(answer, "with_noise", smaller)
    result = published(target())
    assert result.verdict == "violation"
    assert "is not its totals plus the noise of their names" in result.found


def test_records_that_count_twice_are_a_violation(monkeypatch):
    honest = engine.Running._gather
    monkeypatch.setattr(engine.Running, "_gather", lambda self, rows, weights: honest(self, rows, 2 * weights))
    assert published(target()).verdict == "violation"


def test_a_bin_below_its_threshold_is_a_violation(monkeypatch):
    from retroact.statistics import histogram

    monkeypatch.setattr(histogram, "math", SimpleNamespace(**vars(math) | {"ceil": lambda number: -(10**9)}))
    result = published(target(ra.Histogram("city")))
    assert result.verdict == "violation"
    assert "below its threshold" in result.found


def test_parts_that_are_too_large_together_are_a_violation():
    spec = ra.Specification(SCHEMA, {"n": ra.Count(), "s": ra.Sum("age")}, epsilon=1.0, delta=1e-6, horizon=16)
    assert releases(Target.stream(spec), Seeds(1), histories=1)[1].verdict == "passed"
    spec.shares = {name: type(share)(share.kind, share.amount * 2) for name, share in spec.shares.items()}
    assert releases(Target.stream(spec), Seeds(1), histories=1)[1].verdict == "violation"


@pytest.mark.parametrize(("kind", "bug"), CASES)
def test_a_quick_audit_finds_a_bug_in_a_release(kind, bug):
    target = Target.stream(specification(crooked(kind, bug)))
    result = releases(target, Seeds(1, "releases"), **TESTS["releases"].quick)[0]
    assert result.verdict == "violation"
    assert "not what it should be" in result.found


@pytest.mark.parametrize("statistic", [Tenth("age"), Bare()], ids=["a tenth", "none"])
def test_a_statistic_with_too_little_noise_passes_neither_audit_nor_check(statistic):
    target = Target.stream(specification(statistic))
    assert releases(target, Seeds(1), **TESTS["releases"].quick)[0].verdict == "violation"
    with pytest.raises(ra.VerificationError):
        check_statistic(statistic, {"age": ra.Integer(0, 63)}, pairs=2, draws=500, deltas=(1e-6,), horizons=(8,))
