"""Statistics by options: the specification that each text stands for, and what is refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from retroact.cli.statistic_options import Described, described_by
from retroact.errors import InputError
from support.cli_program import Program

MODELS = ["ridge", "classifier", "nearest_mean", "naive_bayes", "covariance", "correlation", "pca"]
OTHERS = ["sum", "mean", "variance", "quantiles", "histogram", "distinct", "kmeans", "ratio", "by", "where", "every"]
NONE = dict.fromkeys([*OTHERS, *MODELS])


def described(**given: Any) -> Described:
    return described_by(SimpleNamespace(**{**NONE, "count": False, "clip": False, "skip_missing": False, **given}))


def number(lower: str, upper: str) -> dict[str, str]:
    return {"type": "number", "lower": lower, "upper": upper}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "histogram": (
        {"histogram": ["city"]},
        {"city": {"type": "text"}},
        {"histogram_city": {"type": "histogram", "field": "city"}},
    ),
    "histogram of two fields, one declared": (
        {"histogram": ["city,age"], "mean": ["age:0..120"]},
        {"age": number("0", "120"), "city": {"type": "text"}},
        {
            "mean_age": {"type": "mean", "field": "age"},
            "histogram_city_age": {"type": "histogram", "field": ["city", "age"]},
        },
    ),
    "quantiles": (
        {"quantiles": ["age:0.5,0.9:0..120"]},
        {"age": number("0", "120")},
        {"quantiles_age": {"type": "quantiles", "field": "age", "probabilities": [0.5, 0.9]}},
    ),
    "quantiles of dates": (
        {"quantiles": ["day:2024-01-01..2024-12-31"]},
        {"day": {"type": "date", "lower": "2024-01-01", "upper": "2024-12-31"}},
        {"quantiles_day": {"type": "quantiles", "field": "day"}},
    ),
    "distinct by group, with the rest": (
        {"distinct": ["user"], "by": ["city=A,B,*"]},
        {"city": {"type": "category", "values": ["A", "B"], "other": "other"}, "user": {"type": "text"}},
        {"distinct_user_by_city": {"type": "distinct", "field": "user", "by": "city"}},
    ),
    "clusters": (
        {"kmeans": ["x:0..1,y:0..1:5"]},
        {"x": number("0", "1"), "y": number("0", "1")},
        {"kmeans_x_y": {"type": "kmeans", "fields": ["x", "y"], "k": 5}},
    ),
    "ridge": (
        {"ridge": ["fare:0..300 ~ miles:0..50, car=small,large,*, hour:0..23:1"]},
        {
            "fare": number("0", "300"),
            "miles": number("0", "50"),
            "car": {"type": "category", "values": ["small", "large"], "other": "other"},
            "hour": {**number("0", "23"), "step": "1"},
        },
        {"ridge_fare": {"type": "ridge", "target": "fare", "columns": ["miles", "car", "hour"]}},
    ),
    "naive Bayes": (
        {"naive_bayes": ["late=yes,no~miles:0..50"]},
        {"late": {"type": "category", "values": ["yes", "no"]}, "miles": number("0", "50")},
        {"naive_bayes_late": {"type": "categorical_nb", "target": "late", "columns": ["miles"]}},
    ),
    "components by group": (
        {"pca": ["x:0..1, y:0..1:1"], "by": ["city=A,B"]},
        {"x": number("0", "1"), "y": number("0", "1"), "city": {"type": "category", "values": ["A", "B"]}},
        {"pca_x_y_by_city": {"type": "pca", "columns": ["x", "y"], "k": 1, "by": "city"}},
    ),
    "conditions": (
        {"count": True, "where": ["age:0..120 > 17", "age < 65", "city in A, B"]},
        {"age": number("0", "120"), "city": {"type": "text"}},
        {"count": {"type": "count", "where": {"age": {"min": "18", "max": "64"}, "city": ["A", "B"]}}},
    ),
    "ratio": (
        {"ratio": ["late = yes / count", "tip:0..10/fare:0..50"]},
        {"tip": number("0", "10"), "fare": number("0", "50"), "late": {"type": "text"}},
        {
            "ratio_late_count": {
                "type": "ratio",
                "top": {"type": "count", "where": {"late": "yes"}},
                "bottom": {"type": "count"},
            },
            "ratio_tip_fare": {
                "type": "ratio",
                "top": {"type": "sum", "field": "tip"},
                "bottom": {"type": "sum", "field": "fare"},
            },
        },
    ),
    "groups alone are counted": (
        {"by": ["city=A,B"]},
        {"city": {"type": "category", "values": ["A", "B"]}},
        {"count_by_city": {"type": "count", "by": "city"}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_options_stand_for_tables(case: str) -> None:
    options, schema, statistics = CASES[case]
    found = described(**options)
    # the lattice of a number without a step has hundredths or finer: bounds of conditions are compared below
    assert found.schema == schema
    if case != "conditions":
        assert found.statistics == statistics


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        ("age:0..120:1 < 65", {"max": "64"}),
        ("age:0..120:1 <= 65", {"max": "65"}),
        ("age:0..120:1 > 17.5", {"min": "18"}),
        ("age:0..120:1 >= 17.5", {"min": "18"}),
        ("age:0..120:0.5 < 17.5", {"max": "17"}),
        ("age:0..120:0.5 <= 17.7", {"max": "17.5"}),
    ],
)
def test_a_comparison_ends_at_the_last_value_that_meets_it(condition: str, bounds: dict[str, str]) -> None:
    assert described(count=True, where=[condition]).statistics["count"]["where"] == {"age": bounds}


REFUSED = {
    "no bounds": ({"quantiles": ["age"]}, "with its bounds, such as amount:0..500, got 'age' - at --quantiles"),
    "condition without bounds": ({"count": True, "where": ["age < 5"]}, "the bounds of age, such as 'age:0..100 < 5'"),
    "no condition": ({"count": True, "where": ["age"]}, "expected a condition such as 'country = DE'"),
    "two conditions": ({"count": True, "where": ["a = 1", "a = 2"]}, "expected one condition on 'a', got two"),
    "clusters in groups": ({"kmeans": ["x:0..1:2"], "by": ["c=A"]}, "clusters cannot - at --by"),
    "clusters without k": ({"kmeans": ["x:0..1"]}, "a number of clusters, such as x:0..1,y:0..1:5"),
    "ridge without bounds": ({"ridge": ["fare:0..300 ~ miles"]}, "such as amount:0..500, got 'miles' - at --ridge"),
    "classes without values": ({"classifier": ["late ~ miles:0..5"]}, "got 'late' - at --classifier"),
    "a model without a target": (
        {"nearest_mean": ["miles:0..5"]},
        "expected a target and columns, such as 'late=yes,no",
    ),
    "two targets": ({"ridge": ["a:0..1, b:0..1 ~ c:0..1"]}, "expected one target, got 2 - at --ridge"),
    "components without k": ({"pca": ["x:0..1"]}, "a number of components, such as x:0..1,y:0..1:2"),
    "ratio without bounds": (
        {"ratio": ["tip/count"]},
        "expected count, a number with its bounds such as tip:0..100, or a condition such as 'status = late', got 'tip'"
        " - at --ratio",
    ),
    "condition of a ratio without bounds": (
        {"ratio": ["age < 5/count"]},
        "expected the bounds of age, such as 'age:0..100 < 5', got none - at --ratio 'age < 5'",
    ),
    "condition of a ratio that is no number": ({"ratio": ["age:0..9 < x/count"]}, "'x' - at --ratio 'age:0..9 < x'"),
    "bounds in a condition of a ratio": ({"ratio": ["age:9..0 < 5/count"]}, "- at --ratio age:9..0"),
    "half a ratio": ({"ratio": ["count"]}, "expected two counts or sums"),
    "other bounds": ({"sum": ["a:0..1"], "mean": ["a:0..2"]}, "expected a with the same bounds everywhere"),
    "empty field": ({"histogram": ["a,,b"]}, "expected the names of one or more fields"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused(case: str) -> None:
    options, message = REFUSED[case]
    with pytest.raises(InputError) as caught:
        described(**options)
    assert message in str(caught.value)


def test_every_common_statistic_runs_from_options_alone(program: Program) -> None:
    rows = "".join(f"{i},u{i % 7},{i % 50},{'AB'[i % 2]},{i % 90},{'yes' if i % 3 else 'no'}\n" for i in range(200))
    asked = ["--histogram", "city", "--quantiles", "age:0.5:0..120", "--distinct", "user"]
    asked += ["--kmeans", "age:0..120,amount:0..100:2", "--ratio", "late = yes/count", "--where", "amount < 40"]
    Path("rides.csv").write_text("id,user,amount,city,age,late\n" + rows)
    ended = program("run", "rides.csv", *asked, "--epsilon", 20, "--delta", 1e-6, "--testing-key", 1, "--quiet")
    assert ended.code == 0, ended.err
    names = [release["statistic"] for release in ended.releases]
    expected = ["quantiles_age", "kmeans_age_amount", "ratio_late_count", "histogram_city", "distinct_user"]
    assert names == expected


def test_every_model_runs_from_options_alone(program: Program) -> None:
    rows = "".join(f"{i},{i % 50},{'AB'[i % 2]},{i % 90},{'yes' if i % 3 else 'no'}\n" for i in range(200))
    columns = "amount:0..100, city=A,B"
    asked = ["--ridge", f"age:0..120 ~ {columns}", "--covariance", "age:0..120,amount:0..100", "--pca", f"{columns}:2"]
    for option in ("--classifier", "--nearest-mean", "--naive-bayes"):
        asked += [option, f"late=yes,no ~ {columns}"]
    asked += ["--correlation", "age:0..120,amount:0..100"]
    Path("rides.csv").write_text("id,amount,city,age,late\n" + rows)
    ended = program("run", "rides.csv", *asked, "--epsilon", 20, "--delta", 1e-6, "--testing-key", 1, "--quiet")
    assert ended.code == 0, ended.err
    kinds = [release["value"]["model"] for release in ended.releases]
    assert kinds == ["ridge", "classifier", "nearest_mean", "categorical_nb", "covariance", "correlation", "pca"]
    refused = program("run", "rides.csv", "--ridge", "age:0..120 ~ amount:0..100", "--epsilon", 1, "--testing-key", 1)
    assert refused.code == 2
    assert "expected delta > 0: a ridge has Gaussian noise" in refused.err
