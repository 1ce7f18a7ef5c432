"""Whoever looks for what is not there is told what is."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import retroact as ra
from retroact.messages import Named

SCHEMA = {"sort": ra.Category(["a", "b"]), "age": ra.Integer(0, 120), "city": ra.Text()}
STATISTICS = {
    "g": ra.GroupBy("sort", ra.Count()), "q": ra.Quantiles("age", [0.5], cdf=[30], by="sort"), "p": ra.Quantiles("age"),
    "h": ra.Histogram("city"), "past": ra.Restated(ra.Count(), [0, 1]),
}  # fmt: skip


@pytest.fixture(scope="module")
def released() -> tuple[ra.Stream, ra.Round]:
    stream = ra.Stream(SCHEMA, STATISTICS, epsilon=90.0, delta=1e-6, horizon=4, key=ra.Key.for_testing(1))
    stream.add({"sort": ["a", "b"] * 200, "age": [30, 40] * 200, "city": ["Rome"] * 400})
    stream.close_round()
    return stream, stream.close_round()


LOOKS: dict[str, tuple[Callable[[ra.Stream, ra.Round], Any], str]] = {
    "a group": (lambda s, r: r["g"].value["z"], "expected one of a, b, got 'z'"),
    "an error of a group": (lambda s, r: r["g"].standard_error["z"], "expected one of a, b, got 'z'"),
    "an interval of a group": (lambda s, r: r["g"].interval()["z"], "expected one of a, b, got 'z'"),
    "a group of quantiles": (lambda s, r: r["q"].value["z"], "expected one of a, b, got 'z'"),
    "a probability": (lambda s, r: r["p"].value[0.3], "got 0.3"),
    "a point of the distribution": (lambda s, r: r["q"].value["a"].cdf[31], "expected one of 30, got 31"),
    "a bin": (lambda s, r: r["h"].value["Rom"], "expected one of Rome, got 'Rom' (did you mean 'Rome'?)"),
    "a past round": (lambda s, r: r["past"].value[7], "expected one of 2, 1, got 7"),
    "a statistic of a specification": (
        lambda s, r: s.specification.statistics["gg"],
        "expected one of g, q, p, h, past",
    ),
    "a field of a schema": (lambda s, r: s.schema.fields["aeg"], "(did you mean 'age'?)"),
    "a release": (lambda s, r: r["gg"], "expected one of g, q, p, h, past, got 'gg' (did you mean 'g'?)"),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_name_that_is_not_there(name: str, released: tuple[ra.Stream, ra.Round]) -> None:
    look, words = LOOKS[name]
    with pytest.raises(KeyError) as error:
        look(*released)
    assert words in error.value.args[0]


def test_values_are_dictionaries_like_others(released: tuple[ra.Stream, ra.Round]) -> None:
    value = released[1]["g"].value
    assert value == dict(value)
    assert repr(value) == repr(dict(value))
    assert pickle.loads(pickle.dumps(value)) == value
    assert value.get("z") is None
    assert "z" not in value


def test_many_names_are_not_all_listed() -> None:
    with pytest.raises(KeyError, match="and 980 more, got 'x'"):
        Named(dict.fromkeys(range(1000)))["x"]
