"""Right noise of any size is not refuted; noise that goes missing late, or that two statistics share, is."""

from fractions import Fraction

import msgspec
import numpy as np
import pytest

import retroact as ra
from retroact.audit import Seeds, Target
from retroact.audit.likelihood import likelihood
from retroact.audit.noise import conformance
from retroact.coins import DiscreteLaplace
from retroact.errors import InputError, VerificationError
from retroact.noise import Bridge, Mechanism, Tree
from retroact.privacy import Share
from retroact.statistics import Layout
from retroact.testing import check_noise_law
from retroact.testing.claimed_law import Claim, Nodes
from retroact.testing.drawn_noise import check_draws, drawn, looked_at, noises, pairs_of
from retroact.testing.judgement import judge
from support.transcripts import conformance_of, cumulants

SCHEMA = {"age": ra.Integer(0, 120), "country": ra.Text(), "sex": ra.Category(["f", "m"])}
SMALL = [(12, 4), (15, 4), (20, 16), (20, 4), (30, 8), (100, 8)]


def counting(epsilon=1.0, horizon=20, **options):
    return ra.Specification(SCHEMA, {"n": ra.Count()}, epsilon=epsilon, horizon=horizon, **options)


def looks(spec, last):
    (first,) = noises(spec, "n", (min(3, last - 1), min(7, last)))
    random = Seeds(1).random()
    return [first, *(first.at(pair) for pair in pairs_of(looked_at(spec, "n", first.mechanism, random), random))]


@pytest.mark.parametrize(("epsilon", "horizon"), SMALL)
def test_right_noise_that_is_often_0_is_not_refuted(epsilon, horizon):
    for look in looks(counting(epsilon, horizon), horizon):
        for seed in range(20):
            found = judge([look.kind(drawn(look, 2000, Seeds(seed).coins()))])
            assert found.holds, (look.indices, found)


@pytest.mark.parametrize(("epsilon", "horizon", "draws"), [(8, 4, 2000), (12, 4, 10_000), (15, 4, 20_000)])
def test_nor_where_there_are_enough_draws_to_compare(epsilon, horizon, draws):
    look = looks(counting(epsilon, horizon), horizon)[0]
    for seed in range(20):
        found = judge([look.kind(drawn(look, draws, Seeds(seed).coins()))])
        assert found.holds, found
        assert found.compared
    wrong = look._replace(mechanism=look.mechanism.understated(Fraction(2, 3)))
    assert not judge([look.kind(drawn(wrong, draws, Seeds(1).coins()))]).holds


@pytest.mark.parametrize(("epsilon", "horizon"), SMALL)
def test_nor_is_it_by_the_whole_test(epsilon, horizon):
    results = conformance(Target.stream(counting(epsilon, horizon)), Seeds(3), draws=2000)
    assert all(result.verdict != "violation" for result in results)
    assert not any(result.void for result in results)
    if epsilon == 100:
        assert "say nothing" in results[0].found


@pytest.mark.parametrize("factor", [Fraction(3, 2), Fraction(2, 3)])
def test_a_wrong_scale_is_refuted_in_every_pair(factor):
    for look in looks(counting(), 20):
        wrong = look._replace(mechanism=look.mechanism.understated(1 / factor))
        for seed in range(5):
            assert not judge([look.kind(drawn(wrong, 2000, Seeds(seed).coins()))]).holds


@pytest.mark.parametrize("scale", [0.2, 0.5, 1.0, 3.0, 20.0])
def test_cumulants_are_those_of_the_law(scale):
    k = np.arange(-2000, 2001)
    masses = np.exp(-np.abs(k) / scale)
    masses /= masses.sum()
    second, fourth = (masses * k**2.0).sum(), (masses * k**4.0).sum()
    assert cumulants(DiscreteLaplace(Fraction(scale))) == pytest.approx((second, fourth - 3 * second**2), rel=1e-9)


def test_moments_of_two_releases_are_those_of_many_draws():
    claim = Claim(Layout((1,), Fraction(1), Fraction(1), 1), Share("pure", Fraction(4)), Bridge(15))
    one = Fraction(1)
    many = Mechanism(claim.process, claim.share, units=(1,) * 200_000, norm1=one, norm2_squared=one
                     ).under(Seeds(1).coins())  # fmt: skip
    first, last = ((lambda n, d: n / d)(*many.draw(index)) for index in (5, 7))
    nodes = Nodes(claim, 1, {5: 1, 7: 1})
    one, other = nodes.form(5), nodes.form(7)
    assert (first.std(), last.std()) == pytest.approx((one.deviation, other.deviation), rel=0.015)
    for sign in (1, -1):
        both = one.plus(other, sign)
        assert (first + sign * last).std() == pytest.approx(both.deviation, rel=0.015)
        assert np.cos(0.3 * (first + sign * last)).mean() == pytest.approx(both.at(0.3), abs=0.01)


STATISTICS = {
    "count": ra.Count(),
    "means": ra.Mean("age"),
    "bins": ra.Histogram("sex"),
    "by key": ra.Histogram("country", sum="age"),
    "lags": ra.Restated(ra.Count(), [0, 2]),
    "one for all lags": ra.Restated(ra.Count(), [0, 1], across="rectangle"),
}


@pytest.mark.parametrize("horizon", [100, None])
def test_noise_that_stops_is_a_violation(monkeypatch, horizon):
    compute = Mechanism._compute

    def stopped(self, first, last):
        block = compute(self, first, last)
        keep = np.arange(first, last + 1) < 8
        return msgspec.structs.replace(block, numerators=block.numerators * keep[:, None])

    assert check_draws(counting(horizon=horizon), "n") > 10
    monkeypatch.setattr(Mechanism, "_compute", stopped)
    result, _ = conformance(Target.stream(counting(horizon=horizon)), Seeds(1), draws=500)
    assert result.verdict == "violation"
    assert "not the sum of its nodes" in result.found
    with pytest.raises(VerificationError, match="not the sum"):
        check_noise_law(counting(horizon=horizon))
    broken = [look for look in looks(counting(horizon=horizon), 20) if look.indices[1] >= 8]
    assert broken
    assert not any(judge([look.kind(drawn(look, 500, Seeds(1).coins()))]).holds for look in broken)


@pytest.mark.parametrize("name", STATISTICS)
def test_one_wrong_number_in_the_last_release_is_found(monkeypatch, name):
    spec = ra.Specification(SCHEMA, {name: STATISTICS[name]}, epsilon=1.0, delta=1e-6, horizon=70)
    assert check_draws(spec, name) > 5
    draw, sample = Mechanism.draw, Mechanism.sample

    def off(numbers, index):
        return (numbers[0] + (index == 70), numbers[1])

    monkeypatch.setattr(Mechanism, "draw", lambda self, index: off(draw(self, index), index))
    monkeypatch.setattr(Mechanism, "sample", lambda self, index, *rest: off(sample(self, index, *rest), index))
    with pytest.raises(VerificationError, match="release 70"):
        check_draws(spec, name)


@pytest.mark.parametrize("horizon", [1, 2, 5, 1000, None])
def test_releases_that_are_looked_at(horizon):
    spec = counting(horizon=horizon)
    noise = spec.mechanism("n", Seeds(1).coins())
    found = looked_at(spec, "n", noise, Seeds(1).random())
    last = horizon or 1 << 20
    assert {i for i in (1, 2, 4, 8, 63, 64, last - 1, last) if 1 <= i <= last} <= {*found}
    pairs = pairs_of(found, Seeds(2).random())
    assert len(pairs) <= 4
    assert pairs[-1][1] == last
    assert all(1 <= one <= two <= last for one, two in pairs)


def shared(spec):
    return conformance(Target.stream(spec), Seeds(1), draws=200)[-1]


def test_every_noise_has_coins_of_its_own():
    spec = ra.Specification(SCHEMA, STATISTICS, epsilon=1.0, delta=1e-6, horizon=20)
    result = shared(spec)
    assert (result.test, result.verdict, result.void) == ("noise: shared names", "passed", False)


def test_noise_that_two_statistics_share_is_a_violation(monkeypatch):
    spec = ra.Specification(SCHEMA, {"a": ra.Count(), "b": ra.Count()}, epsilon=1.0, horizon=20)
    digest = ra.Specification.digest
    monkeypatch.setattr(ra.Specification, "digest", lambda self, name: digest(self, "a"))
    result = shared(spec)
    assert result.verdict == "violation"
    assert any("a, coordinate 0" in line and "b, coordinate 0" in line for line in result.counterexample)


def test_streams_that_reject_erased_subjects_are_looked_at():
    spec = ra.Specification(
        {"who": ra.Text(), "age": ra.Integer(0, 9)}, {"n": ra.Count()}, epsilon=1.0, horizon=8, after_erasure="reject"
    )
    assert conformance(Target.stream(spec), Seeds(1), draws=1000)[0].verdict == "passed"


def test_what_is_said_is_what_was_done():
    target = Target.stream(counting())
    result = conformance(target, Seeds(1), draws=500)[0]
    assert "by the declared sensitivity of its process" in result.tried
    assert "and 20" in result.tried
    (attacked,) = likelihood(target, Seeds(1), runs=500, pairs=3)
    assert "No stream ran" in attacked.tried


def test_few_runs_are_refused():
    with pytest.raises(InputError, match="at least 30 runs"):
        conformance_of(np.zeros((29, 4)), Tree(4), Share("pure", Fraction(1)))


def test_noise_that_is_often_0_conforms_where_nodes_cannot_be_recovered():
    process, share, one = Bridge(20), Share("pure", Fraction(15)), Fraction(1)
    many = Mechanism(process, share, units=(1,) * 8000, norm1=one, norm2_squared=one).under(Seeds(1).coins())
    noise = np.array([(lambda n, d: n / d)(*many.draw(round)) for round in range(1, 21)]).T
    assert min(conformance_of(noise[i::8], process, share) for i in range(8)) > 1e-4
