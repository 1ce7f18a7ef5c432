"""Two-sample tests: they see other laws, and do not see other laws where there are none."""

import numpy as np
import pytest

import retroact as ra
from retroact.audit import Approximate, Seeds, Target
from retroact.audit.bounds import binomial_lower
from retroact.audit.samples import classified, same_law
from retroact.audit.twin import twin
from retroact.ledger.definition import Add, Delete
from retroact.privacy import Guarantee, PureDP
from retroact.testing import Pair
from retroact.testing.law import KINDS, Comparison, SameLaw, _tail, rejected
from support.planted_algorithms import NASTY, AdaptiveScale, Reference, SequentialNoise, noise_of

CLAIM = Guarantee(PureDP(1.0), 1.0)
ERASED = Pair(((Add(1.0),), (Delete(1.0, 1),), (), ()), ((), (), (), ()), 2)


def target(make, **more):
    return Target("planted", make, NASTY, CLAIM, **more)


def compared(make, seeds, runs):
    return SameLaw((ERASED,), runs, 0.01, classified).compare(make, seeds)


def test_holm_within_a_kind_and_a_part_of_the_level_for_each():
    findings = [Comparison(KINDS[0], i, "x", p) for i, p in enumerate((0.004, 0.0001, 0.9, 0.005))]
    assert [f.pair for f in rejected(findings, 0.02)] == [1]
    findings += [Comparison(KINDS[1], 7, "all", 0.0099), Comparison(KINDS[1], 8, "all", 0.011)]
    assert [f.pair for f in rejected(findings, 0.02)] == [1]
    assert [f.pair for f in rejected([*findings[:4], findings[4]], 0.02)] == [1, 7]
    # 0.0001 goes first and leaves three, of which 0.0033 may be had; without it four share the level.
    findings = [Comparison(KINDS[0], i, "x", p) for i, p in enumerate((0.0033, 0.0001, 0.9, 0.005))]
    assert [f.pair for f in rejected(findings, 0.02)] == [1, 0, 3]


def test_the_law_of_a_cell_is_exact():
    """Against all ways in which eight numbers can fall to two samples of four."""
    from itertools import combinations

    for drawn in range(9):
        ways = [sum(i < drawn for i in chosen) for chosen in combinations(range(8), 4)]
        for hits in {*ways}:
            tails = np.mean([way <= hits for way in ways]), np.mean([way >= hits for way in ways])
            assert _tail(hits, drawn, 4, 4) == pytest.approx(min(1.0, 2 * min(tails)))


def test_noise_drawn_at_first_touch_has_the_right_law_and_the_wrong_bytes():
    result = same_law(target(SequentialNoise), Seeds(1), pairs=2, runs=60)
    assert (result.verdict, result.control.caught) == ("passed", True)
    assert "violation" in {r.verdict for r in twin(target(SequentialNoise), Seeds(1), pairs=20, keys=1)}


def test_another_law_is_found_without_keys():
    result = same_law(target(AdaptiveScale, keyed=False), Seeds(1), pairs=6, runs=60)
    assert result.verdict == "violation"
    assert any(line.startswith("unite = ") for line in result.counterexample)
    assert "%" in result.detectable


class Correlated(Reference):
    """Two numbers, each with the same law whatever happened: after a deletion the second repeats the first."""

    forgave = True

    def answer(self, gained, lost):
        self.forgave &= not lost
        first = noise_of(self.key, self.round, "first")
        return first, noise_of(self.key, self.round, "second") if self.forgave else first


def test_what_shows_in_no_single_number_is_found_in_all_together():
    findings, _ = compared(Correlated, Seeds(3), 120)
    wrong = {f.kind for f in rejected(findings, 0.01)}
    assert wrong == {KINDS[1]}


class Texts(Reference):
    """Says who came first in a text; or, after a deletion, who came last."""

    forgave = True

    def answer(self, gained, lost):
        self.forgave &= not lost
        return ["x", "y", "z"][noise_of(self.key, self.round) % (3 if self.forgave else 2)]


def test_texts_are_compared_and_texts_that_never_repeat_are_not():
    findings, skipped = compared(Texts, Seeds(4), 120)
    assert rejected(findings, 0.01)
    assert skipped == 0

    class Unique(Reference):
        def answer(self, gained, lost):
            return f"text {self.key.derive(str(self.round)).hex()}"

    result = same_law(target(Unique), Seeds(4), pairs=1, runs=60)
    assert "could not be compared" in result.found


def test_false_alarms_are_as_rare_as_promised():
    """Twelve audits of a correct algorithm at level 0.2: at most as many alarms as that allows (confidence 0.999)."""
    alarms = 0
    for seed in range(12):
        findings, _ = compared(Reference, Seeds(5, seed), 60)
        assert {f.kind for f in findings} == set(KINDS)
        alarms += bool(rejected(findings, 0.2))
    assert binomial_lower(alarms, 12, 0.999) <= 0.2


def test_a_stream_passes():
    spec = ra.Specification({"age": ra.Integer(0, 120)}, {"mean": ra.Mean("age")}, epsilon=1.0, horizon=3)
    result = same_law(Target.stream(spec), Seeds(6), pairs=1, runs=60)
    assert (result.verdict, result.control.caught) == ("passed", True)


class Broken(Reference):
    def answer(self, gained, lost):
        raise RuntimeError("no database")


def test_an_algorithm_without_answers_does_not_pass():
    result = same_law(target(Broken), Seeds(7), pairs=1, runs=60)
    assert result.verdict == "inconclusive"
    assert "RuntimeError was raised" in result.found
    assert "no database" not in repr(result)


def test_where_it_does_not_apply_and_what_it_refuses():
    assert same_law(target(Reference, retroactivity=Approximate(1.0, 1e-6)), Seeds(1)).verdict == "not applicable"
    with pytest.raises(ra.InputError, match="at least 60 runs"):
        same_law(target(Reference), Seeds(1), runs=5)


def test_where_nothing_is_published_there_is_no_law():
    spec = ra.Specification({"v": ra.Boolean()}, {"n": ra.Count(every=10)}, epsilon=1.0, horizon=100)
    result = same_law(Target.stream(spec).with_rounds(5), Seeds(1), pairs=2, runs=60)
    assert result.verdict == "not applicable"
