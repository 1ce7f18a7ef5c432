"""Quantiles and distinct counts by group, ratios, and categories with a rest: what they count, and what they cost."""

import itertools
import math

import numpy as np
import pytest

import retroact as ra
from retroact.statistics import Statistic
from retroact.statistics.declared_groups import DeclaredGroups

SCHEMA = {"country": ra.Category(["DE", "FR"], other="rest"), "member": ra.Boolean(), "age": ra.Integer(0, 63)}
COUNTRIES = ["DE", "FR", "XX", "YY"]


def people(n: int, seed: int = 1) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    country = random.choice(COUNTRIES, n)
    age = np.where(country == "DE", random.integers(0, 20, n), random.integers(30, 64, n))
    return {"country": country, "member": random.random(n) < 0.5, "age": age}


def published(
    statistic: ra.Linear, data: dict[str, np.ndarray], *, seed: int = 1, epsilon: float = 200.0
) -> ra.Release:
    stream = ra.Stream(SCHEMA, {"s": statistic}, epsilon=epsilon, delta=1e-6, horizon=4, key=ra.Key.for_testing(seed))
    stream.add(data)
    return stream.close_round()["s"]


def test_values_outside_the_list_are_one_more_category() -> None:
    field = SCHEMA["country"]
    assert field.values == ("DE", "FR", "rest")
    assert [field.encode(text, "country") for text in ("DE", "XX", "rest", "")] == [0, 2, 2, 2]
    encoded, missing = field.encode_column(np.array(["YY", "FR", "DE"], dtype=object), "country")
    assert encoded.tolist() == [2, 1, 0]
    assert missing is None
    assert field.spec() == {"type": "category", "values": ["DE", "FR"], "other": "rest"}
    assert type(field).from_spec(field.spec(), "country") == field
    with pytest.raises(ra.InputError, match=r"expected one of 'DE', 'FR', got 3\.5 - at country"):
        ra.Category(["DE", "FR"]).encode(3.5, "country")
    with pytest.raises(ra.InputError, match="not among the values, got 'DE' - at other"):
        ra.Category(["DE", "FR"], other="DE")


def test_quantiles_of_a_group_are_those_of_its_records() -> None:
    data = people(4000)
    found = published(ra.Quantiles("age", [0.5], counts=[(0, 29)], by="country"), data)
    assert list(found.value) == ["DE", "FR", "rest"]
    groups = {"DE": data["country"] == "DE", "FR": data["country"] == "FR"}
    groups["rest"] = ~(groups["DE"] | groups["FR"])
    for name, own in groups.items():
        assert abs(found.value[name][0.5] - np.median(data["age"][own])) <= 1
        assert found.value[name].counts[0, 29] == pytest.approx(np.count_nonzero(data["age"][own] < 30), abs=3)
        low, high = found.interval(0.95)[name][0.5]
        assert low <= found.value[name][0.5] <= high


def test_distinct_values_of_two_fields_of_groups() -> None:
    data = people(3000)
    found = published(ra.Distinct("age", by=["country", "member"]), data, epsilon=400.0)
    named = np.where(np.isin(data["country"], ["DE", "FR"]), data["country"], "rest")
    for country, member in itertools.product(["DE", "FR", "rest"], [False, True]):
        exact = len(np.unique(data["age"][(named == country) & (data["member"] == member)]))
        assert found.value[country, member] == pytest.approx(exact, abs=2)
    assert len(found.value) == len(DeclaredGroups(["country", "member"], ra.Schema(SCHEMA))) == 6


@pytest.mark.parametrize(
    "statistic",
    [ra.Quantiles("age", by="country"), ra.Distinct("age", by=["country", "member"])],
    ids=["quantiles", "distinct"],
)
def test_one_record_moves_one_group(statistic: Statistic) -> None:
    spec = ra.Specification(SCHEMA, {"s": statistic}, epsilon=1.0, delta=1e-6, horizon=4)
    bound, norm = spec.bounds["s"], spec.bounds["s"].layout.norm1
    seen = set()
    for country, member, age in itertools.product(COUNTRIES, [False, True], [0, 1, 31, 63]):
        rows, _ = spec.schema.encode({"country": [country], "member": [member], "age": [age]})
        moved = bound.coordinates(bound.gather(rows, np.ones(1, dtype=np.int64)))
        assert sum(map(abs, moved.values())) <= norm
        assert sum(amount**2 for amount in moved.values()) <= bound.layout.norm2_squared
        seen |= moved.keys()
    ungrouped = ra.Specification(SCHEMA, {"s": statistic.replace(by=None)}, epsilon=1.0, delta=1e-6, horizon=4)
    assert norm == ungrouped.bounds["s"].layout.norm1  # groups cost nothing
    assert len(seen) >= 3


def test_a_group_that_is_erased_leaves_nothing_behind() -> None:
    statistics = {"q": ra.Quantiles("age", [0.5], by="country"), "d": ra.Distinct("age", by="country")}
    streams = [
        ra.Stream(SCHEMA, statistics, epsilon=5.0, delta=1e-6, horizon=4, key=ra.Key.for_testing(3)) for _ in range(2)
    ]
    for stream in streams:
        stream.add({"country": "DE", "member": True, "age": 5}, subject="stays")
    streams[0].add({"country": "FR", "member": True, "age": 60}, subject="goes")
    first = [stream.close_round().encode() for stream in streams]
    streams[0].erase(subject="goes")
    assert first[0] != first[1]
    assert len({stream.close_round().encode() for stream in streams}) == 1


def test_a_ratio_is_top_over_bottom_in_the_unit_of_its_fields() -> None:
    data = people(5000)
    share = published(ra.Ratio(ra.Count(where={"country": "DE"}), ra.Count()), data)
    assert share.value == pytest.approx(np.mean(data["country"] == "DE"), abs=0.01)
    mean = published(ra.GroupBy("member", ra.Ratio(ra.Sum("age"), ra.Count())), data)
    for member in (False, True):
        assert mean.value[member] == pytest.approx(data["age"][data["member"] == member].mean(), abs=0.2)
    odds = published(ra.Ratio(ra.Count(where={"country": "DE"}), ra.Count(where={"country": "FR"})), data)
    low, high = odds.interval(0.95)
    assert low < np.sum(data["country"] == "DE") / np.sum(data["country"] == "FR") < high


@pytest.mark.parametrize(("top", "bottom", "widest"), [("DE", None, (0.0, 1.0)), ("DE", "FR", None)])
def test_a_ratio_of_nothing_is_none(top: str, bottom: str | None, widest: object) -> None:
    over = ra.Count() if bottom is None else ra.Count(where={"country": bottom})
    found = published(ra.Ratio(ra.Count(where={"country": top}), over), people(1), epsilon=1.0)
    assert found.value is None
    assert found.standard_error is None
    assert found.interval(0.95) == widest


def test_intervals_of_ratios_cover_as_often_as_they_say() -> None:
    """400 keys: outside 0.89 to 0.99 with probability below 1e-6 if each covers 95 %."""
    data = people(300, seed=5)
    exact = data["age"].sum() / np.count_nonzero(data["member"])
    hits = 0
    for seed in range(400):
        found = published(ra.Ratio(ra.Sum("age"), ra.Count(where={"member": True})), data, seed=seed, epsilon=3.0)
        low, high = found.interval(0.95)
        hits += low <= exact <= high
    assert 0.89 <= hits / 400 <= 0.99


def test_the_plan_of_a_ratio_is_what_is_published() -> None:
    spec = ra.Specification(SCHEMA, {"r": ra.Ratio(ra.Sum("age"), ra.Count())}, epsilon=1.0, delta=1e-6, horizon=4)
    data = people(10_000)
    data["age"] = np.full(10_000, 32)  # what the plan assumes: halfway to the farther bound
    found = published(spec.statistics["r"], data, epsilon=1.0)
    assert found.standard_error == pytest.approx(spec.bounds["r"].expected_error(1, 10_000), rel=0.05)


def test_what_no_ratio_can_be_made_of_is_refused() -> None:
    with pytest.raises(ra.InputError, match="expected a count or a sum, got Mean"):
        ra.Ratio(ra.Mean("age"), ra.Count())
    with pytest.raises(ra.InputError, match="for the ratio as a whole, not for a part - at top"):
        ra.Ratio(ra.Count(window=3), ra.Count())
    with pytest.raises(ra.InputError, match=r"expected a bottom without negative values - at statistics\.r\.bottom"):
        ra.Specification({"x": ra.Integer(-1, 1)}, {"r": ra.Ratio(ra.Count(), ra.Sum("x"))}, epsilon=1.0, horizon=3)
    with pytest.raises(ra.InputError, match=r"Quantiles takes by= itself"):
        ra.GroupBy("country", ra.Quantiles("age"))
    with pytest.raises(ra.InputError, match=r"expected a field of type Category or Boolean, got Integer .*\.by"):
        ra.Specification({"x": ra.Integer(0, 1)}, {"q": ra.Quantiles("x", by="x")}, epsilon=1.0, horizon=3)


def test_files_write_groups_the_same_way_for_every_statistic() -> None:
    tables = {
        "q": {"type": "quantiles", "field": "age", "by": "country"},
        "d": {"type": "distinct", "field": "age", "by": ["country", "member"]},
        "s": {"type": "sum", "field": "age", "by": "country"},
        "r": {"type": "ratio", "top": {"type": "sum", "field": "age"}, "bottom": {"type": "count"}, "by": "member"},
    }
    schema = {name: field.spec() for name, field in SCHEMA.items()}
    spec = ra.Specification.from_dict({"epsilon": 1.0, "horizon": 4, "schema": schema, "statistics": tables})
    assert spec.statistics["q"] == ra.Quantiles("age", by="country")
    assert spec.statistics["d"] == ra.Distinct("age", by=["country", "member"])
    assert spec.statistics["s"] == ra.GroupBy("country", ra.Sum("age"))
    assert spec.statistics["r"] == ra.GroupBy("member", ra.Ratio(ra.Sum("age"), ra.Count()))
    assert math.isfinite(spec.bounds["r"].expected_error(1, 1000))
