"""Every form on windows so small that all transcripts can be written down, with exact probabilities.

M reports the difference of records +1 and records -1, cut to -1, 0 or 1, by a truncated geometric mechanism with ratio
1/3: ln 3 for one record, and the worst that two records can do. With a failure f it also tells the truth outright.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import pytest

from retroact.privacy import LawPair, rank_reach, window_cost
from support.product_delta import product_delta
from support.window_transcripts import EPSILON0, divergence, samples, score, transcripts

DELTAS = (0.0, 1e-4, 0.01, 0.05, 0.2)
HALF = Fraction(1, 2)


def independent(laws):
    joint = Counter({(): Fraction(1)})
    for law in laws:
        joint = Counter({(*s, x): p * q for s, p in joint.items() for x, q in law.items()})
    return joint


def fresh(stream, size):
    laws = []
    for live in stream:
        subsets = list(combinations(list(live.values()), min(size, len(live))))
        law = Counter()
        for subset in subsets:
            law[score(subset)] += Fraction(1, len(subsets))
        laws.append(law)
    return independent(laws)


def poisson(stream, rate):
    laws = []
    for live in stream:
        law = Counter()
        for coins in product((0, 1), repeat=len(live)):
            weight = math.prod(rate if c else 1 - rate for c in coins)
            law[score(v for c, v in zip(coins, live.values(), strict=True) if c)] += weight
        laws.append(law)
    return independent(laws)


def coins(stream, rate):
    names = sorted({name for live in stream for name in live}, key=str)
    law = Counter()
    for heads in product((0, 1), repeat=len(names)):
        chosen = {name for name, head in zip(names, heads, strict=True) if head}
        weight = math.prod(rate if head else 1 - rate for head in heads)
        law[tuple(score(v for n, v in live.items() if n in chosen) for live in stream)] += weight
    return law


def ranks(stream, size):
    names = sorted({name for live in stream for name in live}, key=str)
    law = Counter()
    for sequence, count in samples(tuple(frozenset(live) for live in stream), tuple(names), size).items():
        states = (score(live[n] for n in sample) for live, sample in zip(stream, sequence, strict=True))
        law[tuple(states)] += Fraction(count, math.factorial(len(names)))
    return law


def pairs(others, releases, turnover):
    """(S+, S-): the records besides the extra one, all their values; the extra one is live throughout, and in S- it
    never comes (an addition less) or leaves after the first release (a deletion more)."""
    for values in product((-1, 1), repeat=others + turnover):
        for own in (-1, 1):
            common = []
            for release in range(releases):
                live = dict(enumerate(values[:others]))
                if turnover and release:
                    # One record leaves and another comes.
                    del live[0]
                    live[others] = values[others]
                common.append(live)
            plus = [{**live, "own": own} for live in common]
            yield plus, common
            if releases > 1:
                yield plus, [plus[0], *common[1:]]


def check(form, law, others, releases, givens, failure=Fraction(0), turnover=1):
    """All claims, for several sets of promises that the streams keep."""
    claims = [
        (window_cost(form, releases=releases, epsilon0=EPSILON0, delta0=float(failure), delta=d, **given), d)
        for d in DELTAS
        for given in givens
    ]
    claims = [(claim, delta) for claim, delta in claims if claim.epsilon < math.inf]
    for plus, minus in pairs(others, releases, turnover):
        one, two = transcripts(law(plus), failure), transcripts(law(minus), failure)
        for claim, delta in claims:
            assert divergence(one, two, claim.epsilon) <= delta + 1e-12
            assert divergence(two, one, claim.epsilon) <= delta + 1e-12
    return [claim for claim, _ in claims]


@pytest.mark.parametrize(("others", "releases"), [(0, 2), (1, 3), (3, 2), (4, 1)])
@pytest.mark.parametrize("failure", [Fraction(0), Fraction(1, 100)])
def test_whole_window(others, releases, failure):
    check("whole", lambda s: fresh(s, 99), others, releases, [{}], failure, turnover=min(1, others))


@pytest.mark.parametrize(("others", "releases", "size"), [(1, 3, 1), (2, 2, 1), (3, 2, 2), (4, 2, 1), (1, 2, 3)])
@pytest.mark.parametrize("failure", [Fraction(0), Fraction(1, 100)])
def test_fresh_samples(others, releases, size, failure):
    promises = [{"size": size}, {"size": size, "occupancy": others}]
    check("fresh", lambda s: fresh(s, size), others, releases, promises, failure)


@pytest.mark.parametrize(("others", "releases"), [(0, 3), (1, 2), (3, 2)])
@pytest.mark.parametrize("failure", [Fraction(0), Fraction(1, 100)])
def test_poisson_samples(others, releases, failure):
    for rate in (Fraction(1, 10),) if failure else (Fraction(1, 10), HALF):
        given = [{"rate": float(rate)}]
        check("poisson", lambda s, r=rate: poisson(s, r), others, releases, given, failure, turnover=min(1, others))


@pytest.mark.parametrize(("others", "releases"), [(0, 3), (1, 3), (3, 2)])
@pytest.mark.parametrize("failure", [Fraction(0), Fraction(1, 100)])
def test_persistent_coins(others, releases, failure):
    for rate in (Fraction(1, 10),) if failure else (Fraction(1, 10), HALF):
        given = [{"rate": float(rate)}]
        law = lambda s, r=rate: coins(s, r)  # noqa: E731
        claims = check("coins", law, others, releases, given, failure, turnover=min(1, others))
        assert any(claim.amplified for claim in claims)


@pytest.mark.parametrize(("others", "releases", "size"), [(2, 3, 1), (3, 2, 1), (3, 2, 2), (4, 2, 1)])
@pytest.mark.parametrize("failure", [Fraction(0), Fraction(1, 1000)])
def test_persistent_ranks(others, releases, size, failure):
    promises = [{"size": size}, {"size": size, "occupancy": others}]
    claims = check("ranks", lambda s: ranks(s, size), others, releases, promises, failure)
    assert any(claim.amplified for claim in claims)


def test_ranks_at_their_own_probability():
    """Without the union bound: one release, so that p is a beta variable, and its tail is exact."""
    for others in (3, 5):
        for failure in (0.05, 0.3):
            chance = rank_reach(1, 1, others, failure)
            epsilon = math.log1p(chance * math.expm1(2 * EPSILON0))
            for plus, minus in pairs(others, 1, 0):
                one, two = transcripts(ranks(plus, 1)), transcripts(ranks(minus, 1))
                assert divergence(one, two, epsilon) <= failure
                assert divergence(two, one, epsilon) <= failure


def test_the_claims_are_attained():
    """The mechanism is a worst case: for some records the exact forms hold with equality."""
    rate = Fraction(1, 10)
    for epsilon in (0.05, 0.3, 0.4):
        # Poisson: without the extra record the difference is -1, with it 0.
        plus = transcripts(independent([{0: rate, -1: 1 - rate}] * 3))
        minus = transcripts(independent([{-1: Fraction(1)}] * 3))
        exact = max(divergence(plus, minus, epsilon), divergence(minus, plus, epsilon))
        claim = product_delta(LawPair.randomised_response(EPSILON0).mixed(0.1), 3, epsilon)
        assert exact <= claim <= exact * (1 + 1e-6)
        # Coins: the same, with one coin for all three releases.
        plus = transcripts({(0, 0, 0): rate, (-1, -1, -1): 1 - rate})
        inner = math.log1p(math.expm1(epsilon) * 10)
        claim = 0.1 * product_delta(LawPair.randomised_response(EPSILON0), 3, inner)
        assert divergence(plus, minus, epsilon) == pytest.approx(claim, rel=1e-6)
        # Fresh: all others are -1, the extra one is +1, one record is drawn.
        for others in (1, 3):
            base = [dict.fromkeys(range(others), -1)] * 2
            plus, minus = transcripts(fresh([{**b, "own": 1} for b in base], 1)), transcripts(fresh(base, 1))
            exact = max(divergence(plus, minus, epsilon), divergence(minus, plus, epsilon))
            claim = product_delta(LawPair.distance_two(EPSILON0).mixed(1 / (others + 1)), 2, epsilon)
            assert exact <= claim <= exact * 1.001 + 1e-9


def test_a_wrong_claim_would_be_found():
    """Distance one is not enough for samples of a fixed size."""
    base = [dict.fromkeys(range(1), -1)] * 2
    plus, minus = transcripts(fresh([{**b, "own": 1} for b in base], 1)), transcripts(fresh(base, 1))
    assert divergence(plus, minus, 2 * math.log1p(0.5 * math.expm1(EPSILON0))) > 0.02
