"""What two published models say of a deletion: right models pass, exact ones are caught, others are left alone."""

from dataclasses import replace

import pytest

import retroact as ra
from retroact.audit import Seeds, Target
from retroact.audit.model_deletions import Attacked, ModelDeletions, model_deletions
from retroact.testing.check import caught

SCHEMA = {
    "miles": ra.Number(0, 50),
    "hour": ra.Integer(0, 23),
    "car": ra.Category(["small", "large"]),
    "fare": ra.Number(0, 300),
}
MODELS = {
    "ridge": ra.Ridge(["miles", "hour"], "fare"),
    "classifier": ra.Classifier(["miles", "fare"], "car"),
    "rare": ra.Ridge("miles", "fare", every=2, window=8),
    "descent": ra.WindowSample(ra.oneshot.LinearModel("miles", "fare", iterations=8), window=12),
}


def target(**options):
    named = {"epsilon": 1.0, "delta": 1e-6, "horizon": 16, **options}
    return Target.stream(ra.Specification(SCHEMA, named.pop("statistics", MODELS), **named))


@pytest.mark.parametrize("name", MODELS)
def test_a_stream_passes_and_nearly_exact_models_are_caught(name):
    (result,) = model_deletions(target(statistics={name: MODELS[name]}), Seeds(1), bits=40)
    assert result.verdict == "passed", result.found
    assert result.control.caught


RUN = ra.oneshot.LinearModel("miles", "fare", iterations=8, epsilon=0.5, delta=1e-7)


@pytest.mark.parametrize(("options", "judged"), [({}, True), ({"size": 20}, False), ({"rate": 0.5}, False)])
def test_runs_that_pay_for_themselves_are_attacked_where_they_read_every_record(options, judged):
    statistics = {"m": ra.WindowSample(RUN, window=12, **options)}
    (result,) = model_deletions(target(statistics=statistics, epsilon=100.0, delta=1e-5), Seeds(1), bits=40)
    assert (result.verdict != "not applicable") is judged
    assert not judged or result.control.caught


def test_models_with_too_little_noise_refute_the_claim():
    attacked = Attacked(target(), "ridge").nearly_exact(256)
    finding = ModelDeletions(60, 0.9999).run(attacked, Seeds(2))
    assert finding.verdict == "violation", finding.found


def test_the_same_seed_gives_the_same_result():
    stream = target(statistics={"ridge": MODELS["ridge"]})
    one, other = (model_deletions(stream, Seeds(3), bits=20) for _ in range(2))
    assert one == other


def test_deletions_are_as_many_as_releases_that_follow_while_the_records_are_there():
    assert {name: Attacked(target(), name).deletions for name in MODELS} == {
        "ridge": 15, "classifier": 15, "rare": 3, "descent": 11,
    }  # fmt: skip


SOME = ra.Ridge("miles", "fare", where={"car": "small"})


@pytest.mark.parametrize(
    "options",
    [
        {"statistics": {"n": ra.Count()}},
        {"statistics": {"means": ra.NearestMean("miles", "car")}},
        {"statistics": {"some": SOME}},
        {"statistics": {"ridge": MODELS["ridge"]}, "horizon": 1},
    ],
)
def test_without_linear_models_of_all_records_around_a_deletion_it_does_not_apply(options):
    (result,) = model_deletions(target(**options), Seeds(1))
    assert result.verdict == "not applicable"


def test_an_algorithm_that_is_not_a_stream_is_left_to_the_other_tests():
    bare = replace(target(), make=lambda key: None)
    assert [result.verdict for result in model_deletions(bare, Seeds(1))] == ["not applicable"]


def test_a_weak_promise_takes_more_bits_or_stays_open():
    attacked = Attacked(target(epsilon=20.0), "ridge")
    finding = ModelDeletions(30, 0.999).run(attacked.nearly_exact(256), Seeds(1))
    assert finding.verdict == "inconclusive"
    assert finding.caught


def test_the_attack_sees_no_coin_by_its_control(monkeypatch):
    """Without the prediction for the deleted record there is nothing to guess by, even from nearly exact models."""
    real = Attacked.changes
    monkeypatch.setattr(Attacked, "changes", lambda *own: real(*own)[::-1])
    attacked = Attacked(target(), "ridge")
    assert not caught(ModelDeletions(60, 0.9999), attacked, Seeds(1))[1]


def test_an_audit_says_how_gradient_descent_hides_records():
    report = ra.audit.audit_stream(target(statistics={"fares": MODELS["descent"]}).specification, only="likelihood")
    (result,) = report.results
    assert result.verdict == "not applicable"
    assert "noise on sums" in result.found
