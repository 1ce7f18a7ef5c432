"""Quantiles drawn afresh by the exponential mechanism: private, exact, covered, and chosen by public numbers alone."""

from fractions import Fraction
from itertools import pairwise
from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.errors import InputError, VerificationError
from retroact.oneshot.exponential import step_law
from retroact.statistics.bound import At
from retroact.statistics.exponential_quantiles import LEVEL, ExponentialBound, reaches
from retroact.statistics.quantiles import QuantilesBound
from retroact.statistics.tally import Tally
from retroact.stream.choosing import Choice
from retroact.testing import check_statistic
from retroact.testing.check import caught
from retroact.testing.ranges import Ranges, check_ranges
from retroact.testing.seeds import Seeds
from support.tiers import in_full

AGES = {"age": ra.Integer(0, 100), "kind": ra.Category(["a", "b"])}
WIDE = {"v": ra.Integer(0, 2**63 - 1)}


def spec_of(probabilities=(0.5,), *, schema=None, epsilon=1.0, delta=0.0, horizon=3, noise="exponential", **options):
    schema, by = schema or AGES, options.pop("by", None)
    statistics = {"q": ra.Quantiles(next(iter(schema)), list(probabilities), noise=noise, by=by)}
    return ra.Specification(schema, statistics, epsilon=epsilon, delta=delta, horizon=horizon, **options)


SPECS = {
    "one": spec_of(horizon=1),
    "several, with delta": spec_of([0.1, 0.5, 0.75], delta=1e-6, horizon=8),
    "gaussian": spec_of([0.9], delta=1e-6, law="gaussian"),
    "by group, in a window": spec_of([0, 1], by="kind", horizon=None, window=4),
    "wide": spec_of(schema=WIDE, epsilon=2.0),
}


# Private --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_no_law_changes_by_more_than_is_paid_for(name):
    """By brute force over tables of counts; and the search finds mechanisms that cost more."""
    check, target = Ranges("q", 12), SPECS[name]
    found = check.run(target, Seeds(1))
    assert found.verdict == "passed", found.found
    assert caught(check, target, Seeds(2))[1]


def test_the_bound_is_attained():
    spec = spec_of([0.25])
    found = Ranges("q", 20).run(spec, Seeds(1)).measured["largest range"]
    assert float(found) == pytest.approx(float(spec.bounds["q"].range), rel=1e-5)


def test_half_of_the_sensitivity_is_caught(monkeypatch):
    monkeypatch.setattr(
        ExponentialBound, "moved", staticmethod(lambda p: max(p.numerator, p.denominator - p.numerator))
    )
    assert Ranges("q", 20).run(spec_of([0.25]), Seeds(1)).verdict == "violation"


@pytest.mark.parametrize("planted", ["a probability", "the intervals", "the releases"])
def test_mechanisms_that_are_not_charged_are_caught(planted, monkeypatch):
    divisor = {"a probability": 3, "the intervals": 2, "the releases": 8}[planted]
    charged = ExponentialBound.mechanisms.fget
    monkeypatch.setattr(ExponentialBound, "mechanisms", property(lambda bound: charged(bound) // divisor))
    spec = spec_of([0.1, 0.5, 0.75], horizon=8)
    assert Ranges("q", 12).run(spec, Seeds(1)).verdict == "violation"


def test_the_delta_that_is_spent_is_in_the_guarantee():
    spent, pure = spec_of([0.5], delta=1e-6, horizon=9), spec_of([0.5], horizon=9)
    assert spent.bounds["q"].spends == Fraction(1e-6)
    assert spent.guarantee.delta == 1e-6
    assert spent.measure_of("q").epsilon(1e-6) == pytest.approx(1)
    assert spent.measure_of("q").epsilon(0) == np.inf
    assert pure.bounds["q"].spends == 0
    assert pure.measure_of("q").epsilon(0) == pytest.approx(1)
    assert spent.guarantee.adaptive


def test_what_thresholds_need_is_not_spare():
    statistics = {"q": ra.Quantiles("age", [0.5], noise="exponential"), "h": ra.Histogram("city")}
    spec = ra.Specification({**AGES, "city": ra.Text()}, statistics, epsilon=1.0, delta=1e-6, horizon=9, law="laplace")
    assert spec.bounds["q"].spends == 0
    assert spec.measure.delta(1.0) <= 1e-6


# Exact ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_releases_are_what_their_definition_says(name):
    assert check_ranges(SPECS[name], "q", Random(3)) > 0


def test_a_way_chosen_by_live_data_is_caught(monkeypatch):
    """A release that turns to something else once there are many records is not what its definition says."""
    drawn = ExponentialBound._drawn

    def by_data(self, tally, coins):
        found = drawn(self, tally, coins)
        return found if int(tally.below[-1]) < 1000 else [(low, low, high) for _, low, high in found]

    monkeypatch.setattr(ExponentialBound, "_drawn", by_data)
    with pytest.raises(VerificationError, match="not what its definition says"):
        check_ranges(SPECS["wide"], "q", Random(3))


@pytest.mark.parametrize(
    "domain", [ra.Integer(0, 2**32 - 1), ra.Integer(-(2**62), 2**62), ra.Date("1900-01-01", "2100-01-01")]
)
def test_wide_domains_and_many_records(domain):
    """A million records: the value is within a few ranks, and the interval is short and holds the median."""
    stream = ra.Stream(
        {"v": domain}, {"q": ra.Quantiles("v", [0.5])}, epsilon=1.0, horizon=1, key=ra.Key.for_testing(1)
    )
    span = (domain.upper - domain.lower) // 10**6 or 1
    values = domain.lower + np.arange(10**6) % ((domain.upper - domain.lower) // span) * span
    stream.add({"v": np.array([domain.decode(int(v)) for v in values]) if isinstance(domain, ra.Date) else values})
    release = stream.close_round()["q"]
    found = [int(domain.encode(x, "")) for x in (release.value[0.5], *release.interval(0.95)[0.5])]
    middle = int(np.sort(values)[len(values) // 2])
    assert stream.specification.choice.noise == {"q": "exponential"}
    assert abs(found[0] - middle) < 40 * span
    assert found[1] <= middle <= found[2]
    assert found[2] - found[1] < 200 * span


def test_values_rise_with_the_probability_and_lie_in_their_intervals():
    stream = ra.Stream(
        AGES,
        {"q": ra.Quantiles("age", [0.9, 0.5, 0.6, 0.55], noise="exponential", by="kind")},
        epsilon=0.5,
        horizon=8,
        key=ra.Key.for_testing(2),
    )
    for _ in range(8):
        release = stream.close_round()["q"]
        for group in ("a", "b"):
            value, interval = release.value[group], release.interval(0.95)[group]
            assert [value[p] for p in sorted(value)] == sorted(value.values())
            assert all(interval[p][0] <= value[p] <= interval[p][1] for p in value)
            assert release.standard_error[group][0.5] == (interval[0.5][1] - interval[0.5][0]) / 2
            assert release.interval(0.99)[group][0.5] == (0, 100), "beyond the level of its intervals"


# Covered --------------------------------------------------------------------------------------------------------------


def test_reaches_are_whole_numbers_four_to_an_octave():
    found = reaches(2**64 - 1)
    assert found[-2] < 2**64 - 1 <= found[-1]
    assert found == sorted(set(found))
    assert len(found) == 253
    assert all(4 * after <= 5 * before for before, after in pairwise(found[4:]))
    assert reaches(0) == [0]


TABLES = {
    "none": {},
    "one": {17: 1},
    "ties": {50: 400},
    "two values far apart": {0: 200, 100: 200},
    "just below the middle of a gap": {40: 201, 90: 199},
    "even": dict.fromkeys(range(101), 7),
    "few": {3: 2, 60: 1, 61: 2},
}


@pytest.mark.parametrize("p", [0, in_full(0.01), 0.5, in_full(0.8), 1])
@pytest.mark.parametrize("table", TABLES)
def test_intervals_hold_the_quantile_wherever_their_middle_is(table, p):
    """Exactly, by the law of the reach: the worst case over all values that it can start from."""
    bound = spec_of([p]).bounds["q"]
    counts = TABLES[table]
    words = np.array(list(counts), dtype=np.uint64)
    tally = Tally.of((words,), np.array(list(counts.values()), dtype=np.int64).reshape(-1, 1))
    exact, n = bound.asked[0], sum(counts.values())
    for point in range(101):
        law = step_law(bound.reach_pieces(tally, exact, point), bound.range / bound.moved(exact), len(bound.reaches))
        missed = Fraction(0)
        for reach in law.starts:
            low, high = max(0, point - reach), min(100, point + reach)
            under = sum(count for value, count in counts.items() if value < low)
            upto = sum(count for value, count in counts.items() if value <= high)
            if (low > 0 and under > exact * n) or (high < 100 and upto < exact * n):
                missed += law.probability(reach)
        assert missed <= 1 - LEVEL


# Chosen ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("horizon", "fresh"), [(1, True), (3, True), (365, False), (4095, False), (None, False)])
def test_it_is_the_default_where_releases_are_few(horizon, fresh):
    spec = spec_of(schema={"v": ra.Integer(0, 2**32 - 1)}, noise=None, delta=1e-6, horizon=horizon)
    assert isinstance(spec.bounds["q"], ExponentialBound) == fresh


def test_the_choice_counts_probabilities_domain_and_releases():
    def fresh(**options):
        schema = {"v": ra.Integer(0, 2 ** options.pop("bits", 32) - 1)}
        return isinstance(spec_of(schema=schema, noise=None, delta=1e-6, **options).bounds["q"], ExponentialBound)

    assert fresh(horizon=5)
    assert not fresh(horizon=5, probabilities=[0.25, 0.5, 0.75])
    assert fresh(horizon=12, bits=63)
    assert not fresh(horizon=12, bits=7)
    assert fresh(horizon=100, window=2), "a record is in few releases"


def test_the_data_and_the_records_of_a_plan_choose_nothing():
    plans, digests = [], set()
    for count in (10, 1_000_000):
        stream = ra.Stream(
            {"v": ra.Integer(0, 2**32 - 1)},
            {"q": ra.Quantiles("v", [0.5])},
            epsilon=1.0,
            delta=1e-6,
            horizon=12,
            key=ra.Key.for_testing(1),
        )
        stream.add({"v": np.arange(count) * 4096})
        stream.close_round()
        plans.append(stream.plan(records=count))
        assert plans[-1]["q"].noise == stream.plan()["q"].noise
        digests.add(stream.specification.digest("q"))
    assert len(digests) == 1
    assert plans[0]["q"].noise == plans[1]["q"].noise


def test_the_public_number_of_records_may_choose():
    few, many = (
        spec_of(schema={"v": ra.Integer(0, 2**32 - 1)}, noise=None, delta=1e-6, horizon=12, records=records)
        for records in (100, 10**9)
    )
    assert not isinstance(few.bounds["q"], ExponentialBound)
    assert isinstance(many.bounds["q"], ExponentialBound)


def test_a_quantile_with_few_records_beyond_it_is_left_to_the_tree():
    """Its intervals reach equally far to both sides: one that has to reach to the largest values holds most others."""
    schema, rng = {"v": ra.Integer(0, 2**32 - 1)}, np.random.default_rng(1)
    values = np.sort(np.minimum(rng.lognormal(18, 1, 3_000), 2**32 - 1).astype(np.uint64))
    data, ranks = Tally((values,), np.ones((len(values), 1), dtype=np.int64)), {}
    for noise in ("exponential", None):
        spec = spec_of([0.99], schema=schema, noise=noise, delta=1e-6, horizon=1, records=len(values))
        drawn = [
            spec.bounds["q"].release([data], spec.mechanism("q", ra.Key.for_testing(seed).coins()), At(1, 1))
            for seed in range(5)
        ]
        ends = [one.answer.interval(0.95)[0.99] for one in drawn]
        ranks[noise] = np.mean([np.subtract(*np.searchsorted(values, (high, low))) / 2 for low, high in ends])
    assert not isinstance(spec.bounds["q"], ExponentialBound)
    assert ranks["exponential"] > 10 * ranks[None]
    many = spec_of([0.99], schema=schema, noise=None, delta=1e-6, horizon=1, records=100_000)
    assert isinstance(many.bounds["q"], ExponentialBound)


def test_a_stream_that_was_given_the_tree_keeps_it():
    fresh = spec_of(noise=None, horizon=1)
    assert fresh.choice == Choice("laplace", {"q": "exponential"})
    kept = fresh.replace(choice=Choice("laplace", {"q": "fresh"}))
    assert type(kept.bounds["q"]) is QuantilesBound
    assert kept.digest("q") != fresh.digest("q")


def test_what_it_cannot_answer_is_refused_and_left_to_the_tree():
    for options in ({"cdf": [40]}, {"counts": [(1, 2)]}):
        assert (
            type(
                ra.Specification(AGES, {"q": ra.Quantiles("age", [0.5], **options)}, epsilon=1.0, horizon=1).bounds["q"]
            )
            is QuantilesBound
        )
        with pytest.raises(InputError, match="without cdf and counts"):
            ra.Specification(
                AGES, {"q": ra.Quantiles("age", [0.5], noise="exponential", **options)}, epsilon=1.0, horizon=1
            )
    with pytest.raises(InputError, match="needs a horizon or a window"):
        spec_of(horizon=None)
    with pytest.raises(InputError, match="no proven cost over the revised past"):
        ra.Restated(ra.Quantiles("age", [0.5], noise="exponential"), [1])
    with pytest.raises(InputError, match=r"schauder, .*, exponential, got 'median'"):
        ra.Quantiles("age", noise="median")
    past = ra.Specification(AGES, {"q": ra.Restated(ra.Quantiles("age", [0.5]), [0])}, epsilon=1.0, horizon=1)
    assert past.choice.noise["q"] != "exponential"


def test_a_mapped_answer_is_charged_like_the_answer():
    mapped = ra.Quantiles("age", [0.5], noise="exponential").map(dict, name="plain")
    spec = ra.Specification(AGES, {"q": mapped}, epsilon=1.0, delta=1e-6, horizon=9)
    assert spec.measure_of("q").epsilon(0) == np.inf
    assert Ranges("q", 5).run(spec, Seeds(1)).verdict == "passed"


@pytest.mark.parametrize("delta", [1e-6, in_full(0.0)])
def test_generic_checks(delta):
    statistic = ra.Quantiles("age", [0.25, 0.5], noise="exponential", by="kind")
    ran = check_statistic(statistic, AGES, epsilon=2.0, deltas=(delta,), horizons=(8,), pairs=4, draws=300)
    assert {"twin", "gathering", "sensitivity", "published numbers"} <= set(ran)


def test_a_plan_is_about_what_releases_show():
    """Half an interval, in ranks, for evenly spread records, in each of a few streams."""
    spec = spec_of(schema={"v": ra.Integer(0, 2**32 - 1)}, noise=None, delta=1e-6, horizon=3)
    planned, halves = ra.plan(spec)["q"].half_width, []
    for seed in range(40):
        stream = ra.Stream(
            spec.schema, spec.statistics, epsilon=1.0, delta=1e-6, horizon=3, key=ra.Key.for_testing(seed)
        )
        stream.add({"v": np.arange(10_000) * (2**32 // 10_000) + seed})
        low, high = stream.close_round()["q"].interval(0.95)[0.5]
        halves.append((high - low) / 2 / (2**32 // 10_000))
    assert np.mean(halves) == pytest.approx(planned, rel=0.1)
