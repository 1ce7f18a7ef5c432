"""One law for the stream, one process for each statistic: chosen by what errs least, stored, never chosen again."""

from random import Random

import msgspec
import pytest

import retroact as ra
from retroact.noise import FewChanges, OneSided, StampedBlocks
from retroact.noise.default_process import LAWS, PROCESSES
from retroact.oneshot import Median
from retroact.statistics import distinct
from retroact.stream import choosing
from retroact.stream.choosing import Choice
from retroact.testing.sensitivity import check_sensitivity

SCHEMA = {"c": ra.Text(), "kind": ra.Category(["a", "b"]), "age": ra.Integer(0, 7), "x": ra.Number(0, 5)}
# Rounds of the brute force, over which every interval is tried.
ROUNDS = 8


def spec_of(statistic=None, *, epsilon=1.0, delta=1e-6, horizon=ROUNDS, **options):
    statistics = {"s": ra.Count() if statistic is None else statistic}
    return ra.Specification(SCHEMA, statistics, epsilon=epsilon, delta=delta, horizon=horizon, **options)


def possible(spec):
    """The specification under every law and with every process that can be chosen."""
    for law in spec.laws:
        grants = spec.replace(law=law).grants
        for name in spec.statistics["s"].candidates(grants["s"]):
            yield spec.replace(choice=Choice(law, {"s": name}))


# What is chosen is the best -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("horizon", "gaussian", "laplace"), [(1, 4.22, 1.36), (12, 8.65, 5.03), (52, 11.4, 9.99), (1023, 16.9, 20.7)]
)
def test_delta_is_not_spent_because_it_is_there(horizon, gaussian, laplace):
    """A count at delta = 1e-6 errs no more than at delta = 0, nor than with Gaussian noise."""
    deviations = {
        law: ra.plan(spec_of(horizon=horizon, law=law))["s"].standard_deviation for law in ("gaussian", "laplace")
    }
    assert deviations == pytest.approx({"gaussian": gaussian, "laplace": laplace}, rel=0.01)
    chosen = spec_of(horizon=horizon)
    assert ra.plan(chosen)["s"].standard_deviation == min(deviations.values())
    assert (chosen.guarantee.delta == 0) == (chosen.choice.law == "laplace") == (laplace < gaussian)
    assert ra.plan(spec_of(horizon=horizon, delta=0))["s"].standard_deviation == deviations["laplace"]


STATISTICS = [
    ra.Count(),
    ra.Count(window=3),
    ra.Sum("x", every=2),
    ra.Mean("x"),
    ra.Histogram("c"),
    ra.Histogram("kind", sum="x"),
    ra.GroupBy("kind", ra.Variance("x")),
    ra.Quantiles("age", [0.5]),
    ra.Distinct("c"),
    ra.Distinct("c", window=3),
    ra.Restated(ra.Count(), [0, 2]),
    ra.Restated(ra.Histogram("c"), [1]),
]


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("horizon", [1, 5, 60, None])
def test_no_other_law_or_process_has_a_smaller_half_width(statistic, horizon):
    if horizon == 1 and (statistic.every > 1 or statistic.kind == "restated"):
        horizon = 4
    spec = spec_of(statistic, horizon=horizon)
    widths = [ra.plan(other)["s"].half_width for other in possible(spec)]
    assert len(widths) >= 2
    assert ra.plan(spec)["s"].half_width <= min(widths) * (1 + 1e-6), "to 6 digits"


def test_the_law_is_that_of_the_whole_specification():
    """A count alone would have Laplace noise, quantiles Gaussian noise; together the weights decide."""
    count, quantiles = ra.Count(), ra.Quantiles("age", [0.5])

    def law(**weights):
        statistics = {"n": count, "q": quantiles}
        return ra.Specification(SCHEMA, statistics, epsilon=1.0, delta=1e-6, horizon=12, weights=weights).choice.law

    assert spec_of(count, horizon=12).choice.law == "laplace"
    assert spec_of(quantiles, horizon=12).choice.law == "gaussian"
    assert law(n=1.0, q=20.0) == "gaussian"
    assert law(n=20.0, q=1.0) == "laplace"


def test_the_order_of_the_statistics_decides_nothing():
    statistics = {"n": ra.Count(), "q": ra.Quantiles("age"), "m": ra.Mean("x"), "h": ra.Histogram("c", weight=0.3)}
    found = set()
    for names in (list(statistics), list(reversed(statistics)), sorted(statistics)):
        ordered = {name: statistics[name] for name in names}
        choice = ra.Specification(SCHEMA, ordered, epsilon=1.0, delta=1e-6, horizon=40).choice
        found.add((choice.law, *sorted(choice.noise.items())))
    assert len(found) == 1


def test_what_has_no_interval_has_no_vote():
    """Neither an algorithm of the user's own, nor a map, nor clusters: the count decides alone."""
    count = ra.Count()
    silent = {
        "it": ra.WindowSample(Median("age"), window=3),
        "map": ra.Quantiles("age").map(str, name="text"),
        "means": ra.KMeans(["x", "age"], 2, 10, clip=True),
    }
    for name, statistic in silent.items():
        for horizon, law in ((8, "laplace"), (50_000, "gaussian")):
            statistics = {"n": count, name: statistic}
            spec = ra.Specification(SCHEMA, statistics, epsilon=1.0, delta=1e-6, horizon=horizon)
            assert spec.choice.law == law, name
    alone = spec_of(silent["means"], horizon=1)
    assert alone.choice.law == LAWS[0] == "gaussian", "nobody votes: the list decides"


def test_a_named_law_or_process_is_kept():
    assert spec_of(horizon=1, law="gaussian").choice.law == "gaussian"
    assert spec_of(horizon=5000, law="laplace").choice.law == "laplace"
    assert spec_of(ra.Count(noise="tree"), horizon=500).choice.noise == {"s": "tree"}
    assert spec_of(ra.Count(noise="fresh"), horizon=500).choice.noise == {"s": "fresh"}
    assert spec_of(ra.Count(noise="paper"), horizon=5000).choice.law == "laplace"
    with pytest.raises(ra.InputError, match="delta above 0"):
        spec_of(delta=0, law="gaussian")
    with pytest.raises(ra.InputError, match="expected 'gaussian' or 'laplace', got 'cauchy' - at law"):
        spec_of(law="cauchy")


@pytest.mark.parametrize(
    "shape",
    [{"horizon": 1000}, {"horizon": 200_000}, {"horizon": 3000, "window": 2000}, {"horizon": None, "window": 2000},
     {"horizon": None}],
    ids=str,
)  # fmt: skip
def test_crossfade_noise_without_delta_is_refused_certified_or_not(shape):
    """Where it is not certified, Schauder noise takes its place, with Gaussian noise as was asked for."""
    for refused in ({"delta": 0}, {"law": "laplace"}):
        with pytest.raises(ra.InputError, match=r"crossfade noise is Gaussian.* - at statistics\.s\.noise"):
            spec_of(ra.Count(noise="crossfade"), **shape, **refused)
    assert spec_of(ra.Count(noise="crossfade"), **shape).choice.law == "gaussian"


# What is chosen is private ------------------------------------------------------------------------------------------

PROMISED = [
    (ra.Distinct("c", additions=2, flips=2), {"late": False}),
    (ra.Count(), {"late": False}),
    (ra.Count(window=3, every=2), {}),
]


@pytest.mark.parametrize(("statistic", "options"), [*((s, {}) for s in STATISTICS), *PROMISED], ids=repr)
def test_every_process_that_can_be_chosen_hides_every_change_of_one_operation(statistic, options):
    """Brute force over all intervals and many neighbouring histories, in the exact scales of the noise."""
    tried = 0
    for horizon in (ROUNDS, 5):
        for spec in possible(spec_of(statistic, horizon=horizon, **options)):
            check_sensitivity(spec, Random(1), pairs=20)
            tried += 1
    assert tried >= 6


def test_choosing_the_noise_of_the_past_for_a_count_would_be_caught(monkeypatch):
    """It errs less than all others but crossfade noise, because it hides only changes that last."""
    monkeypatch.delitem(PROCESSES, "crossfade")
    monkeypatch.setitem(PROCESSES, "past", lambda releases, live: None if releases is None else OneSided(releases))
    chosen = spec_of(law="gaussian")
    assert chosen.choice.noise == {"s": "past"}
    for spec in (chosen, chosen.replace(law=None, choice=Choice("laplace", {"s": "past"}))):
        with pytest.raises(ra.VerificationError, match="sensitivity of s"):
            check_sensitivity(spec, Random(1))


def test_choosing_the_noise_of_flips_that_nobody_promised_would_be_caught(monkeypatch):
    """It errs less than all others, because it counts on values that come and go once."""
    right = distinct.refusal
    monkeypatch.setattr(distinct, "refusal", lambda form, case: None if form == "flips" else right(form, case))
    for law in LAWS:
        spec = spec_of(ra.Distinct("c"), horizon=40, law=law)
        assert spec.choice.noise == {"s": "flips"}
        with pytest.raises(ra.VerificationError, match="sensitivity of s"):
            check_sensitivity(spec, Random(1))


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_no_process_rests_on_a_promise_that_was_not_made(statistic):
    for horizon in (ROUNDS, None):
        for spec in possible(spec_of(statistic, horizon=horizon)):
            assert not isinstance(spec.processes["s"], OneSided | FewChanges | StampedBlocks), spec.choice
            assert spec.guarantee.promises == spec_of(ra.Count()).guarantee.promises


# What is chosen lasts -----------------------------------------------------------------------------------------------

MANY = {"n": ra.Count(), "d": ra.Distinct("c"), "m": ra.Mean("x", every=2), "r": ra.Restated(ra.Count(), [0, 1])}
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "horizon": 12}
RECORD = {"c": "v", "kind": "a", "age": 3, "x": 1.5}


@pytest.fixture
def later(monkeypatch):
    """A version of the program with other processes, in another order, and another taste for laws."""

    def change():
        monkeypatch.setattr("retroact.noise.default_process.PROCESSES", dict(reversed(PROCESSES.items())))
        monkeypatch.setattr(choosing, "rounded_up", lambda width: -width)  # the worst in place of the best

    return change


def played(stream, rounds):
    out = []
    for _ in range(rounds):
        stream.add(RECORD)
        out += [msgspec.json.encode(release.to_dict()) for release in stream.close_round().values()]
    return out


@pytest.mark.parametrize("given", [False, True])
def test_opening_a_store_never_chooses_again(tmp_path, later, given):
    key = ra.Key.for_testing(1)
    whole = ra.Stream(SCHEMA, MANY, key=key, **BUDGET)
    expected = played(whole, 6)
    with ra.Stream.open(tmp_path / "s", SCHEMA, MANY, key=key, **BUDGET) as stream:
        choice, first = stream.specification.choice, played(stream, 3)
    later()
    other = ra.Specification(SCHEMA, MANY, **BUDGET)
    assert other.choice != choice, "this version would choose otherwise"
    arguments = (SCHEMA, MANY) if given else ()
    with ra.Stream.open(tmp_path / "s", *arguments, key=key, **(BUDGET if given else {})) as stream:
        assert stream.specification.choice == choice
        assert first + played(stream, 3) == expected


def test_opening_a_state_never_chooses_again(later):
    key = ra.Key.for_testing(1)
    stream = ra.Stream(SCHEMA, MANY, key=key, **BUDGET)
    played(stream, 3)
    state, choice, expected = stream.state(), stream.specification.choice, played(stream, 3)
    later()
    other = ra.Specification(SCHEMA, MANY, **BUDGET)
    assert other.choice != choice
    again = ra.Stream.from_state(other, state, key=key)
    assert again.specification.choice == choice
    assert played(again, 3) == expected


def test_a_stream_that_files_cannot_describe_keeps_its_choice_too(tmp_path, later):
    key = ra.Key.for_testing(1)
    statistics = {"n": ra.Count().map(round)}
    with ra.Stream.open(tmp_path / "s", SCHEMA, statistics, key=key, **BUDGET) as stream:
        choice = stream.specification.choice
        played(stream, 1)
    later()
    with ra.Stream.open(tmp_path / "s", SCHEMA, statistics, key=key, **BUDGET) as stream:
        assert stream.specification.choice == choice


def test_the_streams_before_a_successor_keep_their_guarantee(tmp_path, later):
    key, other = ra.Key.for_testing(1), ra.Key.for_testing(2)
    with ra.Stream.open(tmp_path / "s", SCHEMA, MANY, key=key, **BUDGET) as stream:
        played(stream, 1)
        with stream.successor(epsilon=1.0, horizon=5, where=tmp_path / "t", key=other) as after:
            guarantee = after.guarantee
    later()
    with ra.Stream.open(tmp_path / "t", key=other) as after:
        assert after.guarantee == guarantee


def test_the_choice_is_named_in_the_digest():
    spec = spec_of(horizon=40)
    found = {one.digest("s") for one in possible(spec)}
    assert len(found) == len(list(possible(spec)))
    assert spec.whole_digest in {one.whole_digest for one in possible(spec)}
    assert spec_of(horizon=40, law=spec.choice.law).digest("s") == spec.digest("s"), "named or chosen, it is the same"


def test_a_choice_of_another_stream_is_refused():
    for choice in (Choice("laplace", {"t": "bridge"}), Choice("laplace", {"s": "nothing"})):
        with pytest.raises(ra.InputError, match="expected"):
            spec_of(choice=choice)
    tables = {"epsilon": 1.0, "schema": {"x": {"type": "boolean"}}, "statistics": {"n": {"type": "count"}}}
    for bad in (
        "laplace",
        {"law": "laplace"},
        {"law": "cauchy", "noise": {"n": "fresh"}},
        {"law": "laplace", "noise": 1},
    ):
        with pytest.raises(ra.InputError, match="expected"):
            ra.Specification.from_dict({**tables, "choice": bad})


# How many records to expect -----------------------------------------------------------------------------------------


def test_records_are_a_public_part_of_the_specification(tmp_path):
    """In the digest and in the store; a plan is for them, and data change nothing."""
    assert spec_of().records == 10_000
    few, many = (spec_of(ra.Mean("x"), records=records) for records in (100, 10**6))
    assert few.digest("s") != many.digest("s")
    assert ra.plan(few)["s"].half_width > 1000 * ra.plan(many)["s"].half_width
    assert ra.plan(few).records == 100
    stream = ra.Stream(SCHEMA, {"s": ra.Mean("x")}, records=100, **BUDGET)
    before = stream.plan()
    played(stream, 2)
    assert stream.plan() == before
    key = ra.Key.for_testing(1)
    with ra.Stream.open(tmp_path / "s", SCHEMA, MANY, key=key, records=500, **BUDGET) as stream:
        played(stream, 1)
    with ra.Stream.open(tmp_path / "s", key=key) as stream:
        assert stream.specification.records == 500
    with pytest.raises(ra.InputError, match="records: 500 in the store, 10000 given"):
        ra.Stream.open(tmp_path / "s", SCHEMA, MANY, key=key, **BUDGET)
    tables = {"epsilon": 1.0, "schema": {"x": {"type": "boolean"}}, "statistics": {"n": {"type": "count"}}}
    assert ra.Specification.from_dict({**tables, "records": 7}).records == 7
    for bad in (0, -1, 1.5, True, "7"):
        with pytest.raises(ra.InputError, match=r"whole number from 1 on.* - at records"):
            ra.Specification.from_dict({**tables, "records": bad})


def test_a_window_is_planned_with_its_share_of_the_records():
    """What it holds if they come evenly: the plan is that of so many records, and says so. Nothing else changes."""

    def shown(statistic, **options):
        row = ra.plan(spec_of(statistic, records=10_000, horizon=100, **options))["s"]
        return row.half_width, [note for note in row.notes if "the share of a window" in note]

    mean, of_all = shown(ra.Mean("x", window=10)), shown(ra.Mean("x", window=100))
    assert mean[1] == ["errors for 1,000 records: the share of a window, if they come evenly"]
    assert mean == shown(ra.Mean("x"), window=10), "of the whole stream"
    bound = spec_of(ra.Mean("x", window=10), horizon=100).bounds["s"]
    assert mean[0] == bound.expected_error(bound.outlook.worst, 1_000, 0.95)
    assert mean[0] > 3 * of_all[0]
    assert of_all[1] == shown(ra.Count(window=10))[1] == [], "a count does not depend on it"
    wanted = ra.solve(SCHEMA, {"s": ra.Mean("x", window=10)}, errors={"s": mean[0]}, delta=1e-6, horizon=100)
    assert wanted["s"].half_width <= mean[0]
    endless = spec_of(ra.Mean("x", window=10), horizon=None)
    assert endless.records_of("s") == 10_000, "nobody knows how many rounds there will be"
    assert spec_of(ra.Mean("x", window=1), horizon=100, records=3).records_of("s") == 1


def test_the_noise_of_a_window_is_chosen_for_its_share_of_the_records():
    """Beyond the 0.99 quantile of all 100,000 records there are enough for the exponential mechanism, but not beyond
    that of the 1,000 in a window of one round out of a hundred."""
    schema = {"wide": ra.Integer(0, 2**32 - 1)}

    def of(noise=None, window=1, horizon=100, records=100_000, **options):
        statistics = {"s": ra.Quantiles("wide", [0.99], noise=noise, window=window)}
        options = {"epsilon": 1.0, "delta": 1e-6, "horizon": horizon, "records": records, **options}
        return ra.Specification(schema, statistics, **options)

    spec = of()
    assert spec.records_of("s") == 1_000
    widths = {noise: ra.plan(of(noise))["s"].half_width for noise in ("exponential", "fresh")}
    assert widths["fresh"] < 50 < 400 < widths["exponential"]
    assert spec.choice == Choice("gaussian", {"s": "fresh"})
    assert of(records=10**7).choice.noise == {"s": "exponential"}


# What a plan says ---------------------------------------------------------------------------------------------------


def test_a_plan_names_what_the_other_law_would_give():
    for horizon in (12, 5000):
        spec = spec_of(horizon=horizon)
        plan = ra.plan(spec)
        other = ra.plan(spec_of(horizon=horizon, law=plan.other.law))
        assert {plan.law, plan.other.law} == set(LAWS)
        assert plan.other.half_widths == {"s": other["s"].half_width}
        assert other["s"].half_width > plan["s"].half_width
        assert f"with {plan.other.law} noise instead" in str(plan)
        assert plan.to_dict()["other"]["law"] == plan.other.law
    assert ra.plan(spec_of(delta=0)).other is None


@pytest.mark.parametrize("every", [1, 2, 7])
@pytest.mark.parametrize(("noise", "releases"), [(None, 1024), (None, 1130), ("schauder", 64)])
def test_a_plan_says_where_a_slightly_shorter_horizon_errs_less(every, noise, releases):
    """And says the longest such horizon."""

    def planned(horizon):
        return ra.plan(spec_of(ra.Count(every=every, noise=noise), horizon=horizon, law="gaussian"))["s"]

    fewer = (1 << releases.bit_length() - 1) - 1
    least, most = (releases - 1) * every + 1, releases * every  # all have so many releases
    for horizon in {least, most}:
        (note,) = planned(horizon).notes
        smaller = 1 - planned(fewer * every).standard_deviation / planned(horizon).standard_deviation
        expected = f"with a horizon of at most {fewer * every:,} rounds its noise would be {smaller:.0%} smaller"
        assert note == expected, (horizon, note)
    assert planned(fewer * every).notes == ()
    assert planned(fewer * every + 1).standard_deviation == planned(most).standard_deviation
    assert planned((fewer + 1) * every * 5 // 4).notes == (), "much shorter"


# Schedules ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", [ra.Count(every=9), ra.Distinct("c", every=100)])
def test_a_statistic_that_would_never_be_released_is_refused(statistic):
    with pytest.raises(ra.InputError, match=r"never be released - at statistics\.s\.every"):
        spec_of(statistic, horizon=8)
    spec_of(statistic, horizon=statistic.every)
    spec_of(statistic, horizon=None)
