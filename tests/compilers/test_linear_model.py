"""Gradient descent in a window: what a record moves, what is charged, and that no sum depends on order."""

import re
from fractions import Fraction

import numpy as np
import pytest

import retroact as ra
from retroact.coins import Coins
from retroact.compilers.linear_model import COUNT_UNIT, MOMENTUM, Descent, shares_of
from retroact.oneshot import LinearModel
from retroact.schema import Rows
from retroact.statistics.models.feature_map import LENGTH
from retroact.stream.plan import plan

SCHEMA = {
    "miles": ra.Number(0, 50, missing="skip"),
    "hour": ra.Integer(0, 23),
    "car": ra.Category(["small", "large", "van"]),
    "fare": ra.Number(0, 300, clip=True),
}
COLUMNS = ["miles", "hour", "car"]
BY_LOSS = pytest.mark.parametrize("loss", ["squared", "logistic"])


def rides(count, seed=1):
    rng = np.random.default_rng(seed)
    miles, hour, car = rng.uniform(0, 50, count), rng.integers(0, 24, count), rng.integers(0, 3, count)
    fare = 20 + 4 * miles + np.array([0.0, 6.0, 30.0])[car] + rng.normal(0, 8, count)
    return {"miles": miles, "hour": hour, "car": np.array(["small", "large", "van"])[car], "fare": fare}


def model_of(loss, **options):
    if loss == "squared":
        return LinearModel(COLUMNS, "fare", **options)
    return LinearModel(["miles", "hour", "fare"], "car", loss="logistic", **options)


def descent_of(model, rows):
    schema = ra.Schema(SCHEMA)
    return Descent(rows, model._features(schema), model._target(schema), model)


def encoded(columns):
    return ra.Schema(SCHEMA).encode(columns)[0]


@BY_LOSS
@pytest.mark.parametrize("clip", [0.01, 0.3, 2])
def test_one_record_moves_a_question_by_at_most_one(loss, clip):
    rng = np.random.default_rng(1)
    model = model_of(loss, clip=clip)
    layout = model.layout(ra.Schema(SCHEMA))
    ends = {
        "miles": [0, 50, 0, 50],
        "hour": [0, 23, 23, 0],
        "car": ["small", "van", "large", "van"],
        "fare": [0, 300, 300, 0],
    }
    several = {name: [*ends[name], *np.asarray(column).tolist()] for name, column in rides(60).items()}
    rows = encoded(several)
    largest = 0
    for scale in (0, 1, 100, LENGTH, 1 << 22):
        shape = descent_of(model, rows)._shape
        coefficients = np.rint(np.clip(rng.normal(0, scale, shape), -(1 << 22), 1 << 22))
        for place in range(rows.count):
            moved = descent_of(model, rows.take(np.array([place]))).sums(coefficients)
            largest = max(largest, sum(Fraction(one, unit) ** 2 for one, unit in zip(moved, layout.units, strict=True)))
    assert layout.norm2_squared == 1
    assert Fraction(1, 2) < largest <= 1
    assert layout.units[-1] == COUNT_UNIT


def test_without_the_clip_a_record_moves_more():
    """The check above can fail."""
    model = model_of("squared", clip=0.1)
    unclipped = model_of("squared", clip=2)
    unit = model.layout(ra.Schema(SCHEMA)).units[0]
    far = encoded({"miles": [0], "hour": [0], "car": ["van"], "fare": [300]})
    moved = descent_of(unclipped, far).sums(np.zeros((6, 1)))
    assert sum(Fraction(one, unit) ** 2 for one in moved[:-1]) > 1


@BY_LOSS
def test_sums_depend_on_no_order_and_on_no_batch(loss):
    columns, model = rides(997), model_of(loss)
    rows = encoded(columns)
    coefficients = np.rint(np.random.default_rng(2).normal(0, 2000, descent_of(model, rows)._shape))
    whole = descent_of(model, rows).sums(coefficients)
    order = np.random.default_rng(3).permutation(997)
    assert descent_of(model, rows.take(order)).sums(coefficients) == whole
    assert descent_of(model, rows).sums(np.asfortranarray(coefficients)) == whole
    for size in (1, 7):
        pieces = [rows.take(np.arange(k, min(k + size, 997))) for k in range(0, 997, size)]
        parts = [descent_of(model, piece).sums(coefficients) for piece in pieces]
        assert [sum(column) for column in zip(*parts, strict=True)] == whole
    kept, gone = rows.take(np.arange(996)), rows.take(np.array([996]))
    left, last = (descent_of(model, part).sums(coefficients) for part in (kept, gone))
    assert [one + other for one, other in zip(left, last, strict=True)] == whole


def test_probabilities_of_classes():
    margins = np.random.default_rng(4).normal(0, 1 << 25, (500, 3)).round()
    shares = shares_of(margins)
    exact = np.exp((margins - margins.max(axis=1, keepdims=True)) / 2.0**24)
    assert np.abs(shares / LENGTH - exact / exact.sum(axis=1, keepdims=True)).max() < 0.003
    assert (shares.sum(axis=1) <= LENGTH).all()


def stream(model, **options):
    arguments = {"epsilon": 4.0, "delta": 1e-6, "horizon": 8, "key": ra.Key.for_testing(1), **options}
    return ra.Stream(SCHEMA, {"model": ra.WindowSample(model)}, **arguments)


@BY_LOSS
def test_what_is_learnt(loss):
    columns = rides(20_000)
    if loss == "logistic":
        columns["car"] = np.where(columns["miles"] > 25, "van", "small")
    into = stream(model_of(loss))
    into.add(columns)
    release = into.close_round()["model"]
    model = release.value
    assert model.records == pytest.approx(20_000, rel=0.02)
    new = rides(2000, seed=5)
    if loss == "squared":
        left = new["fare"] - model.predict(new)
        assert 1 - (left**2).sum() / ((new["fare"] - new["fare"].mean()) ** 2).sum() > 0.95
    else:
        assert (model.predict(new) == np.where(new["miles"] > 25, "van", "small")).mean() > 0.95
    assert (ra.load_model(release.to_dict()).predict(new) == model.predict(new)).all()


@BY_LOSS
def test_what_is_deleted_has_never_been(loss):
    columns = rides(500)
    into, never = stream(model_of(loss, iterations=5)), stream(model_of(loss, iterations=5))
    into.add(columns, id=range(500))
    never.add({name: column[100:] for name, column in columns.items()}, id=range(100, 500))
    assert into.close_round()["model"].encode() != never.close_round()["model"].encode()
    into.delete(id=list(range(100)))
    for _ in range(2):
        assert into.close_round()["model"].encode() == never.close_round()["model"].encode()


@pytest.mark.parametrize("window", [None, 3])
def test_every_question_of_every_release_is_charged(window):
    """By the definition: one record is in W releases, and in each of them in every question."""
    model = model_of("squared", iterations=7)
    spec = ra.Specification(
        SCHEMA, {"model": ra.WindowSample(model, window=window)}, epsilon=1.0, delta=1e-6, horizon=8
    )
    noise, share = spec.bounds["model"].noise, spec.shares["model"]
    unit, questions = model.layout(spec.schema).units[0], 7 * (8 if window is None else window)
    assert share.kind == "gaussian"
    for question in (1, 7, 56):
        deviation = float(noise.deviations(question)[0])
        wanted = unit * (questions / float(share.amount)) ** 0.5
        assert 1 <= deviation / wanted < 1.01
    assert not {bytes(noise.under(Coins(bytes(32))).draw(1)[0])} & {
        bytes(noise.under(Coins(bytes(32))).draw(question)[0]) for question in range(2, 57)
    }


def test_in_a_plan_and_in_a_file(tmp_path):
    plan = str(stream(model_of("squared")).plan())
    assert "60 noisy gradients a release" in plan
    assert "rule of thumb, no more, from the specification alone" in plan
    text = {"type": "window_sample", "window": 3, "of": {"type": "linear_model", "columns": COLUMNS, "target": "fare"}}
    assert ra.WindowSample.from_spec(text, "statistics.m") == ra.WindowSample(model_of("squared"), window=3)
    assert model_of("logistic", clip="0.5", step=10).spec()["clip"] == "0.5"


@pytest.mark.parametrize(
    ("loss", "options", "better"),
    [
        ("squared", {"horizon": 64}, "LinearModel is worth a try"),
        ("squared", {"horizon": 1023}, "rather Ridge"),
        ("squared", {"horizon": 1023, "window": 63}, "LinearModel is worth a try"),
        ("logistic", {"horizon": 16}, "LinearModel is worth a try"),
        ("logistic", {"horizon": 63}, "rather Classifier"),
        ("logistic", {"window": 63}, "rather Classifier"),
    ],
)
def test_a_plan_has_the_noise_of_both(loss, options, better):
    """That of sums of products is the noise which a stream with the same promises and that model really has."""
    model = model_of(loss, knots=4)
    spec = ra.Specification(SCHEMA, {"m": ra.WindowSample(model)}, epsilon=1.0, delta=1e-6, **options)
    _, instead, rule = plan(spec)["m"].notes
    kind = ra.Ridge if loss == "squared" else ra.Classifier
    other = kind(model.columns, model.target, knots=4)
    real = ra.Specification(SCHEMA, {"m": other}, epsilon=1.0, delta=1e-6, **options)
    bound, made = real.bounds["m"], other.products(real.schema)
    deviations = bound.noise.deviations(bound.outlook.worst)
    width, first = made.features.width, made.blocks[1].start
    across = deviations[first] / LENGTH / made.target.largest * (width * made.targets) ** 0.5 / spec.records_of("m")
    among = deviations[0] / LENGTH**2 * (2 * width) ** 0.5 / spec.records_of("m")
    assert f"with {kind.__name__} in its place" in instead
    assert f"it is {across:.3g} long" in instead
    assert f"and {among:.3g} for each unit of length" in instead
    assert rule.endswith(better)
    assert "rule of thumb" in rule


def test_the_noise_of_a_plan_is_that_of_the_gradients():
    model = model_of("squared")
    spec = ra.Specification(SCHEMA, {"m": ra.WindowSample(model)}, epsilon=1.0, delta=1e-6, horizon=8)
    line, *_ = plan(spec, records=1000)["m"].notes
    drawn = []
    for seed in range(40):
        noise = spec.bounds["m"].noise.under(Coins(bytes([seed]) * 32))
        for question in range(1, 61):
            values, denominator = noise.draw(question)
            drawn.append(np.array([float(value) for value in values[1:-1]]) / denominator / LENGTH**2 / 1000)
    each = np.sqrt((np.array(drawn) ** 2).sum(axis=1).mean())
    averaged = np.sqrt((np.array(drawn).reshape(40, 60, -1)[:, 30:].mean(axis=1) ** 2).sum(axis=1).mean())
    one, half = re.search(r"of one is (\S+) long, and (\S+) over", line).groups()
    assert each == pytest.approx(float(one), rel=0.05)
    assert averaged == pytest.approx(float(half), rel=0.2)


def test_one_run_alone_has_a_contract():
    model = model_of("squared", epsilon=2.0, iterations=5)
    assert (model.contract.epsilon, model.contract.delta) == (2, Fraction(1, 10**6))
    schema = ra.Schema(SCHEMA)
    found = model.run(encoded(rides(3000)), schema, Coins(bytes(32)))
    assert found.to_dict() == model.run(encoded(rides(3000)), schema, Coins(bytes(32))).to_dict()
    assert model.run(Rows.empty(schema), schema, Coins(bytes(32))).notes == ("too few records: there may be none",)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearModel("miles", "miles"), "not one of the columns"),
        (lambda: LinearModel("miles", "fare", iterations=0), "iterations"),
        (lambda: LinearModel("miles", "fare", clip=0), "clip"),
        (lambda: LinearModel("miles", "fare", loss="hinge"), "loss"),
        (lambda: LinearModel("miles", "fare", step=float("inf")), "finite number above 0, got inf - at step"),
        (lambda: LinearModel("miles", "fare", step=float("nan")), "finite number above 0, got nan - at step"),
        (lambda: LinearModel("miles", "fare", most=1025), "from 1 to 1,024"),
        (lambda: stream(LinearModel(COLUMNS, "fare", most=4)), "at most 4 features"),
        (lambda: stream(LinearModel("miles", "car")), "target"),
        (lambda: stream(LinearModel("day", "fare")), "day"),
        (lambda: stream(model_of("squared"), delta=0), "delta"),
        (lambda: ra.WindowSample(model_of("squared"), rate=0.5), "all live records"),
        (lambda: ra.WindowSample(model_of("squared"), gate=100), "all live records"),
        (lambda: ra.Stream(SCHEMA, {"m": ra.WindowSample(model_of("squared"))}, epsilon=1.0, delta=1e-6), "window"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ra.InputError, match=message):
        make()


@BY_LOSS
def test_all_of_the_noise_is_added(loss):
    """One step from zero: the first gradient is that of the records and the whole of the noise, each way."""
    model = model_of(loss, iterations=1, step=1)
    descent = descent_of(model, encoded(rides(50)))
    size, denominator = descent._shape[0] * descent._shape[1], 8
    exact = descent.sums(np.zeros(descent._shape))
    for noise in (0, 10**9, -(10**9)):
        drawn = np.full(size + 1, noise, dtype=np.int64)
        drawn[-1] = 0
        found, records = descent.run(lambda question, drawn=drawn: (drawn, denominator))
        noisy = np.array(exact[:-1]) + noise / denominator
        wanted = np.rint(-noisy / (50 * LENGTH) * (1 - MOMENTUM)) / LENGTH
        assert records == 50
        assert np.abs(found.ravel() - wanted).max() <= 1 / LENGTH
