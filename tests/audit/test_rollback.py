"""No noise is spent twice: streams are set back, algorithms are forked, and what must not be done is found."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

import retroact as ra
from retroact.audit import Seeds, Target
from retroact.audit.games import judged
from retroact.audit.rollback import Branches, Forked, lost_fence, published_twice, rollback
from retroact.audit.weaker import MakeCount, NoisyCount
from retroact.privacy import Guarantee, PureDP
from retroact.stream import open as opening
from retroact.stream.fence_guard import FenceGuard, Standing
from retroact.testing import Shape
from retroact.testing.check import caught

pytestmark = pytest.mark.filterwarnings("ignore::retroact.HorizonWarning")

SHAPE = Shape(values=((True,), (False,)), rounds=4)
SHAPE_OF_TEXTS = Shape(values=(("a",),), rounds=3)
CLAIM = Guarantee(PureDP(1.0), epsilon=1.0)


def spec(**more) -> ra.Specification:
    return ra.Specification({"v": ra.Boolean()}, {"n": ra.Count()}, **{"epsilon": 1.0, "horizon": 4, **more})


class Kept(NoisyCount):
    """A counter with a state; the noise goes by the round, so two branches share it."""

    def state(self) -> bytes:
        return pickle.dumps([self._noise, self._there, self._round, self._count])

    def resume(self, state: bytes) -> Kept:
        noise, *rest = pickle.loads(state)
        made = Kept(noise, blind=False)
        made._there, made._round, made._count = rest
        return made


class Renewed(Kept):
    """The same with noise that a resumed one draws afresh."""

    taken = 0

    def resume(self, state: bytes) -> Kept:
        made = super().resume(state)
        Renewed.taken += 1
        noise = MakeCount(0.5, 16)(ra.Key.for_testing(Renewed.taken))
        made._noise = noise._noise
        return made


def target(kind: type[NoisyCount]) -> Target:
    def make(key: ra.Key) -> NoisyCount:
        return kind(MakeCount(0.5, 16)(key)._noise, blind=False)

    return Target("counter", make, SHAPE, CLAIM)


def test_a_stream_is_never_published_twice():
    result = rollback(Target.stream(spec()), Seeds(1), runs=60, confidence=0.9)
    assert result.verdict == "passed", result
    assert result.control is not None
    assert result.control.caught
    assert "published a second time" in result.control.how


def test_a_stream_whose_sources_must_name_subjects_is_set_back_too():
    """Histories are made here: what its sources must look like does not matter."""
    result = rollback(Target.stream(spec(columns={"subject": "who"})), Seeds(1), runs=60, confidence=0.9)
    assert (result.verdict, result.control.caught) == ("passed", True), result


def test_the_files_alone_show_what_is_published_twice():
    key = ra.Key.for_testing(3)
    assert published_twice(spec(), SHAPE, key, fence_too=False) == []
    seen = published_twice(spec(), SHAPE, key, fence_too=True)
    assert any("was opened without objection" in problem for problem in seen)
    assert any("Round 2 was published a second time" in problem for problem in seen)


def test_a_stream_that_forgets_its_fence_is_a_violation(monkeypatch):
    monkeypatch.setattr("retroact.stream.open.standing", lambda *_, **__: Standing(0, None))
    monkeypatch.setattr("retroact.store.fence.Fence.read", lambda self: None)
    monkeypatch.setattr(FenceGuard, "require_unmoved", lambda self: None)
    result = rollback(Target.stream(spec()), Seeds(1), runs=40, confidence=0.9)
    assert result.verdict == "violation"
    assert "opened without objection" in result.found
    assert result.counterexample


def test_a_fence_made_anew_below_what_was_published_is_found(monkeypatch):
    asked = opening.standing

    def trusting(*given, after, **more):
        return Standing(0, None) if after is not None else asked(*given, after=after, **more)

    assert lost_fence(spec(), SHAPE, ra.Key.for_testing(3)) == []
    monkeypatch.setattr(opening, "standing", trusting)
    assert lost_fence(spec(), SHAPE, ra.Key.for_testing(3)) == [
        "A new mark was set before a round that had been published."
    ]


def test_what_publishes_nothing_is_not_accused_without_its_fence():
    silent = ra.Specification({"c": ra.Text()}, {"by": ra.Histogram("c")}, epsilon=0.1, delta=1e-9, horizon=100)
    assert lost_fence(silent, SHAPE_OF_TEXTS, ra.Key.for_testing(3)) == []


def test_two_branches_of_one_state_differ_by_the_data_alone():
    stream = Target.stream(spec())
    one, other = (Forked(SHAPE)(stream.make, world, ra.Key.for_testing(5)) for world in (0, 1))
    assert one[:3] == one[3:6] == other[:3]
    assert other[3:6] != one[3:6]
    assert (one[6], other[6]) == (b"1", b"0")
    found = judged(Forked(SHAPE), stream.make, CLAIM, Seeds(1), runs=100, confidence=0.9)
    assert found.correct == found.runs


def test_an_algorithm_whose_branches_share_noise_is_not_accused():
    result = rollback(target(Kept), Seeds(1), runs=200, confidence=0.99)
    assert result.verdict == "inconclusive"
    assert "must never restore an older state" in result.found
    assert not result.void


def test_an_algorithm_that_renews_its_noise_passes_and_the_control_is_a_counter():
    result = rollback(target(Renewed), Seeds(1), runs=200, confidence=0.99)
    assert result.verdict == "passed"
    assert result.control is not None
    assert result.control.bug.startswith("a counter with the same claim")
    assert result.control.caught


def test_what_cannot_be_set_back_is_not_applicable():
    assert rollback(target(NoisyCount), Seeds(1)).verdict == "not applicable"
    assert rollback(Target.stream(spec(horizon=2)), Seeds(1)).verdict == "not applicable"


def test_where_few_records_show_nothing_a_counter_stands_in():
    histogram = ra.Specification({"c": ra.Text()}, {"by": ra.Histogram("c")}, epsilon=0.1, delta=1e-6, horizon=100)
    silent = replace(Target.stream(histogram), shape=SHAPE_OF_TEXTS)
    bug, found, _ = caught(Branches(60, 0.9), silent, Seeds(1))
    assert bug.startswith("a counter")
    assert found


@pytest.mark.parametrize("more", [{"epsilon": 0.001}, {"statistics": {"n": ra.Count(every=10)}, "horizon": 40}])
def test_the_control_is_caught_however_much_noise_there_is_and_however_rare_releases_are(more):
    result = rollback(Target.stream(spec().replace(**more)), Seeds(1), runs=60, confidence=0.9)
    assert result.verdict == "passed", result
    assert result.control.caught


def test_without_a_release_there_is_nothing_to_set_back():
    rare = spec(horizon=12).replace(statistics={"n": ra.Count(every=10)})
    result = rollback(Target.stream(rare).with_rounds(6), Seeds(1), runs=60)
    assert result.verdict == "not applicable"
