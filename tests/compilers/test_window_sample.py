"""Sampling with expiry: the same bytes for the same live records, whatever came before."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import retroact as ra
from retroact.coins import Key
from retroact.compilers import Gate, WindowSample
from retroact.compilers.live_records import threshold
from retroact.errors import InputError, VerificationError
from retroact.oneshot import (
    BOTTOM,
    BlockCDF,
    InteriorPoint,
    Median,
    Quantile,
    QuantilePoints,
)
from retroact.paper import TreeLog
from retroact.statistics import View
from retroact.stream import Specification
from retroact.testing import check_statistic
from support.in_bound import Planted
from support.window_samples import AGES, FORMS, Values, live_of, seen_by, stream_of

RECORDS = {"who": ra.Text(), "age": ra.Integer(0, 120)}


@pytest.mark.parametrize("form", FORMS)
def test_generic_checks(form):
    """0 differing bytes over uniting histories with deletions, duplicates, late records and expiry together."""
    of = Values() if form == "gated poisson" else Median("age")
    sample = WindowSample(of, window=3, **FORMS[form])
    # A gate that is quiet enough to open for a handful of records.
    epsilon = 2.0 if sample.gate is None else 151.5
    ran = check_statistic(
        sample,
        AGES,
        epsilon=epsilon,
        pairs=12,
        draws=600,
        updates=6 if sample.gate is None else 10,
        late=not sample.persistent,
        deltas=(1e-4,),
        horizons=(8,),
    )
    assert {"twin", "sensitivity", "state round trip", "batch boundaries"} <= set(ran)


@pytest.mark.parametrize(
    ("of", "epsilon", "options"),
    [
        (Median("age"), 4.0, {"size": 2, "accounting": "paper"}),
        (Quantile("age", 0.9), 3.0, {"rate": 0.5, "where": {"age": {"min": 10}}}),
        (QuantilePoints("age", [0.25, 0.5, 0.75]), 40.0, {}),
        (BlockCDF("age", 12, delta=0.01, epsilon=3.0), 40.0, {}),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_generic_checks_of_other_algorithms(of, epsilon, options):
    sample = WindowSample(of, window=3, **options)
    check_statistic(sample, AGES, epsilon=epsilon, pairs=4, draws=0, updates=6, deltas=(0.2,), horizons=(8,))


class Remembers(Planted, WindowSample):
    class InBound:
        def gather(self, rows, weights):
            return super().gather(rows, np.maximum(weights, 0))


class Counts(Planted, WindowSample):
    runs = 0

    class InBound:
        def release(self, totals, noise, at):
            Counts.runs += 1
            return super().release(totals, noise.under(noise.coins.branch(Counts.runs)), at)


class LivesLonger(WindowSample):
    def bind(self, grant):
        bound = super().bind(grant)
        bound.views = (View(window=grant.window + 2),)
        return bound


class ShowsTheCount(Planted, WindowSample):
    class InBound:
        def _answer(self, live, *more):
            return live.count


@pytest.mark.parametrize("broken", [Remembers, Counts, LivesLonger, ShowsTheCount])
def test_the_generic_checks_see_a_broken_sample(broken):
    with pytest.raises(VerificationError):
        check_statistic(
            broken(Median("age"), window=3, size=2),
            AGES, epsilon=4.0, pairs=12, draws=0, updates=6, deltas=(1e-4,), horizons=(8,),
        )  # fmt: skip


@pytest.mark.parametrize("form", ["fresh", "coins"])
def test_generic_checks_without_horizon_and_delta_and_every_other_round(form):
    sample = WindowSample(Median("age"), window=3, every=2, **FORMS[form])
    check_statistic(
        sample,
        AGES,
        epsilon=4.0,
        pairs=8,
        draws=0,
        updates=5,
        late=not sample.persistent,
        deltas=(0.0,),
        horizons=(None,),
    )


@pytest.mark.parametrize("form", ["fresh", "coins"])
def test_what_an_algorithm_sees_is_a_function_of_the_live_records_of_all_fields(form):
    class Everything(Values):
        def reads(self, schema):
            return tuple(schema.fields)

        def at(self, epsilon):
            return Everything(epsilon)

        def run(self, rows, schema, coins):
            return (
                sorted(zip(*(column.tolist() for column in rows.columns.values()), strict=True)) if rows.count else []
            )

    sample = WindowSample(Everything(), window=3, **FORMS[form])
    # It adds no noise: keys show only where more records are live than a sample has, so rounds are full.
    check_statistic(
        sample, RECORDS, epsilon=4.0, pairs=8, draws=0, updates=16, late=False, deltas=(1e-4,), horizons=(8,)
    )


def test_the_samples_of_a_stream_are_what_their_names_say():
    """Against a model: live multisets, uniform subsets, expiry."""
    seen = Counter()
    for seed in range(400):
        stream = stream_of(WindowSample(Values(), window=2, size=2), seed=seed)
        for ages in ([1], [2, 2], [3]):
            stream.add([{"age": age} for age in ages])
            last = stream.close_round()
        stream.delete({"age": 2}, stamp=2)
        seen[tuple(last["it"].value)] += 1
    assert set(seen) == {(2, 2), (2, 3)}
    assert abs(seen[2, 3] / 400 - 2 / 3) < 5 * math.sqrt(2 / 9 / 400)


def test_fresh_subsets_are_uniform_and_independent_from_round_to_round():
    sample, live = WindowSample(Values(), window=9, size=2), live_of([10, 20, 30, 40])
    samples = [tuple(sorted(seen_by(sample, live, r).columns["age"].tolist())) for r in range(3000)]
    counts = Counter(samples)
    assert set(counts) == set(combinations([10, 20, 30, 40], 2))
    assert sum((count - 500) ** 2 / 500 for count in counts.values()) < 40  # 5 degrees: 1e-7
    pairs = Counter(zip(samples[::2], samples[1::2], strict=True))
    assert sum((pairs[a, b] - 1500 / 36) ** 2 / (1500 / 36) for a in counts for b in counts) < 95  # 35 degrees: 1e-7


def test_poisson_samples_have_their_rate_and_independent_copies():
    sample, live = WindowSample(Values(), window=9, rate=0.3), live_of([1, 1, 2, 3])
    samples = [Counter(seen_by(sample, live, r).columns["age"].tolist()) for r in range(4000)]
    sizes = Counter(one.total() for one in samples)
    expected = [math.comb(4, k) * 0.3**k * 0.7 ** (4 - k) * 4000 for k in range(5)]
    assert sum((sizes[k] - expected[k]) ** 2 / expected[k] for k in range(5)) < 40
    both = sum(1 for one in samples if one[2] and one[3]) / 4000
    assert abs(both - 0.09) < 5 * math.sqrt(0.09 * 0.91 / 4000)


def test_a_rate_is_never_rounded_up():
    bound = threshold(Fraction(1, 3), 32)
    assert Fraction(bound, 1 << 32) <= Fraction(1, 3) < Fraction(bound + 1, 1 << 32)
    assert seen_by(WindowSample(Values(), window=9, rate=1), live_of([5, 6]), 1).count == 2


def test_persistent_samples_change_only_with_the_window():
    stream = stream_of(WindowSample(Values(), window=50, size=3, persistent=True))
    stream.add([{"age": age} for age in range(20)])
    first = stream.close_round()["it"].value
    assert [stream.close_round()["it"].value for _ in range(5)] == [first] * 5
    stream.delete({"age": first[0]}, stamp=1)
    assert len(set(first) - set(stream.close_round()["it"].value)) == 1
    fresh = stream_of(WindowSample(Values(), window=50, size=3))
    fresh.add([{"age": age} for age in range(20)])
    assert len({tuple(fresh.close_round()["it"].value) for _ in range(6)}) > 1


def test_a_sample_larger_than_the_window_is_the_window():
    stream = stream_of(WindowSample(Values(), window=5, size=100))
    assert stream.close_round()["it"].value == []
    stream.add([{"age": 3}, {"age": 3}, {"age": 9}])
    assert stream.close_round()["it"].value == [3, 3, 9]


def test_where_chooses_before_anything_is_drawn():
    stream = stream_of(WindowSample(Values(), window=5, where={"age": {"min": 50, "max": 120}}))
    stream.add([{"age": 3}, {"age": 60}])
    assert stream.close_round()["it"].value == [60]


# The gate -------------------------------------------------------------------------------------------------------------


def test_a_gate_answers_bottom_until_there_is_enough():
    sample = WindowSample(InteriorPoint("age"), window=8, size=50, gate=400)
    stream = stream_of(sample, horizon=16)
    empty = stream.close_round()["it"]
    assert empty.value is BOTTOM
    assert empty.to_dict()["value"] == "⊥"
    assert empty.interval(0.95) is None
    stream.add([{"age": 30 + i % 20} for i in range(4000)])
    full = stream.close_round()["it"].value
    assert 30 <= full <= 49
    assert full is not BOTTOM


@pytest.mark.parametrize("every", [1, 2])
def test_a_gate_decides_by_the_noise_of_its_own_release(every):
    sample = WindowSample(Median("age"), window=60, rate=0.5, gate=100, every=every)
    spec = Specification(AGES, {"it": sample}, epsilon=1.0, delta=1e-6, horizon=60)
    stream = ra.Stream.from_specification(spec, key=Key.for_testing(1))
    stream.add({"age": [7] * 100})
    answered = [release["it"].value is not BOTTOM for release in (stream.close_round() for _ in range(60)) if release]
    noise, gate = spec.mechanism("it", Key.for_testing(1).coins("stream")), spec.bounds["it"]
    assert answered == [gate.passed(noise, 100, release) for release in range(1, 60 // every + 1)]
    assert len(set(answered)) == 2


@pytest.mark.parametrize("of", [InteriorPoint("x"), Median("x"), TreeLog("x", delta=1e-9)], ids=lambda of: of.kind)
def test_the_corollary_end_to_end(of):
    """Points of a window of two neighbouring values among 2^32, the hardest data: within them where there is enough,
    ⊥ where there is not."""
    schema = {"x": ra.Integer(0, 2**32 - 1)}
    sample = WindowSample(of, window=4, size=1500, gate=20_000)
    stream = ra.Stream(schema, {"it": sample}, epsilon=2.0, delta=1e-6, horizon=64, key=Key.for_testing(5))
    points = []
    for round in range(1, 33):
        full = 5 <= round <= 24
        stream.add({"x": np.repeat([123_456, 123_457], 4000 if full else 40)})
        points.append(stream.close_round()["it"].value)
    assert all(value is BOTTOM for value in points[:4] + points[-3:])
    inside = points[9:24]
    assert sum(value in (123_456, 123_457) for value in inside) >= 13


def test_too_few_records_pass_a_gate_no_more_often_than_is_paid_for():
    """With a failure probability that can be seen: over all releases, n live records pass with at most that."""
    from retroact.compilers.gate import Calibrated
    from retroact.noise import Mechanism
    from retroact.noise.default_process import quietest

    releases, failure = 32, Fraction(1, 5)
    calibrated = Calibrated(Gate(100), Fraction(1), Fraction(1, 1000), failure)
    found = calibrated.gate.candidates(releases, 8, "it")
    process = found[quietest(found, calibrated.share.kind, releases)]
    made = Mechanism(process, calibrated.share, units=(1,), norm1=Fraction(1), norm2_squared=Fraction(1))
    limit, failed = calibrated.limit(made, releases, "it"), 0
    for seed in range(1500):
        noise = made.under(Key.for_testing(seed).coins("gate"))
        drawn = {release: noise.draw(release) for release in range(1, releases + 1)}
        failed += any(100 + int(shift[0]) / over >= limit.at(release) for release, (shift, over) in drawn.items())
    assert failed / 1500 < 0.2 + 4 * math.sqrt(0.16 / 1500)
    assert failed > 30, "the margin is far too wide, or the test sees nothing"


def test_the_papers_gate_asks_for_as_many_records_as_its_proof_needs():
    few = WindowSample(Median("age"), window=8, size=50, gate=Gate(1000, noise="paper"))
    with pytest.raises(InputError, match="as the lemma asks"):
        stream_of(few, horizon=1024)
    many = WindowSample(Median("age"), window=8, size=50, gate=Gate(40_000, noise="paper"))
    stream = stream_of(many, horizon=1024)
    assert stream.close_round()["it"].value is BOTTOM
