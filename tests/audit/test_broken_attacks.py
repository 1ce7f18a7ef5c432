"""A test that can find nothing is void, whatever it says of its target: it neither passes nor does it not apply."""

from dataclasses import replace
from fractions import Fraction

import pytest

import retroact as ra
from retroact.audit import adversaries, games
from retroact.audit.distinguish import SCORES
from retroact.audit.model_deletions import Attacked
from retroact.audit.result import report
from retroact.audit.run import audit_stream
from retroact.testing import Check, Finding, Seeds, worst_pair

NUMBERS = {"miles": ra.Number(0, 50), "hour": ra.Integer(0, 23), "fare": ra.Number(0, 300)}


def stream(**statistics):
    statistics = statistics or {"n": ra.Count()}
    return ra.Specification(NUMBERS, statistics, epsilon=1.0, delta=1e-6, horizon=16)


def audited(only, specification):
    found = audit_stream(specification, effort="quick", only=only)
    assert found.voids == [result for result in found.results if not result.test.startswith("threshold")]
    assert not any(result.control.caught for result in found.voids)
    return found.verdict


def test_what_models_say_of_deletions_read_in_the_wrong_order(monkeypatch):
    real = Attacked.changes
    monkeypatch.setattr(Attacked, "changes", lambda *own: real(*own)[::-1])
    assert audited("deletions from models", stream(m=ra.Ridge(["miles", "hour"], "fare"))) == "void"


def test_no_distinguisher_learns_anything(monkeypatch):
    for name in SCORES:
        monkeypatch.setitem(SCORES, name, lambda *given: None)
    target = ra.audit.Target.stream(stream())
    outside = [games.neighbours(target, Seeds(1), runs=60, confidence=0.9)]
    outside += games.adaptive(target, Seeds(1), runs=60, confidence=0.9, players=adversaries.PLAYERS[:1])
    assert [(result.void, result.verdict) for result in outside] == [(True, "passed")] * 2


def test_an_adversary_never_challenges(monkeypatch):
    (player,) = (one for one in adversaries.PLAYERS if one.name == "window")
    idle = replace(player, move=lambda *given: ([], None))
    spec = stream()
    results = games.adaptive(ra.audit.Target.stream(spec), Seeds(1), runs=60, confidence=0.9, players=(idle,))
    assert [result.void for result in results] == [True]


@pytest.mark.parametrize("test", ["sensitivity", "likelihood"])
def test_no_pair_of_histories_costs_anything(monkeypatch, test):
    monkeypatch.setattr(worst_pair, "cost_of", lambda *given: Fraction(0))
    assert audited(test, stream()) == "void"


UNSEEN = [ra.Count(where={"hour": {"min": 1, "max": 1}}), ra.Restated(ra.Count(), [16])]


@pytest.mark.parametrize("statistic", UNSEEN, ids=["no record", "no release"])
@pytest.mark.parametrize("test", ["sensitivity", "likelihood"])
def test_where_no_record_is_ever_seen_there_is_nothing_to_hide(test, statistic):
    found = audit_stream(stream(n=statistic), effort="quick", only=test)
    assert [result.verdict for result in found.results] == ["not applicable"]


def test_a_check_that_plants_nothing():
    class Bare(Check):
        question = "Is anything wrong?"

        def run(self, target, seeds):
            return Finding(verdict="passed", found="Nothing is.")

        def planted(self, target):
            return []

    assert report(Bare(), None, Seeds(1), part="privacy", test="bare").void
