"""Calibrated noise: its laws, its variance, its tails, and the lattice it lives on."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from retroact.coins import DiscreteGaussian, DiscreteLaplace, Key
from retroact.errors import InputError
from retroact.noise import Bridge, Mechanism, Oblivious, Schauder, Summand, Tail, Tree, Unbounded, Windowed
from retroact.paper import PaperTree
from retroact.privacy import Share, split

PURE = split(1.0, 0, {"a": "pure"}, {})["a"]
GAUSSIAN = split(1.0, 1e-6, {"a": "gaussian"}, {})["a"]


def mechanism(process, share, units=(1,), norm1=1, norm2=1, seed=1, **more):
    coins = Key.for_testing(seed).coins("mechanism")
    norms = {"norm1": Fraction(norm1), "norm2_squared": Fraction(norm2)}
    return Mechanism(process, share, units=units, **norms, **more).under(coins)


def test_laplace_scale_is_sensitivity_over_epsilon():
    law = mechanism(Bridge(65535), PURE, units=(50_000,), norm1=2).law(0, 50_000)
    assert isinstance(law, DiscreteLaplace)
    assert law.scale == 50_000 * 2 * 8


def test_gaussian_variance_is_sensitivity_over_mu_and_a_little_more():
    law = mechanism(Schauder(65535), GAUSSIAN).law(0, 1)
    assert isinstance(law, DiscreteGaussian)
    needed = 34 / GAUSSIAN.amount
    assert needed * 1.005 < law.parameter < needed * 1.006
    fine = mechanism(Schauder(65535), GAUSSIAN, units=(1000,)).law(0, 1000)
    assert needed * 10**6 < fine.parameter < needed * 10**6 * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0, 30.0])
@pytest.mark.parametrize("process", [Schauder(255), Bridge(255), Tree(255), Windowed(16, inner=Bridge)], ids=repr)
def test_large_budgets_refine_the_lattice(process, epsilon):
    """The noise stays at least four times as coarse as the shifts, and as what no round can see, on its lattice."""
    share = split(epsilon, 1e-6, {"a": "gaussian"}, {})["a"]
    made = mechanism(process, share)
    law = made.law(0, 1)
    assert law.parameter >= 16 * max(process.l2_squared, process.kernel_squared)
    fineness = made.refinement**2
    assert Fraction(1) <= law.parameter / fineness / (process.l2_squared / share.amount) < Fraction(1007, 1000)


@pytest.mark.parametrize(
    ("process", "share"),
    [
        (Bridge(1023), PURE),
        (Tree(1024), PURE),
        (Schauder(1023), GAUSSIAN),
        (Unbounded(255), GAUSSIAN),
        (Windowed(64), GAUSSIAN),
    ],
    ids=repr,
)
def test_coordinates_are_independent_copies_with_the_claimed_law(process, share):
    """4,000 coordinates of one round: variance, and coverage of the half-widths, within 5 standard errors."""
    count = 4000
    made = mechanism(process, share, units=(1,) * count)
    for round in (1, 341, 777):
        numerators, denominator = made.draw(round)
        noise = numerators / denominator
        tail = made.tail(round, 0)
        assert made.variances(round)[0] == pytest.approx(tail.variance)
        kurtosis = 6 if share.kind == "pure" else 3
        assert abs(noise.var() / tail.variance - 1) < 5 * math.sqrt((kurtosis - 1) / count)
        for level in (0.5, 0.95, 0.99):
            covered = (np.abs(noise) <= tail.half_width(level)).mean()
            assert abs(covered - level) < 5 * math.sqrt(level * (1 - level) / count) + 0.004


def test_tails_of_one_and_two_laplace_noises():
    q = math.exp(-1 / 8)
    one = Tail([Summand.of(DiscreteLaplace(8), np.array([1]), 1)], 1.0)
    for x in (1, 5, 40, 200):
        assert one.upper(x) == pytest.approx(q**x / (1 + q), rel=1e-6)
    mass = np.array([(1 - q) / (1 + q) * q ** abs(k) for k in range(-3000, 3001)])
    both = np.convolve(mass, mass)
    two = Tail([Summand.of(DiscreteLaplace(8), np.array([1, -1]), 1)], 1.0)
    for x in (1, 10, 100):
        assert two.upper(x) == pytest.approx(both[6000 + x :].sum(), rel=1e-6)
    assert two.upper(-10) == pytest.approx(both[6000 - 10 :].sum(), rel=1e-6)


def test_noise_whose_variance_is_no_float_has_no_width():
    for scale in (Fraction(1, 1000), Fraction(1, 800)):
        tail = Tail([Summand.of(DiscreteLaplace(scale), np.array([1, -1]), 1)], 1.0)
        assert tail.variance == 0
        assert tail.half_width(0.95) == 0


def test_tails_of_weighted_noises_against_exact_convolution():
    """3 X + 2 Y + Y' over 4, on the lattice of quarters."""
    q = math.exp(-1 / 5)
    reach = 2000
    law = np.array([(1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)])

    def stretched(weight):
        out = np.zeros(2 * reach * weight + 1)
        out[::weight] = law
        return out

    total = np.convolve(np.convolve(stretched(3), stretched(2)), stretched(1))
    centre = len(total) // 2
    tail = Tail([Summand.of(DiscreteLaplace(5), np.array([3, -2, 1]), 4)], 0.25)
    for numerator in (1, 7, 60, 200):
        assert tail.upper(numerator / 4) == pytest.approx(total[centre + numerator :].sum(), rel=1e-5)
    half = tail.half_width(0.95)
    inside = int(half * 4 + 1e-6)
    covered = total[centre - inside : centre + inside + 1].sum()
    assert 0.95 <= covered < 0.96


def test_wide_noise_is_computed_without_overflow():
    made = mechanism(Bridge((1 << 20) - 1), PURE, units=(1 << 44,))
    numerators, denominator = made.draw(12345)
    assert numerators.dtype == object
    assert abs(numerators[0] / denominator) < 200 * made.variances(12345)[0] ** 0.5


def test_groups_of_units_do_not_share_noise():
    made = mechanism(Schauder(255), GAUSSIAN, units=(1, 1000, 1))
    numerators, _ = made.draw(100)
    assert len({*numerators.tolist()}) == 3
    assert made.variances(100)[1] == pytest.approx(10**6 * made.variances(100)[0], rel=0.01)


def test_a_law_of_your_own_costs_twice_the_height():
    law = Oblivious(DiscreteLaplace(100), "wide", epsilon=0.01, delta=1e-9)
    epsilon, delta = law.cost(1024)
    assert float(epsilon) == pytest.approx(0.22)
    assert float(delta) == pytest.approx(22e-9)
    made = mechanism(PaperTree(1024), Share("pure", epsilon), oblivious=law)
    assert made.law(3, 1) is law.law
    assert made.variances(1023)[0] == pytest.approx(10 * law.law.variance)


def test_noise_is_judged_without_coins_and_drawn_under_them_only():
    """What was calibrated needs no key, can be pickled, and draws the same noise under the same coins."""
    coins = Key.for_testing(1).coins("mechanism")
    bare = Mechanism(Schauder(64), GAUSSIAN, units=(1, 5), norm1=Fraction(2), norm2_squared=Fraction(2))
    with pytest.raises(InputError, match="only calibrated"):
        bare.draw(3)
    mine, sent = bare.under(coins), pickle.loads(pickle.dumps(bare)).under(coins)
    assert mine.half_width(3, 0, 0.95) == bare.half_width(3, 0, 0.95)
    assert all(mine.draw(round)[0].tolist() == sent.draw(round)[0].tolist() for round in (1, 3, 64))
    assert pickle.loads(pickle.dumps(mine.law(0, 1))).parameter == mine.law(0, 1).parameter
    assert mine.under(coins.branch("other")).draw(3)[0].tolist() != mine.draw(3)[0].tolist()
