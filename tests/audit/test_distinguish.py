"""Answers as numbers, and telling two worlds apart by them: planted bugs are caught, right counters are not."""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import retroact as ra
from retroact.audit import Seeds
from retroact.audit.distinguish import attack
from retroact.errors import InputError
from retroact.privacy import GaussianDP, Guarantee, PureDP
from retroact.testing.answers import parts
from retroact.testing.features import columns, telling_most
from support.two_worlds import apart, features_of

ROUNDS, NODES = 32, 9
WITHOUT = np.zeros(ROUNDS)
WITH = (np.arange(ROUNDS) < ROUNDS // 2).astype(float)  # one record, deleted half-way
CLAIM = 1.0


def laplace(random, scale, size):
    q = np.exp(-1 / scale)
    return (random.geometric(1 - q, size) - random.geometric(1 - q, size)).astype(float)


def tree(random, runs, scale=NODES):
    """The noise of a counter: one for each dyadic block of rounds."""
    noise = np.zeros((runs, ROUNDS))
    for level in range(ROUNDS.bit_length()):
        nodes = laplace(random, scale, (runs, ROUNDS >> level))
        for round in range(1, ROUNDS + 1):
            if round >> level & 1:
                noise[:, round - 1] += nodes[:, (round >> level) - 1]
    return noise


def right(random, count, runs):
    return count + tree(random, runs)


def not_divided(random, count, runs):
    return count + tree(random, runs, 1)


def keyed_by_count(random, count, runs):
    return count + np.where(count == 0, tree(random, runs), tree(random, runs))


def same_noise_after_rollback(random, count, runs):
    noise = tree(random, runs)
    return np.concatenate([noise, noise + count], axis=1)


def other_noise_after_rollback(random, count, runs):
    return np.concatenate([tree(random, runs), tree(random, runs) + count], axis=1)


def missing_at_powers(random, count, runs):
    noise = tree(random, runs)
    noise[:, [2**k - 1 for k in range(6)]] = 0
    return count + noise


def scaled_by_count(random, count, runs):
    return count + tree(random, runs) * (1 + count)


def floating(random, count, runs):
    return count[:1] + random.laplace(size=(runs, 1))


BUGS = [
    (not_divided, 3000, "linear"),
    (floating, 1000, "low bits"),
    (keyed_by_count, 3000, "quadratic"),
    (same_noise_after_rollback, 300, "linear"),
    (missing_at_powers, 300, None),
    (scaled_by_count, 600, None),
]


@pytest.mark.parametrize(("bug", "runs", "by"), BUGS, ids=[bug.__name__ for bug, *_ in BUGS])
def test_planted_bugs_are_caught(bug, runs, by):
    random = Seeds(11).branch(bug.__name__).numpy()
    worlds = [bug(random, count, runs) for count in (WITHOUT, WITH)]
    found = apart(*worlds, confidence=0.999, seeds=Seeds(12), learned=False)
    assert found.epsilon > 1.2 * CLAIM
    assert by is None or found.distinguisher.startswith(by)


@pytest.mark.parametrize("law", [right, other_noise_after_rollback])
@pytest.mark.parametrize("seed", range(2))
def test_right_counters_stay_below_their_claim(law, seed):
    random = Seeds(seed).numpy()
    found = apart(law(random, WITHOUT, 1000), law(random, WITH, 1000), confidence=0.95, seeds=Seeds(seed))
    assert found.epsilon < CLAIM


@pytest.mark.slow
def test_many_runs_are_fast_and_stay_below_the_claim():
    random = Seeds(5).numpy()
    found = apart(right(random, WITHOUT, 300_000), right(random, WITH, 300_000), confidence=0.95, seeds=Seeds(1))
    assert 0.2 < found.epsilon < CLAIM


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_false_alarms_are_as_rare_as_promised(delta):
    """Randomised response, and with probability delta the truth in the open: the claim is exactly right."""
    random, alarms, audits, epsilon = Seeds(21).numpy(), 0, 100, np.log(3)
    for index in range(audits):
        truth = random.integers(0, 2, 400).astype(bool)
        answer = np.where(random.random(400) < 0.25, ~truth, truth).astype(int)
        answer = np.where(random.random(400) < delta, 10 + truth, answer)
        found = apart(answer[~truth], answer[truth], delta=delta, confidence=0.9, seeds=Seeds(index), learned=False)
        alarms += found.epsilon > epsilon
    # 10 are expected at most; 21 or more come about once in a thousand times
    assert alarms < 21


def test_the_bound_comes_close_to_the_truth():
    random = Seeds(3).numpy()
    lies = random.random((2, 10_000)) < 0.25
    found = apart(lies[0], ~lies[1], confidence=0.95, seeds=Seeds(1), learned=False)
    assert 0.95 < found.epsilon < np.log(3) + 0.05
    assert found.points[0] == (0.0, 1.0)
    assert all(a[0] <= b[0] and a[1] >= b[1] for a, b in pairwise(found.points))


def test_the_learned_one_sees_what_sums_and_squares_do_not():
    random = Seeds(8).numpy()
    values = random.normal(size=(2, 1500, 3))
    product = np.sign(values[..., 0] * values[..., 1]) * np.array([[1], [-1]])
    values[..., 2] = np.abs(values[..., 2]) * np.where(random.random((2, 1500)) < 0.02, -product, product)
    without = apart(values[0], values[1], seeds=Seeds(1), learned=False)
    found = apart(values[0], values[1], seeds=Seeds(1))
    assert found.distinguisher == "learned"
    assert found.epsilon > 1.5 > without.epsilon


def test_the_same_seeds_give_the_same_attack():
    random = Seeds(9).numpy()
    worlds = [right(random, count, 200) for count in (WITHOUT, WITH)]
    assert apart(*worlds, seeds=Seeds(1)) == apart(*worlds, seeds=Seeds(1))


def test_which_places_are_there_tells_worlds_apart():
    random = Seeds(4).numpy()
    shown = random.random((2, 400)) < np.array([[0.02], [0.98]])
    answers = [b'{"a":1,"b":2}' if there else b'{"a":1}' for there in shown.ravel()]
    found = columns([[answer] for answer in answers])
    assert found.labels == ("b@1 is there",)
    claim = Guarantee(PureDP(1.0), 1.0)
    assert attack(found, np.arange(800) >= 400, claim, seeds=Seeds(1), learned=False).epsilon > 2


def test_answers_that_never_vary_tell_nothing():
    claim, worlds = Guarantee(GaussianDP(0.1), 1.0, 1e-6), np.arange(100) >= 50
    found = attack(features_of(np.ones((100, 3))), worlds, claim, confidence=0.9, seeds=Seeds(1))
    assert (found.epsilon, found.mu, found.confidence) == (0.0, 0.0, 0.95)


def test_without_scikit_learn_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(InputError, match=r"install retroact\[audit\]"):
        apart(np.arange(100.0), np.arange(100.0), seeds=Seeds(1))
    apart(np.arange(100.0), np.arange(100.0), seeds=Seeds(1), learned=False)


def test_too_few_runs_are_refused():
    with pytest.raises(InputError, match="at least 32 runs, got 23"):
        apart(np.ones(3), np.ones(20), seeds=Seeds(1))
    assert apart(np.zeros(1), np.arange(60.0), seeds=Seeds(1)).distinguisher == "too few runs of one world"


# Answers -------------------------------------------------------------------------------------------------------------


def test_what_a_stream_publishes_is_read_exactly():
    statistics = {"n": ra.Count(), "by": ra.Histogram("c"), "mean": ra.Mean("x")}
    schema = {"c": ra.Category(["a", "b.c"]), "x": ra.Number(0, 1)}
    stream = ra.Stream(schema, statistics, epsilon=1.0, horizon=4, key=ra.Key.for_testing(1))
    stream.add({"c": "a", "x": 0.5})
    round = stream.close_round()
    found = parts(round.encode())
    assert found["n.value"] == round["n"].value
    assert found["n.exact.0"] == Fraction(round["n"].numerators[0], round["n"].denominator)
    assert found["by.value.b.c"] == round["by"].value["b.c"]
    assert [float(found[f"by.exact.{name}"]) for name in ("a", "b.c")] == [round["by"].value[n] for n in ("a", "b.c")]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"17", {"answer": 17}),
        (b"-0.5", {"answer": -0.5}),
        (b'"1/3"', {"answer": Fraction(1, 3)}),
        (b"Fraction(1, 2)", {"answer": "Fraction(1, 2)"}),
        (b"[1, [2.5, true]]", {"0": 1, "1.0": 2.5, "1.1": "True"}),
        (b"(None, {'k': 1e16})", {"0": "None", "1.k": 1e16}),
        (b'{"a": 1}\n{"a": 2}', {"line0.a": 1, "line1.a": 2}),
        (b"\xff\x00", {"answer": "ff00"}),
        (b"[]", {"empty": "[]"}),
    ],
)
def test_other_answers_are_read_too(answer, expected):
    assert parts(answer) == expected


@pytest.mark.parametrize("base", [2**60, 2**200, -(10**40)])
def test_large_whole_numbers_lose_nothing(base):
    found = columns([[str(base + step).encode()] for step in range(5)])
    assert found.numbers[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    far = columns([[str(base * step + step % 2).encode()] for step in range(5)])
    assert far.names == ("answer@1", "answer low digits@1")
    assert len({*far.numbers[:, 1]}) > 1


def test_fractions_keep_apart_what_floats_would_merge():
    found = columns([[f"{2**60 + step}/3".encode()] for step in (0, 1, 3)])
    assert len({*found.numbers[:, 0]}) == 3


def test_low_bits_show_whole_steps():
    values = np.array([[0.1, 1.1], [0.3, 0.7]])
    step = features_of(values).low_bits()[:, -1]
    assert step[0] == 0
    assert step[1] < -40
    assert features_of(np.array([[1.0, 2.0]])).low_bits().shape == (1, 0)


def test_what_is_not_finite_is_a_number_all_the_same():
    found = columns([[b"1.5"], [b"Infinity"], [b"[]"], [b"1e999"], [b"0.5"]])
    assert np.isfinite(found.numbers).all()
    views = columns([[text] for text in [b"1e999", b"1.5"] * 100 + [b"-1e999", b"-Infinity"] * 100])
    assert attack(views, np.arange(400) >= 200, Guarantee(PureDP(1.0), 1.0), seeds=Seeds(1)).epsilon > 2


def test_runs_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="as many rounds"):
        columns([[b"1"], [b"1", b"2"]])


def test_of_many_columns_those_count_that_differ():
    worlds = Seeds(7).numpy().normal(size=(2, 400, 1500))
    worlds[1, :, 1234] += 5
    found = apart(*worlds, seeds=Seeds(8), learned=False)
    assert found.epsilon > 2
    both = features_of(np.concatenate(worlds))
    kept = telling_most(both, np.arange(800), np.arange(800) >= 400)
    assert len(kept.names) == 512
    assert "answer@1235" in kept.names
