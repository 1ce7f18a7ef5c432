"""The maps of the smoothing compiler: Gaussian noise and the median by rank."""

import itertools
import math
from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import retroact as ra
from grudge import Grudge
from retroact.coins import Coins, Key
from retroact.compilers.closeness import Closest
from retroact.compilers.gaussian_vectors import power_of_two_below
from retroact.compilers.maps import GaussianMap, RankMap, as_map
from retroact.compilers.smooth import smooth
from retroact.errors import InputError
from retroact.oneshot import BlockCDF, InteriorPoint, Median, Quantile, QuantilePoints
from retroact.oneshot.exponential import step_law
from retroact.paper import TreeLog
from retroact.privacy import GaussianDP, PureDP, ZeroConcentratedDP
from retroact.stateful import Cumulative
from support.smoothing_maps import gaussian, ranks

DRAWS = 4000


# Gaussian noise -------------------------------------------------------------------------------------------------------


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
    with pytest.raises(InputError, match="whose width is fixed"):
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


# The median by rank ---------------------------------------------------------------------------------------------------


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
    with pytest.raises(InputError, match="whose width is fixed"):
        RankMap(0, 2).apply(Cumulative(), Coins(bytes(32)))
