"""The planted bugs of a private counter: each is caught, from outside or, where that takes too long, from inside."""

import math
from fractions import Fraction

import numpy as np
import pytest

from retroact.coins import Coins
from retroact.noise import Mechanism, Tree
from retroact.privacy import Share
from retroact.testing.seeds import Seeds
from support.leaking import LEAKING, SOUND, correct, exact_scale, floating, published, renewed_rounds
from support.transcripts import conformance_of, transcript_likelihood, union_bound
from support.two_worlds import apart

ROUNDS = 32
ONE = Fraction(1)
CLAIM = Share("pure", ONE)
NOTHING = np.zeros(ROUNDS, dtype=np.int64)
RECORD = (np.arange(ROUNDS) < ROUNDS // 2).astype(np.int64)  # there in the first half: the worst interval of a tree

# From outside: so many runs of both worlds together show more than epsilon = 1.
OUTSIDE = {
    "epsilon not divided over the nodes": 3000,
    "floating-point noise": 20_000,
    "noise keyed by the data": 3000,
    "the same key after a rollback": 600,
    "no noise at powers of two": 600,
    "noise scaled by the count": 3000,
}
# From inside: 200 runs of noise that has not the law it claims.
INSIDE = [
    "epsilon not divided over the nodes",
    "divided by m instead of 2m - 3",
    "noise renewed in every round",
    "floating-point noise",
    "noise keyed by the data",
    "no noise at powers of two",
    "noise scaled by the count",
]


def worlds(counter, runs, seed=1):
    return counter(NOTHING, runs // 2, Seeds(seed, "without")), counter(RECORD, runs // 2, Seeds(seed, "with"))


def test_every_bug_is_in_a_list():
    assert {*OUTSIDE} | {*INSIDE} == {*LEAKING}


@pytest.mark.parametrize("name", OUTSIDE)
def test_caught_from_outside(name):
    found = apart(*worlds(LEAKING[name], OUTSIDE[name]), confidence=0.95, seeds=Seeds(2), learned=False)
    assert found.epsilon > 1, found


@pytest.mark.parametrize("name", SOUND)
def test_sound_ones_pass_from_outside(name):
    found = apart(*worlds(SOUND[name], 6000), confidence=0.95, seeds=Seeds(2), learned=False)
    assert found.epsilon < 1, found


@pytest.mark.parametrize("name", [name for name in LEAKING if name not in OUTSIDE])
def test_what_is_missed_from_outside(name):
    """Why the tests from inside are there."""
    found = apart(*worlds(LEAKING[name], 20_000), confidence=0.95, seeds=Seeds(2), learned=False)
    assert found.epsilon < 1, found


@pytest.mark.parametrize("name", INSIDE)
def test_refuted_from_inside(name):
    without, with_it = worlds(LEAKING[name], 400)
    assert conformance_of(without - NOTHING, Tree(ROUNDS), CLAIM, other=with_it - RECORD) < 1e-4


def test_a_correct_counter_conforms():
    values = []
    for seed in range(20):
        without, with_it = worlds(correct, 400, seed)
        values.append(conformance_of(without - NOTHING, Tree(ROUNDS), CLAIM, other=with_it - RECORD))
    assert min(values) > 1e-3


def test_the_likelihood_ratio_shows_a_factor_of_one_and_a_half():
    def bound(counter):
        given = worlds(counter, 20_000)
        return transcript_likelihood(*given, NOTHING, RECORD, Tree(ROUNDS), CLAIM, seeds=Seeds(3), confidence=0.95)

    assert bound(LEAKING["divided by m instead of 2m - 3"]) > 1.2
    assert 0.7 < bound(correct) <= 1


def test_one_floating_point_answer_is_enough():
    truth = np.zeros(1, dtype=np.int64)
    found = apart(
        floating(truth, 1000, Seeds(1)),
        floating(truth + 1, 1000, Seeds(2)),
        confidence=0.95,
        seeds=Seeds(3),
        learned=False,
    )
    assert found.distinguisher.startswith("low bits")
    assert found.epsilon > 1


@pytest.mark.slow
def test_the_sum_of_many_rounds_shows_noise_that_is_renewed():
    # a record that stays moves the sum by 16,384; the noise of a sum grows with the root of the number of rounds only
    rounds, runs = 16384, 2000
    without, with_it = (sum(renewed_rounds(rounds, runs, Seeds(seed))) for seed in (1, 2))
    found = apart(without, with_it + rounds, confidence=0.95, seeds=Seeds(3), learned=False)
    assert found.epsilon > 1


# Thresholds: a key with one record must hardly ever be published ---------------------------------------------------

DELTA = 1e-6
SHORT = 16


def thresholds():
    """1 + b log(1/delta), as if there were one node and one round; with the rounds and not the nodes; with both."""
    scale = float(exact_scale(SHORT))
    return {
        "one node, one round": math.ceil(1 + scale * math.log(1 / DELTA)),
        "all rounds, one node": math.ceil(1 + scale * math.log(SHORT / DELTA)),
        "sound": math.ceil(1 + Tree(SHORT).height * scale * math.log(SHORT * Tree(SHORT).height / DELTA)),
    }


def chance(threshold):
    """Of a key with one record being published in some round: at least that of the likeliest round."""
    noise = Mechanism(Tree(SHORT), CLAIM, units=(1,), norm1=ONE, norm2_squared=ONE).under(Coins(bytes(32)))
    return max(noise.tail(round, 0).upper(threshold - 1 + 0.5) for round in range(1, SHORT + 1))


def test_a_threshold_that_forgot_its_factors_is_seen_from_its_tail():
    shown = {name: chance(threshold) / DELTA for name, threshold in thresholds().items()}
    assert shown["one node, one round"] > 10
    assert shown["all rounds, one node"] > 1
    assert shown["sound"] < 1


@pytest.mark.parametrize("runs", [pytest.param(1_000_000, marks=pytest.mark.slow), 400_000])
def test_a_threshold_without_any_factor_is_seen_from_outside(runs):
    scale = exact_scale(SHORT)
    seen = int(published(thresholds()["one node, one round"], SHORT, scale, runs, Seeds(1), count=1).sum())
    assert union_bound(seen, runs, 0, runs, DELTA, confidence=0.95) > 1
    seen = int(published(thresholds()["sound"], SHORT, scale, 20_000, Seeds(1), count=1).sum())
    assert seen == 0
