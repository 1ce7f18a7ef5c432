"""Models as estimators: scikit-learn's own checks, what they forget, and what they never show."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import retroact as ra
from retroact.sklearn import ModelWarning, PublicScaler, RetroactiveRidge, make_pipeline

pytestmark = pytest.mark.filterwarnings("ignore::retroact.sklearn.ModelWarning")
COUNT = 4000

# scikit-learn's checks that cannot hold, and why.
CANNOT_HOLD: dict[str, dict[str, str]] = {"RetroactiveRidge": {}}
MAY_BE_SKIPPED = {"check_array_api_input"}


def data(seed=1, count=COUNT):
    random = np.random.default_rng(seed)
    X = random.uniform(0, 10, (count, 2))
    return X, (3 * X[:, 0] - X[:, 1] + 20 + random.normal(0, 1, count)).clip(0, 60)


def ridge(**changes):
    options = {"bounds": (0, 10), "target_bounds": (0, 60), "epsilon": 20.0, "max_releases": 7, "key": 5}
    return RetroactiveRidge(**{**options, **changes})


def same(one, two):
    return one.release_.encode() == two.release_.encode()


class CheckedRidge(RetroactiveRidge):
    """For scikit-learn's checks, whose data nobody declares."""

    def __init__(self, bounds=(-6, 6), target_bounds=(-4, 4), epsilon=900.0, key=1, max_releases=7):
        super().__init__(
            bounds=bounds, target_bounds=target_bounds, epsilon=epsilon, key=key, max_releases=max_releases
        )


@pytest.mark.parametrize("checked", [CheckedRidge()], ids=lambda estimator: type(estimator).__name__)
def test_scikit_learns_checks(checked):
    expected = CANNOT_HOLD[type(checked).__bases__[0].__name__]
    results = check_estimator(checked, expected_failed_checks=expected, on_skip=None, on_fail=None)
    by_status = {}
    for result in results:
        by_status.setdefault(result["status"], []).append((result["check_name"], result["exception"]))
    assert not by_status.get("failed")
    assert {name for name, _ in by_status.get("skipped", [])} <= MAY_BE_SKIPPED
    assert {name for name, _ in by_status.get("xfail", [])} == set(expected)
    assert len(by_status["passed"]) > 40


def test_what_is_learnt():
    X, y = data()
    model = ridge().fit(X, y)
    assert model.coef_ == pytest.approx([3, -1], abs=0.1)
    assert model.score(X, y) > 0.95
    assert model.n_records_ == pytest.approx(COUNT, rel=0.02)
    assert model.features_.tolist() == ["x0", "x1"]
    assert (model.coef_error_ > 0).all()
    assert model.predict([[1e9, -1e9]]) == pytest.approx(model.predict([[10, 0]]))
    assert (model.n_features_in_, model.n_releases_) == (2, 1)


def test_a_ball_instead_of_bounds():
    X, y = data()
    model = ridge(bounds=None, radius=15).fit(X, y)
    assert model.features_.tolist() == ["x[0]", "x[1]"]
    assert model.score(X, y) > 0.9
    for wrong in ({"radius": 15}, {"radius": 15, "bounds": None, "categories": {0: ["a"]}}):
        with pytest.raises(ra.InputError, match="one of the two"):
            ridge(**wrong).fit(X, y)


def test_columns_have_names_and_levels():
    X, y = data()
    frame = pd.DataFrame({"miles": X[:, 0], "hour": X[:, 1], "car": np.where(X[:, 0] > 5, "van", "small")})
    model = ridge(categories={"car": ["small", "van"]}).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["miles", "hour", "car"]
    assert model.features_.tolist() == ["miles", "hour", "car=small", "car=van"]
    assert model.score(frame, y) > 0.95
    assert same(model, ridge(categories={2: ["small", "van"]}).fit(frame, y))
    with pytest.raises(ra.InputError, match=r"expected one of .*small.*got 'bus' - at car, row 2"):
        model.partial_fit(frame.assign(car=["small", "bus"] + ["van"] * (COUNT - 2)), y)
    with pytest.raises(ra.InputError, match="bus"):
        model.predict(frame.assign(car="bus"))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"hour": "day"}))
    assert model.n_releases_ == 1


def test_what_is_forgotten_has_never_been():
    X, y = data()
    model = ridge().fit(X, y, subjects=[f"u{i % 20}" for i in range(COUNT)])
    assert model.forget(range(1000)).unknown == []
    assert model.forget(subject=["u3", "nobody"]).unknown == ["nobody"]
    assert same(model, ridge().fit(X, y))
    stays = [i for i in range(1000, COUNT) if i % 20 != 3]
    assert same(model.refresh(), ridge().fit(X[stays], y[stays]).refresh())
    assert same(
        model.add(X[:9], y[:9]).refresh(),
        ridge().add(X[stays], y[stays]).add(X[:9], y[:9]).refresh().refresh().refresh(),
    )


def test_rows_in_any_form_are_the_same_records():
    X, y = data()
    found = ridge().fit(X, y)
    order = np.random.default_rng(2).permutation(COUNT)
    assert same(found, ridge().fit(np.asfortranarray(X), y))
    assert same(found, ridge().fit(X[order], y[order]))
    parts = ridge()
    for k in range(0, COUNT, 700):
        parts.add(X[k : k + 700], y[k : k + 700])
    assert same(found, parts.refresh())


def test_people_are_forgotten_after_a_restart(tmp_path):
    X, y = data()
    names, owners = [f"r{i}" for i in range(COUNT)], [f"u{i % 20}" for i in range(COUNT)]
    place = tmp_path / "fares"
    ridge(store=place).fit(pd.DataFrame(X, columns=["a", "b"]), y, ids=names, subjects=owners).close()
    again = ridge(store=place)
    assert again.forget(subject="u3").unknown == []
    assert again.forget("r0").unknown == []
    stays = [i for i in range(1, COUNT) if i % 20 != 3]
    never = ridge().fit(pd.DataFrame(X[stays], columns=["a", "b"]), y[stays]).refresh()
    assert same(again.refresh(), never)
    assert again.feature_names_in_.tolist() == ["a", "b"]
    again.close()
    with pytest.raises(ra.InputError, match="parameters that the stream in the store was made with"):
        ridge(store=place, bounds=(0, 11)).forget("r1")


def test_a_pickle_has_the_published_model_alone():
    random = np.random.default_rng(3)
    X, y = random.uniform(0, 10, (50, 2)).round(5), random.uniform(0, 60, 50).round(3)
    key = ra.Key.generate()
    model = ridge(key=key).fit(X, y, ids=[f"person-{i}" for i in range(50)], subjects=["somebody"] * 50)
    content = pickle.dumps(model)
    exact = [np.float64(value).tobytes() for value in (*X.ravel(), *(X.T @ X).ravel(), y.sum(), len(X))]
    for secret in (key._secret, b"person-7", b"somebody", *exact):
        assert secret not in content
    copied = pickle.loads(content)
    assert (copied.predict(X) == model.predict(X)).all()
    for go_on in (lambda: copied.forget("person-7"), lambda: copied.partial_fit(X, y), copied.refresh):
        with pytest.raises(ra.InputError, match="copy"):
            go_on()
    with pytest.raises(ra.KeyReusedError):
        clone(model).fit(X, y)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"bounds": None}, "bounds"), ({"bounds": (1, 0)}, "bounds"), ({"bounds": 3}, "bounds"),
        ({"target_bounds": None}, "target_bounds"), ({"target_bounds": (5, 5)}, "target_bounds"),
        ({"knots": 1}, "knots"), ({"max_releases": 0}, "max_releases"), ({"epsilon": -1}, "epsilon"),
        ({"categories": {"z": ["a"]}}, "categories"), ({"key": "k"}, "key"), ({"clip": 1}, "clip"),
    ],
)  # fmt: skip
def test_parameters_are_checked_by_fit(changes, place):
    with pytest.raises(ra.InputError) as caught:
        ridge(**changes).fit(*data())
    assert place in caught.value.place


def test_bad_records_change_nothing():
    X, y = data()
    model = ridge(clip=False).fit(X, y)
    before, state = dict(vars(model)), model._source.stream.state()
    bad = X[:3].copy()
    bad[1, 0] = np.nan
    for wrong, message in [
        ((bad, y[:3]), "NaN"),
        ((X[:3] * 9, y[:3]), "between 0 and 10"),
        ((X[:3], y[:3] * 9), "between"),
        ((X[:3, :1], y[:3]), "features"),
        ((X[:3], y[:2]), "inconsistent"),
        ((X[:3], None), "y"),
    ]:
        for change in (model.partial_fit, model.add):
            with pytest.raises(ValueError, match=message):
                change(*wrong)
    with pytest.raises(ra.InputError, match="3 ids"):
        ridge().fit(X[:3], y[:3], ids=["a", "b"])
    assert vars(model) == before
    assert model._source.stream.state() == state


def test_steps_before_it():
    X, y = data()
    line = make_pipeline(PublicScaler(bounds=(0, 10)), ridge(bounds=(-1, 1))).fit(X, y)
    assert line.score(X, y) > 0.95
    assert line.forget(range(100)).unknown == []
    assert line.refresh()[-1].n_releases_ == 2


def test_doubtful_models_warn():
    X, y = data(count=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ModelWarning, match="too few"):
            ridge(epsilon=0.5).fit(X, y)
