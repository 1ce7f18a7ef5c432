"""The samplers have exactly the laws they claim: by thresholds, by enumeration with short words, and by chi-square."""

import math
from fractions import Fraction
from functools import cache, partial

import mpmath
import numpy as np
import pytest

from retroact.coins import Coins, DiscreteGaussian, DiscreteLaplace, integer_cells
from retroact.coins import gaussian as gaussian_module
from retroact.coins import laplace as laplace_module
from retroact.coins.exact_cdf import floors
from retroact.coins.inverse_cdf import Inverse
from retroact.errors import InputError

COINS = Coins(bytes(32)).branch("laws")
FALSE_ALARM = 1e-6


def laplace_mass(scale, k):
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** abs(k)


@cache
def gaussian_total(variance):
    reach = int(20 * math.sqrt(variance)) + 20
    return 1 + 2 * sum(math.exp(-(j**2) / (2 * variance)) for j in range(1, reach))


def gaussian_mass(variance, k):
    return math.exp(-(k**2) / (2 * variance)) / gaussian_total(variance)


@pytest.mark.parametrize("bits", [8, 64, 192])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(22), Fraction(399, 2)])
def test_laplace_thresholds_are_the_floors_of_the_exact_distribution(scale, bits):
    with mpmath.workdps(120):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        for k, floor in enumerate(floors(partial(laplace_module.magnitude_cdf, scale), bits)):
            if k > 40 and k % 97:
                continue
            assert floor == int(mpmath.floor((1 - 2 * q ** (k + 1) / (1 + q)) * mpmath.mpf(2) ** bits))


@pytest.mark.parametrize("bits", [8, 64, 192])
@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(1801, 100), Fraction(512**2)])
def test_gaussian_thresholds_are_the_floors_of_the_exact_distribution(variance, bits):
    with mpmath.workdps(120):
        found = floors(partial(gaussian_module.magnitude_cdf, variance), bits)
        v = mpmath.mpf(variance.numerator) / variance.denominator
        reach = int(30 * mpmath.sqrt(v)) + 40
        total = 1 + 2 * mpmath.fsum(mpmath.exp(-(mpmath.mpf(j) ** 2) / (2 * v)) for j in range(1, reach))
        so_far = mpmath.mpf(0)
        for k, floor in enumerate(found):
            so_far += (1 if k == 0 else 2) * mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * v))
            assert floor == int(mpmath.floor(so_far / total * mpmath.mpf(2) ** bits))


def test_digits_of_a_geometric_are_independent_and_right():
    """P(G = base * q + r) as the product of the digit laws, for all small values."""
    with mpmath.workdps(60):
        scale, base = Fraction(700), 32
        digit = floors(partial(laplace_module.digit_cdf, scale, base), 64)
        rest = floors(partial(laplace_module.geometric_cdf, scale / base), 64)
        ratio = mpmath.exp(-1 / mpmath.mpf(700))
        unit = mpmath.mpf(2) ** -64

        def mass(thresholds, k):
            low = thresholds[k - 1] if k else 0
            high = thresholds[k] if k < len(thresholds) else 2**64
            return (high - low) * unit

        assert len(digit) == base - 1
        for value in range(200):
            high, low = divmod(value, base)
            assert abs(mass(digit, low) * mass(rest, high) - (1 - ratio) * ratio**value) < 4 * unit


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_short_words_give_the_same_law_through_the_extension(bits):
    """With a first word of a few bits nearly every sample needs more digits, and the law must not change."""
    words = COINS.branch("short", bits).words([0], [0], integer_cells(4000))
    short = DiscreteLaplace(3, bits=bits).sample(words).ravel()
    assert _chi_square(short, lambda k: laplace_mass(3, k)) > FALSE_ALARM


def test_the_extension_is_taken_and_decides():
    """A law whose first word always ties: F = 1/3, known to one bit, is 0 (tie at U = 0) or 1 (U = 1: no tie)."""
    third = Inverse(lambda bits, precision: ([(1 << precision) // 3], 0), bits=1)
    words = COINS.branch("third").words([0], [0], integer_cells(30_000))
    found = third.sample(words, 0)[0].ravel()
    assert abs((found == 0).mean() - 1 / 3) < 5 * math.sqrt(2 / 9 / 30_000)


CASES = [
    (DiscreteLaplace(Fraction(5, 2)), lambda k: laplace_mass(2.5, k)),
    (DiscreteLaplace(22), lambda k: laplace_mass(22, k)),
    (DiscreteLaplace(600), lambda k: laplace_mass(600, k)),
    (DiscreteGaussian(Fraction(9, 4)), lambda k: gaussian_mass(2.25, k)),
    (DiscreteGaussian(18**2), lambda k: gaussian_mass(324, k)),
    (DiscreteGaussian(600**2), lambda k: gaussian_mass(360000, k)),
]


@pytest.mark.parametrize(("law", "mass"), CASES, ids=[repr(law) for law, _ in CASES])
def test_samples_follow_the_law(law, mass):
    samples = law.sample(COINS.branch(repr(law)).words([0], [0], integer_cells(200_000))).ravel()
    assert _chi_square(samples, mass) > FALSE_ALARM


def test_a_wrong_scale_fails_the_same_test():
    samples = DiscreteLaplace(22).sample(COINS.branch("wrong").words([0], [0], integer_cells(200_000))).ravel()
    assert _chi_square(samples, lambda k: laplace_mass(23, k)) < FALSE_ALARM


@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(10**6), DiscreteLaplace(Fraction(10**13, 7)), DiscreteGaussian(10**12), DiscreteGaussian(10**26)],
)
def test_large_scales(law):
    """Standardised samples against the continuous law, in 40 cells of equal probability; the low digits uniform."""
    samples = law.sample(COINS.branch(repr(law)).words([0], [0], integer_cells(100_000))).ravel()
    if isinstance(law, DiscreteLaplace):
        x = samples / float(law.scale)
        level = np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)
    else:
        from scipy.special import ndtr

        level = ndtr(samples / law.variance**0.5)
    counts = np.bincount(np.minimum((level * 40).astype(int), 39), minlength=40)
    assert _uniform(counts) > FALSE_ALARM
    assert _uniform(np.bincount(samples % 64, minlength=64)) > FALSE_ALARM


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(8), DiscreteLaplace(10**6), DiscreteGaussian(20**2), DiscreteGaussian(Fraction(1, 2))]
)
def test_the_variance_is_exact(law):
    with mpmath.workdps(40):
        if isinstance(law, DiscreteLaplace):
            q = mpmath.exp(-1 / mpmath.mpf(law.scale.numerator) * law.scale.denominator)
            exact = 2 * q / (1 - q) ** 2
        else:
            exact = 2 * math.fsum(k**2 * gaussian_mass(float(law.parameter), k) for k in range(1, 500))
        assert abs(law.variance / float(exact) - 1) < 1e-12


@pytest.mark.parametrize("bad", [0, -1, Fraction(-1, 2), 1 << 120])
def test_bad_scales(bad):
    with pytest.raises(InputError):
        DiscreteLaplace(bad)
    with pytest.raises(InputError):
        DiscreteGaussian(bad)


def _chi_square(samples, mass):
    """Survival probability of the chi-square statistic, cells with fewer than 10 expected lumped together."""
    from scipy.stats import chi2

    low, high = int(samples.min()), int(samples.max())
    values = np.arange(low, high + 1)
    step = max(1, (high - low) // 4000)
    chosen = values[::step]
    expected = np.array([mass(int(k)) for k in chosen]) * len(samples)
    observed = np.bincount(samples - low, minlength=len(values))[::step]
    keep = expected >= 10
    statistic = ((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    rest_expected, rest_observed = len(samples) - expected[keep].sum(), len(samples) - observed[keep].sum()
    if rest_expected > 0:
        statistic += (rest_observed - rest_expected) ** 2 / rest_expected
    return chi2.sf(statistic, keep.sum())


def _uniform(counts):
    from scipy.stats import chisquare

    return chisquare(counts).pvalue
