"""Measures, conversions and splits, against dp-accounting as an oracle and against high precision."""

import math
from fractions import Fraction
from statistics import NormalDist

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event, pld, rdp
from dp_accounting.pld import privacy_loss_distribution as losses

from retroact.errors import InputError
from retroact.noise import Bridge, Schauder
from retroact.privacy import (
    ApproximateDP,
    GaussianDP,
    Guarantee,
    MixedDP,
    PureDP,
    ZeroConcentratedDP,
    compose,
    delta_of,
    discreteness,
    epsilon_of,
    largest_mu,
    split,
)
from retroact.privacy.normal import decimal, upper_tail


def test_normal_tails():
    with mpmath.workdps(60):
        for x in (-5.0, -0.5, 0.0, 0.3, 1.0, 4.0, 9.0, 15.0):
            exact = mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2
            assert abs(mpmath.mpf(str(upper_tail(decimal(x)))) / exact - 1) < mpmath.mpf(10) ** -20


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-9), (3, 1e-5), (10, 1e-12), (0.01, 1e-3)])
def test_analytic_calibration_is_tight_and_never_over(epsilon, delta):
    mu = largest_mu(Fraction(epsilon), Fraction(delta))
    with mpmath.workdps(50):

        def exact(m):
            tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
            ratio = mpmath.mpf(epsilon) / m
            return tail(ratio - m / 2) - mpmath.exp(epsilon) * tail(ratio + m / 2)

        assert exact(mpmath.mpf(mu.numerator) / mu.denominator) <= mpmath.mpf(delta)
        assert exact(mpmath.mpf(float(mu)) * (1 + mpmath.mpf(10) ** -12)) > mpmath.mpf(delta)


def test_the_known_multiplier():
    assert 1 / float(largest_mu(Fraction(1), Fraction(1e-6))) == pytest.approx(4.2247, abs=1e-4)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_gaussian_conversion_against_the_oracle(mu, delta):
    oracle = losses.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
    assert epsilon_of(mu, delta) == pytest.approx(oracle.get_epsilon_for_delta(delta), abs=2e-4)
    assert delta_of(mu, epsilon_of(mu, delta)) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("rho", [0.01, 0.1, 1.0])
def test_concentrated_conversion_against_the_oracle(rho):
    accountant = rdp.RdpAccountant(orders=np.concatenate([1 + np.logspace(-3, 4, 4000)]))
    accountant.compose(dp_event.ZCDpEvent(rho))
    assert ZeroConcentratedDP(rho).epsilon(1e-6) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)
    assert ZeroConcentratedDP(rho).delta(ZeroConcentratedDP(rho).epsilon(1e-6)) == pytest.approx(1e-6, rel=1e-3)


def test_composition_of_gaussians_against_the_oracle():
    accountant = pld.PLDAccountant()
    for sigma in (4.0, 6.0, 9.0):
        accountant.compose(dp_event.GaussianDpEvent(sigma))
    ours = compose([GaussianDP(1 / 4), GaussianDP(1 / 6), GaussianDP(1 / 9)])
    assert ours.epsilon(1e-6) == pytest.approx(accountant.get_epsilon(1e-6), abs=2e-3)


def test_discrete_gaussian_tree_against_the_oracle():
    """The exact loss of the worst shift (2m - 2 ones and a two) of the Schauder tree stays within the claim."""
    from retroact.coins import Coins
    from retroact.noise import Mechanism

    for epsilon, horizon in ((1.0, 15), (1.0, 1023), (4.0, 15)):
        share = split(epsilon, 1e-6, {"a": "gaussian"}, {})["a"]
        process = Schauder(horizon)
        made = Mechanism(
            process,
            share,
            units=(1,),
            norm1=Fraction(1),
            norm2_squared=Fraction(1),
        ).under(Coins(bytes(32)))
        fineness = made.refinement
        sigma = math.sqrt(made.law(0, 1).parameter)
        one = losses.from_discrete_gaussian_mechanism(sigma, sensitivity=fineness, value_discretization_interval=1e-5)
        two = losses.from_discrete_gaussian_mechanism(
            sigma, sensitivity=2 * fineness, value_discretization_interval=1e-5
        )
        total = one.self_compose(2 * process.levels - 2).compose(two)
        assert total.get_delta_for_epsilon(epsilon) <= 1e-6


def test_discrete_laplace_tree_against_the_oracle():
    process = Bridge(255)
    one = losses.from_discrete_laplace_mechanism(
        float(1 / process.l1), sensitivity=1, value_discretization_interval=1e-4
    )
    assert one.self_compose(int(process.l1)).get_epsilon_for_delta(0.0) == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("coarseness", [2, 3, 4, 10])
def test_the_lattice_factor_covers_every_offset(coarseness):
    """The steepest slope of the normal quantile of a discrete Gaussian, over offsets from the centre to 9 sigma."""
    with mpmath.workdps(40):
        c = mpmath.mpf(coarseness)

        def lower(u):
            fraction = u - mpmath.floor(u)
            total = mpmath.fsum(
                mpmath.exp(-((fraction - j) ** 2) / (2 * c * c)) for j in range(-16 * coarseness, 16 * coarseness)
            )
            return mpmath.fsum(mpmath.exp(-((u - j) ** 2) / (2 * c * c)) for j in range(25 * coarseness)) / total

        def normal_quantile(p):
            start = -mpmath.sqrt(-2 * mpmath.log(p)) + mpmath.mpf("0.3")
            return mpmath.findroot(lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2) - mpmath.log(p), start)

        step = mpmath.mpf(10) ** -8
        worst = mpmath.mpf(0)
        for quarter in range(0, 36 * coarseness, 3):
            u = -mpmath.mpf(quarter) / 4 - mpmath.mpf("0.7")
            slope = (normal_quantile(lower(u + step)) - normal_quantile(lower(u))) / step * c
            worst = max(worst, slope)
        assert 1 < worst <= 1 + 1 / (20 * c * c)
        assert discreteness(Fraction(coarseness) ** 2) == 1 + Fraction(1, 20 * coarseness**2)


def test_pure_profile_is_that_of_randomised_response():
    p = math.e / (1 + math.e)
    assert PureDP(1.0).delta(0.5) == pytest.approx(p - math.exp(0.5) * (1 - p))
    assert PureDP(1.0).delta(1.0) == 0


def test_absurd_budgets_do_not_overflow():
    assert PureDP(1000.0).delta(1.0) == pytest.approx(1.0)
    assert ApproximateDP(500.0, 1e-6).group(3).failure == 1.0


def test_groups():
    assert PureDP(0.5).group(3) == PureDP(1.5)
    assert GaussianDP(0.2).group(5).mu == pytest.approx(1.0)
    assert ZeroConcentratedDP(0.1).group(3).rho == pytest.approx(0.9)
    three = ApproximateDP(1.0, 1e-6).group(3)
    assert three.failure == pytest.approx(1e-6 * (1 + math.e + math.e**2))
    assert MixedDP(0.5, 0.1).group(2) == MixedDP(1.0, 0.2)
    three = MixedDP(0.5, 0.1, 1e-7).group(3)
    assert three.pure == pytest.approx(1.5)
    assert three.mu == pytest.approx(0.3)
    # Seen from i operations away, a failure is more likely by e^(i/2), and by a shift of i mu deviations.
    moved = (NormalDist().cdf(NormalDist().inv_cdf(1e-7 * math.e ** (i / 2)) + 0.1 * i) for i in range(3))
    assert three.failure == pytest.approx(sum(moved), rel=1e-6)
    one = Guarantee(MixedDP(0.5, 0.1, 1e-7), 1.0, 1e-6)
    assert one.for_subject(3).epsilon == pytest.approx(1.5 + epsilon_of(0.3, 9e-7))
    assert one.for_subject(3).delta == pytest.approx(9e-7 + three.failure)
    for bad in (0, -1, 1.5, True):
        with pytest.raises(InputError):
            PureDP(1.0).group(bad)


def test_composition_keeps_its_parts_apart():
    assert compose([PureDP(0.25), PureDP(0.5)]) == PureDP(0.75)
    mixed = compose([PureDP(0.5), GaussianDP(0.1), ApproximateDP(0.1, 1e-7)])
    assert mixed == MixedDP(0.6, 0.1, 1e-7)
    assert mixed.epsilon(1e-6) == pytest.approx(0.6 + epsilon_of(0.1, 9e-7))
    assert mixed.epsilon(1e-8) == math.inf
    assert mixed.delta(0.6 + epsilon_of(0.1, 9e-7)) == pytest.approx(1e-6, rel=1e-6)
    assert compose([PureDP(0.2), ZeroConcentratedDP(0.1), GaussianDP(0.3)]).rho == pytest.approx(0.02 + 0.1 + 0.045)


def test_equal_split_is_equal_mu_squared_or_epsilon():
    shares = split(1.0, 1e-6, {"a": "gaussian", "b": "gaussian", "c": "gaussian"}, {})
    assert len({share.amount for share in shares.values()}) == 1
    assert compose(share.measure for share in shares.values()).epsilon(1e-6) == pytest.approx(1.0, abs=1e-9)
    pure = split(0.3, 0, {"a": "pure", "b": "pure", "c": "pure"}, {"a": 2})
    assert sum(share.amount for share in pure.values()) == Fraction(0.3)
    assert pure["a"].amount == 2 * pure["b"].amount


def test_mixed_split_stays_within_the_budget():
    shares = split(1.0, 1e-6, {"a": "pure", "b": "gaussian", "c": "gaussian"}, {"a": 1, "b": 1, "c": 2})
    assert compose(share.measure for share in shares.values()).epsilon(1e-6) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, 1001, "1", None, True])
def test_bad_epsilon(bad):
    with pytest.raises(InputError, match="epsilon"):
        split(bad, 0, {"a": "pure"}, {})


@pytest.mark.parametrize("bad", [-1e-9, 1, 1.5, math.nan, "0", None, True, 1e-80])
def test_bad_delta(bad):
    with pytest.raises(InputError, match="delta"):
        split(1, bad, {"a": "gaussian"}, {})


@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, "1", True])
def test_bad_weights(bad):
    with pytest.raises(InputError, match=r"statistics\.a\.weight"):
        split(1, 0, {"a": "pure"}, {"a": bad})


def test_guarantee_says_what_it_rests_on():
    guarantee = Guarantee(GaussianDP(float(largest_mu(Fraction(1), Fraction(1e-6)))), 1.0, 1e-6)
    assert "one operation" in guarantee.text
    assert "adaptive" in guarantee.text
    subject = guarantee.for_subject(5)
    assert subject.epsilon == pytest.approx(epsilon_of(5 * guarantee.measure.mu, 1e-6))
    assert "promised: a subject adds at most 5 records" in subject.text
    assert guarantee.for_operations(1) is guarantee
    assert 2.1 < guarantee.for_operations(2).epsilon < 2.2
