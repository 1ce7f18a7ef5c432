"""Statistics answer what they say, and their intervals hold the truth as often as they say."""

import numpy as np
import pytest

import retroact as ra
from retroact.statistics import Contributions, Statistic
from support.tiers import in_full, in_turns

SCHEMA = {
    "country": ra.Category(["DE", "FR", "US"]),
    "amount": ra.Number(-20, 500, step=0.01),
    "age": ra.Integer(0, 120),
    "member": ra.Boolean(),
    "place": ra.Vector(2, radius=10, step=0.1),
}
RNG = np.random.default_rng(5)
COUNT = 5000
DATA = {
    "country": [["DE", "FR", "US"][i] for i in RNG.integers(0, 3, COUNT)],
    "amount": np.round(RNG.uniform(-20, 500, COUNT), 2),
    "age": RNG.integers(18, 70, COUNT),
    "member": RNG.random(COUNT) < 0.3,
    "place": np.round(RNG.uniform(-5, 5, (COUNT, 2)), 1),
}
COUNTRY = np.array(DATA["country"])


def young_and_old(columns):
    return np.stack([columns["age"] < 30, columns["age"] >= 60], axis=1).astype(int)


CASES = {
    "count": (ra.Count(), float(COUNT)),
    "count where": (ra.Count(where={"age": {"max": 29}, "country": ["DE", "US"]}),
                    float(((DATA["age"] < 30) & (COUNTRY != "FR")).sum())),
    "sum": (ra.Sum("amount"), DATA["amount"].sum()),
    "sum of booleans": (ra.Sum("member"), float(DATA["member"].sum())),
    "mean": (ra.Mean("amount"), DATA["amount"].mean()),
    "mean of booleans": (ra.Mean("member"), DATA["member"].mean()),
    "variance": (ra.Variance("age"), DATA["age"].var()),
}  # fmt: skip


def release(statistic, seed, *, delta=1e-6, epsilon=2.0, data=DATA):
    stream = ra.Stream(
        SCHEMA, {"s": statistic}, epsilon=epsilon, delta=delta, horizon=100, key=ra.Key.for_testing(seed)
    )
    stream.add(data)
    for _ in range(36):
        stream.close_round()
    return stream.close_round()["s"]


@pytest.mark.parametrize(("name", "delta"), in_turns(CASES, (0.0, 1e-6)))
def test_values_and_intervals(name, delta):
    """40 keys: errors are of the size of the standard error, and at most 7 of 40 intervals at 95 % miss the truth."""
    statistic, truth = CASES[name]
    releases = [release(statistic, seed, delta=delta) for seed in range(40)]
    deviations = np.array([(r.value - truth) / r.standard_error for r in releases])
    assert 0.5 < np.sqrt((deviations**2).mean()) < 1.6
    missed = sum(not r.interval(0.95)[0] <= truth <= r.interval(0.95)[1] for r in releases)
    assert missed <= 7
    if name.startswith(("count", "sum")):
        tight = sum(not r.interval(0.5)[0] <= truth <= r.interval(0.5)[1] for r in releases)
        assert 8 <= tight <= 32


def test_vector_sums():
    truth = DATA["place"].sum(axis=0)
    r = release(ra.Sum("place"), 1)
    assert r.value.shape == (2,)
    assert (np.abs(r.value - truth) < 6 * r.standard_error).all()
    low, high = r.interval(0.999).T
    assert ((low <= truth) & (truth <= high)).all()


def test_groups():
    r = release(ra.GroupBy("country", ra.Count()), 1)
    for country, value in r.value.items():
        truth = (country == COUNTRY).sum()
        low, high = r.interval(0.9999)[country]
        assert low <= truth <= high
        assert abs(value - truth) < 6 * r.standard_error[country]
    both = release(ra.GroupBy(["country", "member"], ra.Mean("age")), 1)
    assert list(both.value) == [(c, m) for c in ("DE", "FR", "US") for m in (False, True)]
    truth = DATA["age"][(COUNTRY == "FR") & DATA["member"]].mean()
    low, high = both.interval(0.9999)["FR", True]
    assert low <= truth <= high
    assert '["FR",true]' in both.to_dict()["value"]


def test_groups_cost_nothing():
    alone, grouped = (ra.plan(ra.Specification(SCHEMA, {"s": s}, epsilon=1.0, horizon=100))["s"].half_width
                      for s in (ra.Count(), ra.GroupBy("country", ra.Count())))  # fmt: skip
    assert alone == grouped


def test_queries_of_your_own():
    dense = ra.LinearQuery(young_and_old, size=2, norm1=1, norm2=1, name="ages", labels=["young", "old"])
    r = release(dense, 1)
    for label, truth in (("young", (DATA["age"] < 30).sum()), ("old", (DATA["age"] >= 60).sum())):
        assert abs(r.value[label] - truth) < 6 * r.standard_error[label]
        assert r.interval(0.9999)[label][0] <= truth <= r.interval(0.9999)[label][1]

    def sparse(columns):
        row, coordinate = np.nonzero(young_and_old(columns))
        return Contributions(row, coordinate, np.ones(len(row), dtype=np.int64))

    same = ra.LinearQuery(sparse, size=2, norm1=1, norm2=1, name="ages", labels=["young", "old"])
    assert release(same, 1).value == r.value


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"size": 0}, "size"), ({"norm1": None}, "norm2"), ({"norm1": 0}, "norm1"), ({"norm1": 1.5}, "norm1"),
        ({"labels": ["a"]}, "labels"),
    ],
)  # fmt: skip
def test_bad_queries(options, place):
    with pytest.raises(ra.InputError, match=place):
        ra.LinearQuery(young_and_old, **({"size": 2, "norm1": 1, "name": "q"} | options))


def sparse_query(row, coordinate, amount, **norms):
    parts = Contributions(*(np.array(part, dtype=d) for part, d in ((row, int), (coordinate, int), amount)))
    return ra.LinearQuery(lambda c: parts, name="sparse", **norms)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (sparse_query([0] * 4, [0] * 4, ([1] * 4, int), size=4, norm2=2), "norm2"),
        (sparse_query([0] * 3, [0, 1, 2], ([16] * 3, np.int8), size=8, norm2=20), "norm2"),
        (sparse_query([0], [0], ([-(2**63)], np.int64), size=1, norm2=1), "norm2"),
        (sparse_query([-1], [0], ([1], int), size=1, norm2=1), "rows"),
        (sparse_query([0], [5], ([1], int), size=1, norm2=1), "coordinates"),
        (sparse_query([0], [0], ([1.0], float), size=1, norm2=1), "integers"),
        (sparse_query([0, 0], [0], ([1], int), size=1, norm2=1), "one length"),
        (ra.LinearQuery(lambda c: np.full((1, 1), -(2**63)), size=1, norm2=1, name="dense"), "norm2"),
    ],
)
def test_contributions_beyond_what_was_declared(query, message):
    stream = ra.Stream(SCHEMA, {"q": query}, epsilon=1.0, horizon=3, key=ra.Key.for_testing(1))
    with pytest.raises(ra.InputError, match=message):
        stream.add({name: column[:1] for name, column in DATA.items()})


def test_a_query_cannot_change_the_records():
    def greedy(columns):
        columns["age"][:] = 0
        return columns["age"][:, None]

    query = ra.LinearQuery(greedy, size=1, norm1=200, name="greedy")
    stream = ra.Stream(SCHEMA, {"q": query}, epsilon=1.0, horizon=3, key=ra.Key.for_testing(1))
    with pytest.raises(ValueError, match="read-only"):
        stream.add({name: column[:1] for name, column in DATA.items()})


def test_conditions_of_a_group_and_of_its_statistic_both_hold():
    both = ra.GroupBy("country", ra.Count(where={"age": {"min": 30}}), where={"member": True})
    r = release(both, 1)
    truth = ((COUNTRY == "DE") & (DATA["age"] >= 30) & DATA["member"]).sum()
    assert abs(r.value["DE"] - truth) < 6 * r.standard_error["DE"]
    with pytest.raises(ra.InputError, match="two"):
        ra.GroupBy("country", ra.Count(where={"age": 3}), where={"age": 4})


def test_conditions_compare_texts_as_they_are():
    stream = ra.Stream(
        {"t": ra.Text()}, {"n": ra.Count(where={"t": ["a\0"]})}, epsilon=1.0, horizon=3, key=ra.Key.for_testing(1)
    )
    stream.add({"t": ["a", "a\0", "b"]})
    stream.close_round()
    assert stream._core.engine.running["n"].totals[0].tolist() == [1]
    ra.Stream(SCHEMA, {"n": ra.Count(where={"age": np.int64(3)})}, epsilon=1.0, horizon=3)


def test_a_query_of_the_wrong_shape():
    query = ra.LinearQuery(lambda c: c["age"], size=2, norm1=1, name="flat")
    stream = ra.Stream(SCHEMA, {"q": query}, epsilon=1.0, horizon=3, key=ra.Key.for_testing(1))
    with pytest.raises(ra.InputError, match="shape"):
        stream.add({k: v[:2] for k, v in DATA.items()})


def test_too_few_records_for_a_mean():
    few = {name: column[:2] for name, column in DATA.items()}
    for statistic, bounds in ((ra.Mean("amount"), (-20.0, 500.0)), (ra.Variance("age"), (0.0, 3600.0))):
        answers = [release(statistic, seed, epsilon=0.1, data=few) for seed in range(5)]
        nothing = [r for r in answers if r.value is None]
        assert nothing
        assert all(r.standard_error is None and r.interval(0.95) == bounds for r in nothing)
        assert nothing[0].to_dict()["value"] is None


def test_map_sees_the_current_answer_and_named_coins():
    plain = release(ra.Count(), 1)
    assert release(ra.Count().map(lambda v: round(v), name="whole"), 1).standard_error is None
    seen = []

    def keep(value, shared, fresh):
        bits = [int(c.words([0], [0]).block(0)[0][0, 0]) for c in (shared, fresh)]
        seen.append(bits)
        return value

    release(ra.Count().map(keep, name="kept", coins=True), 1)
    assert len({shared for shared, _ in seen}) == 1
    assert len({fresh for _, fresh in seen}) == len(seen) == 37
    assert plain.value is not None
    for bad in ({"name": ""}, {"name": 5}):
        with pytest.raises(ra.InputError):
            ra.Count().map(round, **bad)


def test_windows_have_less_noise_than_long_horizons():
    spec = ra.Specification(
        SCHEMA, {"all": ra.Count(), "week": ra.Count(window=7)}, epsilon=1.0, delta=1e-6, horizon=65_535
    )
    plan = ra.plan(spec)
    assert plan["week"].standard_deviation < 0.6 * plan["all"].standard_deviation


@pytest.mark.parametrize("keys", [150, in_full(300)])
def test_plan_predicts_what_is_measured(keys):
    spec = ra.Specification(SCHEMA, {"s": ra.Sum("amount")}, epsilon=1.0, horizon=100)
    expected = ra.plan(spec)["s"]
    worst = int(np.argmax(spec.processes["s"].variances(np.arange(1, 101), 1))) + 1
    errors = []
    for seed in range(keys):
        stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(seed))
        for _ in range(worst):
            last = stream.close_round()["s"]
        errors.append(last.value)
    assert np.std(errors) == pytest.approx(expected.standard_deviation, rel=0.25)
    assert 0.9 <= np.mean(np.abs(errors) <= expected.half_width) <= 0.99


def test_solve_reaches_wanted_errors():
    for delta in (0.0, 1e-6):
        wanted = {"n": 30, "s": 9000}
        statistics = {"n": ra.Count(), "s": ra.Sum("amount")}
        plan = ra.solve(SCHEMA, statistics, errors=wanted, delta=delta, horizon=500)
        spec = ra.Specification(
            SCHEMA, statistics, epsilon=plan.epsilon, delta=delta, horizon=500, weights=plan.weights
        )
        again = ra.plan(spec)
        for name, error in wanted.items():
            assert 0.98 * error <= again[name].half_width <= error
        assert statistics["n"].weight == 1


@pytest.mark.parametrize("errors", [{}, {"n": 0}, {"n": -1}, {"n": 5, "zz": 5}, {"n": float("nan")}, {"n": "5"}])
def test_solve_wants_an_error_for_every_statistic(errors):
    with pytest.raises(ra.InputError, match="errors"):
        ra.solve(SCHEMA, {"n": ra.Count()}, errors=errors, horizon=10)


BAD_SPECS = [
    (5, "expected a table"), ({}, r"x\.type"), ({"type": "median"}, r"x\.type"), ({"type": "sum"}, r"x\.field"),
    ({"type": "sum", "field": 5}, r"x\.field"), ({"type": "count", "field": "a"}, r"x\.field"),
    ({"type": "count", "colour": 1}, r"x\.colour"), ({"type": "count", "where": 5}, r"x\.where"),
    ({"type": "count", "every": 0}, r"x\.every"), ({"type": "count", "noise": "white"}, r"x\.noise"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "place"), BAD_SPECS)
def test_bad_specifications_name_the_key(spec, place):
    with pytest.raises(ra.InputError, match=place):
        Statistic.from_spec(spec, "x")


def test_specifications_from_data():
    data = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "horizon": 1024,
        "schema": {
            "country": {"type": "category", "values": ["DE", "FR"]},
            "amount": {"type": "number", "lower": 0, "upper": 500, "step": 0.01},
        },
        "statistics": {
            "orders": {"type": "count"},
            "by": {"type": "mean", "field": "amount", "by": "country", "weight": 2},
        },
    }
    spec = ra.Specification.from_dict(data)
    assert isinstance(spec.statistics["by"], ra.GroupBy)
    assert spec.weights == {"orders": 1, "by": 2}
    for key in ("schema", "statistics", "epsilon"):
        with pytest.raises(ra.InputError, match=rf"^retroact\.toml: .* - at {key}$"):
            ra.Specification.from_dict({k: v for k, v in data.items() if k != key}, "retroact.toml")
    with pytest.raises(ra.InputError, match=r"^retroact\.toml: .* - at colour$"):
        ra.Specification.from_dict({**data, "colour": 1}, "retroact.toml")
    backwards = {"amount": {"type": "number", "lower": 1, "upper": 0}}
    with pytest.raises(ra.InputError, match=r"^retroact\.toml: .* - at schema\.amount$"):
        ra.Specification.from_dict({**data, "schema": backwards}, "retroact.toml")
