"""Regression that forgets: what is published, how wrong it is, and what happens elsewhere."""

import json
import math

import numpy as np
import pytest

import retroact as ra
from retroact.statistics.models.feature_map import LENGTH
from support.exact_models import exact_answer

SCHEMA = {
    "miles": ra.Number(0, 50),
    "hour": ra.Integer(0, 23),
    "car": ra.Category(["small", "large", "van"]),
    "shared": ra.Boolean(),
    "fare": ra.Number(0, 300, clip=True),
}
COLUMNS = ["miles", "hour", "car", "shared"]


def rides(count=20_000, seed=1):
    rng = np.random.default_rng(seed)
    miles, hour, car = rng.uniform(0, 50, count), rng.integers(0, 24, count), rng.integers(0, 3, count)
    shared = rng.random(count) < 0.3
    fare = 20 + 4 * miles + np.array([0.0, 6.0, 30.0])[car] - 10 * shared + rng.normal(0, 8, count)
    names = np.array(["small", "large", "van"])[car]
    return {"miles": miles, "hour": hour, "car": names, "shared": shared, "fare": fare}


def released(statistic, columns=None, *, epsilon=4.0, seed=1, **options):
    arguments = {"epsilon": epsilon, "delta": 1e-6, "horizon": 63, "key": ra.Key.for_testing(seed), **options}
    stream = ra.Stream(SCHEMA, {"model": statistic}, **arguments)
    stream.add(rides() if columns is None else columns)
    return stream.close_round()["model"]


def test_a_model_predicts_and_says_what_it_learnt():
    release, data = released(ra.Ridge(COLUMNS, "fare")), rides(seed=2)
    model = release.value
    assert model.coefficients["miles"] == pytest.approx(4, abs=0.4)
    assert model.coefficients["shared"] == pytest.approx(-10, abs=3)
    assert model.coefficients["car=van"] - model.coefficients["car=small"] == pytest.approx(30, abs=8)
    left = data["fare"] - model.predict(data)
    assert 1 - (left**2).sum() / ((data["fare"] - data["fare"].mean()) ** 2).sum() > 0.95
    assert model.r_squared == pytest.approx(0.97, abs=0.1)
    assert model.records == pytest.approx(20_000, rel=0.05)
    assert release.standard_error == model.error
    low, high = release.interval(0.95)["coefficients"]["miles"]
    assert high - low == pytest.approx(2 * 1.96 * model.error["coefficients"]["miles"], rel=1e-3)


def test_a_prediction_is_what_the_docstring_says():
    """Intercept and coefficient * (value - middle), where the row is not shortened."""
    model = released(ra.Ridge(COLUMNS, "fare")).value
    found = model.predict({"miles": [30], "hour": [10], "car": ["van"], "shared": [False]})
    slopes = model.coefficients
    cars = slopes["car=van"] - (slopes["car=van"] + slopes["car=small"] + slopes["car=large"]) / 3
    expected = model.intercept + 5 * slopes["miles"] - 1.5 * slopes["hour"] + cars - 0.5 * slopes["shared"]
    assert found[0] == pytest.approx(expected, abs=0.2)


def test_knots_learn_what_bends():
    data = rides()
    data["fare"] = 150 + 100 * np.sin(data["miles"] / 8)
    linear, bent = (released(ra.Ridge("miles", "fare", knots=knots), data, epsilon=20.0).value for knots in (0, 8))
    wrong = [float(np.abs(model.predict(data) - data["fare"]).mean()) for model in (linear, bent)]
    assert wrong[1] < wrong[0] / 3


def test_a_model_is_plain_data_and_loads_elsewhere():
    release, data = released(ra.Ridge(COLUMNS, "fare", knots=3)), rides(seed=3)
    line = json.dumps(release.to_dict())
    for given in (line, line.encode(), json.loads(line), release.value.to_dict()):
        again = ra.load_model(given)
        assert again.to_dict() == release.value.to_dict()
        assert (again.predict(data) == release.value.predict(data)).all()


def test_a_model_that_cannot_be_read_is_refused():
    plain = released(ra.Ridge(COLUMNS, "fare")).value.to_dict()
    for change, message in (
        ({"model": "rigde"}, "got 'rigde' .did you mean 'ridge'"),
        ({"version": 2}, "a model of version 1, got 2"),
        ({"more": 1}, "expected only"),
        ({"coefficients": {"miles": 1}}, "which is missing - at coefficients.hour"),
    ):
        with pytest.raises(ra.InputError, match=message):
            ra.load_model({**plain, **change})
    with pytest.raises(ra.InputError, match="expected a model as JSON"):
        ra.load_model("{")
    with pytest.raises(ra.InputError, match="with one of"):
        ra.load_model([1])


def test_a_deleted_record_leaves_no_trace_in_any_later_model():
    key, kept, gone = ra.Key.for_testing(5), rides(300), rides(40, seed=9)
    one, other = (ra.Stream(SCHEMA, {"m": ra.Ridge(COLUMNS, "fare")}, epsilon=1.0, delta=1e-6, horizon=9, key=key)
                  for _ in range(2))  # fmt: skip
    one.add(kept), other.add(kept)
    one.add(gone, subject=["u"] * 40)
    assert one.close_round().encode() != other.close_round().encode()
    one.erase(subject="u")
    first, second = one.close_round(), other.close_round()
    assert first.encode() == second.encode()
    assert first["m"].to_dict() == second["m"].to_dict()


def test_the_error_covers_the_model_of_the_exact_sums():
    """Of all numbers of 40 models, under as many keys, 95 % intervals hold the same model without noise."""
    model = exact_answer(SCHEMA, ra.Ridge(COLUMNS, "fare"), rides(5000), epsilon=1.0).value
    exact = {"intercept": model.intercept, "coefficients": model.coefficients}
    inside = []
    for seed in range(40):
        release = released(ra.Ridge(COLUMNS, "fare"), rides(5000), epsilon=1.0, seed=seed)
        found = release.interval(0.95)
        inside.append(found["intercept"][0] <= exact["intercept"] <= found["intercept"][1])
        for name, (low, high) in found["coefficients"].items():
            inside.append(low <= exact["coefficients"][name] <= high)
    assert 0.93 <= np.mean(inside) <= 0.99


def test_without_records_a_model_is_modest():
    model = released(ra.Ridge(COLUMNS, "fare"), rides(0), epsilon=0.1).value
    assert "too few records: there may be none" in model.notes
    assert np.isfinite(list(model.coefficients.values())).all()
    assert ((model.predict(rides(50)) >= 0) & (model.predict(rides(50)) <= 300)).all()
    assert model.r_squared is None or 0 <= model.r_squared <= 1


def test_delta_zero_is_refused_when_the_stream_is_made():
    with pytest.raises(ra.InputError, match=r"expected delta > 0: a ridge has Gaussian noise - at statistics\.model"):
        ra.Stream(SCHEMA, {"model": ra.Ridge("miles", "fare"), "n": ra.Count()}, epsilon=1.0, horizon=8)
    with pytest.raises(ra.InputError, match="expected delta > 0"):
        ra.Stream(SCHEMA, {"model": ra.GroupBy("car", ra.Ridge("miles", "fare"))}, epsilon=1.0, horizon=8)
    with pytest.raises(ra.InputError, match="expected Gaussian noise for second moments"):
        released(ra.Ridge("miles", "fare", noise="paper"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["miles", "fare"]}, "a target that is not one of the columns, got 'fare'"),
        ({"columns": "miles", "target": "car"}, "a field of type Number or Integer or Boolean, got Category"),
        ({"knots": 1}, "expected 0, or 2 to 64 knots, got 1"),
        ({"most": 2000}, "a whole number from 1 to 1,024, got 2000"),
        ({"most": 3}, "at most 3 features.*got 5"),
        ({"columns": []}, "the names of one or more different fields"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ra.InputError, match=message):
        released(ra.Ridge(**{"columns": ["miles", "hour", "car"], "target": "fare", **arguments}))


def test_other_laws_do_not_change_the_noise_of_a_model():
    """Where a count chooses Laplace noise for the stream, a model has Gaussian noise still."""
    spec = ra.Specification(
        SCHEMA, {"m": ra.Ridge("miles", "fare"), "n": ra.Count()}, epsilon=1.0, delta=1e-6, horizon=8, law="laplace"
    )
    assert [spec.shares[name].kind for name in ("m", "n")] == ["gaussian", "pure"]


def test_options_of_every_statistic_work():
    by_car = released(ra.GroupBy("car", ra.Ridge("miles", "fare")), epsilon=8.0).value
    assert set(by_car) == {"small", "large", "van"}
    vans = released(ra.Ridge("miles", "fare", where={"car": "van"}), epsilon=8.0).value
    assert vans.intercept == pytest.approx(by_car["van"].intercept, abs=6)
    assert by_car["van"].intercept - by_car["small"].intercept == pytest.approx(30, abs=12)
    assert by_car["van"].records == pytest.approx(20_000 / 3, rel=0.2)


def test_a_model_becomes_rows_of_the_table():
    table = released(ra.Ridge(["miles", "car"], "fare"))._table()
    assert table["feature"] == ["(intercept)", "miles", "car=small", "car=large", "car=van"]
    assert all(low < value < high for low, value, high in zip(table["low"], table["value"], table["high"], strict=True))


def test_rows_that_training_shortens_are_shortened_in_prediction():
    """The planted bug is a map that shortens in training alone."""
    fields = {f"x{place}": ra.Number(-1, 1) for place in range(6)}
    stream = ra.Stream({**fields, "y": ra.Number(-6, 6)}, {"m": ra.Ridge(list(fields), "y")}, epsilon=50.0, delta=1e-6,
                       horizon=2, key=ra.Key.for_testing(1))  # fmt: skip
    rng = np.random.default_rng(1)
    columns = {name: rng.choice([-1.0, 1.0], 20_000) for name in fields}
    stream.add({**columns, "y": sum(columns.values())})
    model = stream.close_round()["m"].value

    def wrong(features):
        model.features = features
        return float(np.abs(model.predict(columns) - sum(columns.values())).mean())

    right = model.features
    assert (np.abs(right.read(columns)) ** 2).sum(axis=1).max() <= LENGTH**2
    planted = type(right)(right.fields)
    planted.points = lambda columns, where=slice(None): right.points(columns, where) / math.sqrt(0.64)
    assert wrong(right) < 0.2 < 0.35 < wrong(planted)
