"""What is audited: histories long enough to be published, claims that can be, and algorithms that fail."""

from __future__ import annotations

import math

import pytest

import retroact as ra
from retroact.audit import Approximate, Seeds, Target
from retroact.privacy import Guarantee, PureDP
from retroact.testing import Shape
from retroact.testing.algorithm import Guarded, answers, raised

SHAPE = Shape(values=("a", "b"), rounds=5)


def spec(every: int = 1, **more) -> ra.Specification:
    return ra.Specification({"v": ra.Boolean()}, {"n": ra.Count(every=every)}, **{"epsilon": 1.0, **more})


def target(epsilon: float = 1.0, delta: float = 0.0) -> Target:
    return Target("none", Failing, SHAPE, Guarantee(PureDP(1.0), epsilon, delta))


class Failing:
    def __init__(self, key: ra.Key) -> None:
        self.round = 0

    def close(self, updates) -> bytes:
        self.round += 1
        if self.round > 1:
            raise ValueError("/home/somebody")
        return b"1"


class Unmade:
    def __init__(self, key: ra.Key) -> None:
        raise OSError("/home/somebody")


class Wordy(Failing):
    def close(self, updates) -> str:
        return "1"


@pytest.mark.parametrize(
    ("every", "more", "rounds"),
    [
        (1, {"horizon": 100}, 8),
        (1, {"horizon": 5}, 5),
        (10, {"horizon": 100}, 22),
        (10, {"horizon": 12}, 12),
        (200, {"horizon": 1000}, 256),
    ],
)
def test_histories_are_long_enough_for_what_is_rare(every, more, rounds):
    assert Target.stream(spec(every, **more)).shape.rounds == rounds


def test_an_exception_is_an_answer_by_its_type():
    key = Seeds(1).key()
    assert answers(Failing, key, ((), (), ())) == [b"1"] + [b"no answer, raised ValueError"] * 2
    assert answers(Unmade, key, ((),)) == [b"no answer, raised OSError"]
    assert Guarded(Unmade, key).close(()) == b"no answer, raised OSError"
    assert raised(answers(Failing, key, ((),))) is None
    with pytest.raises(ra.InputError, match="expected bytes, got str - at close"):
        answers(Wordy, key, ((),))


@pytest.mark.parametrize("epsilon", [-1.0, math.nan])
def test_an_epsilon_that_nothing_can_have_is_refused(epsilon):
    with pytest.raises(ra.InputError, match=r"claim\.epsilon"):
        target(epsilon)


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan])
def test_a_delta_that_nothing_can_have_is_refused(delta):
    with pytest.raises(ra.InputError, match=r"claim\.delta"):
        target(delta=delta)


@pytest.mark.parametrize(
    ("claim", "place"),
    [
        ((-1.0, 0.0), "alpha"),
        ((math.nan, 0.0), "alpha"),
        ((1.0, 1.0), "beta"),
        ((1.0, math.nan), "beta"),
        ((1.0, 0.1, 0), "block"),
        ((1.0, 0.1, 1.5), "block"),
    ],
)
def test_an_approximate_claim_that_nothing_can_have_is_refused(claim, place):
    with pytest.raises(ra.InputError, match=place):
        Approximate(*claim)


@pytest.mark.parametrize("rounds", [1.5, True, "x", 0])
def test_a_number_of_rounds_that_no_history_has_is_refused(rounds):
    with pytest.raises(ra.InputError, match="rounds"):
        target().with_rounds(rounds)
