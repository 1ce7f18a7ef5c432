"""Bounds on epsilon and mu: never wrong more often than they say, by enumeration of all outcomes."""

import math
from collections import Counter
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import binom

from retroact.audit.bounds import (
    binomial_lower,
    claimed_tradeoff,
    coupled_bound,
    coupled_pooled_bound,
    game_bound,
    measured_tradeoff,
    mu_bound,
    pooled_bound,
)
from retroact.errors import InputError
from retroact.privacy import ApproximateDP, GaussianDP, MixedDP, PureDP
from support.transcripts import union_bound

ERROR = 0.1


def phi(x):
    return math.erfc(-x / math.sqrt(2)) / 2


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def binomial(n, p):
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


@pytest.mark.parametrize(
    ("successes", "trials", "confidence"),
    [(1, 10, 0.999), (10, 10, 0.95), (53_000, 100_000, 0.95), (3, 10**6, 0.95), (3_700_000, 7_000_000, 0.999)],
)
def test_at_the_exact_bound_as_many_successes_are_as_likely_as_an_error(successes, trials, confidence):
    lower = binomial_lower(successes, trials, confidence)
    assert binom.sf(successes - 1, trials, lower) == pytest.approx(1 - confidence, rel=1e-7)
    assert binomial_lower(0, trials, confidence) == 0


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("runs", [3, 10, 40])
def test_game_bound_is_rarely_above_the_truth(epsilon, runs):
    chances = binomial(runs, sigmoid(epsilon))
    wrong = sum(p for k, p in enumerate(chances) if game_bound(k, runs, runs, 0.0, 1 - ERROR) > epsilon + 1e-9)
    assert wrong <= ERROR


@pytest.mark.parametrize(("epsilon", "delta", "rate"), [(0.5, 0.05, 0.6), (1.0, 0.2, 0.5), (0.0, 0.3, 0.9)])
def test_game_bound_with_delta_and_abstention_is_rarely_above_the_truth(epsilon, delta, rate):
    # C = e^epsilon W + delta, C + W = rate: as good as a guesser can be
    runs, wrong_rate = 25, (rate - delta) / (1 + math.exp(epsilon))
    right = 1 - wrong_rate / rate
    failed = sum(
        p * q
        for guesses, p in enumerate(binomial(runs, rate))
        for correct, q in enumerate(binomial(guesses, right))
        if guesses and game_bound(correct, guesses, runs, delta, 1 - ERROR) > epsilon + 1e-9
    )
    assert failed <= ERROR


@pytest.mark.parametrize(("epsilon", "delta", "q"), [(1.0, 0.0, 0.2), (0.5, 0.1, 0.3), (2.0, 0.05, 0.01)])
def test_union_bound_is_rarely_above_the_truth(epsilon, delta, q):
    runs, p = 15, math.exp(epsilon) * q + delta
    failed = sum(
        a * b
        for (i, a), (j, b) in product(enumerate(binomial(runs, p)), enumerate(binomial(runs, q)))
        if union_bound(i, runs, j, runs, delta, 1 - ERROR) > epsilon + 1e-9
    )
    assert failed <= ERROR


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 2.5])
def test_gaussian_bounds_are_rarely_above_the_truth(mu):
    runs = 40
    right = sum(p for k, p in enumerate(binomial(runs, phi(mu / 2))) if mu_bound(k, runs, 1 - ERROR) > mu + 1e-9)
    between = 2 * phi(mu / 2) - 1
    coupled = sum(p for k, p in enumerate(binomial(runs, between)) if coupled_bound(k, runs, 1 - ERROR) > mu + 1e-9)
    assert right <= ERROR
    assert coupled <= ERROR


@pytest.mark.parametrize("epsilons", [(0.1, 0.1, 0.1), (0.0, 0.2, 1.5), (0.05, 3.0), (2.0,)])
@pytest.mark.parametrize("runs", [2, 9, 30])
def test_pooled_bound_is_rarely_above_the_truth_for_unequal_votes(epsilons, runs):
    law = np.ones(1)  # of the number of right votes: unequal trials
    for epsilon in epsilons * runs:
        law = np.convolve(law, [1 - sigmoid(epsilon), sigmoid(epsilon)])
    votes = runs * len(epsilons)
    failed = sum(
        p for k, p in enumerate(law) if pooled_bound(k, votes, len(epsilons), 1 - ERROR) > sum(epsilons) + 1e-9
    )
    assert failed <= ERROR
    law = np.ones(1)  # and of the votes that a threshold lies between
    for epsilon in epsilons * runs:
        law = np.convolve(law, [1 - math.tanh(epsilon / 2), math.tanh(epsilon / 2)])
    failed = sum(
        p for k, p in enumerate(law) if coupled_pooled_bound(k, votes, len(epsilons), 1 - ERROR) > sum(epsilons) + 1e-9
    )
    expected = votes * math.tanh(sum(epsilons) / len(epsilons) / 2)
    assert failed <= ERROR or expected < 1


def test_false_alarms_at_exactly_the_claim_are_as_rare_as_nominal_and_not_absent():
    random, runs, audits = np.random.default_rng(1), 2000, 2000
    right = random.binomial(runs, sigmoid(1.0), audits)
    alarms = sum(times for k, times in Counter(right.tolist()).items() if game_bound(k, runs, runs, 0.0, 0.95) > 1.0)
    assert 0.02 * audits < alarms < 0.065 * audits  # 5 % nominal, 3 standard errors above at most


# Table of the study: the event has probability p in world 1 and p e^-epsilon in world 0, half of all runs are of each.
@pytest.mark.parametrize(
    ("p", "runs", "epsilon", "union", "game"),
    [
        (0.004, 100_000, 1.0, 0.635, 0.781),
        (0.03, 10_000, 1.0, 0.626, 0.783),
        (0.03, 100_000, 1.0, 0.870, 0.920),
        (0.3, 10_000, 0.5, 0.399, 0.431),
    ],
)
def test_the_game_beats_the_union_by_as_much_as_was_measured(p, runs, epsilon, union, game):
    half = runs // 2
    seen1, seen0 = round(half * p), round(half * p * math.exp(-epsilon))
    classical = union_bound(seen1, half, seen0, half)
    played = game_bound(seen1, seen1 + seen0, runs)
    assert classical < played < epsilon
    # one draw there, expected counts here: within one standard error of the logarithm
    error = math.sqrt(1 / seen1 + 1 / seen0)
    assert classical == pytest.approx(union, abs=error)
    assert played == pytest.approx(game, abs=error)


def test_bounds_are_never_below_zero_and_know_certainty():
    assert game_bound(0, 100, 100) == union_bound(0, 10, 5, 10) == mu_bound(40, 100) == pooled_bound(3, 10, 2) == 0
    assert game_bound(0, 0, 100, 1e-6) == 0
    assert math.isfinite(game_bound(100, 100, 100))
    with pytest.raises(InputError, match="expected a number from 0 to 3"):
        mu_bound(4, 3)
    with pytest.raises(InputError, match="expected a multiple of 7"):
        pooled_bound(10, 20, 7)
    with pytest.raises(InputError, match="confidence"):
        game_bound(1, 2, 3, confidence=1.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_claimed_curve_of_pure_privacy(epsilon):
    for x, y in claimed_tradeoff(PureDP(epsilon), 41):
        expected = max(0.0, 1 - math.exp(epsilon) * x, math.exp(-epsilon) * (1 - x))
        assert y == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_claimed_curve_of_gaussian_privacy_is_close_to_the_exact_one_and_never_above(mu):
    for x, y in claimed_tradeoff(GaussianDP(mu), 41)[1:-1]:
        exact = phi(NormalDist().inv_cdf(1 - x) - mu)
        assert exact - 2e-3 < y <= exact + 1e-9


def test_claimed_curves_of_approximate_and_mixed_privacy():
    approximate = dict(claimed_tradeoff(ApproximateDP(1.0, 0.1), 11))
    assert approximate[0.0] == pytest.approx(0.9)
    assert approximate[0.5] == pytest.approx(math.exp(-1) * 0.4)
    mixed, alone = claimed_tradeoff(MixedDP(0.5, 0.5, 1e-6), 21), claimed_tradeoff(GaussianDP(0.5), 21)
    assert all(y <= z + 1e-9 for (_, y), (_, z) in zip(mixed, alone, strict=True))
    assert mixed[5][1] > 0.3


def test_measured_curve_follows_the_law():
    random = np.random.default_rng(1)
    points = measured_tradeoff(random.normal(0, 1, 20_000), random.normal(1, 1, 20_000))
    assert 40 < len(points) <= 60
    assert (points[0], points[-1]) == ((0.0, 1.0), (1.0, 0.0))
    for x, y in points[1:-1]:
        assert y == pytest.approx(phi(NormalDist().inv_cdf(1 - x) - 1), abs=0.02)
    with pytest.raises(InputError, match="scores of both worlds"):
        measured_tradeoff([], [1.0])
