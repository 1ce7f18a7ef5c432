"""Privacy from outside: right algorithms pass, planted ones do not, and the controls say what would have shown."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial

import pytest

import retroact as ra
from retroact.audit import Seeds, Target
from retroact.audit.adversaries import PLAYERS, fixed_pairs, reactive, telling, threshold_pump, toggler
from retroact.audit.games import (
    ToldApart,
    _Game,
    adaptive,
    fixed,
    judged,
    neighbours,
)
from retroact.audit.weaker import MakeCount, Weaker
from retroact.coins.laplace import DiscreteLaplace
from retroact.ledger.definition import Add, Delete, neighbouring
from retroact.privacy import GaussianDP, Guarantee, PureDP
from retroact.testing import AdaptGame, Shape, StreamAlgorithm
from retroact.testing.check import caught as caught_by

pytestmark = pytest.mark.filterwarnings("ignore::retroact.HorizonWarning")

SHAPE = Shape(values=("a", "b"), rounds=5)
BY_NAME = {player.name: player for player in PLAYERS}
CLAIM = Guarantee(PureDP(1.0), epsilon=1.0)


def counter(epsilon: float = 1.0, *, blind: bool = False, claim: Guarantee = CLAIM) -> Target:
    return Target("counter", MakeCount(epsilon, SHAPE.rounds, blind), SHAPE, claim)


class PerReleaseDistinct:
    """The number of different values; the noise pays for one release, though one record moves every other one."""

    def __init__(self, key: ra.Key) -> None:
        words = key.coins("distinct").words([0] * 20, range(20))
        self.noise = DiscreteLaplace(Fraction(1)).sample(words)[:, 0].tolist()
        self.round, self.there = 0, Counter()

    def close(self, updates) -> bytes:
        self.round += 1
        for update in updates:
            stamp = update.stamp or self.round
            self.there[stamp, update.value] += 1 if isinstance(update, Add) else -1
        return str(
            len({value for (_, value), count in self.there.items() if count > 0}) + self.noise[self.round]
        ).encode()


def test_a_right_counter_passes_and_its_control_is_caught():
    result = neighbours(counter(), Seeds(1), runs=500, confidence=0.99)
    assert result.verdict == "passed"
    assert result.control is not None
    assert result.control.caught
    assert "a counter with the same claim, with noise" in result.control.bug
    assert "times the epsilon that is claimed" in result.detectable
    assert float(result.measured["epsilon at least"]) <= 1
    assert result.curves["measured"][0] == ("0", "1")
    assert result.counterexample == []


def test_noise_that_is_too_small_is_a_violation_with_both_histories():
    result = neighbours(counter(8.0), Seeds(2), runs=400, confidence=0.99)
    assert result.verdict == "violation"
    assert "and 1 is claimed" in result.found
    one, other = (eval(line.partition(" = ")[2], {"Add": Add, "Delete": Delete}) for line in result.counterexample)
    assert neighbouring(one, other)


def test_the_fixed_pairs_are_neighbours_that_a_stream_of_the_shape_takes():
    for shape in (SHAPE, Shape(values=("a", "b"), rounds=2), Shape(values=("a",), rounds=1)):
        for _, one, other in fixed_pairs(shape):
            assert neighbouring(one, other)
            assert len(one) == len(other) == shape.rounds


def test_a_claim_that_so_few_runs_cannot_refute_is_not_judged():
    claim = Guarantee(PureDP(9.0), epsilon=9.0)
    result = neighbours(counter(9.0, claim=claim), Seeds(1), runs=200, confidence=0.999)
    assert result.verdict == "not applicable"
    assert "could not refute a claim of epsilon = 9" in result.found
    assert not result.void


def test_a_gaussian_claim_is_judged_by_mu_too():
    claim = Guarantee(GaussianDP(0.3), epsilon=GaussianDP(0.3).epsilon(1e-6), delta=1e-6)
    good = neighbours(counter(0.1, claim=claim), Seeds(3), runs=300, confidence=0.99)
    bad = neighbours(counter(4.0, claim=claim), Seeds(3), runs=300, confidence=0.99)
    assert (good.verdict, bad.verdict) == ("passed", "violation")
    assert float(bad.measured["mu at least"]) > float(bad.measured["mu claimed"]) == 0.3


# Adversaries -------------------------------------------------------------------------------------------------------


def test_every_adversary_passes_a_right_counter_and_catches_its_control():
    results = adaptive(counter(), Seeds(1), runs=160, confidence=0.99)
    assert [result.test for result in results] == [f"adaptive: {player.name}" for player in PLAYERS]
    for result in results:
        assert result.verdict == "passed", result
        assert not result.void, result


def test_the_no_op_deletion_finds_what_counts_it():
    players = [BY_NAME["no-op deletion"]]
    result = adaptive(counter(16.0, blind=True), Seeds(1), runs=160, confidence=0.99, players=players)[0]
    assert result.verdict == "violation"


def test_the_toggler_finds_a_distinct_count_that_pays_for_one_release():
    target = replace(counter(), make=PerReleaseDistinct, shape=replace(SHAPE, rounds=16))
    game = _Game(BY_NAME["toggler"], target.shape)
    found = judged(game, target.make, CLAIM, Seeds(1), runs=600, confidence=0.99)
    assert found.violated


def test_a_claim_for_fixed_streams_makes_an_adaptive_violation_inconclusive():
    claim = replace(CLAIM, adaptive=False)
    players = [BY_NAME["window"]]
    window = adaptive(counter(16.0, claim=claim), Seeds(1), runs=160, confidence=0.99, players=players)[0]
    assert window.verdict == "inconclusive"
    assert "streams that do not react" in window.found
    assert float(window.measured["epsilon at least"]) > 1


@pytest.mark.parametrize("shape", [{}, {"late": False}])
@pytest.mark.parametrize("player", PLAYERS, ids=lambda player: player.name)
def test_streams_take_what_adversaries_do(player, shape):
    spec = ra.Specification({"c": ra.Text()}, {"by": ra.Histogram("c")}, epsilon=9.0, delta=0.01, horizon=8, **shape)
    target = Target.stream(spec)
    for world in (0, 1):
        game = AdaptGame(target.make, partial(player.make, target.shape), target.shape.rounds)
        assert len(game.play(world, Seeds(world).key()).challenges) == 1


def test_without_a_round_for_deletions_there_is_no_deletion_to_try():
    target = replace(counter(), shape=replace(SHAPE, rounds=1))
    (result,) = adaptive(target, Seeds(1), runs=80, confidence=0.9, players=[BY_NAME["no-op deletion"]])
    assert result.verdict == "not applicable"


def test_adversaries_react_to_answers():
    assert reactive(SHAPE, 3, (b"5", b"4"))[1] == Add("a")
    assert reactive(SHAPE, 3, (b"5", b"6"))[1] is None
    assert reactive(SHAPE, 4, (b"5", b"6", b"7"))[1] == Add("a")  # at the latest
    assert threshold_pump(SHAPE, 3, (b"{}", b"{}"))[1] is None
    assert threshold_pump(SHAPE, 3, (b"{}", b'{"a": 7, "b": 1}')) == ([Delete("a", 2)], Add("a"))


def test_the_toggler_takes_away_what_it_added_the_round_before():
    moves = [toggler(SHAPE, round, ())[0] for round in range(2, 6)]
    assert moves == [[Add("a")], [Delete("a", 2)], [Add("a")], [Delete("a", 4)]]


# Streams -----------------------------------------------------------------------------------------------------------


def stream(**budget) -> Target:
    return Target.stream(ra.Specification({"v": ra.Boolean()}, {"n": ra.Count(noise="tree")}, horizon=3, **budget))


def test_a_stream_passes_and_the_same_with_less_noise_is_its_control():
    result = neighbours(stream(epsilon=1.0), Seeds(1), runs=100, confidence=0.9)
    assert result.verdict == "passed"
    assert result.control is not None
    assert result.control.caught
    assert result.control.bug.startswith("the same stream, with noise")


def test_a_stream_whose_claim_is_too_small_is_caught():
    target = replace(stream(epsilon=32.0), claim=CLAIM)
    _, *pair = fixed_pairs(target.shape)[0]
    assert judged(fixed(*pair), target.make, CLAIM, Seeds(1), runs=120, confidence=0.95).violated


def test_where_a_budget_cannot_be_raised_a_counter_stands_in():
    class Stubborn(ra.Specification):
        def replace(self, **changes):
            raise ra.InputError("no")

    spec = Stubborn({"v": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=4)
    weaker = Weaker.of(Target.stream(spec))
    assert isinstance(weaker.make(4), MakeCount)
    assert "a counter" in weaker.words(4)


def test_the_value_that_shows_most_comes_first():
    spec = ra.Specification({"x": ra.Integer(0, 9)}, {"s": ra.Sum("x")}, epsilon=1.0, horizon=3)
    target = replace(Target.stream(spec), shape=Shape(values=((0,), (3,), (9,)), rounds=3))
    assert telling(target.shape, target.make, ra.Key.for_testing(1)).values == ((9,), (0,), (3,))


def test_where_one_record_never_shows_the_method_is_tried_on_a_counter():
    spec = ra.Specification({"c": ra.Text()}, {"by": ra.Histogram("c")}, epsilon=0.1, delta=1e-9, horizon=100)
    target = replace(Target.stream(spec), shape=Shape(values=(("a",),), rounds=2))
    _, *pair = fixed_pairs(target.shape)[0]
    weaker = Weaker.of(target)
    check = ToldApart(fixed(*pair), "", [], 120, 0.9, weaker, (16, 64))
    bug, caught, _ = caught_by(check, target, Seeds(1))
    assert caught
    assert bug.startswith("a counter")
    assert bug not in map(weaker.words, check.factors)
    said = check.result(target, Seeds(1), "neighbours")
    assert said.verdict in ("not applicable", "inconclusive")
    assert said.verdict == "not applicable" or said.detectable.startswith("nothing of the stream itself")


def test_the_result_is_the_same_again_and_goes_to_another_process():
    target = pickle.loads(pickle.dumps(counter()))
    one, other = (neighbours(t, Seeds(4), runs=80, confidence=0.9) for t in (counter(), target))
    assert one == other
    assert isinstance(stream(epsilon=1.0).make(ra.Key.for_testing(1)), StreamAlgorithm)


def test_rare_releases_are_played_and_a_small_epsilon_has_a_control():
    spec = ra.Specification({"v": ra.Boolean()}, {"n": ra.Count(every=5)}, epsilon=0.05, horizon=100)
    result = neighbours(Target.stream(spec), Seeds(1), runs=80, confidence=0.9)
    assert result.verdict == "passed", result
    assert result.control.caught
    assert result.control.bug.startswith("the same stream")
    assert "runs of 10 rounds" in result.tried


def test_what_is_never_published_is_not_judged():
    spec = ra.Specification({"v": ra.Boolean()}, {"n": ra.Count(every=10)}, epsilon=1.0, horizon=12)
    target = Target.stream(spec).with_rounds(6)
    results = [neighbours(target, Seeds(1), runs=60), *adaptive(target, Seeds(1), runs=60, players=PLAYERS[:1])]
    assert [(r.verdict, r.found) for r in results] == [
        ("not applicable", "Nothing is published in these 6 rounds.")
    ] * 2


def test_where_only_a_counter_would_have_shown_nothing_has_passed():
    spec = ra.Specification(
        {"c": ra.Text()}, {"by": ra.Histogram("c", noise="schauder")}, epsilon=1.0, delta=1e-9, horizon=100
    )
    shape = Shape(values=(("a",),), rounds=2)
    target = replace(Target.stream(spec), shape=shape)
    for result in (neighbours(target, Seeds(1), runs=80, confidence=0.9),):
        assert result.verdict in ("inconclusive", "not applicable")
        assert not result.void


class Constant:
    def __init__(self, key: ra.Key) -> None:
        pass

    def close(self, updates) -> bytes:
        return b"7"


class Unsteady(Constant):
    """Raises where there is a record."""

    def close(self, updates) -> bytes:
        if updates:
            raise ValueError("a record")
        return b"7"


class Gone(Constant):
    def close(self, updates) -> bytes:
        raise ValueError("a record")


def test_a_claim_of_no_loss_at_all():
    claim = Guarantee(PureDP(0.0), epsilon=0.0)
    constant, broken = (
        neighbours(replace(counter(claim=claim), make=make), Seeds(1), runs=120, confidence=0.95)
        for make in (Constant, MakeCount(20.0, SHAPE.rounds))
    )
    assert (constant.verdict, broken.verdict) == ("not applicable", "violation")
    assert broken.control.caught
    assert "for epsilon = " in broken.control.bug


def test_an_exception_in_one_world_is_information_and_one_in_both_is_no_answer():
    one, both = (
        neighbours(replace(counter(), make=make), Seeds(1), runs=120, confidence=0.95) for make in (Unsteady, Gone)
    )
    assert (one.verdict, both.verdict) == ("violation", "inconclusive")
    assert "ValueError was raised" in both.found
    assert 'a record"' not in repr(both)


@pytest.mark.slow
def test_thousands_of_runs_of_a_right_stream():
    assert neighbours(stream(epsilon=1.0), Seeds(1), runs=6000, confidence=0.99).verdict == "passed"
