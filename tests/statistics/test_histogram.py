"""Histograms: every generic check, and what is published."""

import math
from collections import Counter
from datetime import date
from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.coins import integer_cells
from retroact.ledger.definition import trajectory
from retroact.statistics.histogram import HistogramBound
from retroact.statistics.keys import Keys
from retroact.testing import (
    Shape,
    StreamAlgorithm,
    check_oblivious,
    check_sensitivity,
    check_statistic,
    check_twin,
    history,
    uniting_pairs,
    values_of,
)
from support.histogram_streams import PAGES, SCHEMA, pages, specification, stream_of, totals
from support.tiers import in_full

# A budget under which bins with two records pass the threshold and bins with one record sometimes do.
LARGE = {"epsilon": 200.0, "delta": 0.3}


@pytest.fixture
def seen(monkeypatch):
    """How many bins with how many records were shown, and how many were held back."""
    found = Counter()
    right = HistogramBound.release

    def watched(self, totals, noise, at):
        published = right(self, totals, noise, at)
        names = self.keys.decode(totals[0].labels)
        for name, count in zip(names, totals[0].amounts[:, 0].tolist(), strict=True):
            found[name in published.answer.value, count] += 1
        return published

    monkeypatch.setattr(HistogramBound, "release", watched)
    return found


THRESHOLDED = {
    "texts": ra.Histogram("page"),
    "bytes": ra.Histogram("digest"),
    "tuples": ra.Histogram(["page", "age", "day", "member"]),
    "whole numbers": ra.Histogram("age"),
    "dates and categories": ra.Histogram(["day", "country"]),
    "sums": ra.Histogram("page", sum="amount"),
    "sums of whole numbers by tuples": ra.Histogram(["country", "day"], sum="age", where={"age": {"min": 18}}),
    "where": ra.Histogram("page", where={"member": True}),
    "window": ra.Histogram("page", window=3),
    "every": ra.Histogram("page", every=2),
    "tree": ra.Histogram("page", noise="tree"),
    "bridge": ra.Histogram("page", noise="bridge"),
    "adaptive": ra.Histogram("page", adaptive=True, most_bins=1000),
    "mapped": ra.Histogram("page").map(lambda bins: bins.top(2), name="top 2"),
}
GENERIC = {"twin", "state round trip", "sensitivity", "noise law", "oblivious noise", "bounded state"}


# All the generic checks -----------------------------------------------------------------------------------------------


# What is not the histogram's own is checked of other statistics too: here in the slow tier.
COMMON = ("where", "every", "tree", "mapped")
CASES = [
    *(in_full(name, 8) if name in COMMON else (name, 8) for name in THRESHOLDED),
    *(("texts", None), in_full("sums", None), in_full("window", None)),
]


@pytest.mark.parametrize(("name", "horizon"), CASES)
def test_every_histogram_passes_every_check(name, horizon, seen):
    """With a budget so large that bins with a few records are shown: otherwise there would be nothing to compare."""
    ran = check_statistic(
        THRESHOLDED[name], SCHEMA, epsilon=LARGE["epsilon"], deltas=(LARGE["delta"],), pairs=12, draws=1000,
        horizons=(horizon,),
    )  # fmt: skip
    assert set(ran) >= GENERIC
    few = {shown: sum(n for (s, records), n in seen.items() if s == shown and records <= 3) for shown in (True, False)}
    assert few[True] > 40, "bins with one to three records were shown"
    assert few[False] > 40, "and were held back"
    assert seen[True, 2] > 10


DECLARED = {
    "listed": ra.Histogram("page", bins=["a", "", "\0", "nobody comes here"]),
    "listed bytes": ra.Histogram("digest", bins=[b"a", b"\xe9", b""]),
    "listed tuples": ra.Histogram(["country", "age"], bins=[("DE", 0), ["FR", 120], ("DE", 7)]),
    "listed sums": ra.Histogram("day", sum="amount", bins=["2020-01-01", date(2029, 12, 31)], window=3),
    "categories": ra.Histogram("country"),
    "categories and booleans": ra.Histogram(["country", "member"], sum="amount", window=3, every=2),
    "categories, adaptive": ra.Histogram("country", adaptive=True, most_bins=2),
}


@pytest.mark.parametrize("name", DECLARED)
def test_declared_histograms_pass_every_check_without_delta(name):
    deltas = (0.0, 1e-6) if name in ("listed", "categories") else (0.0,)
    assert set(check_statistic(DECLARED[name], SCHEMA, deltas=deltas, pairs=4, draws=1000, horizons=(8,))) >= GENERIC


def test_windows_of_every_second_round(seen):
    """Piece by piece: with few bins shown in few rounds two keys differ in too few of them for the whole check."""
    spec = specification(ra.Histogram("page", sum="amount", window=3, every=2))
    shape = Shape(tuple((page, 1.0) for page in "abc"), updates=8)
    assert check_twin(lambda key: StreamAlgorithm(spec, key), uniting_pairs(shape, Random(4), 12)) > 40
    assert seen[True, 2] > 10
    check_sensitivity(spec, Random(5))
    check_oblivious(spec, Random(6))


def test_the_papers_form_passes_every_check(seen):
    """Its noise would be all zeros at the budget above. Its threshold is 10 here: histories with many records show
    bins on both sides of it."""
    statistic = ra.Histogram("page", noise="paper")
    ran = check_statistic(statistic, SCHEMA, epsilon=20.0, deltas=(0.3,), horizons=(8,), pairs=5, draws=1000)
    assert set(ran) >= GENERIC
    seen.clear()
    spec = specification(statistic, epsilon=20.0)
    shape = Shape(tuple((page, 1.0) for page in "abc"), updates=80)
    assert check_twin(lambda key: StreamAlgorithm(spec, key), uniting_pairs(shape, Random(2), 12), keys=(1,)) > 20
    held_back, shown = (sum(n for (s, _), n in seen.items() if s == which) for which in (False, True))
    assert min(held_back, shown) > 30


@pytest.mark.parametrize(
    ("by", "where", "view"),
    [
        (["page"], {}, {}),
        (["member", "digest", "age", "day", "page", "country", "amount"], {}, {}),
        (["age", "country"], {"member": [True]}, {"window": 2}),
    ],
    ids=["texts", "all fields", "where and window"],
)
def test_totals_are_those_of_a_dictionary(by, where, view):
    """Counts and sums of every bin, after every round of random histories, against the definition."""
    stream_spec = specification(ra.Histogram(by, sum="amount", where=where, **view), schema=SCHEMA)
    shape = Shape(values_of(stream_spec.schema, Random(1), count=9), updates=12)
    compared = 0
    for seed in range(12):
        sequence = history(shape, Random(seed))
        algorithm = StreamAlgorithm(stream_spec, ra.Key.for_testing(1))
        for round, data in enumerate(trajectory(sequence), 1):
            algorithm.release(sequence[round - 1])
            expected = {}
            for point, copies in data.items():
                record = dict(zip(SCHEMA, point.value, strict=True))
                if point.stamp > round - view.get("window", 99) and (not where or record["member"]):
                    key = tuple(record[name] for name in by)
                    count, cents = expected.get(key, (0, 0))
                    expected[key] = count + copies, cents + copies * round_to_cents(record["amount"])
            tally = totals(algorithm.stream)
            names = Keys(by, algorithm.stream.schema).decode(tally.labels)
            found = {name if len(by) > 1 else (name,): tuple(a) for name, a in zip(names, tally.amounts, strict=True)}
            assert found == expected
            compared += len(found)
    assert compared > 100


def round_to_cents(amount):
    return round(amount * 100)


# What is published ----------------------------------------------------------------------------------------------------


def test_counts_sums_and_order():
    stream = ra.Stream(
        PAGES,
        {"h": ra.Histogram("page"), "s": ra.Histogram("page", sum="amount"), "n": ra.Count()},
        epsilon=1.0, delta=1e-6, horizon=100, key=ra.Key.for_testing(1),
    )  # fmt: skip
    counts = {"a": 5000, "b": 900, "poor": 3000, "rare": 3}
    amounts = {"a": 0.25, "b": 400.0, "poor": -8.0, "rare": 500.0}
    for page, count in counts.items():
        stream.add(pages(*[page] * count, amount=amounts[page]))
    for _ in range(3):
        last = stream.close_round()
    by_count, by_sum = last["h"], last["s"]
    assert list(by_count.value) == ["a", "poor", "b"]
    assert list(by_sum.value) == ["b", "a", "poor"], "the count decides what is shown, also for negative sums"
    for page in by_count.value:
        assert abs(by_count.value[page] - counts[page]) < 6 * by_count.standard_error[page]
        truth = counts[page] * amounts[page]
        assert abs(by_sum.value[page] - truth) < 6 * by_sum.standard_error[page]
        low, high = by_sum.interval(0.9999)[page]
        assert low <= truth <= high
    assert by_count.value.top(2) == {page: by_count.value[page] for page in ("a", "poor")}
    assert by_count.value.top(99) == by_count.value
    assert by_count.value.threshold == float(stream._core.engine.running["h"].bound.threshold.at(3))
    assert by_count.to_dict()["value"] == dict(by_count.value)
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ra.InputError, match="k"):
            by_count.value.top(bad)


def test_thresholds_go_by_the_number_of_the_release():
    stream = stream_of(ra.Histogram("page", every=3, noise="schauder"), epsilon=1.0, horizon=None)
    threshold = stream._core.engine.running["h"].bound.threshold
    found = [release.value.threshold for _ in range(9) for release in stream.close_round().values()]
    assert found == [float(threshold.at(release)) for release in (1, 2, 3)]
    assert len(set(found)) == 3


def test_declared_bins_are_all_there_empty_or_not():
    stream = stream_of(ra.Histogram("page", bins=["x", "y", "z"]), epsilon=1.0, delta=0.0)
    stream.add(pages("x", "other", "other"))
    release = stream.close_round()["h"]
    assert sorted(release.value) == ["x", "y", "z"]
    assert list(release.value.values()) == sorted(release.value.values(), reverse=True)
    assert release.value.threshold is None
    with pytest.raises(ra.InputError, match="threshold"):
        release.value.absent_below(0.95)


def test_tuples_are_published_as_they_were_given():
    stream = stream_of(ra.Histogram(["digest", "day", "member", "country", "age"]), schema=SCHEMA)
    record = {"page": "", "digest": b"\x00\xff", "country": "FR", "age": 7, "day": date(2024, 2, 29), "member": True,
              "amount": 0}  # fmt: skip
    stream.add([record] * 9)
    release = stream.close_round()["h"]
    assert list(release.value) == [(b"\x00\xff", date(2024, 2, 29), True, "FR", 7)]
    assert '["AP8=","2024-02-29",true,"FR",7]' in release.to_dict()["value"]


def test_noise_of_bins_is_independent_and_as_wide_as_it_says():
    """4,000 declared bins without a record show nothing but noise: within 5 standard errors."""
    names = [f"p{i}" for i in range(4000)]
    for delta, kurtosis in ((0.0, 6), (1e-6, 3)):
        stream = stream_of(ra.Histogram("page", sum="amount", bins=names), epsilon=1.0, delta=delta)
        for _ in range(3):
            release = stream.close_round()["h"]
        counts, sums = np.array(release.numerators).reshape(-1, 2).T / release.denominator
        assert set(release.standard_error.values()) == {release.standard_error["p0"]}
        for noise, deviation in (
            (sums * 0.01, release.standard_error["p0"]),
            (counts, release.standard_error["p0"] / 500),
        ):
            assert abs(noise.mean()) < 5 * deviation / math.sqrt(4000)
            assert abs((noise / deviation).var() - 1) < 5 * math.sqrt((kurtosis - 1) / 4000)
        assert abs(np.corrcoef(counts, sums)[0, 1]) < 5 / math.sqrt(4000)
        assert len(set(counts.tolist())) > 50


def test_intervals_of_bins_hold_the_truth_as_often_as_they_say():
    """300 keys, 5 bins: within 5 standard errors of 95 % and 50 %."""
    spec = specification(ra.Histogram("page", sum="amount"), epsilon=1.0, delta=1e-6, horizon=20)
    counts = dict(zip("abcde", (400, 500, 700, 1000, 3000), strict=True))
    held = Counter()
    for seed in range(300):
        stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(seed))
        stream.add(pages(*(page for page, count in counts.items() for _ in range(count)), amount=2.5))
        release = stream.close_round()["h"]
        for level in (0.5, 0.95):
            for page, (low, high) in release.interval(level).items():
                held[level] += low <= 2.5 * counts[page] <= high
    for level in (0.5, 0.95):
        assert abs(held[level] / 1500 - level) < 5 * math.sqrt(level * (1 - level) / 1500) + 0.004


@pytest.mark.parametrize("level", [0.6, 0.9, 0.99])
def test_bins_that_are_absent_have_fewer_records(level):
    """2,000 bins with as many records as `absent_below` names: hidden as often as it says, and not far less often."""
    budget = {"epsilon": 0.2, "delta": 0.1, "horizon": 20}
    empty = stream_of(ra.Histogram("page"), **budget)
    records = math.ceil(empty.close_round()["h"].value.absent_below(level))
    stream = stream_of(ra.Histogram("page"), **budget)
    stream.add(pages(*(f"p{i}" for i in range(2000) for _ in range(records))))
    hidden = 1 - len(stream.close_round()["h"].value) / 2000
    error = math.sqrt(level * (1 - level) / 2000)
    assert 0.75 * (1 - level) - 5 * error < hidden < 1 - level + 5 * error
    for bad in (0, 0.5, 1, "high"):
        with pytest.raises(ra.InputError, match="level"):
            empty.close_round()["h"].value.absent_below(bad)


def test_guarantees_say_for_which_streams_they_hold():
    plain = specification(ra.Histogram("page")).guarantee
    assert not plain.adaptive
    assert "oblivious streams only" in plain.text
    bounded = specification(ra.Histogram("page", adaptive=True, most_bins=5000)).guarantee
    assert bounded.adaptive
    assert "(adaptive streams; " in bounded.text
    assert "at most 5,000 bins of page ever hold a record" in bounded.text
    for declared in (ra.Histogram("page", bins=["a"]), ra.Histogram("page", bins=["a"], adaptive=True)):
        assert specification(declared).guarantee.adaptive
        assert "bins" not in specification(declared).guarantee.text
    assert not specification(ra.Histogram("page").map(len)).guarantee.adaptive


def test_notes_of_a_plan():
    def notes(statistic, **budget):
        spec = specification(statistic, **({"epsilon": 1.0, "delta": 1e-6} | budget))
        return " ".join(spec.bounds["h"].notes(10_000))

    known = notes(ra.Histogram("page"), horizon=1023)
    assert "reaches 107.3 (the paper's threshold: 5,77" in known
    assert "all noisy counts of 10,000 bins are within ±100.8 in all 1,023 releases" in known
    assert "release 1,023" in notes(ra.Histogram("page"), horizon=None)
    assert "1,099,511,627,776 releases" in notes(ra.Histogram("page"), horizon=2**40)
    assert "1,099,511,627,776 releases" in notes(ra.Histogram("page", noise="paper"), horizon=2**40)
    assert notes(ra.Histogram("page", bins=["a"]), horizon=8) == ""


def test_the_bound_for_all_bins_and_rounds_at_once_holds():
    """In 95 % of streams all noisy counts of 50 bins are within the bound of the plan in all 20 rounds: 400 streams."""
    for noise in (None, "paper"):
        spec = specification(ra.Histogram("page", noise=noise), epsilon=1.0, delta=1e-6, horizon=20)
        made = spec.mechanism("h", ra.Key.for_testing(1).coins("stream"))
        bound = spec.bounds["h"]._simultaneous(20, 50)
        largest = np.zeros(400)
        for round in range(1, 21):
            drawn, denominator = made.sample(round, integer_cells(400 * 50))
            largest = np.maximum(largest, np.abs(drawn / denominator).reshape(400, 50).max(axis=1))
        assert (largest <= bound).mean() > 0.95 - 5 * math.sqrt(0.05 * 0.95 / 400)
        assert np.median(largest) > bound / 2
