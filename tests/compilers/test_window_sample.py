"""Sampling with expiry: the same bytes for the same live records, whatever came before, and what it costs."""

import math
import re
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from in_bound import Planted

import retroact as ra
from retroact.coins import Key
from retroact.compilers import Gate, WindowSample
from retroact.compilers.live_records import Live, drawn, threshold
from retroact.errors import InputError, VerificationError
from retroact.ledger.definition import Add, Delete
from retroact.oneshot import (
    ADD_REMOVE,
    BOTTOM,
    SUBSTITUTION,
    BlockCDF,
    Contract,
    InteriorPoint,
    Median,
    OneShot,
    Quantile,
    QuantilePoints,
)
from retroact.paper import TreeLog, paper_advanced, paper_amplified, paper_basic, paper_ranks
from retroact.privacy import GaussianDP, window_cost
from retroact.schema import Rows
from retroact.statistics import View
from retroact.stream import Specification
from retroact.testing import check_statistic
from retroact.testing.algorithm import StreamAlgorithm, run

AGES = {"age": ra.Integer(0, 120)}
RECORDS = {"who": ra.Text(), "age": ra.Integer(0, 120)}
FORMS = {
    "whole": {},
    "fresh": {"size": 2},
    "promised": {"size": 2, "occupancy": 4},
    "poisson": {"rate": 0.5},
    "ranks": {"size": 2, "persistent": True},
    "coins": {"rate": 0.5, "persistent": True},
    "gate": {"size": 2, "gate": Gate(2, epsilon=150)},
    "gated poisson": {"rate": 0.5, "gate": Gate(2, epsilon=150)},
}


class Values(OneShot):
    """Not private at all: shows what it was given. For tests of what an algorithm sees."""

    kind = "values"

    def __init__(self, epsilon=None, relation=ADD_REMOVE, delta=Fraction(0)):
        self.epsilon, self.relation, self.delta = epsilon, relation, delta

    def promised(self, epsilon):
        return Contract(epsilon, self.delta, self.relation)

    def at(self, epsilon):
        return Values(epsilon, self.relation, self.delta)

    def check(self, schema, place):
        pass

    def reads(self, schema):
        return ("age",)

    def run(self, rows, schema, coins):
        return sorted(rows.columns["age"].tolist())

    def arguments(self):
        return {}


def stream_of(sample, *, seed=1, schema=AGES, horizon=64, delta=1e-6, epsilon=1.0, late=False):
    return ra.Stream(
        schema, {"it": sample}, epsilon=epsilon, delta=delta, horizon=horizon, late=late, key=Key.for_testing(seed)
    )


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
            AGES, epsilon=4.0, pairs=4, draws=0, updates=6, deltas=(1e-4,), horizons=(8,),
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


def _live(values, schema=AGES):
    rows = Rows({"age": np.array(values)}, len(values), stamps=np.arange(1, len(values) + 1))
    return Live.of(rows, np.ones(len(values), dtype=np.int64), ("age",), ra.Schema(schema), COINS, span=2)


COINS = Key.for_testing(4).coins("draws")


def _seen(sample, live, round):
    """What the algorithm of a sample is handed."""
    return drawn(sample.form, live, COINS, round, size=sample.size, rate=sample.rate)


def test_fresh_subsets_are_uniform_and_independent_from_round_to_round():
    sample, live = WindowSample(Values(), window=9, size=2), _live([10, 20, 30, 40])
    samples = [tuple(sorted(_seen(sample, live, r).columns["age"].tolist())) for r in range(3000)]
    counts = Counter(samples)
    assert set(counts) == set(combinations([10, 20, 30, 40], 2))
    assert sum((count - 500) ** 2 / 500 for count in counts.values()) < 40  # 5 degrees: 1e-7
    pairs = Counter(zip(samples[::2], samples[1::2], strict=True))
    assert sum((pairs[a, b] - 1500 / 36) ** 2 / (1500 / 36) for a in counts for b in counts) < 95  # 35 degrees: 1e-7


def test_poisson_samples_have_their_rate_and_independent_copies():
    sample, live = WindowSample(Values(), window=9, rate=0.3), _live([1, 1, 2, 3])
    samples = [Counter(_seen(sample, live, r).columns["age"].tolist()) for r in range(4000)]
    sizes = Counter(one.total() for one in samples)
    expected = [math.comb(4, k) * 0.3**k * 0.7 ** (4 - k) * 4000 for k in range(5)]
    assert sum((sizes[k] - expected[k]) ** 2 / expected[k] for k in range(5)) < 40
    both = sum(1 for one in samples if one[2] and one[3]) / 4000
    assert abs(both - 0.09) < 5 * math.sqrt(0.09 * 0.91 / 4000)


def test_a_rate_is_never_rounded_up():
    bound = threshold(Fraction(1, 3), 32)
    assert Fraction(bound, 1 << 32) <= Fraction(1, 3) < Fraction(bound + 1, 1 << 32)
    assert _seen(WindowSample(Values(), window=9, rate=1), _live([5, 6]), 1).count == 2


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


# What it costs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_settled_algorithm_spends_the_share_and_no_more(form, delta):
    if form == "gate" and delta == 0:
        return
    options = {**FORMS[form], **({"gate": Gate(2, epsilon=0.2)} if "gate" in FORMS[form] else {})}
    spec = Specification(
        AGES,
        {"it": WindowSample(Median("age"), window=24, **options)},
        epsilon=1.0,
        delta=delta,
        horizon=1000,
        late=False,
    )
    sample, grant = spec.bounds["it"].statistic, spec.grants["it"]
    gate = 0.0 if sample.gate is None else (sample.gate.epsilon or 0.2)
    cost = sample.settled_cost(grant)
    assert cost.epsilon <= 1 - gate
    assert cost.epsilon > 0.99 * (1 - gate)
    assert spec.guarantee.epsilon == 1.0
    terms = sample._terms(24, sample._failures(grant.failure, "it")[1])
    more = window_cost(sample.form, epsilon0=1.01 * float(sample.of.epsilon), **terms)
    assert more.epsilon > 1 - gate


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("options", [{}, {"occupancy": 400}])
def test_the_papers_accounting_charges_what_its_theorems_say(persistent, options):
    def settled_with(accounting):
        sample = WindowSample(Median("age"), window=24, size=5, persistent=persistent, accounting=accounting, **options)
        spec = Specification(AGES, {"it": sample}, epsilon=1.0, delta=1e-6, horizon=500, late=False)
        return spec.bounds["it"].statistic, spec.guarantee

    paper, guarantee = settled_with("paper")
    exact, _ = settled_with("exact")
    epsilon0 = float(paper.of.epsilon)
    assert epsilon0 < float(exact.of.epsilon)
    bounds = [paper_basic(24, epsilon0, 0.0)[0], paper_advanced(24, epsilon0, 0.0, 1e-6)[0]]
    if options and not persistent:
        bounds.append(paper_amplified(24, epsilon0, 0.0, 1e-6, 5 / 401)[0])
    if options and persistent:
        whole = paper_advanced(24, epsilon0, 0.0, 0.5e-6)
        bounds.append(paper_ranks(24, 5, 400, *whole, 0.5e-6)[0] if whole[0] <= 1 else math.inf)
    assert 0.999 < min(bounds) <= 1.0
    assert ("live in every released round" in guarantee.text) == (min(bounds) == bounds[-1] and bool(options))
    stream = stream_of(
        WindowSample(Median("age"), window=24, size=5, persistent=persistent, accounting="paper", **options)
    )
    assert 0 <= stream.close_round()["it"].value <= 120


def test_a_declared_price_is_charged():
    sample = WindowSample(Median("age", epsilon=0.01), window=100)
    alone = Specification(AGES, {"it": sample}, epsilon=1.0, delta=1e-6, horizon=1000)
    spent = float(alone.shares["it"].amount)
    assert spent == pytest.approx(sample._cost(100, Fraction(1e-6)).epsilon, rel=1e-6)
    both = Specification(AGES, {"it": sample, "n": ra.Count()}, epsilon=1.0, delta=1e-6, horizon=1000)
    assert both.measure.epsilon(1e-6) <= 1.0
    with pytest.raises(InputError, match="declared to cost"):
        Specification(
            AGES, {"it": WindowSample(Median("age", epsilon=1), window=100)}, epsilon=1.0, delta=1e-6, horizon=1000
        )
    with pytest.raises(InputError, match="does not cover"):
        Specification(
            AGES,
            {"it": WindowSample(Values(Fraction(1, 100), delta=Fraction(1, 100)), window=100)},
            epsilon=1.0,
            delta=1e-6,
            horizon=10,
        )


def test_guarantees_say_what_they_rest_on():
    def guarantee(**options):
        sample = WindowSample(Median("age"), window=24, **options)
        return Specification(AGES, {"it": sample}, epsilon=1.0, delta=1e-6, horizon=99, late=False).guarantee

    assert guarantee().adaptive
    assert guarantee().promises == ()
    assert "at least 5,000 records are live" in guarantee(size=20, occupancy=5000).text
    assert "live" not in guarantee(size=20, gate=5000).text
    assert guarantee(size=20, gate=5000).adaptive
    assert guarantee(rate=0.01).adaptive
    assert "oblivious streams only" in guarantee(rate=0.01, persistent=True).text
    assert "oblivious streams only" in guarantee(size=20, occupancy=5000, persistent=True).text
    assert "live" not in guarantee(size=20, persistent=True).text


def test_substitution_needs_samples_of_one_size():
    replaced = Values(Fraction(1, 100), SUBSTITUTION)
    for options in ({}, {"rate": 0.1}, {"size": 5}):
        with pytest.raises(InputError, match="in the place of another"):
            WindowSample(replaced, window=5, **options)
    for persistent in (False, True):
        unamplified = WindowSample(replaced, window=5, size=2, occupancy=2, persistent=persistent)
        assert "at least 2 records are live" in stream_of(unamplified).guarantee.text
    stream = stream_of(WindowSample(replaced, window=5, size=2, occupancy=2))
    stream.add([{"age": 1}])
    assert stream.close_round()["it"].value is BOTTOM
    stream.add([{"age": 2}])
    assert stream.close_round()["it"].value == [1, 2]
    with pytest.raises(InputError, match="delta above 0"):
        stream_of(WindowSample(replaced, window=5, size=2, gate=2), delta=0.0, epsilon=10.0)


# An audit of the compiled algorithm -----------------------------------------------------------------------------------


class Presence(OneShot):
    """Randomised response on whether 7 is among the records: the worst case for an epsilon."""

    kind = "presence"

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def promised(self, epsilon):
        return Contract(epsilon)

    def at(self, epsilon):
        return Presence(epsilon)

    def check(self, schema, place):
        pass

    def run(self, rows, schema, coins):
        truth = bool((rows.columns["age"] == 7).any())
        # e^1 : 1, in 2^32 parts
        lie = int(ra.coins.integer(coins, 1 << 32)) >= int((1 << 32) * math.e / (1 + math.e))
        return truth ^ lie

    def arguments(self):
        return {}


@pytest.mark.parametrize(("form", "attained"), [("poisson", True), ("promised", False), ("whole", True)])
def test_an_audit_of_compiled_answers_stays_below_the_cost_and_near_it(form, attained):
    """One record more in W = 1 release: the log-ratio of a visible event is at most the cost, and, where the algorithm
    is its own worst case, nearly that."""
    options = {"promised": {"size": 2, "occupancy": 4}, "poisson": {"rate": 0.5}, "whole": {}}[form]
    sample = WindowSample(Presence(Fraction(1)), window=1, **options)
    runs = 4_000
    shown = []
    for values in ([1, 2, 3, 4], [1, 2, 3, 4, 7]):
        live = _live(values)
        shown.append(
            sum(
                sample.of.run(_seen(sample, live, r), None, COINS.branch("answer", r, len(values))) for r in range(runs)
            )
            / runs
        )
    loss = math.log(shown[1] / shown[0])
    cost = sample._cost(1, Fraction(0)).epsilon
    error = math.sqrt((1 / shown[0] + 1 / shown[1]) / runs)
    assert loss < cost + 4 * error
    if attained:
        assert loss > cost - 4 * error


# Files, errors, plans -------------------------------------------------------------------------------------------------


def test_samples_in_a_file():
    data = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "horizon": 100,
        "schema": {"age": {"type": "integer", "lower": 0, "upper": 120}},
        "statistics": {
            "age": {
                "type": "window_sample",
                "of": {"type": "quantile", "field": "age", "probability": 0.9},
                "window": 24,
                "size": 50,
                "gate": {"records": 3000, "epsilon": 0.1},
            }
        },
    }
    spec = Specification.from_dict(data)
    sample = spec.statistics["age"]
    assert (sample.size, sample.gate, sample.of.kind) == (50, Gate(3000, epsilon=0.1), "quantile")
    data["statistics"]["age"]["of"]["field"] = "agee"
    with pytest.raises(InputError, match=r"agee.*statistics\.age\.of"):
        Specification.from_dict(data)
    data["statistics"]["age"] = {"type": "window_sample", "of": {"type": "medain", "field": "age"}}
    with pytest.raises(InputError, match=r"interior_point, median.*got 'medain'.*statistics\.age\.of"):
        Specification.from_dict(data)
    data["statistics"]["age"] = {"type": "window_sample", "of": {"type": "median", "field": "age"}, "sise": 3}
    with pytest.raises(InputError, match=r"got 'sise'.*statistics\.age\.sise"):
        Specification.from_dict(data)


@pytest.mark.parametrize("rate", [0.1, "0.25", Fraction(1, 3)])
def test_a_rate_is_read_as_it_is_written(rate):
    sample = WindowSample(Median("age"), window=4, rate=rate)
    assert ra.statistics.Statistic.from_spec(sample.spec(), "it") == sample
    assert sample.rate == Fraction(str(rate))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "whole number from 1 on.*window"),
        ({"window": 5, "size": 0}, "whole number from 1 on.*size"),
        ({"window": 5, "rate": 0}, "above 0 and up to 1.*rate"),
        ({"window": 5, "rate": 1.5}, "above 0 and up to 1.*rate"),
        ({"window": 5, "rate": 1e-10}, "at least 2\\^-32"),
        ({"window": 5, "gate": Gate}, "number of records or a Gate"),
        ({"window": 5, "rate": 0.5, "size": 3}, "not both"),
        ({"window": 5, "size": 30, "occupancy": 20}, "at least the size of the sample, 30, got 20.*occupancy"),
        ({"window": 5, "size": 30, "gate": 20}, "at least the size of the sample, 30, got 20.*gate"),
        ({"window": 5, "size": 30, "gate": 40, "occupancy": 40}, "not both"),
        ({"window": 5, "persistent": True}, "nothing persists"),
        ({"window": 5, "occupancy": 40}, "expected a size"),
        ({"window": 5, "noise": "tree"}, "no noise of its own"),
        ({"window": 5, "gate": True}, "number of records or a Gate"),
        ({"window": 5, "accounting": "rdp"}, "exact.*paper"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        WindowSample(Median("age"), **options)


@pytest.mark.parametrize("epsilon", ["0.1", True, 0, -1, Fraction(1, 10)])
def test_bad_gates(epsilon):
    with pytest.raises(InputError, match=r"number above 0.*gate\.epsilon"):
        Gate(100, epsilon=epsilon)


def test_no_run_spends_without_measure():
    spec = Specification(
        AGES, {"it": WindowSample(Median("age"), window=2, rate=1e-8)}, epsilon=1.0, delta=1e-6, horizon=9
    )
    assert spec.bounds["it"].statistic.of.epsilon == 10


def test_a_declared_price_is_never_rounded_down():
    sample = WindowSample(Median("age", epsilon=0.333333334), window=3)
    with pytest.raises(InputError, match="declared to cost"):
        Specification(AGES, {"it": sample}, epsilon=1.0, horizon=9)


def test_bad_streams():
    with pytest.raises(InputError, match="expected a window, or a horizon"):
        ra.Stream(AGES, {"it": WindowSample(Median("age"))}, epsilon=1.0)
    with pytest.raises(InputError, match="late=False"):
        ra.Stream(AGES, {"it": WindowSample(Median("age"), window=3, size=2, persistent=True)}, epsilon=1.0)
    with pytest.raises(InputError, match=r"the length of a gap.*statistics\.it\.of\.block"):
        stream_of(WindowSample(BlockCDF("age", 9), window=3))
    with pytest.raises(InputError, match="one-shot algorithm"):
        WindowSample(ra.Count(), window=3)
    with pytest.raises(InputError, match="less than all"):
        stream_of(WindowSample(Median("age"), window=3, size=2, gate=Gate(5, epsilon=2)))
    with pytest.raises(InputError, match="no restated series"):
        ra.Restated(WindowSample(Median("age"), window=3), [1])


def test_an_algorithm_that_crashes_changes_nothing():
    class Crashing(Values):
        def at(self, epsilon):
            return Crashing(epsilon)

        def run(self, rows, schema, coins):
            if rows.count:
                raise ZeroDivisionError
            return 0

    stream = stream_of(WindowSample(Crashing(), window=3))
    stream.close_round()
    before = stream.state()
    stream.add({"age": 3})
    with pytest.raises(ZeroDivisionError):
        stream.close_round()
    assert stream.round == 2
    stream.discard()
    assert stream.state() == before
    assert stream.close_round()["it"].value == 0


def test_a_mapped_sample_is_a_sample():
    stream = stream_of(WindowSample(Values(), window=3).map(len, name="how many"))
    stream.add([{"age": 1}, {"age": 2}])
    assert stream.close_round()["it"].value == 2


def test_plans_compare_and_say_which_needs_fewer_records():
    schema = {"x": ra.Integer(0, 2**32 - 1)}
    sample = WindowSample(InteriorPoint("x"), window=24, size=2000, gate=20_000)
    plan = ra.Stream(schema, {"it": sample}, epsilon=1.0, delta=1e-6, horizon=2**16).plan()
    text = str(plan)
    assert re.search(
        r"at best, with the same budget: the whole window 528, a Poisson sample 6\d\d, a fixed size behind", text
    )
    assert "sure to answer from about" in text
    whole = ra.Stream(
        schema, {"it": WindowSample(InteriorPoint("x"), window=24)}, epsilon=1.0, delta=1e-6, horizon=2**16
    ).plan()
    assert "live records are enough" in str(whole)
    assert math.isfinite(whole["it"].half_width)
    small = ra.Stream(
        schema, {"it": WindowSample(InteriorPoint("x"), window=24, size=5)}, epsilon=1.0, delta=1e-6, horizon=99
    )
    assert "too small" in str(small.plan())


def test_wanted_errors_are_solved_for_where_they_are_known():
    schema = {"x": ra.Integer(0, 2**32 - 1)}
    wanted = ra.solve(schema, {"it": WindowSample(Median("x"), window=24)}, errors={"it": 100}, delta=1e-6, horizon=99)
    assert 99 < wanted["it"].half_width <= 100
    small = {"it": WindowSample(Median("x"), window=24, size=100)}
    with pytest.raises(InputError, match=r"which no budget takes off.*errors\.it"):
        ra.solve(schema, small, errors={"it": 10}, delta=1e-6, horizon=99)
    for of in (Values(Fraction(1, 10)), Median("age", epsilon=0.1)):
        with pytest.raises(InputError, match=r"whose error is known.*errors\.it"):
            ra.solve(AGES, {"it": WindowSample(of, window=3)}, errors={"it": 5}, delta=1e-6, horizon=9)


def test_the_same_bytes_for_any_order_of_arrival_and_after_a_restart():
    spec = Specification(
        AGES,
        {"it": WindowSample(Median("age"), window=3, size=4), "all": WindowSample(Values(), window=3, rate=0.5)},
        epsilon=3.0,
        delta=1e-5,
        horizon=20,
    )
    history = tuple(
        (Add((i % 9,)), Add((i % 5,)), *([Delete(((i - 1) % 9,), i - 1)] if i > 1 else [])) for i in range(1, 12)
    )

    def make(key):
        return StreamAlgorithm(spec, key)

    whole = run(make, Key.for_testing(1), history)
    algorithm = make(Key.for_testing(1))
    out = []
    for updates in history:
        out.append(algorithm.close(tuple(reversed(updates))))
        algorithm = algorithm.resume(algorithm.state())
    assert out == whole


# The books ------------------------------------------------------------------------------------------------------------


MIXES = {
    "alone": {"a": WindowSample(Median("age"), window=24)},
    "gated": {"a": WindowSample(Median("age"), window=24, size=20, gate=500)},
    "gated, given": {"a": WindowSample(Median("age"), window=24, size=20, gate=Gate(500, epsilon=0.3))},
    "declared and gated": {"a": WindowSample(Median("age", epsilon=0.05), window=24, size=20, gate=500)},
    "with a declared delta": {"a": WindowSample(TreeLog("age", delta=1e-9), window=24, rate=0.1), "n": ra.Count()},
    "everything": {
        "a": WindowSample(Median("age"), window=24, size=20, gate=500),
        "b": WindowSample(Values(Fraction(1, 100), delta=Fraction(1, 10**10)), window=24, size=20),
        "c": WindowSample(InteriorPoint("age"), window=7, every=2, rate=0.2, persistent=True),
        "n": ra.Count(),
        "bins": ra.Histogram("age"),
        "m": ra.Quantiles("age", [0.5]),
    },
}


@pytest.mark.parametrize("mix", MIXES)
def test_what_all_parts_spend_together_is_within_the_budget(mix):
    """Every part is looked up where it is used, and added up anew."""
    spec = Specification(AGES, MIXES[mix], epsilon=2.0, delta=1e-6, horizon=500, late=False)
    pure, delta, square = 0.0, 0.0, 0.0
    for name, bound in spec.bounds.items():
        statistic, share, grant = bound.statistic, spec.shares[name], spec.grants[name]
        if not isinstance(statistic, WindowSample):
            pure += float(share.amount) if share.kind == "pure" else 0.0
            square += float(share.amount) if share.kind == "gaussian" else 0.0
            delta += float(spec.failures[name])
            continue
        noise = spec.mechanism(name, COINS)
        contract = statistic.of.contract
        counted = {
            "releases": min(24 if name != "c" else 4, 500),
            "epsilon0": float(contract.epsilon),
            "delta0": float(contract.delta),
            "size": statistic.size,
            "rate": None if statistic.rate is None else float(statistic.rate),
            "bounded_range": contract.bounded_range,
            "occupancy": 500 if statistic.gate else None,
        }
        own = float(grant.failure)
        if statistic.calibrated is not None:
            calibrated = statistic.calibrated
            lost = GaussianDP(math.sqrt(noise.share.amount)).delta(float(calibrated.epsilon))
            assert lost <= float(calibrated.spent) * (1 + 1e-9)
            pure += float(calibrated.epsilon)
            delta += float(calibrated.spent + calibrated.failure)
            own -= float(calibrated.spent + calibrated.failure)
        cost = window_cost(statistic.form, delta=own, **counted)
        gate = float(statistic.calibrated.epsilon) if statistic.calibrated is not None else 0.0
        assert gate + cost.epsilon <= float(share.amount) * (1 + 1e-9)
        pure += cost.epsilon
        delta += own
    assert pure + (GaussianDP(math.sqrt(square)).epsilon(1e-6 - delta) if square else 0) <= 2.0 * (1 + 1e-9)
    assert delta <= 1e-6 * (1 + 1e-12)
    assert spec.measure.epsilon(1e-6) <= 2.0 * (1 + 1e-9)


def test_a_gate_before_lasting_ranks_amplifies_nothing():
    def epsilon0(**options):
        sample = WindowSample(Median("age"), window=24, size=20, persistent=True, **options)
        spec = Specification(AGES, {"it": sample}, epsilon=1.0, delta=1e-6, horizon=500, late=False)
        return float(spec.bounds["it"].statistic.of.epsilon), spec.guarantee

    plain, _ = epsilon0()
    gated, guarantee = epsilon0(gate=5000)
    promised, _ = epsilon0(occupancy=5000)
    assert gated < plain < promised
    assert guarantee.adaptive
    assert guarantee.promises == ()


def test_answers_have_coins_of_their_own_in_every_round_and_statistic():
    stream = ra.Stream(
        {"x": ra.Integer(0, 2**40)},
        {name: WindowSample(InteriorPoint("x"), window=4) for name in "ab"},
        epsilon=1.0,
        horizon=20,
        key=Key.for_testing(1),
    )
    points = [release.value for _ in range(20) for release in stream.close_round().values()]
    assert len(set(points)) == 40  # uniform points of an empty window
