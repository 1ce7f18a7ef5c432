"""The numbers of the smoothing theorem, and its lemma."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from retroact.compilers.closeness import ApproximateRetroactivity, BlockCloseness
from retroact.compilers.gaussian_vectors import chi_quantile
from retroact.compilers.maps import GaussianMap
from retroact.errors import InputError
from retroact.paper import PaperRetroactivity, paper_error
from retroact.privacy import GaussianDP, Measure, PureDP, largest_mu
from support.smoothing_maps import gaussian

INSTANCES = 20_000


def digits(value, count):
    return f"{value:.{count - 1}e}"


class RealGaussian(GaussianMap):
    """Gaussian noise in the reals, without a lattice."""

    def __init__(self, sigma):
        super().__init__(sigma=sigma)

    def closeness(self, distance, block=1):
        return GaussianDP(float(distance) / self.sigma * math.sqrt(block))


def real_gaussian(sigma, failure=0.0):
    return ApproximateRetroactivity(Fraction(1), RealGaussian(sigma), failure)


# The numbers of the theorem -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "beta", "paper", "exact", "true"),
    [
        (0.1, 1e-3, "7.55e+01", "3.48e+01", "5e-07"),
        (0.1, 1e-6, "1.06e+02", "7.26e+01", "2e-10"),
        (1.0, 1e-3, "7.55e+00", "5.15e+00", "8e-06"),
        (1.0, 1e-6, "1.06e+01", "8.45e+00", "3e-09"),
    ],
)
def test_noise_for_one_answer(alpha, beta, paper, exact, true):
    reference = PaperRetroactivity(1.0, alpha, beta)
    assert digits(reference.sigma, 3) == paper
    assert digits(gaussian(alpha=alpha, beta=beta, calibration="paper").sigma, 3) == paper
    assert digits(gaussian(alpha=alpha, beta=beta).sigma, 3) == exact
    assert digits(real_gaussian(reference.sigma).beta(alpha), 1) == true


def test_an_alpha_above_one_is_covered_exactly_and_not_by_the_paper():
    assert digits(gaussian(alpha=2.0).sigma, 3) == "4.46e+00"
    with pytest.raises(InputError, match="paper"):
        gaussian(alpha=2.0, calibration="paper")
    with pytest.raises(InputError, match="paper"):
        PaperRetroactivity(1.0, 2.0, 1e-6)


@pytest.mark.parametrize(
    ("alpha", "block", "paper", "same", "at"),
    [
        (1.0, 10, "10", "2.42", "2.74"),
        (1.0, 100, "100", "8.25", "10.3"),
        (1.0, 1000, "1e+03", "35.4", "45.4"),
        (0.1, 100, "6.31", "0.563", "0.784"),
        (0.1, 1000, "27.1", "1.67", "2.74"),
        (0.1, 10000, "158", "5.53", "10.3"),
    ],
)
def test_blocks_under_the_noise_of_the_paper(alpha, block, paper, same, at):
    reference = PaperRetroactivity(1.0, alpha, 1e-6)
    exact = real_gaussian(reference.sigma)
    assert f"{reference.alpha_of(block, 1e-6):.3g}" == paper
    assert reference.beta_of(block, 1e-6) == pytest.approx((block + 1) * 1e-6)
    assert f"{exact.alpha((block + 1) * 1e-6, block):.3g}" == same
    assert f"{exact.block(block).alpha(1e-6):.3g}" == at
    real = gaussian(alpha=alpha, calibration="paper").closeness(Fraction(2), block)
    assert real.epsilon(1e-6) == pytest.approx(exact.alpha(1e-6, block), rel=1e-5)


def test_the_failure_of_the_base_is_added_once():
    exact = real_gaussian(2.0, failure=1e-4)
    reference = PaperRetroactivity(1.0, 1.0, 1e-6, failure=1e-4)
    assert exact.beta(5.0) == pytest.approx(GaussianDP(1.0).delta(5.0) + 1e-4)
    assert reference.beta_of(5, 1e-6) == pytest.approx(6e-6 + (2 + math.exp(5)) * 1e-4)
    assert exact.alpha(0.9e-4) == math.inf
    assert exact.beta(exact.alpha(2e-4, 7), 7) == pytest.approx(2e-4)
    assert BlockCloseness(1, PureDP(1.0), 0.5).beta(0.0) == pytest.approx(PureDP(1.0).delta(0.0) + 0.5)


def test_chi_quantiles():
    for dimension, beta in itertools.product((1, 2, 3, 10, 99, 100, 4000), (0.5, 1e-3, 1e-6, 1e-30)):
        found = chi_quantile(dimension, beta)
        assert found == pytest.approx(stats.chi.isf(beta, dimension), rel=3e-9)
        assert stats.chi.sf(found, dimension) <= beta
    assert digits(chi_quantile(1, 1e-6), 3) == "4.89e+00"
    assert digits(chi_quantile(100, 1e-6), 3) == "1.35e+01"
    assert digits(paper_error(gaussian(), 1e-6) / gaussian().sigma, 3) == "6.26e+00"
    wide = gaussian(dimension=100)
    assert digits(paper_error(wide, 1e-6) / wide.sigma, 3) == "1.53e+01"
    assert wide.error(1e-6) == pytest.approx(wide.sigma * stats.chi.isf(1e-6, 100), rel=1e-5)


@pytest.mark.parametrize(
    ("levels", "beta", "node", "error", "paper", "exact"),
    [
        (10, 1e-3, 18.9, 238, (2523, 16_024), (2012, 10_088)),
        (16, 1e-3, 23.9, 434, (4605, 29_243), (3671, 21_208)),
        (16, 1e-6, 23.9, 535, (5665, 35_978), (4517, 31_001)),
        (20, 1e-6, 26.7, 700, (7423, 47_140), (5918, 42_937)),
    ],
)
def test_a_counter_as_base(levels, beta, node, error, paper, exact):
    """A dyadic tree of Gaussians, (1, 1e-6)-private: the round l has bin(l).count(1) of them."""
    sigma = math.sqrt(2 * levels) / float(largest_mu(Fraction(1), Fraction(1e-6)))
    assert round(sigma, 1) == node
    rounds = [math.comb(levels, ones) for ones in range(levels + 1)]

    def missed(e):
        tails = (n * math.erfc(e / (sigma * math.sqrt(2 * k))) for k, n in enumerate(rounds) if k)
        return math.fsum(tails)

    low, high = 0.0, 2000.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) > beta else (low, middle)
    assert abs(high - error) < 0.6
    old, new = gaussian(high, calibration="paper"), gaussian(high)
    assert abs(old.sigma - paper[0]) < 2
    assert abs(high + paper_error(old, 1e-6) - paper[1]) < 2
    assert abs(new.sigma - exact[0]) < 2
    assert abs(high + new.error(beta / 2**levels) - exact[1]) < 10


def hockey_stick(p, q, alpha):
    return np.maximum(p - np.exp(alpha)[..., None] * q, 0).sum(axis=-1)


class Found(Measure):
    """The exact closeness of one instance, at one alpha."""

    def __init__(self, value):
        self.value = value

    def epsilon(self, delta=0.0):
        raise NotImplementedError

    def delta(self, epsilon):
        return self.value

    def group(self, size):
        raise NotImplementedError


# The lemma on beta_0 --------------------------------------------------------------------------------------------------


def test_the_lemma_on_random_instances():
    """Two bases on five answers, of which three are accurate; any map to four outcomes; any alpha."""
    rng = np.random.default_rng(7)
    kernels = rng.dirichlet(np.full(4, 0.1), (INSTANCES, 5))
    # Maps that hide much: all accurate answers look nearly the same.
    kernels[::2, :3] = 0.99 * kernels[::2, :1] + 0.01 * kernels[::2, :3]
    alphas = rng.exponential(1.0, INSTANCES) * rng.integers(0, 2, INSTANCES)
    failures = rng.uniform(0.0, 0.3, INSTANCES)
    laws = []
    for _ in range(2):
        missed = failures * rng.choice([0.0, 0.5, 1.0], INSTANCES)
        inside = rng.dirichlet(np.full(3, 0.5), INSTANCES) * (1 - missed)[:, None]
        outside = rng.dirichlet(np.full(2, 0.5), INSTANCES) * missed[:, None]
        base = np.concatenate([inside, outside], axis=1)
        laws.append(np.einsum("iy,iyz->iz", base, kernels))
    pairs = itertools.permutations(range(3), 2)
    close = np.max([hockey_stick(kernels[:, a], kernels[:, b], alphas) for a, b in pairs], axis=0)
    used = []
    for p, q in (laws, laws[::-1]):
        found = hockey_stick(p, q, alphas)
        claims = [BlockCloseness(1, Found(c), f).beta(a) for c, f, a in zip(close, failures, alphas, strict=True)]
        assert (found <= np.array(claims) + 1e-12).all()
        used += ((found - close) / failures).tolist()
    # The lemma is tight: some instance uses nearly all of beta_0, so half of it would not do.
    assert max(used) > 0.8
