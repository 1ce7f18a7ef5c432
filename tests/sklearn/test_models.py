"""Models as estimators: scikit-learn's own checks, what they forget, and what they never show."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import retroact as ra
from retroact.sklearn import (
    ModelWarning,
    PublicScaler,
    RetroactiveCategoricalNB,
    RetroactiveClassifier,
    RetroactiveNearestMean,
    RetroactivePCA,
    RetroactiveRidge,
    make_pipeline,
)

pytestmark = pytest.mark.filterwarnings("ignore::retroact.sklearn.ModelWarning")
COUNT = 4000

# Not run where an environment variable of SciPy's is not set.
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


class FewParameters:
    """For scikit-learn's checks, whose data nobody declares."""

    def __init__(self, bounds=(-6, 6), epsilon=900.0, key=1, max_releases=7):
        super().__init__(bounds=bounds, epsilon=epsilon, key=key, max_releases=max_releases)


class FromData(FewParameters):
    def _declared(self, y):
        found = self.classes_ if y is None else np.unique(y)
        if len(found) < 2:
            raise ValueError("one class")
        return found


class CheckedRidge(FewParameters, RetroactiveRidge):
    target_bounds = (-4, 4)

    def __setattr__(self, name, value):
        if name != "target_bounds":
            super().__setattr__(name, value)


class CheckedClassifier(FromData, RetroactiveClassifier):
    pass


class CheckedNearestMean(FromData, RetroactiveNearestMean):
    pass


class CheckedCategoricalNB(FromData, RetroactiveCategoricalNB):
    pass


class CheckedPCA(RetroactivePCA):
    def __init__(self, n_components=1, bounds=(-6, 6), epsilon=900.0, key=1, max_releases=7):
        options = {"epsilon": epsilon, "key": key, "max_releases": max_releases}
        super().__init__(n_components=n_components, bounds=bounds, **options)


CHECKED = [CheckedRidge, CheckedClassifier, CheckedNearestMean, CheckedCategoricalNB, CheckedPCA]


@pytest.mark.parametrize("checked", CHECKED)
def test_scikit_learns_checks(checked):
    """All of them: none is left out, and none is expected to fail."""
    results = check_estimator(checked(), on_skip=None, on_fail=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] != "passed"}
    assert failed.keys() <= MAY_BE_SKIPPED
    assert len(results) > 40


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


# Classes --------------------------------------------------------------------------------------------------------------

CLASSIFIERS = pytest.mark.parametrize("kind", [RetroactiveClassifier, RetroactiveNearestMean, RetroactiveCategoricalNB])


def labelled(count=COUNT):
    X, _ = data(count=count)
    return X, np.where(X[:, 0] > X[:, 1], "right", "left")


def classifier(kind, **changes):
    options = {"classes": ["right", "left"], "bounds": (0, 10), "epsilon": 20.0, "max_releases": 7, "key": 5}
    return kind(**{**options, **changes})


@CLASSIFIERS
def test_classes_are_learnt_and_forgotten(kind):
    X, y = labelled()
    model = classifier(kind).fit(X, y, subjects=["u1" if one > 9 else "u2" for one in X[:, 0]])
    assert model.classes_.tolist() == ["left", "right"]
    assert model.score(X, y) > 0.85
    assert model.forget(subject="u1").unknown == []
    assert model.forget(range(50)).unknown == [str(i) for i in range(50) if X[i, 0] > 9]
    stays = [i for i in range(50, COUNT) if X[i, 0] <= 9]
    assert same(model.refresh(), classifier(kind).fit(X[stays], y[stays]).refresh())
    if kind is not RetroactiveNearestMean:
        shares = model.predict_proba(X)
        assert shares.sum(axis=1) == pytest.approx(1)
        assert (model.classes_[shares.argmax(axis=1)] == model.predict(X)).all()


@CLASSIFIERS
def test_undeclared_classes_are_refused(kind):
    X, y = labelled(100)
    model = classifier(kind).fit(X, y)
    before = dict(vars(model))
    strange = np.array([*y[:-1], "up"], dtype=object)
    for change in (model.partial_fit, model.add):
        with pytest.raises(ra.InputError, match=r"declared classes left, right, got up - at y, row 100"):
            change(X, strange.astype(str))
    with pytest.raises(ra.InputError, match="expected the declared classes"):
        model.partial_fit(X, y, classes=["left", "right", "up"])
    assert vars(model) == before
    for wrong in (None, ["left"]):
        with pytest.raises(ra.InputError, match="classes"):
            classifier(kind, classes=wrong).fit(X, y)
    assert classifier(kind, classes=[True, False]).fit(X, y == "left").predict(X).dtype == np.bool_
    assert classifier(kind, classes=[7, 3]).fit(X, np.where(y == "left", 3, 7)).classes_.tolist() == [3, 7]


def test_without_delta():
    X, y = labelled()
    for kind in (RetroactiveNearestMean, RetroactiveCategoricalNB):
        assert classifier(kind, delta=0.0).fit(X, y).score(X, y) > 0.8
    with pytest.raises(ra.InputError, match="delta"):
        classifier(RetroactiveClassifier, delta=0.0).fit(X, y)


def test_classifiers_continue_in_a_store(tmp_path):
    X, y = labelled()
    names = [f"r{i}" for i in range(COUNT)]
    classifier(RetroactiveClassifier, store=tmp_path / "classes").fit(X, y, ids=names).close()
    again = classifier(RetroactiveClassifier, store=tmp_path / "classes")
    assert again.forget(["r0", "nobody"]).unknown == ["nobody"]
    assert same(again.refresh(), classifier(RetroactiveClassifier).fit(X[1:], y[1:]).refresh())
    assert again.score(X, y) > 0.85
    again.close()


def test_principal_components():
    random = np.random.default_rng(1)
    X = random.normal(0, 1, (COUNT, 1)) * [3, 1, 0] + random.normal(0, 0.2, (COUNT, 3))
    made = {"n_components": 2, "bounds": (-12, 12), "epsilon": 20.0, "max_releases": 7, "key": 5}
    model = RetroactivePCA(**made).fit(X)
    assert model.components_[0] == pytest.approx([0.95, 0.31, 0], abs=0.03)
    assert model.explained_variance_error_.shape == model.explained_variance_.shape == (2,)
    assert model.transform(X).shape == (COUNT, 2)
    assert model.set_output(transform="pandas").transform(X[:2]).columns.tolist() == [
        "retroactivepca0",
        "retroactivepca1",
    ]
    model.forget(range(1000))
    assert same(model.refresh(), RetroactivePCA(**made).fit(X[1000:]).refresh())
    with pytest.raises(ra.InputError, match="n_components"):
        RetroactivePCA(n_components=4, bounds=(-12, 12)).fit(X)
