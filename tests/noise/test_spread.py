"""Half-widths of combinations of noise, beside exact laws."""

import math
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest

import retroact as ra
from retroact.coins import DiscreteGaussian, DiscreteLaplace
from retroact.noise import Oblivious, Spread, Summand, Tail
from retroact.statistics.bound import At

LEVELS = (0.5, 0.683, 0.95, 0.99)
WEIGHTS = [
    (1,),
    (1, 1),
    (7, 3, 2, 1),
    (2, 1),
    (3, 1),
    (10, 1),
    (10, 9),
    (100, 77),
    (5, 5, 3),
    (4, 2, 1),
    (1,) * 7,
    (6, *(2,) * 9),
]


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_against_the_exact_law(weights):
    """Noise much wider than its lattice, by the contour integral of `Tail`: hardly less, and little more."""
    law = DiscreteLaplace(1000)
    exact = Tail([Summand.of(law, np.array(weights), 1)], float(math.gcd(*weights)))
    spread = Spread.combined(
        (float(weight), Tail([Summand.of(law, np.array([1]), 1)], 1.0).spread) for weight in weights
    )
    assert spread.variance == pytest.approx(exact.variance)
    assert spread.fourth == pytest.approx(exact.spread.fourth)
    for level in LEVELS:
        assert 0.999 < spread.half_width(level) / exact.half_width(level) < 1.05


@pytest.mark.parametrize("scale", [0.3, 0.5, 1, 2, 4])
def test_coarse_noise_is_covered_too(scale):
    """Noise as wide as its lattice, by adding up all its values."""
    reach = int(40 * scale) + 3
    values, q = np.arange(-reach, reach + 1), math.exp(-1 / scale)
    chances = (1 - q) / (1 + q) * q ** np.abs(values)
    second = float((chances * values**2).sum())
    one = Spread(second, float((chances * values**4).sum()) - 3 * second**2, 1.0)
    for weights in [(1.0,), (1.0, 1.0), (1.0, 0.5), (1.0, 0.1), (0.9, 0.7), (0.5, 0.5, 0.3)]:
        sums, law = np.zeros(1), np.ones(1)
        for weight in weights:
            sums, law = np.add.outer(sums, weight * values).ravel(), np.multiply.outer(law, chances).ravel()
            kept = law > 1e-9
            sums, law = sums[kept], law[kept]
        spread = Spread.combined((weight, one) for weight in weights)
        for level in LEVELS:
            held = law[np.abs(sums) <= spread.half_width(level) + 1e-9].sum()
            assert held > level - 1e-5, (weights, level, held)


@pytest.mark.parametrize("scale", [1, 8, 300])
def test_the_fourth_cumulant_of_laplace_noise(scale):
    values, q = np.arange(-60 * scale, 60 * scale + 1, dtype=float), math.exp(-1 / scale)
    chances = (1 - q) / (1 + q) * q ** np.abs(values)
    second = (chances * values**2).sum()
    spread = Tail([Summand.of(DiscreteLaplace(scale), np.array([3]), 2)], 1.5).spread
    assert spread.variance == pytest.approx(1.5**2 * second)
    assert spread.fourth == pytest.approx(1.5**4 * ((chances * values**4).sum() - 3 * second**2))


def test_gaussian_noise_is_normal():
    spread = Tail([Summand.of(DiscreteGaussian(10_000), np.array([1, 2]), 1)], 0.0).spread
    assert spread.half_width(0.95) == pytest.approx(NormalDist(0, math.sqrt(50_000)).inv_cdf(0.975))


def test_no_noise_reaches_nowhere():
    assert Spread(0.0, 0.0, 0.5).half_width(0.95) == 0.0


class Own(DiscreteLaplace.__base__):
    """Uniform on -100 .. 100."""

    variance = 100 * 101 / 3
    transform_limit = 0.05

    def sample(self, words):
        return np.zeros(words.shape, dtype=np.int64)

    def log_transform(self, s):
        return np.log(np.sum(np.exp(s[..., None] * np.arange(-100, 101)), axis=-1) / 201)


def test_a_law_of_ones_own_is_met_by_the_union_bound():
    """Of its shape nothing is assumed: every total holds by its own exact law, all together at the level."""
    law = Oblivious(Own(), "uniform", epsilon=0.001)
    mean = ra.Mean("v", noise=law)
    spec = ra.Specification({"v": ra.Integer(0, 10)}, {"x": mean}, epsilon=1.0, horizon=1)
    noise = spec.mechanism("x", ra.Key.for_testing(1).coins("stream"))
    assert noise.spread(1, 0) is None
    answer = spec.bounds["x"].release([np.array([4000, 0])], noise, At(1, 1)).answer
    low, high = answer.interval(0.95)
    reach = noise.half_width(1, 1, 0.975)
    # At the ends sum - mean * count is as far off as both noises reach.
    for end in (low, high):
        centred = 2 * end - 10
        assert abs(centred) * 4000 == pytest.approx(reach * (1 + abs(centred)), rel=1e-6)


def test_half_widths_grow_with_level_and_weight():
    one = Tail([Summand.of(DiscreteLaplace(50), np.array([1]), 1)], 1.0).spread
    for low, high in product((0.1, 0.5, 1.0), repeat=2):
        for level in LEVELS:
            both = Spread.combined([(low, one), (high, one)])
            assert both.half_width(level) <= (low + high) * one.half_width(level) + 1e-9
    assert [one.half_width(level) for level in LEVELS] == sorted(one.half_width(level) for level in LEVELS)
