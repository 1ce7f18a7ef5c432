"""Approximate retroactivity: what is claimed holds up, what is claimed too much does not."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

import retroact as ra
from grudge import Grudge
from retroact.audit import Approximate, Seeds, Target
from retroact.audit.approximate import _churned, approximate, shown, smoothed_by_gaussian
from retroact.audit.distinguish import attack
from retroact.compilers.maps import GaussianMap
from retroact.compilers.smooth import smooth
from retroact.ledger.definition import Add, Delete, trajectory
from retroact.privacy import GaussianDP, Guarantee, PureDP, epsilon_of
from retroact.stateful import FlippancyTracker, tracker_design
from retroact.testing import Shape
from support.encoded import Encode
from support.two_worlds import features_of

CLAIM = Guarantee(PureDP(8.0), 8.0)
BLOCK = Approximate(1.0, 1e-3, block=4)


def grudge(times, claim=BLOCK):
    """Errs by so many times what it is smoothed for."""

    def make(key, own):
        return smooth(
            Grudge(Fraction(times)), error=1, failure=0, alpha=claim.alpha, beta=claim.beta, block=claim.block, key=own
        )

    return Target("grudge", Encode(make), Shape(values=("x",), rounds=claim.block + 2), CLAIM, retroactivity=claim)


def test_an_honest_promise_stands_and_an_understated_error_does_not():
    honest = approximate(grudge(1), Seeds(1), runs=64)
    assert honest.verdict == "passed"
    assert honest.control.caught
    assert "times the alpha" in honest.detectable
    wrong = approximate(grudge(8), Seeds(1), runs=64)
    assert wrong.verdict == "violation"
    assert float(wrong.measured["alpha shown"]) > 1
    assert "unite = 2" in wrong.counterexample or "unite = 3" in wrong.counterexample


def test_the_bound_on_mu_is_close_to_the_truth_and_below():
    mu = 1.5
    worlds = Seeds(2).numpy().normal(size=(2, 8000, 2)) + np.array([[[0.0]], [[mu / np.sqrt(2)]]])
    worlds = np.round(worlds * 1024)  # else the low bits of floating-point numbers give away more than the law
    claim = Guarantee(GaussianDP(mu), epsilon_of(mu, 1e-3), 1e-3)
    views, truth = features_of(np.concatenate(worlds)), np.arange(16_000) >= 8000
    found = attack(views, truth, claim, confidence=0.99, seeds=Seeds(3))
    alpha, how, most = shown(found)
    assert 0.75 * epsilon_of(mu, 1e-3) < alpha < epsilon_of(mu, 1e-3)
    assert "mu" in how
    assert alpha < most


@pytest.fixture
def quick_trackers(monkeypatch):
    """A tracker finds its calibration anew each time; many of one kind need it once."""
    monkeypatch.setattr(tracker_design, "largest_rho", lru_cache(tracker_design.largest_rho))


def tracker(sigma, claim=BLOCK, rounds=10):
    def make(key, own):
        base = FlippancyTracker(rounds, epsilon=32.0, delta=1e-6, key=key)
        if not sigma:
            return base
        return smooth(base, error=12, alpha=1000, beta=0.99, failure=1e-3, map=GaussianMap(sigma=sigma), key=own)

    shape = Shape(values=tuple(range(12)), rounds=rounds)
    return Target("tracker", Encode(make), shape, CLAIM, retroactivity=claim)


@pytest.mark.usefixtures("quick_trackers")
def test_the_tracker_remembers_and_wide_noise_hides_it():
    bare = approximate(tracker(0), Seeds(4), runs=48, confidence=0.95)
    assert bare.verdict == "violation"
    assert float(bare.measured["alpha shown"]) > 1.5
    hidden = approximate(tracker(8 * 12), Seeds(4), runs=32, confidence=0.95)
    assert hidden.verdict == "passed"
    assert float(hidden.measured["alpha shown"]) < 0.3


@pytest.mark.usefixtures("quick_trackers")
def test_an_error_that_the_base_does_not_have_is_refuted():
    """20,000 values come in one round and go in the next. A tracker that freezes them goes on counting them, 65 times
    as far from the truth as the E that it was smoothed for."""

    def make(key, own):
        base = FlippancyTracker(1000, epsilon=1.0, delta=1e-6, flips=1, key=key)
        return smooth(base, error=300, failure=1e-4, key=own)

    crowd = tuple(range(20_000))
    came = ([Add(value) for value in crowd], [Delete(value, 1) for value in crowd], [])
    third = []
    for history in (came, ([], [], [])):
        made = make(ra.Key.for_testing(1), ra.Key.for_testing(2))
        third.append([float(made.close(updates).value) for updates in history][-1])
    assert third[0] - third[1] == pytest.approx(20_000)
    claimed = Approximate(1.0, 1.01e-4)
    assert made.retroactivity.alpha(claimed.beta) <= claimed.alpha
    target = Target("tracker", Encode(make), Shape(crowd, rounds=3), CLAIM, retroactivity=claimed)
    result = approximate(target, Seeds(1), runs=24, confidence=0.95)
    assert result.verdict == "violation"
    assert float(result.measured["alpha shown"]) > claimed.alpha


@pytest.mark.slow
@pytest.mark.usefixtures("quick_trackers")
def test_more_noise_shows_less_and_longer_blocks_show_more():
    """As in a study of the tracker: alpha falls with sigma; single answers are hidden before blocks are."""
    claim = Approximate(1.0, 1e-3, block=8)
    alphas = {
        (sigma, block): float(
            approximate(tracker(sigma, claim, 16), Seeds(5), runs=300, block=block, confidence=0.95).measured[
                "alpha shown"
            ]
        )
        for sigma in (0, 6, 48)
        for block in (1, 8)
    }
    assert alphas[0, 8] > 3
    assert alphas[0, 8] >= alphas[6, 8] >= alphas[48, 8]
    assert alphas[6, 8] > alphas[6, 1]
    assert alphas[48, 1] < 0.1


def test_only_gaussian_noise_over_a_base_that_never_fails_is_judged_by_mu():
    assert smoothed_by_gaussian(grudge(1).make(ra.Key.for_testing(1)))
    assert not smoothed_by_gaussian(tracker(0).make(ra.Key.for_testing(1)))
    assert not smoothed_by_gaussian(tracker(96).make(ra.Key.for_testing(1)))


def test_all_that_came_is_gone_by_the_uniting_round():
    shape = Shape(values=("a", "b"), rounds=12)
    data = trajectory(_churned(shape, 12))
    assert not data[-1]
    assert sum(map(bool, data)) >= 5


def test_where_it_does_not_apply_and_what_it_refuses():
    exact = Target("exact", grudge(1).make, Shape(values=("x",)), CLAIM)
    assert approximate(exact, Seeds(1)).verdict == "not applicable"
    with pytest.raises(ra.InputError, match="a block of 1 to 4"):
        approximate(grudge(1), Seeds(1), block=5)
    short = Target("short", grudge(1).make, Shape(values=("x",), rounds=4), CLAIM, retroactivity=BLOCK)
    with pytest.raises(ra.InputError, match="more than one round before"):
        approximate(short, Seeds(1))


@pytest.mark.usefixtures("quick_trackers")
def test_a_history_without_answers_is_no_pass():
    beyond = Target("beyond", tracker(0).make, Shape(values=("x",), rounds=12), CLAIM, retroactivity=BLOCK)
    result = approximate(beyond, Seeds(1), runs=16)
    assert result.verdict == "inconclusive"
    assert "ExhaustedError was raised" in result.found


def test_a_claim_of_nothing_is_not_judged():
    target = Target("any", object, Shape(values=("x",), rounds=4), CLAIM, retroactivity=Approximate(math.inf, 0.0))
    assert approximate(target, Seeds(1)).verdict == "not applicable"
