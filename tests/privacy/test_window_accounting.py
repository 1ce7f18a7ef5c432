"""The cost of windows: published tables, independent computations, and what must hold for all parameters."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as losses
from scipy import special, stats

from retroact.errors import InputError
from retroact.paper import paper_advanced, paper_amplified, paper_basic, paper_ranks
from retroact.privacy import (
    LawPair,
    ZeroConcentratedDP,
    largest_epsilon0,
    product_epsilon,
    rank_reach,
    window_cost,
)
from retroact.privacy.bounded_range import _converted, _moment, _proven, range_pair
from retroact.privacy.composition import binomial_profile, lattice_of, lattice_profile
from retroact.privacy.dominating_pair import failure_of_two, mixed_loss
from support.product_delta import product_delta

DELTA = 1e-6
FORMS = [
    ("whole", {}),
    ("fresh", {"size": 10}),
    ("fresh", {"size": 10, "occupancy": 500}),
    ("fresh", {"size": 10, "occupancy": 12}),
    ("fresh", {"size": 10, "occupancy": 500, "substitution": True}),
    ("poisson", {"rate": 0.02}),
    ("ranks", {"size": 10, "occupancy": 500}),
    ("coins", {"rate": 0.02}),
]


def mixed(length, rate):
    return math.log1p(rate * math.expm1(length))


def multinomial_delta(pair, releases, epsilon):
    """Three atoms, exactly: over the number of rounds in the middle atom, then a binomial."""
    total = 0.0
    for rounds, weight in enumerate(stats.binom.pmf(np.arange(releases + 1), releases, 1 - pair.first[1])):
        if weight < 1e-19:
            continue
        highs = np.arange(rounds + 1)
        sums = highs * pair.losses[2] + (rounds - highs) * pair.losses[0] + (releases - rounds) * pair.losses[1]
        law = stats.binom.pmf(highs, rounds, pair.first[2] / (pair.first[2] + pair.first[0]))
        total += weight * float(np.dot(law, np.maximum(0.0, -np.expm1(epsilon - sums))))
    return total


@pytest.mark.parametrize(
    ("releases", "rate", "epsilon0"), [(3, 0.3, 1.0), (40, 1.0, 0.1), (168, 0.01, 1.0), (1000, 0.01, 1.0)]
)
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-11])
def test_three_atoms_are_safe_and_tight(releases, rate, epsilon0, delta):
    pair = LawPair.distance_two(epsilon0).mixed(rate)
    epsilon = product_epsilon(pair, releases, delta)
    exact = max(multinomial_delta(p, releases, epsilon) for p in (pair, pair.reversed()))
    assert exact <= delta
    tight = max(multinomial_delta(p, releases, epsilon * 0.999) for p in (pair, pair.reversed()))
    assert tight > delta
    if epsilon < 0.999 * releases * pair.losses[-1]:
        assert product_delta(pair, releases, epsilon) == pytest.approx(delta, rel=2e-3)
        assert product_delta(pair, releases, epsilon) >= exact


def test_three_atoms_at_the_extremes():
    """Tiny and huge epsilons, rates and deltas: never below the exact sum, and 2 % above it at most."""
    rng = np.random.default_rng(1)
    for _ in range(120):
        releases, epsilon0 = int(10 ** rng.uniform(0, 1.5)), float(10 ** rng.uniform(-6, 2))
        rate, delta = float(10 ** rng.uniform(-7, 0)) ** int(rng.integers(2)), float(10 ** rng.uniform(-60, -0.3))
        pair = LawPair.distance_two(epsilon0).mixed(rate)
        epsilon = product_epsilon(pair, releases, delta)
        ways = (pair, pair.reversed())
        assert max(trinomial_delta(p, releases, epsilon) for p in ways) <= delta * (1 + 1e-9)
        assert epsilon == 0 or max(trinomial_delta(p, releases, 0.98 * epsilon) for p in ways) > delta
        other = epsilon * float(rng.uniform(0.2, 1))
        exact = max(trinomial_delta(p, releases, other) for p in ways)
        assert exact * (1 - 1e-9) <= product_delta(pair, releases, other) <= exact * 1.5 + 1e-60


def trinomial_delta(pair, releases, epsilon):
    """All numbers of rounds in each atom, on logarithmic scales."""
    low, middle = (n.ravel() for n in np.meshgrid(np.arange(releases + 1), np.arange(releases + 1)))
    low, middle = low[low + middle <= releases], middle[low + middle <= releases]
    counts = np.stack((low, middle, releases - low - middle))
    sums = np.array(pair.losses) @ counts
    ways = special.gammaln(releases + 1) - special.gammaln(counts + 1).sum(axis=0)
    logs = ways + np.log(np.maximum(pair.first, 1e-300)) @ counts
    kept = sums > epsilon
    return float(np.dot(np.exp(np.minimum(0.0, logs[kept])), -np.expm1(epsilon - sums[kept])))


def test_where_only_the_largest_loss_is_left():
    # All other atoms underflow, and at delta = 1e-58 the top of the range counts.
    assert product_epsilon(LawPair.distance_two(885.0), 6, 1e-37) == pytest.approx(12 * 885, rel=1e-6)
    length, releases, delta = 2.356, 19, 1e-58
    t = 0.999 * length
    high = math.expm1(length - t) / math.expm1(length)
    first = high * math.exp(t)
    fixed = LawPair((1 - first, first), (1 - high, high), (t - length, t))
    assert product_epsilon(fixed, releases, delta) <= product_epsilon(range_pair(length, 1.0, 19), releases, delta)


@pytest.mark.parametrize(("epsilon", "rate"), [(2.0, 0.01), (1.0, 1.0), (0.1, 0.3)])
def test_against_the_privacy_loss_oracle(epsilon, rate):
    for pair in (LawPair.randomised_response(epsilon).mixed(rate), LawPair.distance_two(epsilon / 2).mixed(rate)):
        lower = {i: math.log(p) for i, p in enumerate(pair.second)}
        upper = {i: math.log(p) for i, p in enumerate(pair.first)}
        step = 2e-3 * max(pair.losses)
        oracle = losses.from_two_probability_mass_functions(lower, upper, value_discretization_interval=step)
        for releases in (1, 30, 300):
            composed = oracle.self_compose(releases)
            for delta in (1e-3, 1e-6):
                found = product_epsilon(pair, releases, delta)
                assert found == pytest.approx(composed.get_epsilon_for_delta(delta), rel=1e-2, abs=step)
                assert found <= composed.get_epsilon_for_delta(delta) * (1 + 1e-3) + 1e-12


@pytest.mark.parametrize(("epsilon", "rate", "releases"), [(0.5, 1.0, 50), (1.0, 0.05, 400), (1e-4, 1e-2, 300)])
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-40])
def test_two_atoms_to_all_digits(epsilon, rate, releases, delta):
    pair = LawPair.randomised_response(epsilon).mixed(rate)
    found = product_epsilon(pair, releases, delta)
    with mpmath.workdps(60):
        e, q = mpmath.mpf(epsilon), mpmath.mpf(rate)
        second = [mpmath.exp(e) / (1 + mpmath.exp(e)), 1 / (1 + mpmath.exp(e))]
        first = [(1 - q) * second[0] + q * second[1], (1 - q) * second[1] + q * second[0]]

        def exact(x, p, r):
            up, down = mpmath.log(p[1] / r[1]), mpmath.log(p[0] / r[0])
            terms = (
                mpmath.binomial(releases, i) * p[1] ** i * p[0] ** (releases - i) * (1 - mpmath.exp(x - loss))
                for i in range(releases + 1)
                if (loss := i * up + (releases - i) * down) > x
            )
            return mpmath.fsum(terms)

        ways = [(first, second), (second[::-1], first[::-1])]
        true = max(exact(mpmath.mpf(found), *way) for way in ways)
        assert true <= delta
        if found:
            assert max(exact(mpmath.mpf(found) * (1 - mpmath.mpf("1e-7")), *way) for way in ways) > delta * (1 - 1e-8)


def test_bounded_range_in_one_pair():
    """Its profile is the largest over t, and the Rényi bound is the largest over t, at every order."""
    for length, rate in [(1.0, 1.0), (3.0, 0.2), (0.1, 0.01)]:
        lattice = range_pair(length, rate, 1)
        assert lattice.first.sum() == pytest.approx(1, abs=1e-12)
        assert lattice.second.sum() == pytest.approx(1, abs=1e-12)
        top = mixed_loss(rate, length)
        for part in (0.1, 0.5, 0.9):
            epsilon, best = part * top, 0.0
            for t in np.linspace(0, length, 2001)[1:-1]:
                high = math.expm1(length - t) / math.expm1(length)
                up, down = high * math.exp(t), 1 - high * math.exp(t)
                pair = LawPair((down, up), (1 - high, high), (math.log(down / (1 - high)), math.log(up / high)))
                best = max(best, pair.mixed(rate).delta(epsilon))
            found = lattice_profile(lattice, 1, best).delta(epsilon)
            assert best * (1 - 1e-6) <= found <= best * (1 + 1e-3)
        for order in (1.5, 4.0, 20.0):
            points = np.linspace(0, length, 4001)
            for way in (1, -1):
                most = np.log1p(_moment(np.array(order), points, points - length, rate, way).max()) / (order - 1)
                assert most <= _proven(order, length, rate, way) <= most * (1 + 1e-4)


def test_bounded_range_without_sampling_has_a_closed_form():
    for length, order in [(1.0, 3.0), (0.2, 30.0), (4.0, 1.3)]:
        k = -math.expm1(-length)
        c = 1 - (1 - k) ** order
        s = (order * k - c) / (k * c * (order - 1))
        exact = (math.log(1 - c * s) - order * math.log(1 - k * s)) / (order - 1)
        assert exact <= _proven(order, length, 1.0, 1) <= exact * (1 + 1e-6)
        assert exact <= order * length**2 / 8
        assert _proven(order, length, 1.0, -1) == pytest.approx(exact, rel=1e-5)


def test_conversion_is_that_of_the_concentrated_bound():
    orders = 1 + np.exp(np.linspace(-3, 8, 20_000))
    assert _converted(orders, 0.05 * orders, 1e-6).min() == pytest.approx(ZeroConcentratedDP(0.05).epsilon(1e-6))


def test_failures_of_two_records():
    """The power of the best test, applied twice, lies below the pair with failures (1 + e^epsilon) f."""
    for epsilon, f in [(0.1, 1e-3), (1.0, 1e-2), (2.0, 0.05)]:
        power = lambda y, e=epsilon, f=f: np.minimum(  # noqa: E731
            1.0, np.minimum(f + math.exp(e) * y, 1 - math.exp(-e) * (1 - f - y))
        )
        levels = np.linspace(0, 1, 100_001)
        twice = power(power(levels))
        failure, pair = failure_of_two(epsilon, f), LawPair.distance_two(epsilon)
        for x in np.linspace(-4, 4, 41):
            allowed = failure + (1 - failure) * (pair.delta(x) if x > -2 * epsilon else -math.expm1(x))
            assert float((twice - math.exp(x) * levels).max()) <= allowed + 1e-12


@pytest.mark.parametrize(("size", "occupancy"), [(1, 1), (1, 50), (7, 30), (300, 20_000), (9_000, 1_000_000)])
def test_reach_of_ranks(size, occupancy):
    for releases, failure in [(1, 0.3), (100, 1e-7)]:
        chance = rank_reach(releases, size, occupancy, failure)
        assert releases * stats.binom.cdf(size - 1, occupancy, chance) <= failure
        assert releases * stats.binom.cdf(size - 1, occupancy, chance * (1 - 1e-5)) > failure or chance == 1
    assert rank_reach(10, 5, 4, 1e-3) == 1


@pytest.mark.parametrize(("form", "given"), FORMS)
@pytest.mark.parametrize("bounded_range", [False, True])
def test_every_cost_is_sound_and_monotone(form, given, bounded_range):
    def cost(releases=30, epsilon0=0.2, delta0=0.0, delta=1e-5, **more):
        return window_cost(
            form, **{"releases": releases, "epsilon0": epsilon0, "delta0": delta0, "delta": delta,
                     "bounded_range": bounded_range, **given, **more}
        )  # fmt: skip

    jitter = 1 + 1e-4
    for name, values in [("releases", (1, 2, 7, 30, 99, 150)), ("epsilon0", (1e-4, 0.01, 0.3, 2.0, 30.0))]:
        row = [cost(**{name: v}) for v in values]
        assert all(a.epsilon <= b.epsilon * jitter for a, b in pairwise(row))
        assert all(c.delta <= 1e-5 for c in row)
    row = [cost(delta=d).epsilon for d in (0.0, 1e-30, 1e-9, 1e-5, 0.1)]
    assert all(a * jitter >= b for a, b in pairwise(row))
    assert cost(delta0=1e-9).epsilon >= cost().epsilon / jitter
    # Never worse than basic composition, nor than the same without the sample or the range.
    for delta0 in (0.0, 1e-9):
        distance = 2 if form in ("fresh", "ranks") and "substitution" not in given else 1
        assert cost(delta0=delta0).epsilon <= distance * 30 * 0.2
        whole = {"fresh": "fresh", "ranks": "fresh"}.get(form, "whole")
        if "substitution" not in given:
            plain = window_cost(whole, releases=30, epsilon0=0.2, delta0=delta0, delta=1e-5, size=10)
            assert cost(delta0=delta0).epsilon <= plain.epsilon
        assert cost(delta0=delta0).epsilon <= cost(delta0=delta0, bounded_range=False).epsilon
    assert cost(epsilon0=0).epsilon == 0


@pytest.mark.parametrize(("form", "given"), FORMS)
@pytest.mark.parametrize(("releases", "delta0", "delta"), [(1, 0.0, 0.0), (50, 0.0, 1e-6), (400, 1e-12, 1e-7)])
def test_the_largest_epsilon0(form, given, releases, delta0, delta):
    for bounded_range in {False, not delta0 and delta > 0}:
        more = {**given, "releases": releases, "delta0": delta0, "delta": delta, "bounded_range": bounded_range}
        found = largest_epsilon0(form, epsilon=1.0, **more)
        assert window_cost(form, epsilon0=found, **more).epsilon <= 1.0
        assert window_cost(form, epsilon0=found * Fraction(100_002, 100_000), **more).epsilon > 1.0
        assert float(f"{float(found):.5e}") == float(found)


def test_pure_costs():
    given = {"releases": 12, "epsilon0": 0.5, "delta0": 0, "delta": 0}
    assert window_cost("whole", **given).epsilon == 6
    assert window_cost("fresh", size=3, **given).epsilon == 12
    assert window_cost("fresh", size=3, occupancy=5, **given).epsilon == pytest.approx(12 * mixed(1.0, 0.5))
    assert window_cost("poisson", rate=0.1, **given).epsilon == pytest.approx(12 * mixed(0.5, 0.1))
    assert window_cost("coins", rate=0.1, **given).epsilon == pytest.approx(mixed(6.0, 0.1))
    ranks = window_cost("ranks", size=3, occupancy=500, **given)
    assert (ranks.epsilon, ranks.adaptive, ranks.amplified) == (12, True, False)
    assert largest_epsilon0("whole", releases=3, epsilon=0.3, delta=0) == Fraction(1, 10)
    assert largest_epsilon0("fresh", releases=250, epsilon=1, delta=0, size=4) == Fraction(1, 500)


def test_edges():
    given = {"releases": 5, "epsilon0": 0.5, "delta0": 0, "delta": 1e-6}
    whole = window_cost("whole", **given)
    assert window_cost("poisson", rate=1, **given).epsilon == whole.epsilon
    coins = window_cost("coins", rate=1, **given)
    assert (coins.epsilon, coins.adaptive) == (whole.epsilon, True)
    for form in ("poisson", "coins"):
        nothing = window_cost(form, rate=0, **given)
        assert (nothing.epsilon, nothing.delta, nothing.adaptive) == (0, 0, True)
        assert largest_epsilon0(form, rate=0, releases=5, epsilon=1, delta=0) == 1000
    # Fewer live records than a sample asks for: no amplification.
    plain = window_cost("fresh", size=10, **given)
    assert window_cost("fresh", size=10, occupancy=9, **given) == plain
    assert not plain.amplified
    assert window_cost("ranks", size=10, occupancy=9, **given) == window_cost("ranks", size=10, **given)
    # One release: nothing is better than epsilon0 but by what delta forgives.
    single = window_cost("whole", releases=1, epsilon0=0.5, delta0=0, delta=1e-6).epsilon
    assert LawPair.randomised_response(0.5).delta(single) == pytest.approx(1e-6, rel=1e-3)
    huge = window_cost("fresh", releases=10_000, epsilon0=1000, delta0=0, delta=1e-6, size=3, occupancy=9)
    assert 1e6 < huge.epsilon <= 2e7
    # A coin that is almost never heads: the transcripts hardly differ.
    rare = window_cost("coins", releases=5, epsilon0=3, delta0=0, delta=1e-3, rate=1e-4)
    assert (rare.epsilon, rare.bound) == (0, "coupling")


def test_failures_of_the_algorithm():
    given = {"releases": 100, "epsilon0": 0.1, "delta": 1e-6}
    assert window_cost("whole", delta0=1.01e-8, **given).epsilon == math.inf
    assert window_cost("poisson", delta0=1.01e-8, rate=0.5, **given).epsilon < math.inf
    assert window_cost("coins", delta0=1e-7, rate=0.05, **given).epsilon < math.inf
    assert window_cost("fresh", delta0=4e-9, size=3, **given).epsilon < math.inf
    assert window_cost("fresh", delta0=5e-9, size=3, **given).epsilon == math.inf
    pure = window_cost("whole", releases=4, epsilon0=0.1, delta0=1e-9, delta=0)
    assert pure.epsilon == math.inf
    # 1 - (1 - f)^W (1 - d): what the failures leave is spent on the exact composition.
    left = 1 - (1 - 1e-6) / (1 - 5e-9) ** 100
    exact = product_epsilon(LawPair.randomised_response(0.1), 100, left)
    assert window_cost("whole", delta0=5e-9, **given).epsilon == pytest.approx(exact, rel=1e-7)
    with pytest.raises(InputError, match="leaves room"):
        largest_epsilon0("whole", releases=100, epsilon=1, delta=1e-6, delta0=1e-7)


@pytest.mark.parametrize(
    ("form", "given", "place"),
    [("all", {}, "form"), ("fresh", {}, "size"), ("ranks", {"size": 0}, "size"), ("poisson", {}, "rate"),
     ("coins", {"rate": 1.5}, "rate"), ("whole", {"releases": 0}, "releases"),
     ("whole", {"releases": True}, "releases"),
     ("whole", {"delta": 1.0}, "delta"), ("whole", {"delta0": -0.1}, "delta0"), ("whole", {"epsilon0": -1}, "epsilon0"),
     ("whole", {"substitution": True}, "substitution"),
     ("poisson", {"rate": 0.1, "substitution": True}, "substitution"),
     ("fresh", {"size": 3, "substitution": True}, "substitution"),
     ("fresh", {"size": 3, "occupancy": 2, "substitution": True}, "substitution"),
     ("fresh", {"size": 3, "occupancy": 2.5}, "occupancy")],
)  # fmt: skip
def test_what_is_refused(form, given, place):
    with pytest.raises(InputError, match=f"at {place}$"):
        window_cost(form, **{"releases": 4, "epsilon0": 1.0, "delta0": 0, "delta": 0, **given})


def test_the_paper_is_never_better():
    for releases, rate, epsilon0 in [(10, 0.1, 0.3), (500, 0.01, 0.9), (5000, 0.001, 0.1)]:
        given = {"releases": releases, "epsilon0": epsilon0, "delta0": 1e-14, "delta": 1e-6, "size": 10}
        ours = window_cost("fresh", occupancy=round(10 / rate) - 1, **given)
        epsilon, delta = paper_amplified(releases, epsilon0, 1e-14, 9e-7, rate)
        assert delta <= 1e-6
        assert ours.epsilon < epsilon
        plain = window_cost("fresh", **given)
        assert plain.epsilon < paper_advanced(releases, epsilon0, 1e-14, 9e-7)[0]
        assert plain.epsilon <= paper_basic(releases, epsilon0, 1e-14)[0]
    with pytest.raises(InputError, match="at most 1"):
        paper_ranks(10, 5, 1000, 1.5, 0.0, 1e-6)
    with pytest.raises(InputError, match="1/2"):
        paper_ranks(10, 500, 1000, 0.5, 0.0, 1e-6)


def test_an_exact_delta_is_shown_as_a_float():
    found = window_cost("whole", releases=3, epsilon0=Fraction(1, 2), delta=Fraction(1, 1000))
    assert type(found.delta) is float
    assert found == window_cost("whole", releases=3, epsilon0=0.5, delta=0.001)


def test_a_smaller_rate_is_dominated():
    for pair in (LawPair.randomised_response(1.3), LawPair.distance_two(0.7)):
        for x in np.linspace(-3, 3, 25):
            row = [pair.mixed(q) for q in (0.0, 0.01, 0.3, 0.8, 1.0)]
            for one in (row, [p.reversed() for p in row]):
                assert all(a.delta(x) <= b.delta(x) + 1e-15 for a, b in pairwise(one))


def test_a_lattice_only_adds():
    pair = LawPair.distance_two(0.9).mixed(0.13)
    lattice = lattice_of(pair, 2000)
    assert lattice.first.sum() == pytest.approx(1, abs=1e-13)
    assert lattice.second.sum() == pytest.approx(1, abs=1e-13)
    as_pair = [(p, math.exp(i * lattice.step)) for p, i in zip(lattice.first, lattice.indices, strict=True) if p]
    for x in np.linspace(-0.5, 0.5, 41):
        coarse = math.fsum(p * max(0.0, 1 - math.exp(x) / ratio) for p, ratio in as_pair)
        assert pair.delta(x) <= coarse + 1e-15
    assert binomial_profile(LawPair.randomised_response(0.4), 7).delta(2.9) == 0
