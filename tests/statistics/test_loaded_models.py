"""Models that come back from what was published: the same as before, and refused where they are malformed."""

import json

import numpy as np
import pytest

import retroact as ra
from support.sports import COLUMNS, MODELS, people, released


def level_stream(fields, statistic, **columns):
    options = {"epsilon": 50.0, "delta": 1e-6, "horizon": 4, "key": ra.Key.for_testing(1)}
    stream = ra.Stream({**fields, "member": ra.Boolean()}, {"m": statistic}, **options)
    stream.add(columns)
    return stream.close_round()


@pytest.mark.parametrize(
    ("field", "values"),
    [
        (ra.Integer(10_000_000, 10_000_099), np.arange(10_000_000, 10_000_100)),
        (ra.Number(-0.0000012, 0.0000012, step="0.00000001"), np.arange(-120, 121) / 10**8),
        (ra.Number(123_456, 123_457, step=0.1), np.arange(1_234_560, 1_234_571) / 10),
    ],
)
def test_bins_that_six_digits_do_not_tell_apart_stay_apart(field, values):
    values = np.random.default_rng(1).choice(values, 5000)
    places = (values - values.min()) / (values.max() - values.min())
    member = (places * 9.99).astype(int) % 2 == 0
    found = level_stream({"code": field}, ra.CategoricalNB("code", "member"), code=values, member=member)
    model = found["m"].value
    again = ra.load_model(json.dumps(found["m"].to_dict()))
    assert len(again.probabilities["code"]) == 10
    assert (again.predict({"code": values}) == model.predict({"code": values})).all()
    assert (model.predict({"code": values}) == member).mean() > 0.85
    assert len(found._table()) == 2 + 2 * 10


def test_no_bin_is_empty_and_names_of_levels_differ():
    fields, values = {"n": ra.Integer(0, 2)}, np.arange(3000) % 3
    found = level_stream(fields, ra.CategoricalNB("n", "member"), n=values, member=values == 1)["m"].value
    assert list(found.probabilities["n"]) == ["0..0", "1..1", "2..2"]
    assert (found.predict({"n": [0, 1, 2]}) == [False, True, False]).all()
    twice = {"a": ra.Category(["b=c", "d"]), "a=b": ra.Category(["c", "d"])}
    with pytest.raises(ra.InputError, match="different names"):
        level_stream(twice, ra.CategoricalNB(["a", "a=b"], "member"))
    with pytest.raises(ra.InputError, match="different names"):
        level_stream({"a": ra.Category([1, "1"])}, ra.CategoricalNB("a", "member"))


def test_knots_far_from_zero_have_names():
    fields = {"t": ra.Number(5_000_000, 5_000_010), "y": ra.Number(0, 10)}
    times = np.random.default_rng(1).uniform(5_000_000, 5_000_010, 5000)
    found = level_stream(fields, ra.Ridge("t", "y", knots=4), t=times, y=times - 5_000_000, member=times > 0)["m"]
    assert found.value.feature_names == ("t", "t~5000000", "t~5000003", "t~5000007", "t~5000010")
    assert ra.load_model(found.to_dict()).predict({"t": [5_000_009]}) == pytest.approx(9, abs=0.5)
    far = {"t": ra.Number(2**53 - 5, 2**53 - 3, step=1), "y": ra.Number(0, 10)}
    named = level_stream(far, ra.Ridge("t", "y", knots=64), t=[2**53 - 4], y=[1], member=[True])["m"].value
    assert len({*named.feature_names}) == 65


def test_a_correlation_has_no_means():
    assert "means" not in released(ra.Correlation(COLUMNS), people(500)).value.to_dict()


MALFORMED = [
    ("ridge", "knots", True), ("ridge", "knots", -1), ("ridge", "records", None), ("ridge", "records", True),
    ("ridge", "notes", [1]), ("ridge", "notes", "few"), ("ridge", "intercept", "1"), ("ridge", "r_squared", "high"),
    ("ridge", "target", {"name": 3, "field": {"type": "boolean"}}), ("ridge", "target", "weight"),
    ("ridge", "target", {"name": "weight", "field": {"type": "text"}}), ("ridge", "coefficients", [1, 2, 3]),
    ("ridge", "fields", {"height": {"type": "text"}}), ("ridge", "fields", {}),
    ("classifier", "intercepts", [1.0]), ("classifier", "intercepts", [1.0, None, 1.0]),
    ("classifier", "method", 3), ("classifier", "classes", ["row"]),
    ("nearest_mean", "counts", [1.0, 2.0]), ("categorical_nb", "priors", [1.0]), ("categorical_nb", "bins", True),
    ("categorical_nb", "probabilities", {}), ("categorical_nb", "probabilities", None),
    ("covariance", "means", []), ("covariance", "matrix", [[1.0]]), ("covariance", "features", ["a"]),
    ("correlation", "matrix", [1.0]), ("pca", "components", [[1.0]]), ("pca", "components", 1), ("pca", "means", [0]),
    ("pca", "variances", []),
]  # fmt: skip


@pytest.mark.parametrize(("which", "part", "value"), MALFORMED)
def test_a_malformed_model_is_refused_when_it_is_loaded(which, part, value):
    plain = json.loads(json.dumps(released(MODELS[which], people(300)).value.to_dict()))
    ra.load_model(plain)
    with pytest.raises(ra.InputError) as caught:
        ra.load_model({**plain, part: value})
    assert caught.value.place.startswith((part, "columns", "schema"))


@pytest.mark.parametrize(
    ("which", "part"),
    [("classifier", "coefficients"), ("nearest_mean", "means"), ("categorical_nb", "probabilities")],
)
@pytest.mark.parametrize("wrong", [[1.0], [1.0, 2.0, 3.0, 4.0], None, [1.0, float("inf"), 2.0], [1.0, "x", 2.0]])
def test_a_list_of_the_wrong_length_is_refused_with_its_place(which, part, wrong):
    plain = json.loads(json.dumps(released(MODELS[which], people(300)).value.to_dict()))
    table = plain[part]["smokes"] if which == "categorical_nb" else plain[part]
    name = next(iter(table))
    table[name] = wrong
    with pytest.raises(ra.InputError, match=rf"{part}.*{name}"):
        ra.load_model(plain)
