"""Quantiles: what is published, how far it errs, and what is refused."""

import math
from datetime import UTC, date, datetime
from itertools import product
from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.coins import DiscreteLaplace
from retroact.noise import Oblivious
from retroact.statistics import Statistic, quantile_answer
from retroact.statistics.quantiles import LEVELS
from retroact.statistics.value_tree import ValueTree, nodes_of
from support.quantile_streams import BOTH, HIGHEST, LOWEST, PROBABILITIES, answer, specification, tally, totals_of
from support.tiers import in_full, in_turns

# What is published ----------------------------------------------------------------------------------------------------


@BOTH
def test_everything_is_monotone_and_within_bounds(delta):
    """Whatever the noise does: many keys, few records and many, probabilities 0 and 1, a domain of 2^k + something."""
    random = np.random.default_rng(4)
    points = [-5, -4, 0, 17, 18, 40, 63, 95]
    for size in (1, 4, 30, 300, 3000):
        quantiles = ra.Quantiles("v", [*PROBABILITIES, 0.3, 0.301, 0.7], cdf=points)
        spec = specification(quantiles, ra.Integer(-5, 95), delta=delta, epsilon=4.0)
        totals = totals_of(spec, random.integers(-5, random.integers(-4, 96), size))
        for seed in range(15):
            published = answer(spec, totals, seed, index=1 + seed)
            value, found = published.value, [published.value[p] for p in sorted(published.value)]
            if found[0] is None:
                assert set(found) == {None}
                assert set(value.cdf.values()) == {None}
                continue
            assert all(isinstance(v, int) and -5 <= v <= 95 for v in found)
            assert found == sorted(found)
            heights = [value.cdf[point] for point in points]
            assert heights == sorted(heights)
            assert all(0 <= height <= 1 for height in heights)
            wider = [published.interval(level) for level in LEVELS]
            for p in value:
                lows, highs = zip(*(interval[p] for interval in wider), strict=True)
                assert lows[-1] >= -5
                assert highs[-1] <= 95
                assert [*lows[::-1], value[p], *highs] == sorted([*lows[::-1], value[p], *highs])
            for level in (0.5, 0.95):
                intervals = value.cdf_interval(level)
                assert all(0 <= low <= value.cdf[point] <= high <= 1 for point, (low, high) in intervals.items())


@BOTH
def test_descents_share_their_way_and_keep_their_order(delta):
    """Any ranks, far outside the data too: a larger one never ends lower."""
    random = Random(5)
    for bits in (1, 3, 10, 64):
        field = ra.Integer(LOWEST, LOWEST + (1 << bits) - 1)
        spec = specification(ra.Quantiles("v"), field, delta=delta)
        noise = spec.mechanism("q", ra.Key.for_testing(bits).coins("stream"))
        for index, size in enumerate((0, 3, 100, 2000), 1):
            tree = ValueTree(tally([random.randrange(1 << bits) for _ in range(size)]), bits, noise, index)
            scale = tree.denominator * max(size, 100)
            targets = sorted(random.randint(-scale, 2 * scale) for _ in range(60))
            together = tree.descend(targets)
            assert together == sorted(together)
            assert all(0 <= offset < 1 << bits for offset in together)
            fresh = ValueTree(tree._tally, bits, noise, index)
            assert [fresh.descend([target])[0] for target in reversed(targets)] == together[::-1]


def test_too_few_records():
    """Where the count cannot be told from zero there is no quantile, and the interval is what was declared."""
    field = ra.Date("2020-01-01", "2020-12-31")
    quantiles = ra.Quantiles("v", [0.5, 1], cdf=["2020-06-30"], counts=[("2020-01-01", "2020-06-30")])
    spec = specification(quantiles, field, epsilon=0.1)
    stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(1))
    stream.add({"v": ["2020-05-05"] * 3})
    release = stream.close_round()["q"]
    assert dict(release.value) == {0.5: None, 1: None}
    bounds = (date(2020, 1, 1), date(2020, 12, 31))
    assert release.interval(0.5) == release.interval(0.9999) == {0.5: bounds, 1: bounds}
    assert release.value.cdf == {"2020-06-30": None}
    assert release.value.cdf_interval() == {"2020-06-30": (0.0, 1.0)}
    low, high = release.value.counts_interval(0.999)["2020-01-01", "2020-06-30"]
    assert low < 3 < high
    assert release.to_dict()["value"]["quantiles"] == {"0.5": None, "1": None}


def test_values_come_in_the_type_of_the_field():
    expected = {
        ra.Integer(0, 9): ([7] * 500, 7, int),
        ra.Number(0, 9, step=0.5): ([6.5] * 500, 6.5, float),
        ra.Date("2020-01-01", "2020-01-31"): (["2020-01-07"] * 500, date(2020, 1, 7), date),
        ra.Timestamp("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z", step=3600): (
            ["2020-01-01T05:00:00Z"] * 500, datetime(2020, 1, 1, 5, tzinfo=UTC), datetime,
        ),
    }  # fmt: skip
    for field, (values, median, kind) in expected.items():
        spec = specification(ra.Quantiles("v", [0.5]), field, epsilon=20.0)
        published = answer(spec, totals_of(spec, values))
        assert published.value[0.5] == median
        assert type(published.value[0.5]) is kind
        assert published.interval(0.95)[0.5] == (median, median)


def test_windows_late_records_conditions_and_every():
    schema = {"v": ra.Integer(0, 1000), "member": ra.Boolean()}
    statistics = {
        "all": ra.Quantiles("v", [0.5]),
        "window": ra.Quantiles("v", [0.5], window=2),
        "members": ra.Quantiles("v", [0.5], where={"member": True}),
        "every": ra.Quantiles("v", [0.5], every=3),
    }
    stream = ra.Stream(schema, statistics, epsilon=400.0, horizon=6, key=ra.Key.for_testing(1))
    medians = []
    for round in range(1, 7):
        stream.add({"v": [100 * round] * 500, "member": [round == 1] * 500})
        if round == 5:
            stream.add({"v": [900] * 3000, "member": [False] * 3000}, stamp=[4] * 3000)
        closed = stream.close_round()
        medians.append({name: release.value[0.5] for name, release in closed.items()})
    assert [m["members"] for m in medians] == [100] * 6
    # At the border of two values either is a median.
    assert [m["all"] // 100 for m in (medians[0], medians[2], medians[4])] == [1, 2, 9]
    assert medians[4]["window"] == 900
    assert medians[5]["window"] in range(500, 601)
    assert [("every" in m) for m in medians] == [False, False, True, False, False, True]


def test_a_specification_and_back():
    quantiles = ra.Quantiles(
        "v", [0.5, np.float64(0.9)], cdf=[np.int64(3)], counts=[(0, np.int64(4))], window=5, every=2
    )
    spec = quantiles.spec()
    assert Statistic.from_spec(spec, "q").spec() == spec
    assert "np." not in repr(quantiles)
    plan = ra.plan(specification(quantiles, ra.Integer(0, 10)))
    assert "in ranks (records), over 16 values" in str(plan)


KEYS = 300
# Four standard errors of a share of 300 below 95 %.
LEAST = 0.95 - 4 * math.sqrt(0.95 * 0.05 / KEYS)


def clumps(random):
    """Half of the records on five values, the rest in a narrow band; most of the domain is empty."""
    few = random.choice([0, 3, 20_000, 20_001, 65_535], 1500)
    return np.concatenate([few, 40_000 + random.integers(0, 50, 1500)])


DATA = {
    "smooth": lambda random: (random.random(3000) ** 1.6 * 65_535).astype(int),
    "ties": lambda random: random.choice([11, 12, 30_000, 43_690, 60_000], 3000, p=[0.1, 0.2, 0.2, 0.1, 0.4]),
    "clumps": clumps,
}
COVERED = [0.05, 0.25, 0.5, 0.65, 0.9]


# Errors and intervals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "delta"), in_turns(DATA, (0.0, 1e-6)))
def test_intervals_hold_the_truth(data, delta):
    """Quantiles, fractions and counts at 95 %; counts, whose law is exact, also at 50 % and not more often."""
    values = np.sort(DATA[data](np.random.default_rng(6)))
    points, spans = [20_000, 32_767, 43_690], [(0, 32_767), (20_001, 43_690)]
    spec = specification(ra.Quantiles("v", COVERED, cdf=points, counts=spans), ra.Integer(0, 65_535), delta=delta)
    totals = totals_of(spec, values)
    # Where p n falls between two records, every value from one to the other is a quantile.
    quantiles = {p: (values[math.ceil(p * 3000) - 1], values[math.floor(p * 3000)]) for p in COVERED}
    fractions = {point: (values <= point).mean() for point in points}
    counts = {(a, b): ((values >= a) & (values <= b)).sum() for a, b in spans}
    hits = {what: np.zeros(len(truth)) for what, truth in (("q", quantiles), ("f", fractions), ("c", counts))}
    half = np.zeros(len(counts))
    for seed in range(KEYS):
        published = answer(spec, totals, seed)
        value, found = published.value, published.interval(0.95)
        hits["q"] += [found[p][0] <= high and low <= found[p][1] for p, (low, high) in quantiles.items()]
        known, inner = value.counts_interval(0.95), value.counts_interval(0.5)
        hits["c"] += [known[span][0] <= truth <= known[span][1] for span, truth in counts.items()]
        half += [inner[span][0] <= truth <= inner[span][1] for span, truth in counts.items()]
        heights = value.cdf_interval(0.95)
        hits["f"] += [heights[point][0] <= truth <= heights[point][1] for point, truth in fractions.items()]
    for what, hit in hits.items():
        assert (hit / KEYS >= LEAST).all(), (what, hit / KEYS)
    assert (abs(half / KEYS - 0.5) < 4 * 0.5 / math.sqrt(KEYS)).all(), half / KEYS


@pytest.mark.parametrize("delta", [0.0, in_full(1e-6)])
def test_a_fraction_that_was_averaged_keeps_its_interval(delta):
    """The middle of the domain has little noise; the points above it, with as many records below, have much."""
    middle, noisy = -1, [int(f * 2**63) for f in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)]
    spec = specification(ra.Quantiles("v", [0.5], cdf=[middle, *noisy]), ra.Integer(LOWEST, HIGHEST), delta=delta)
    totals = totals_of(spec, [-(2**62)] * 19_000 + [HIGHEST] * 1000)
    averaged = held = 0
    for seed in range(KEYS):
        value = answer(spec, totals, seed).value
        averaged += value.cdf[middle] == value.cdf[noisy[0]]
        low, high = value.cdf_interval(0.95)[middle]
        held += low <= 0.95 <= high
    assert averaged > 0.2 * KEYS
    assert held >= LEAST * KEYS


@BOTH
def test_the_standard_error_is_in_the_unit_of_the_value(delta):
    """Half the width of the 68.3 % interval, in bytes too, and about the deviation that is seen."""
    random = np.random.default_rng(7)
    spec = specification(ra.Quantiles("v", [0.25, 0.5, 0.9]), ra.Number(0, 655.35, step=0.01), delta=delta)
    values = np.round(random.random(20_000) ** 1.6 * 655.35, 2)
    totals = totals_of(spec, values)
    exact, errors, claimed = np.quantile(values, [0.25, 0.5, 0.9]), [], []
    for seed in range(150):
        published = answer(spec, totals, seed)
        wide = published.interval(0.683)
        assert published.standard_error == {p: pytest.approx((high - low) / 2) for p, (low, high) in wide.items()}
        errors.append(np.array(list(published.value.values())) - exact)
        claimed.append(list(published.standard_error.values()))
    ratio = np.sqrt((np.array(errors) ** 2).mean(axis=0)) / np.mean(claimed, axis=0)
    assert ((ratio > 0.6) & (ratio < 1.1)).all(), ratio


MONTH = ("2020-01-01T00:00:00Z", "2020-02-01T00:00:00Z")


@pytest.mark.parametrize(
    ("field", "values", "unit"),
    [
        (ra.Date("2020-01-01", "2029-12-31"), ["2020-06-01", "2029-01-01"], 86_400),
        (ra.Timestamp(*MONTH, step=60), ["2020-01-03T00:00:00Z", "2020-01-30T00:00:00Z"], 1),
    ],
)
def test_the_standard_error_of_a_date_is_in_days_and_of_a_moment_in_seconds(field, values, unit):
    spec = specification(ra.Quantiles("v", [0.5]), field, epsilon=0.5)
    stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(1))
    stream.add({"v": values * 2000})
    release = stream.close_round()["q"]
    low, high = release.interval(0.683)[0.5]
    seconds = (high - low).total_seconds()
    assert seconds > 0
    assert release.standard_error[0.5] == seconds / 2 / unit
    assert str(release.standard_error[0.5]).encode() in release.encode()


class Recorded:
    """Noise that makes these noisy nodes of whatever is there."""

    def __init__(self, noise, index, nodes, exact):
        self.noise, self.nodes, self.exact = noise, nodes, exact

    def __getattr__(self, name):
        return getattr(self.noise, name)

    def sample(self, index, cells):
        own, denominator = self.noise.sample(index, cells)
        wanted = [self.nodes.get((int(a), int(b))) for a, b in cells]
        there = [self.exact.get(((int(a), int(b)), 0), 0) for a, b in cells]
        noise = [o if w is None else w - t * denominator for o, w, t in zip(own[:, 0], wanted, there, strict=True)]
        return np.array(noise, dtype=object)[:, None], denominator


@BOTH
def test_intervals_are_functions_of_the_noisy_totals_alone(delta, monkeypatch):
    """The same noisy nodes with other exact ones below them: the same answer, intervals and errors."""
    points, spans = [200, 500], [(0, 300)]
    spec = specification(ra.Quantiles("v", [0.1, 0.5, 0.9], cdf=points, counts=spans), ra.Integer(0, 1023), delta=delta)
    random, drawn = np.random.default_rng(9), []
    right = ValueTree._draw
    monkeypatch.setattr(ValueTree, "_draw", lambda tree, nodes: (right(tree, nodes), drawn.append(tree)))
    first, other = (totals_of(spec, random.integers(low, 1024, 3000)) for low in (0, 700))
    noise = spec.mechanism("q", ra.Key.for_testing(1).coins("stream"))
    one = answer(spec, first, noise=noise)
    nodes = drawn[0]._known
    assert nodes_of(first, 10) != nodes_of(other, 10)
    two = answer(spec, other, noise=Recorded(noise, 37, nodes, nodes_of(other, 10)))
    assert one.value == two.value
    assert one.standard_error == two.standard_error
    assert (one.value.cdf, one.value.counts) == (two.value.cdf, two.value.counts)
    for level in LEVELS:
        assert one.interval(level) == two.interval(level)
        assert one.interval(level).cdf == two.interval(level).cdf
        assert one.interval(level).counts == two.interval(level).counts


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"probabilities": [1.5]}, "probabilities"), ({"probabilities": [-0.1]}, "probabilities"),
        ({"probabilities": [math.nan]}, "probabilities"), ({"probabilities": [True]}, "probabilities"),
        ({"probabilities": ["0.5"]}, "probabilities"), ({"probabilities": "0.5"}, "probabilities"),
        ({"probabilities": 0.5}, "probabilities"), ({"probabilities": [0.5, 0.5]}, "probabilities"),
        ({"probabilities": []}, "probabilities"), ({"probabilities": [], "cdf": [], "counts": []}, "probabilities"),
        ({"cdf": 5}, "cdf"), ({"cdf": None}, "cdf"), ({"cdf": "17"}, "cdf"),
        ({"counts": 5}, "counts"), ({"counts": [5]}, "counts"), ({"counts": [(1, 2, 3)]}, "counts"),
        ({"counts": ["ab"]}, "counts"),
        ({"window": 0}, "window"), ({"every": -1}, "every"), ({"noise": "white"}, "noise"),
    ],
)  # fmt: skip
def test_bad_arguments(options, place):
    with pytest.raises(ra.InputError, match=f"at {place}$"):
        ra.Quantiles("age", **options)


@pytest.mark.parametrize(
    ("statistic", "place"),
    [
        (ra.Quantiles("height"), "field"), (ra.Quantiles("name"), "field"), (ra.Quantiles("country"), "field"),
        (ra.Quantiles("age", cdf=[100]), "cdf"), (ra.Quantiles("age", cdf=[-1]), "cdf"),
        (ra.Quantiles("age", cdf=[math.nan]), "cdf"), (ra.Quantiles("age", cdf=["ten"]), "cdf"),
        (ra.Quantiles("age", cdf=[None]), "cdf"), (ra.Quantiles("age", counts=[(20, 10)]), "counts"),
        (ra.Quantiles("age", counts=[(0, 100)]), "counts"), (ra.Quantiles("day", cdf=[5]), "cdf"),
        (ra.Quantiles("age", noise=Oblivious(DiscreteLaplace(50), "fifty", epsilon=0.02)), "noise"),
        (ra.Quantiles("age", where={"height": 3}), "where"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_schema(statistic, place):
    schema = {
        "age": ra.Integer(0, 99), "name": ra.Text(), "country": ra.Category(["DE", "FR"]),
        "day": ra.Date("2020-01-01", "2020-12-31"),
    }  # fmt: skip
    with pytest.raises(ra.InputError, match=rf"at statistics\.q\.{place}$"):
        ra.Specification(schema, {"q": statistic}, epsilon=1.0, horizon=8)


def test_no_quantiles_by_group():
    with pytest.raises(ra.InputError, match="Quantiles"):
        ra.GroupBy("country", ra.Quantiles("age"))


@pytest.mark.parametrize("bad", [math.nan, -0.5, 500.5, "ten", None, math.inf])
def test_a_bad_record_leaves_the_stream_as_it_was(bad):
    spec = specification(ra.Quantiles("v", [0.5], cdf=[3]), ra.Number(0, 500, step=0.5))
    stream, twin = (ra.Stream.from_specification(spec, key=ra.Key.for_testing(1)) for _ in range(2))
    for one in (stream, twin):
        one.add({"v": [1.0] * 400})
    with pytest.raises(ra.InputError, match="v"):
        stream.add({"v": [2.0, bad, 3.0]})
    with pytest.raises(ra.InputError, match="v"):
        stream.delete({"v": [1.0, bad]}, stamp=1)
    assert stream.close_round().encode() == twin.close_round().encode()
    assert stream.state() == twin.state()


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, math.nan, True, "0.95"])
def test_bad_levels(level):
    spec = specification(ra.Quantiles("v", [0.5], cdf=[3], counts=[(0, 3)]), ra.Integer(0, 9))
    stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(1))
    release = stream.close_round()["q"]
    for ask in (release.interval, release.value.cdf_interval, release.value.counts_interval):
        with pytest.raises(ra.InputError, match="level"):
            ask(level)


def test_the_nearest_rising_sequence():
    """Against all rising sequences of pooled means: none is nearer."""
    random = Random(11)
    for _ in range(200):
        values = [random.choice([0, 1, 2, 3, 5, 8]) for _ in range(random.randint(1, 7))]
        found = quantile_answer.increasing(values)
        assert found == sorted(found)
        cuts = product([False, True], repeat=len(values) - 1)
        best = min(distance(values, pooled(values, cut)) for cut in cuts if (p := pooled(values, cut)) == sorted(p))
        assert distance(values, found) == pytest.approx(best)


def pooled(values, cut):
    parts, start = [], 0
    for end in [*(i + 1 for i, c in enumerate(cut) if c), len(values)]:
        parts += [sum(values[start:end]) / (end - start)] * (end - start)
        start = end
    return parts


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
