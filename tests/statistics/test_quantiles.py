"""Quantiles: the tree counts exactly, hides what it says it hides, errs as it says, and keeps nothing."""

import math
import types
from datetime import UTC, date, datetime
from fractions import Fraction
from itertools import product
from random import Random
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import pytest
from in_bound import Planted

import retroact as ra
from retroact.coins import DiscreteLaplace
from retroact.ledger import Ledger
from retroact.noise import Mechanism, Oblivious, Spread
from retroact.schema import Rows
from retroact.statistics import Statistic, quantile_answer, value_tree
from retroact.statistics.bound import At
from retroact.statistics.quantiles import LEVELS
from retroact.statistics.tally import Tally
from retroact.statistics.value_tree import ValueTree, nodes_of
from retroact.testing import (
    CheckFailedError,
    Shape,
    StreamAlgorithm,
    check_statistic,
    check_twin,
    history,
    uniting_pairs,
    values_of,
)

BOTH = pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "gaussian"])
PROBABILITIES = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1]
LOWEST, HIGHEST = -(2**63), 2**63 - 1


class Silent:
    """A mechanism whose noise is zero, or what is planted at some nodes."""

    def __init__(self, denominator=1, planted=()):
        self.denominator, self.planted = denominator, dict(planted)

    def sample(self, index, cells):
        noise = [self.planted.get((int(prefix), int(number)), 0) for prefix, number in cells]
        return np.array(noise, dtype=np.int64)[:, None], self.denominator

    def square_of(self, coordinate, round):
        return 0

    def half_width(self, index, coordinate, level):
        return 0.0

    def spread(self, index, coordinate):
        return Spread(0.0, 0.0, 0.0)


def tally(offsets):
    return Tally.of((np.array(offsets, dtype=np.uint64),), np.ones((len(offsets), 1), dtype=np.int64))


def specification(statistic, field, *, delta=1e-6, epsilon=1.0, horizon=100, **options):
    """With Gaussian noise where there is a delta, so that both laws are tried."""
    budget = {"epsilon": epsilon, "delta": delta, "law": "gaussian" if delta else "laplace"}
    return ra.Specification({"v": field}, {"q": statistic}, horizon=horizon, **budget, **options)


def totals_of(spec, values):
    rows, _ = spec.schema.encode({"v": values})
    return spec.bounds["q"].gather(rows, np.ones(len(values), dtype=np.int64))


def answer(spec, totals, seed=1, index=37, noise=None):
    """One release of these totals, in whatever round."""
    noise = spec.mechanism("q", ra.Key.for_testing(seed).coins("stream")) if noise is None else noise
    return spec.bounds["q"].release([totals], noise, At(index, index)).answer


# The tree, without noise ---------------------------------------------------------------------------------------------


def small_domains():
    """Domains of 1 to 40 values with some records in each, also none and many of one value."""
    random = Random(1)
    for size in range(1, 41):
        for count in (0, 1, 7, 60):
            values = [random.randrange(size) for _ in range(count)]
            yield size, sorted(values) if count < 60 else sorted(values[:30] + [values[0]] * 30)


def test_records_below_every_offset():
    for size, values in small_domains():
        bits = (size - 1).bit_length()
        tree = ValueTree(tally(values), bits, Silent(denominator=3), 1)
        for offset in range((1 << bits) + 1):
            assert tree.below(offset)[0] == sum(value < offset for value in values) * 3 << bits


def test_a_descent_without_noise_ends_at_the_quantile(monkeypatch):
    monkeypatch.setattr(value_tree, "SHALLOW", 0)
    for size, values in small_domains():
        tree = ValueTree(tally(values), (size - 1).bit_length(), Silent(), 1)
        for p in [0, 1, 1 / 3, *(k / 16 for k in range(1, 16))]:
            (found,) = tree.descend([tree.rank(p)])
            exact = Fraction(p) * len(values)
            assert sum(value < found for value in values) <= exact <= sum(value <= found for value in values)
            if p < 1 and values:
                assert found == values[math.floor(exact)]


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 4])
def test_weights_are_derivatives(bits):
    """Noise of one on one node moves the records below an offset by the weight of that node."""
    nodes = [(0, 0)]
    for depth in range(bits):
        nodes += [(k, depth + 1) for k in range(1 << depth)]
    truth = tally([0, (1 << bits) - 1])
    plain = ValueTree(truth, bits, Silent(), 1)
    moved = {node: ValueTree(truth, bits, Silent(planted={node: 1}), 1) for node in nodes}
    for offset in range((1 << bits) + 1):
        below, weights = plain.below(offset)
        assert {node: moved[node].below(offset)[0] - below for node in nodes} == {
            node: weights.get(node, 0) * 2**bits for node in nodes
        }


def squares_of_weights(offset, bits):
    """Of the differences, not of the root: exact."""
    widths = [1 << (bits - depth) for depth in range(bits)]
    return sum((Fraction(min(offset % width, width - offset % width), width) ** 2 for width in widths), Fraction(0))


@pytest.mark.parametrize("bits", range(1, 17))
def test_haar_weights_are_small_wherever_one_looks(bits):
    """The sum of the squares is at most b/9 + 5/36, for every offset."""
    offsets = np.arange(1 << bits, dtype=np.int64)
    total = np.zeros(1 << bits, dtype=np.int64)
    for depth in range(bits):
        width = 1 << (bits - depth)
        inside = offsets % width
        total += (np.minimum(inside, width - inside) << depth) ** 2
    assert (36 * total <= (4 * bits + 5) * 4**bits).all()
    # It is nearly attained, so the standard error is not idly large.
    assert total.max() / 4**bits > bits / 9


def test_haar_weights_of_64_bits():
    random = Random(2)
    thirds = [(2**64 - 1) // 3, 2 * (2**64 - 1) // 3]
    for offset in [0, 1, 2**63, 2**64 - 1, *thirds, *(random.randrange(2**64) for _ in range(300))]:
        squares = squares_of_weights(offset, 64)
        assert squares <= Fraction(64, 9) + Fraction(5, 36)
        tree = ValueTree(tally([]), 64, Silent(), 1)
        weights = tree.below(offset)[1]
        assert sum(w * w for node, w in weights.items() if node != (0, 0)) == pytest.approx(float(squares), rel=1e-9)


def test_the_inequality_that_the_bound_telescopes():
    def s(y):
        return min(y % 1, 1 - y % 1)

    def h(y):
        return 4 * s(y) / 9 - s(y) ** 2 / 3

    for k in range(5041):
        y = Fraction(k, 5040)
        right = Fraction(1, 9) + h(y) - h(2 * y)
        assert s(y) ** 2 <= right
        assert s(y) < Fraction(1, 4) or s(y) ** 2 == right
        assert 0 <= h(y) <= Fraction(5, 36)


def test_a_record_moves_as_many_nodes_as_declared():
    for size in range(1, 34):
        field = ra.Integer(-3, size - 4)
        bits = (size - 1).bit_length()
        layout = ra.Quantiles("v").layout(ra.Schema({"v": field}))
        for value in range(size):
            nodes = nodes_of(tally([value]), bits).values()
            assert sum(map(abs, nodes)) == layout.norm1 == bits + 1
            assert sum(amount**2 for amount in nodes) == layout.norm2_squared == bits + 1


@pytest.mark.parametrize("bits", [0, 1, 5, 63, 64])
def test_nodes_one_by_one_and_all_at_once(bits):
    random = Random(bits)
    edges = [0, (1 << bits) - 1, (1 << bits) // 2, max(0, (1 << bits) // 2 - 1)]
    counted = tally([*edges, *(random.randrange(1 << bits) for _ in range(20))])
    nodes = nodes_of(counted, bits)
    tree = ValueTree(counted, bits, Silent(), 1)
    tree._draw([node for node, _ in nodes])
    assert {(node, 0): value for node, value in tree._known.items() if value} == nodes


def test_64_bits_are_exact_at_both_ends():
    """Records 2^63 and 2^64 - 1 apart; no difference overflows."""
    values = [LOWEST] * 10 + [-(2**62)] * 10 + [2**62] * 10 + [HIGHEST] * 10
    points = [LOWEST, LOWEST + 1, -(2**62) - 1, -(2**62), -1, 0, 2**62, HIGHEST - 1, HIGHEST]
    spans = [(LOWEST, HIGHEST), (LOWEST, LOWEST), (HIGHEST, HIGHEST), (LOWEST, -1), (0, HIGHEST), (-(2**62), 2**62)]
    quantiles = ra.Quantiles("v", [0.1, 0.3, 0.6, 0.9, 0, 1], cdf=points, counts=spans)
    spec = specification(quantiles, ra.Integer(LOWEST, HIGHEST))
    value = answer(spec, totals_of(spec, values), noise=Silent()).value
    assert list(value.values()) == [LOWEST, -(2**62), 2**62, HIGHEST, LOWEST, HIGHEST]
    assert value.cdf == {point: sum(v <= point for v in values) / 40 for point in points}
    assert value.counts == {span: sum(span[0] <= v <= span[1] for v in values) for span in spans}


# All the generic checks ----------------------------------------------------------------------------------------------

SCHEMA = {
    "age": ra.Integer(0, 99),
    "amount": ra.Number(-10, 500, step=0.25),
    "day": ra.Date("2020-01-01", "2029-12-31"),
    "at": ra.Timestamp("2020-01-01T00:00:00Z", "2020-01-08T00:00:00Z", step=60),
    "member": ra.Boolean(),
}
WIDE = {"v": ra.Integer(LOWEST, HIGHEST)}
ONE = {"v": ra.Integer(5, 5)}
VARIANTS = {
    "quartiles": (ra.Quantiles("age"), SCHEMA),
    "both ends": (ra.Quantiles("age", [0, 1, 0.5]), SCHEMA),
    "window": (ra.Quantiles("age", window=3), SCHEMA),
    "every": (ra.Quantiles("age", every=2), SCHEMA),
    "where": (ra.Quantiles("age", where={"member": True, "age": {"min": 10}}), SCHEMA),
    "with cdf and counts": (ra.Quantiles("age", [0.5], cdf=[50, 17], counts=[(0, 9), (5, 99)]), SCHEMA),
    "counts alone": (ra.Quantiles("age", [], counts=[(18, 65)]), SCHEMA),
    "numbers": (ra.Quantiles("amount", cdf=[0.0, 99.75]), SCHEMA),
    "dates": (ra.Quantiles("day", counts=[(date(2021, 1, 1), date(2021, 12, 31))]), SCHEMA),
    "moments": (ra.Quantiles("at", cdf=["2020-01-02T00:00:00Z"]), SCHEMA),
    "64 bits": (ra.Quantiles("v", cdf=[0], counts=[(LOWEST, HIGHEST)]), WIDE),
    "one value": (ra.Quantiles("v", cdf=[5], counts=[(5, 5)]), ONE),
    "mapped": (ra.Quantiles("age").map(lambda value: value[0.5], name="median"), SCHEMA),
}


def plenty(statistic, schema, delta):
    """Enough for the few records of generated histories to be told from none."""
    return (10.0 if delta else 4.0) * float(statistic.layout(ra.Schema(schema)).norm1)


# The others take turns with pure and Gaussian noise.
IN_BOTH = ("quartiles", "window", "with cdf and counts", "64 bits")
CASES = [
    (name, delta) for i, name in enumerate(VARIANTS) for delta in (0.0, 1e-6) if name in IN_BOTH or i % 2 == (delta > 0)
]


@pytest.mark.parametrize(("name", "delta"), CASES)
def test_every_variant_passes_every_check(name, delta):
    statistic, schema = VARIANTS[name]
    ran = check_statistic(
        statistic,
        schema,
        epsilon=plenty(statistic, schema, delta),
        deltas=(delta,),
        horizons=(8, None) if name == "quartiles" and delta else (8,),
        pairs=15 if name == "quartiles" and not delta else 4,
        draws=500,
    )
    assert {"twin", "sensitivity", "noise law", "oblivious noise", "bounded state"} <= set(ran)


def busy(schema, random):
    """Histories with enough in them for descents to go their ways."""
    return Shape(values_of(ra.Schema(schema), random, 30), rounds=6, updates=15)


@BOTH
@pytest.mark.parametrize("name", VARIANTS)
def test_busy_histories_that_unite(name, delta):
    statistic, schema = VARIANTS[name]
    epsilon = plenty(statistic, schema, delta)
    spec = ra.Specification(schema, {"q": statistic}, epsilon=epsilon, delta=delta, horizon=6)
    pairs = uniting_pairs(busy(schema, Random(0)), Random(12), 8)
    assert check_twin(lambda key: StreamAlgorithm(spec, key), pairs, keys=(1,)) > 8


@BOTH
@pytest.mark.parametrize("name", ["quartiles", "numbers", "64 bits"])
def test_the_checks_see_values(name, delta):
    """In most rounds of these histories there is a median, and it moves."""
    statistic, schema = VARIANTS[name]
    epsilon = plenty(statistic, schema, delta)
    spec = ra.Specification(schema, {"q": statistic}, epsilon=epsilon, delta=delta, horizon=6)
    shape, random = busy(schema, Random(0)), Random(3)
    medians = []
    for seed in range(5):
        algorithm = StreamAlgorithm(spec, ra.Key.for_testing(seed))
        medians += [algorithm.release(updates)["q"].value[0.5] for updates in history(shape, random)]
    assert sum(m is not None for m in medians) > 0.6 * len(medians)
    assert len(set(medians)) > 10


# What is published ---------------------------------------------------------------------------------------------------


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


# Errors and intervals ------------------------------------------------------------------------------------------------

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


@BOTH
@pytest.mark.parametrize("data", DATA)
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


@BOTH
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


# Retroactivity -------------------------------------------------------------------------------------------------------


@BOTH
def test_a_history_with_junk_answers_like_one_without(delta):
    """Much junk comes, shuffled among the records, and goes again in two portions: from then on every byte is equal."""
    random = np.random.default_rng(8)
    quantiles = ra.Quantiles("v", PROBABILITIES, cdf=[100, 50_000], counts=[(0, 30_000)])
    spec = specification(quantiles, ra.Integer(0, 65_535), delta=delta, horizon=8)
    clean, dirty = (ra.Stream.from_specification(spec, key=ra.Key.for_testing(1)) for _ in range(2))
    junk = random.integers(0, 65_536, 2000)
    for round in range(1, 9):
        values = random.integers(10_000, 40_000, 500)
        clean.add({"v": values})
        dirty.add({"v": random.permutation(np.concatenate([values, junk]) if round == 2 else values)})
        if round in (4, 5):
            dirty.delete({"v": random.permutation(junk[round - 4 :: 2])}, stamp=2)
        one, other = clean.close_round()["q"], dirty.close_round()["q"]
        united = round not in (2, 3, 4)
        assert (one == other) is united
        assert (one.to_dict() == other.to_dict()) is united
        assert (one.interval(0.5) == other.interval(0.5)) is united
        if united:
            assert one.encode() == other.encode()
            assert one.value.cdf_interval() == other.value.cdf_interval()
            assert clean.state() == dirty.state()


def inside(thing):
    """Everything that can be got at from a thing without leaving the package: attributes, closures, containers."""
    seen, todo = {}, [thing]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | types.ModuleType | str | int | float):
            continue
        seen[id(one)] = one
        if isinstance(one, types.FunctionType):
            todo += [*(cell.cell_contents for cell in one.__closure__ or ()), *(one.__defaults__ or ())]
        elif isinstance(one, types.MethodType):
            todo += [one.__self__, one.__func__]
        elif isinstance(one, dict | types.MappingProxyType):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            todo += one
        if type(one).__module__.startswith("retroact"):
            todo += vars(one).values() if hasattr(one, "__dict__") else ()
            slots = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
            todo += [getattr(one, name) for name in slots if name != "__dict__" and hasattr(one, name)]
    return list(seen.values())


RAW = (Tally, ValueTree, Ledger, Rows, ra.Stream, Mechanism)


def test_a_release_keeps_no_data():
    quantiles = ra.Quantiles("v", [0.5], cdf=[100], counts=[(0, 300)])
    spec = specification(quantiles, ra.Integer(0, 1000), epsilon=5.0)
    stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(1))
    stream.add({"v": list(range(1000))})
    release = stream.close_round()["q"]
    release.interval(0.95), release.value.cdf_interval(), release.value.counts_interval()
    found = inside(release)
    assert not [one for one in found if isinstance(one, RAW)]
    assert any(isinstance(one, Spread) for one in found)
    # It would be found.
    tree = ValueTree(totals_of(spec, [1, 2]), 10, Silent(), 1)
    assert {type(one) for one in inside(lambda level: tree.below(0))} >= {ValueTree, Tally}


# What is planted is caught -------------------------------------------------------------------------------------------


class Hysteresis(Planted, ra.Quantiles):
    """Stays where it was as long as the quantile has not moved far: smoother to look at."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.last = WeakKeyDictionary()

    class InBound:
        def release(self, totals, noise, at):
            published = super().release(totals, noise, at)
            value = published.answer.value
            before = self.statistic.last.get(noise, {})
            for p, new in list(value.items()):
                old = before.get(p)
                if None not in (old, new) and abs(old - new) < 20:
                    value[p] = old
            self.statistic.last[noise] = dict(value)
            return published


class Numbered(ValueTree):
    """A node gets the next noise there is when a descent first comes to it, in whatever round."""

    numbers: ClassVar = WeakKeyDictionary()

    def _draw(self, nodes):
        numbers = self.numbers.setdefault(self._noise, {})
        for node in nodes:
            numbers.setdefault(node, len(numbers))
        right, self._noise = self._noise, Renamed(self._noise, numbers)
        try:
            super()._draw(nodes)
        finally:
            self._noise = right


class Renamed:
    def __init__(self, noise, numbers):
        self.noise, self.numbers = noise, numbers

    def sample(self, index, cells):
        return self.noise.sample(
            index, np.array([[self.numbers[int(a), int(b)], 0] for a, b in cells], dtype=np.uint64)
        )


class Visited(ValueTree):
    """Noise by how many nodes this release has visited so far: retroactive, but not the noise of the node."""

    def _draw(self, nodes):
        right = self._noise
        fresh = sorted({node for node in nodes if node not in self._known})
        self._noise = Renamed(right, {node: len(self._known) + i for i, node in enumerate(fresh)})
        try:
            super()._draw(nodes)
        finally:
            self._noise = right


def twin_check(statistic):
    schema = {"age": ra.Integer(0, 99)}
    spec = ra.Specification(schema, {"q": statistic}, epsilon=40.0, horizon=6)
    pairs = uniting_pairs(busy(schema, Random(0)), Random(9), 15)
    return check_twin(lambda key: StreamAlgorithm(spec, key), pairs, keys=(1,))


def test_an_answer_that_sticks_is_caught():
    assert twin_check(ra.Quantiles("age")) > 15
    with pytest.raises(CheckFailedError, match="unite"):
        twin_check(Hysteresis("age"))


def test_noise_by_the_order_of_visits_is_caught(monkeypatch):
    monkeypatch.setattr("retroact.statistics.quantiles.ValueTree", Numbered)
    with pytest.raises(CheckFailedError, match="unite"):
        twin_check(ra.Quantiles("age"))


def noise_of_the_names(kind):
    """Whether every node that descents come to has the noise of its own name on, whatever the data."""
    spec = specification(ra.Quantiles("v"), ra.Integer(0, 1023))
    noise = spec.mechanism("q", ra.Key.for_testing(1).coins("stream"))
    random = Random(10)
    for index in range(1, 9):
        tree = kind(tally([random.randrange(1024) for _ in range(400)]), 10, noise, index)
        tree.descend([tree.rank(p) for p in random.sample(PROBABILITIES, 4)])
        tree.below(random.randrange(1024))
        exact = nodes_of(tree._tally, 10)
        for node, value in tree._known.items():
            own, denominator = noise.sample(index, np.array([node], dtype=np.uint64))
            if value != exact.get((node, 0), 0) * denominator + own[0, 0]:
                return False
    return True


def test_every_node_has_the_noise_of_its_name():
    assert noise_of_the_names(ValueTree)
    assert not noise_of_the_names(Visited)


# Bad input -----------------------------------------------------------------------------------------------------------


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
