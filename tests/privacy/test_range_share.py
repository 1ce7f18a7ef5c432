"""Several mechanisms with a bounded range, chosen by earlier answers, against one Gaussian mechanism."""

from fractions import Fraction

import numpy as np
import pytest

from retroact.privacy import Share, window_cost
from retroact.privacy.gaussian import delta_of
from retroact.privacy.range_share import gaussian_weight, largest_range

# Ends of the interval that an adversary can choose, to a range.
CHOICES = 16


def adaptive(length, most, reach=400):
    """The delta of 1, 2, ... mechanisms at every x on a grid, by brute force: the adversary chooses the ends of every
    interval again, after seeing all answers."""
    step = length / CHOICES
    x = np.arange(-reach, reach + 1) * step
    delta, padded = np.maximum(0.0, -np.expm1(x)), reach + CHOICES
    for _ in range(most):
        wide = np.arange(-padded, padded + 1) * step
        known = np.where(wide < x[0], -np.expm1(wide), 0.0)
        known[CHOICES:-CHOICES] = delta
        best = known[CHOICES:-CHOICES].copy()
        for up in range(1, CHOICES):
            high, low = up * step, (up - CHOICES) * step
            chance = -np.expm1(low) / (np.exp(high) - np.exp(low))
            # At x - high and x - low.
            above, below = known[CHOICES - up : len(known) - CHOICES - up], known[2 * CHOICES - up :][: len(x)]
            best = np.maximum(best, chance * np.exp(high) * above + (1 - chance) * np.exp(low) * below)
        delta = best
        yield x, delta


@pytest.mark.parametrize("length", [0.02, 0.3, 1.5])
def test_no_adaptive_choice_of_ranges_exceeds_the_gaussian_bound(length):
    for number, (x, delta) in enumerate(adaptive(length, 12), 1):
        mu = float(gaussian_weight(number)) ** 0.5 * length / 2
        inside = np.flatnonzero(np.abs(x) < 8 * length)
        bound = np.array([delta_of(mu, float(at)) for at in x[inside]])
        assert (delta[inside] <= bound + 1e-12).all(), number
        assert delta[len(x) // 2] > 0.75 * delta_of(mu, 0.0), "and it is not far above what can be reached"


def test_a_smaller_weight_would_be_refuted():
    """The bound is not loose by a third: a control of the search above."""
    x, delta = list(adaptive(0.3, 6))[-1]
    mu = (2 / 3 * float(gaussian_weight(6))) ** 0.5 * 0.3 / 2
    assert (delta > [delta_of(mu, float(at)) + 1e-12 for at in x]).any()


def test_one_release_spends_all_of_a_pure_share():
    assert largest_range(Share("pure", Fraction(1)), Fraction(0), 1) == (1, 0)
    assert largest_range(Share("pure", Fraction(1)), Fraction(1, 10**6), 1) == (1, 0), "delta that buys nothing"


@pytest.mark.parametrize("mechanisms", [2, 9, 40, 500])
def test_a_spare_delta_buys_what_the_bounds_allow(mechanisms):
    spare = Fraction(1, 10**6)
    length, spent = largest_range(Share("pure", Fraction(1)), spare, mechanisms)
    assert spent == spare
    assert length > Fraction(1, mechanisms)
    cost = window_cost("whole", epsilon0=length, releases=mechanisms, delta0=0, delta=float(spare), bounded_range=True)
    mu = float(gaussian_weight(mechanisms)) ** 0.5 * float(length) / 2
    assert cost.epsilon <= 1 or delta_of(mu, 1.0) <= 1e-6 * (1 + 1e-9)


def test_weights_are_rounded_up_far_out():
    weights = [float(gaussian_weight(n)) for n in (4095, 4096, 4097, 10**6)]
    assert weights == sorted(weights)
    assert weights[3] < 1.001 * 10**6
