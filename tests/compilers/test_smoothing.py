"""The smoothing compiler: its numbers, its lemma, its maps, and an attack on what it publishes."""

import doctest
import importlib
import itertools
import math
import re
from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import retroact as ra
from block_attack import audit_blocks, audit_tracker
from retroact.audit.approximate import Grudge
from retroact.coins import Coins, Key
from retroact.compilers.closeness import ApproximateRetroactivity, BlockCloseness, Closest
from retroact.compilers.gaussian_vectors import chi_quantile, power_of_two_below
from retroact.compilers.maps import GaussianMap, Map, RankMap, as_map
from retroact.compilers.smooth import Smoothed, smooth
from retroact.errors import InputError, KeyReusedError
from retroact.ledger.definition import Add, Delete
from retroact.oneshot import BlockCDF, InteriorPoint, Median, Quantile, QuantilePoints
from retroact.oneshot.exponential import step_law
from retroact.paper import PaperRetroactivity, TreeLog, paper_error
from retroact.privacy import GaussianDP, Guarantee, Measure, PureDP, ZeroConcentratedDP, largest_mu
from retroact.stateful import Cumulative, FlippancyTracker, MedianTracker, Stateful
from retroact.testing.bounds import binomial_lower

INSTANCES = 20_000
AUDIT_RUNS = 20_000
DRAWS = 4000


def digits(value, count):
    return f"{value:.{count - 1}e}"


def gaussian(error=1, alpha=1.0, beta=1e-6, block=1, **options):
    return GaussianMap(**options).at(Fraction(error), Fraction(alpha), Fraction(beta), block)


def ranks(lower, upper, error=1, alpha=1, beta=Fraction(1, 10**6), block=1):
    return RankMap(lower, upper).at(Fraction(error), Fraction(alpha), beta, block)


class RealGaussian(GaussianMap):
    """Gaussian noise in the reals, without a lattice."""

    def __init__(self, sigma):
        super().__init__(sigma=sigma)

    def closeness(self, distance, block=1):
        return GaussianDP(float(distance) / self.sigma * math.sqrt(block))


def real_gaussian(sigma, failure=0.0):
    return ApproximateRetroactivity(Fraction(1), RealGaussian(sigma), failure)


# The numbers of the theorem ------------------------------------------------------------------------------------------


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


# The lemma on beta_0 -------------------------------------------------------------------------------------------------


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


# Gaussian noise ------------------------------------------------------------------------------------------------------


def test_answers_are_rounded_to_a_public_lattice_before_the_noise():
    K = gaussian(Fraction(3, 7), dimension=3)
    assert K.spacing == power_of_two_below(Fraction(3, 7) / 2**20 / 2) == Fraction(1, 2**23)
    coins = Coins(bytes(32))
    one, other = (K.apply([Fraction(1, 3) + shift, 2, 0.1], coins) for shift in (Fraction(0), K.spacing / 4))
    assert one == other
    assert all((z / K.spacing).denominator == 1 for z in one)
    noise = K.law.sample(coins.words([0], [0], ra.coins.integer_cells(3)))[0].tolist()
    moved = [z / K.spacing - n for z, n in zip(one, noise, strict=True)]
    assert all(
        abs(m - y / K.spacing) <= Fraction(1, 2) for m, y in zip(moved, (Fraction(1, 3), 2, Fraction(0.1)), strict=True)
    )


def test_the_noise_covers_rounding_and_lattice():
    """On a coarse lattice, where both show: the claim is not below the truth, for the worst two answers."""
    K = GaussianMap(sigma=Fraction(3), spacing=Fraction(1))
    one, other = Fraction(-1, 2) + Fraction(1, 10**6), Fraction(7, 2) + Fraction(1, 10**6)
    moved = round(other / K.spacing) - round(one / K.spacing)
    assert moved == 4
    k = np.arange(-200, 201)
    weights = np.exp(-(k**2) / 18.0)
    p = weights / weights.sum()
    for alpha in (0.0, 0.5, 1.0, 2.0, 4.0):
        q = np.roll(p, moved)
        true = np.maximum(p - math.exp(alpha) * q, 0).sum()
        claim = K.closeness(other - one).delta(alpha)
        assert true <= claim
        assert K.closeness(Fraction(moved) - 1).delta(alpha) >= true
    assert np.maximum(p - np.roll(p, moved), 0).sum() > GaussianDP(float(other - one - 1) / 3).delta(0.0)


def test_errors_of_noise_on_a_coarse_lattice_hold():
    k = np.arange(-300, 301)
    for sigma in (2, 3, 10):
        K = GaussianMap(sigma=Fraction(sigma), spacing=Fraction(1))
        weights = np.exp(-(k**2) / (2.0 * sigma**2))
        for beta in (0.3, 1e-2, 1e-6):
            # Half a step of the bound is for rounding the answer.
            beyond = weights[np.abs(k) > K.error(beta) - 0.5].sum() / weights.sum()
            assert beyond <= beta


def test_a_wrong_answer_of_the_base_is_refused():
    K = gaussian(dimension=2)
    for wrong in (1, [1], [1, 2, 3], ["a", "b"], [math.nan, 0.0], [True, 1], None):
        with pytest.raises(InputError, match="expected"):
            K.apply(wrong, Coins(bytes(32)))
    assert K.apply(np.array([1, 2]), Coins(bytes(32))) == K.apply([1, 2], Coins(bytes(32)))
    with pytest.raises(InputError, match="settled"):
        GaussianMap().apply(1, Coins(bytes(32)))
    with pytest.raises(InputError, match="between 2 and"):
        GaussianMap(sigma=1.5, spacing=Fraction(1))
    for error in (K.error, ranks(0, 9).error):
        with pytest.raises(InputError, match="probability"):
            error(0)
    assert ranks(0, 9).error(1e-30) == math.inf


def test_extreme_wishes():
    for alpha, beta in ((1000, 1e-6), (1e-6, 1e-6), (1.0, 1e-60), (1.0, 0.999)):
        K = gaussian(alpha=alpha, beta=beta)
        assert K.closeness(Fraction(2)).delta(alpha) <= beta * (1 + 1e-6)
        assert K.closeness(Fraction(2)).delta(alpha * 0.99) > beta


# The median by rank --------------------------------------------------------------------------------------------------


def rising(size, most):
    """All rising functions on 0 .. size - 1 with whole values from 0 to most."""
    return list(itertools.combinations_with_replacement(range(most + 1), size))


def law_of(K, counts):
    """The exact probabilities."""
    pieces = K.pieces(Cumulative(tuple(enumerate(counts))))
    law = step_law(pieces, K.rate * K.spacing, K.size)
    return [law.probability(outcome) for outcome in range(len(counts))]


def beside_the_middle(one, other):
    return max(abs((2 * a - one[-1]) - (2 * b - other[-1])) for a, b in zip(one, other, strict=True)) / Fraction(2)


def exp_below(x):
    return Fraction(Context(prec=60).exp(Decimal(x))) * (1 - Fraction(1, 10**50))


def test_closeness_of_the_rank_map_on_all_pairs():
    """Domains of 4 values, counts up to 4, E = 1: every two estimates within 2E, in exact fractions."""
    K = ranks(0, 3)
    bound, half = exp_below(1), exp_below("0.5")
    laws = {counts: law_of(K, counts) for counts in rising(4, 4)}
    assert all(sum(law) == 1 for law in laws.values())
    largest = Fraction(0)
    beyond = 0
    for one, other in itertools.product(laws, repeat=2):
        ratios = [p / q for p, q in zip(laws[one], laws[other], strict=True)]
        if beside_the_middle(one, other) <= 2:
            assert max(ratios) <= bound
            # And bounded range: over all values together.
            assert max(ratios) / min(ratios) <= bound
            largest = max(largest, max(ratios) / min(ratios))
        elif max(ratios) > bound:
            beyond += 1
    # The factor 2 is needed, and the distance matters.
    assert largest > half
    assert beyond > 0


def test_the_distance_is_beside_the_middle():
    """Where the total may differ too, as many ranks up to each value are not enough: 4E + 2E may move."""
    K = ranks(0, 5, error=3)
    one, other = (0, 12, 12, 12, 12, 12), (6, 6, 6, 6, 6, 18)
    assert max(abs(a - b) for a, b in zip(one, other, strict=True)) == 6
    assert beside_the_middle(one, other) == 9
    ratios = [p / q for p, q in zip(law_of(K, one), law_of(K, other), strict=True)]
    assert max(ratios) / min(ratios) > exp_below(1)


def test_fractions_are_cut_to_a_public_lattice():
    K = ranks(0, 3, error=Fraction(1, 2))
    third = Cumulative(((0, Fraction(1, 3)), (2, Fraction(4, 3))))
    deficits = [deficit for _, _, deficit in K.pieces(third)]
    assert deficits == [-math.floor(score / K.spacing) for score in (Fraction(1, 3), Fraction(1, 3), 1, 0)]
    assert K.spacing == Fraction(1, 2**21)
    assert K.closeness(Fraction(1)).epsilon() == pytest.approx(1.0, abs=1e-12)


def test_pieces_cover_the_domain():
    K = ranks(-5, 20)
    for steps in ((), ((-5, 3),), ((20, 3),), ((-5, 1), (-4, 5), (7, 5), (20, 9))):
        pieces = K.pieces(Cumulative(steps))
        assert [start for start, _, _ in pieces] == [-5, *(s + n for s, n, _ in pieces[:-1])]
        assert sum(n for _, n, _ in pieces) == 26


def test_rank_errors_hold_and_the_draws_follow_the_law():
    K = ranks(0, 299, error=2)
    estimate = Cumulative(tuple((v, v + 1) for v in range(300)))
    coins = Key.for_testing(3).coins("draws")
    drawn = [K.apply(estimate, coins.branch(run)) for run in range(200)]
    off = np.array([abs(float(estimate.upto(value) - estimate.total / 2)) for value in drawn])
    assert (off <= K.error(1e-2)).mean() >= 0.97
    # The scale is right too: a tenth of the rate would be off by ten times as much.
    assert 6 < off.mean() < 10
    small = ranks(0, 3)
    exact = law_of(small, (1, 2, 3, 5))
    named = Counter(small.apply(Cumulative(tuple(enumerate((1, 2, 3, 5)))), coins.branch(r)) for r in range(DRAWS))
    assert stats.chisquare([named[v] for v in range(4)], [DRAWS * float(p) for p in exact]).pvalue > 1e-4


def test_blocks_of_ranks():
    K = ranks(0, 99, error=5, block=64)
    close = K.closeness(Fraction(10), 64)
    assert 0.999 < close.epsilon(1e-6) <= 1
    # Bounded range does better than adding up.
    assert K.rate > ranks(0, 99, error=5).rate / 64 * 3
    assert Closest((PureDP(2.0), ZeroConcentratedDP(0.5))).delta(2.0) == 0


@pytest.mark.parametrize(
    "oneshot",
    [
        TreeLog("v", delta=1e-6), QuantilePoints("v", [0.25, 0.5]), BlockCDF("v", 500), Quantile("v", 0.5), Median("v"),
        InteriorPoint("v"),
    ],
    ids=lambda o: o.kind,
)  # fmt: skip
def test_one_shot_algorithms_are_no_maps(oneshot):
    for attempt in (
        lambda: as_map(oneshot),
        lambda: as_map(type(oneshot)),
        lambda: RankMap(oneshot, 9),
        lambda: smooth(Grudge(Fraction(1)), error=1, failure=0, map=oneshot),
    ):
        with pytest.raises(InputError, match=r"not cumulatively private: .* interval counts of all points may move"):
            attempt()


def test_other_things_are_no_maps():
    with pytest.raises(InputError, match="proven closeness"):
        as_map(lambda answer: answer)
    with pytest.raises(InputError, match="distribution function"):
        ranks(0, 9).apply(5, Coins(bytes(32)))
    with pytest.raises(InputError, match=r"0 \.\. 9"):
        ranks(0, 9).apply(Cumulative(((10, 3),)), Coins(bytes(32)))
    with pytest.raises(InputError, match="upper"):
        RankMap(3, 2)
    with pytest.raises(InputError, match="settled"):
        RankMap(0, 2).apply(Cumulative(), Coins(bytes(32)))


# What is published ---------------------------------------------------------------------------------------------------

HISTORY = ((Add("x"), Add("y")), (Delete("x", 1),), (), (Add("z"),))


def tracker(seed=1):
    return FlippancyTracker(100, epsilon=1.0, delta=1e-6, flips=1, key=Key.for_testing(seed))


def test_same_key_same_bytes():
    runs = []
    for base, own in ((1, 2), (1, 2), (1, 3), (4, 2)):
        made = smooth(tracker(base), error=50, failure=0, key=Key.for_testing(own))
        runs.append([made.close(updates).encode() for updates in HISTORY])
    assert runs[0] == runs[1]
    assert all(a != b for a, b in zip(runs[0], runs[2], strict=True))
    assert all(a != b for a, b in zip(runs[0], runs[3], strict=True))


def test_the_noise_is_fresh_in_every_round_and_has_its_law():
    """The answers of the base are 0 less E, so what is left is the noise."""
    made = smooth(Grudge(Fraction(1)), error=1, failure=0, key=Key.for_testing(1))
    draws = [made.close(()) for _ in range(2000)]
    noise = np.array([float(answer.value + 1) for answer in draws]) / made.map.sigma
    assert [answer.round for answer in draws] == list(range(1, 2001))
    assert len(set(noise.tolist())) == 2000
    assert stats.kstest(noise, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 0.12


def test_vectors():
    class Pair(Stateful):
        guarantee = Guarantee(PureDP(1.0), 1.0, unit="one operation")

        def close(self, updates):
            return (len(updates), Fraction(1, 3))

    made = smooth(Pair(), error=1, failure=0, dimension=2, key=Key.for_testing(1))
    answer = made.close(HISTORY[0])
    assert len(answer.value) == 2
    assert answer.encode() == repr((1, str(answer.value[0]), str(answer.value[1]))).encode()
    assert made.guarantee.unit == "one operation (private, marginally approximately retroactive)"
    with pytest.raises(InputError, match="expected 1 numbers, got 2"):
        smooth(Pair(), error=1, failure=0, key=Key.for_testing(1)).close(())


def test_guarantee_retroactivity_and_accuracy():
    made = smooth(tracker(), error=50, failure=1e-3, key=Key.for_testing(2))
    own = made.base.guarantee
    assert (made.guarantee.epsilon, made.guarantee.delta, made.guarantee.measure) == (
        own.epsilon,
        own.delta,
        own.measure,
    )
    assert "not retroactive" not in made.guarantee.text
    assert "E = 50 of the truth with probability 1 - 0.001 (retroactivity needs it, not privacy)" in made.guarantee.text
    text = made.retroactivity.text
    for part in ("marginally approximately retroactive", "E = 50", "promise of the caller", "1 - 0.001",
                 "as private as before", "not retroactive", "nothing will show it"):  # fmt: skip
        assert part in text
    found = made.accuracy(100, 1e-6)
    assert found.error == pytest.approx(50 + made.map.error(1e-6))
    assert found.failure == pytest.approx(1e-3 + 1e-4)
    assert made.retroactivity.alpha(1e-3 + 1e-6) == pytest.approx(1.0, rel=1e-3)
    again = smooth(tracker(), error=50, failure=1e-3, key=Key.for_testing(3))
    assert again.retroactivity == made.retroactivity
    assert smooth(tracker(), error=51, failure=0, key=Key.for_testing(3)).retroactivity != made.retroactivity


# Whose error it is --------------------------------------------------------------------------------------------------


def median_tracker(**options):
    given = {"epsilon": 8.0, "delta": 1e-6, "records": 100_000, "key": Key.for_testing(1), **options}
    return MedianTracker(0, 2**16 - 1, 15, **given)


def test_a_base_that_knows_its_error_decides():
    base = median_tracker()
    own = base.error(1e-4)
    options = {"failure": 1e-4, "map": RankMap(0, 2**16 - 1), "key": Key.for_testing(2)}
    assert own > 1000
    for smaller in (1, own - 1, math.nextafter(own, 0)):
        with pytest.raises(InputError, match=r"at least 8790\.29, the error of MedianTracker .* at error"):
            smooth(base, error=smaller, **options)
    left_out, given, larger = (smooth(base, error=error, **options) for error in (None, own, 2 * own))
    assert left_out.error == given.error == Fraction(own)
    assert larger.error == 2 * Fraction(own)
    assert "what MedianTracker states of its own error" in left_out.retroactivity.text
    assert "promise of the caller" not in left_out.retroactivity.text


def test_no_error_is_taken_where_the_base_promises_none():
    """Blocks are made for a chance of failure: nothing is proven for a much smaller one."""
    for failure in (0, 1e-9):
        for error in (None, 10**9):
            with pytest.raises(InputError, match="promises nothing there - at failure"):
                smooth(median_tracker(), error=error, failure=failure, map=RankMap(0, 2**16 - 1))


def test_a_base_that_does_not_know_its_error_must_be_told_one():
    assert tracker().error(1e-4) is None
    with pytest.raises(InputError, match="which FlippancyTracker does not know of itself, got none - at error"):
        smooth(tracker(), failure=1e-4, key=Key.for_testing(2))
    assert "promise of the caller" in smooth(tracker(), error=50, failure=1e-4).retroactivity.text


PAGES = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))


def test_documented_examples_rest_on_an_error_that_holds(monkeypatch):
    """The base states it itself, or it is the worst base of the audit, whose error is exactly E."""
    bases, plain = [], Smoothed.__init__

    def watched(self, base, *rest):
        bases.append(type(base).__name__)
        plain(self, base, *rest)

    monkeypatch.setattr(Smoothed, "__init__", watched)
    for page in PAGES:
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            if "smooth(" in block:
                exec(compile(block, page.name, "exec"), {"ra": ra})
    documented = len(bases)
    for module in ("compilers.smooth", "compilers.maps", "compilers.closeness", "audit.approximate"):
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        doctest.testmod(importlib.import_module(f"retroact.{module}"), optionflags=flags)
    assert documented >= 1
    assert set(bases) == {"MedianTracker", "Grudge"}


def test_the_chance_of_failure_is_not_left_out():
    with pytest.raises(TypeError, match="failure"):
        smooth(tracker(), error=50, key=Key.for_testing(2))


def test_ranks_err_by_a_finite_number_in_domains_beyond_floats():
    beta = 2.0**-20
    small, large = (ranks(0, 2**bits - 1, error=10) for bits in (1000, 4000))
    # Linear in the number of bits: one more costs ln 2 over the rate.
    assert large.error(beta) - small.error(beta) == pytest.approx(3000 * math.log(2) / float(small.rate))
    for bits in (1022, 1023, 1024, 1100):
        found = ranks(0, 2**bits - 1, error=10).error(1e-3)
        assert found == pytest.approx((bits * math.log(2) + math.log(1e3)) * 40, rel=1e-3)
    base = MedianTracker(0, 2**1100 - 1, 3, epsilon=60, delta=1e-6, records=1000, key=Key.for_testing(1))
    made = smooth(base, failure=1e-4, map=RankMap(0, 2**1100 - 1), key=Key.for_testing(2))
    assert float(made.error) < made.accuracy(3).error < math.inf


@pytest.mark.parametrize("block", [1, 16, 1000])
@pytest.mark.parametrize("calibration", ["exact", "paper"])
def test_blocks_are_calibrated(block, calibration):
    made = smooth(tracker(), error=50, failure=0, block=block, calibration=calibration, key=Key.for_testing(2))
    found = made.retroactivity.alpha(1e-6, block)
    assert found <= 1 + 1e-9
    assert found > (0.999 if calibration == "exact" else 0.7)
    assert made.retroactivity.alpha(1e-6, 4 * block) > 1
    assert f"{16 * block:,} consecutive answers" in made.retroactivity.text


def test_a_map_of_ones_own_is_held_to_the_promise():
    wide, narrow = (GaussianMap(sigma=sigma) for sigma in (850, 800))
    assert smooth(tracker(), error=100, failure=0, map=wide, key=Key.for_testing(1)).map is wide
    with pytest.raises(InputError, match=r"hides 2E = 200 .* with alpha = 1\.0[67].* at beta = 1e-06, more than 1"):
        smooth(tracker(), error=100, failure=0, map=narrow, key=Key.for_testing(1))

    class Coin(Map):
        """Forgets the answer."""

        def spec(self):
            return {"type": "coin"}

        def closeness(self, distance, block=1):
            return PureDP(0.0)

        def error(self, beta):
            return math.inf

        def apply(self, answer, coins):
            return 7

    assert smooth(tracker(), error=1, failure=0, map=Coin(), key=Key.for_testing(1)).close(()).value == 7


class Failing(Stateful):
    """Refuses a round once; its answers count rounds."""

    def __init__(self):
        self.rounds = 0

    @property
    def guarantee(self):
        return Guarantee(PureDP(1.0), 1.0, unit="one operation (private, not retroactive)")

    def close(self, updates):
        if updates:
            raise InputError("no", place="updates")
        self.rounds += 1
        return self.rounds


def test_where_the_base_raises_nothing_advances():
    made, undisturbed = (smooth(Failing(), error=1, failure=0, key=Key.for_testing(1)) for _ in range(2))
    first = made.close(())
    with pytest.raises(InputError, match="no - at updates"):
        made.close((Add("x"),))
    assert [first.encode(), made.close(()).encode()] == [undisturbed.close(()).encode() for _ in range(2)]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"error": 0}, "error"), ({"error": -1}, "error"), ({"error": math.inf}, "error"), ({"error": "1"}, "error"),
        ({"alpha": 0}, "alpha"), ({"alpha": -1.0}, "alpha"), ({"alpha": math.nan}, "alpha"), ({"alpha": 1001}, "alpha"),
        ({"beta": 0}, "beta"), ({"beta": 1}, "beta"), ({"beta": 1e-70}, "beta"), ({"beta": True}, "beta"),
        ({"failure": 1}, "failure"), ({"failure": -0.1}, "failure"), ({"block": 0}, "block"), ({"block": 1.0}, "block"),
        ({"calibration": "loose"}, "calibration"), ({"dimension": 0}, "dimension"), ({"map": 3}, "map"),
        ({"alpha": 2, "calibration": "paper"}, "alpha"), ({"alpha": 1e-13, "beta": 1e-13}, "alpha"),
        ({"key": b"secret"}, "key"),
        ({"error": 1e-300, "map": GaussianMap(sigma=1e-301)}, "map"), ({"map": GaussianMap(), "dimension": 2}, "map"),
        ({"map": GaussianMap(), "calibration": "paper"}, "map"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_refused(change, place):
    key = Key.generate()
    options = {"error": 10, "failure": 0, "key": key, **change}
    with pytest.raises(InputError) as caught:
        smooth(tracker(), **options)
    assert caught.value.place == place
    smooth(tracker(), error=10, failure=0, key=key)  # still free


def test_a_key_drives_one():
    key = Key.generate()
    smooth(tracker(), error=10, failure=0, key=key)
    with pytest.raises(KeyReusedError):
        smooth(tracker(), error=10, failure=0, key=key)
    assert isinstance(smooth(tracker(), error=10, failure=0), Smoothed)


def test_what_is_retroactive_is_not_smoothed():
    stream = ra.Stream({"v": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=4, key=Key.for_testing(1))
    with pytest.raises(InputError, match="exactly retroactive already, smoothing is not needed"):
        smooth(stream, error=10, failure=0)
    for wrong in (FlippancyTracker, 3, None, smooth(tracker(), error=10, failure=0)):
        with pytest.raises(InputError, match="expected a stateful algorithm, got") as caught:
            smooth(wrong, error=10, failure=0)
        assert caught.value.place == "stateful"


# An attack -----------------------------------------------------------------------------------------------------------


def test_an_attack_stays_below_the_claim_and_comes_near():
    rows = {row.block: row for row in audit_blocks((1, 4, 16, 64, 256), runs=AUDIT_RUNS)}
    for row, exact in zip(rows.values(), (0.78, 1.54, 3.09, 6.43, 14.39), strict=True):
        assert row.audited <= row.exact <= row.paper
        assert round(row.exact, 2) == exact
    for block in (16, 64, 256):
        assert rows[block].audited > 0.95 * rows[block].exact
    assert rows[4].audited > 0.85 * rows[4].exact


def test_an_understated_error_is_found_out():
    """The promise matters: a base that errs by three times E breaks the claim, and the attack shows it."""
    (row,) = audit_blocks((16,), runs=2000, understated=Fraction(3))
    assert row.audited > 2 * row.exact


def test_binomial_bounds():
    for successes, trials in ((0, 10), (1, 10), (57, 100), (10_000, 19_000), (50, 50)):
        expected = stats.beta.ppf(0.01, successes, trials - successes + 1) if successes else 0.0
        assert binomial_lower(successes, trials, 0.99) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_what_a_tracker_remembers_shows_until_the_noise_hides_it():
    error, (bare, little, much) = audit_tracker((0.0, 0.25, 4.0), blocks=(1, 16), horizon=1024, runs=150)
    assert min(bare.audited) > 1
    assert 0 < little.audited[1] < little.claimed[1]
    assert max(much.audited) < 0.5
    assert error > 20
