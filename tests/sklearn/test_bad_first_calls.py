"""A first call with bad input changes nothing: the key is free, no store is left, and the corrected call works."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

import retroact as ra
from retroact.sklearn import (
    PublicPipeline,
    PublicScaler,
    RetroactiveCategoricalNB,
    RetroactiveClassifier,
    RetroactiveKMeans,
    RetroactiveNearestMean,
    RetroactivePCA,
    RetroactiveRidge,
    WithdrawnError,
    make_pipeline,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::retroact.sklearn.ModelWarning"),
    pytest.mark.filterwarnings("ignore::retroact.sklearn.ClusterWarning"),
]
COUNT = 400
X = np.random.default_rng(1).uniform(0, 10, (COUNT, 2))
Y = 3 * X[:, 0] - X[:, 1] + 20
NAMES = [f"r{number}" for number in range(COUNT)]
BAD = [
    {"subjects": ["u1"]}, {"subjects": [1.5] * COUNT}, {"subjects": ["", *["u"] * (COUNT - 1)]},
    {"ids": ["a"] * COUNT}, {"ids": NAMES[1:]}, {"ids": [None, *NAMES[1:]]},
]  # fmt: skip


def ridge(**changes):
    options = {"bounds": (0, 10), "target_bounds": (0, 60), "epsilon": 20.0, "max_releases": 7, "key": 5}
    return RetroactiveRidge(**{**options, **changes})


def clusterer(**changes):
    return RetroactiveKMeans(**{"n_clusters": 2, "radius": 15, "max_releases": 7, **changes})


@pytest.mark.parametrize("make", [ridge, clusterer])
@pytest.mark.parametrize("call", ["fit", "partial_fit", "add", "update"])
@pytest.mark.parametrize("bad", BAD)
def test_the_key_stays_free(make, call, bad):
    model = make(key=ra.Key.generate())
    given = {"ids": NAMES, **bad}
    with pytest.raises(ra.InputError, match=r"ids?|subjects?"):
        getattr(model, call)(X, Y, **given)
    getattr(model, call)(X, Y, ids=NAMES, subjects=["u1"] * COUNT)


@pytest.mark.parametrize("call", ["fit", "add"])
@pytest.mark.parametrize("bad", BAD)
def test_no_store_is_made(tmp_path, call, bad):
    model = ridge(store=tmp_path / "fares", key=None)
    with pytest.raises(ra.InputError):
        getattr(model, call)(X, Y, **{"ids": NAMES, **bad})
    assert not [*tmp_path.iterdir()]
    getattr(model, call)(X, Y, ids=NAMES)
    model.close()


def test_no_stream_is_made_under_a_key_that_is_used(tmp_path):
    key = ra.Key.generate()
    ridge(key=key).fit(X, Y)
    with pytest.raises(ra.KeyReusedError):
        ridge(store=tmp_path / "fares", key=key).fit(X, Y, ids=NAMES)
    ridge(store=tmp_path / "fares", key=ra.Key.generate()).fit(X, Y, ids=NAMES).close()


def test_a_store_is_closed_again_after_a_bad_call(tmp_path):
    options = {"store": tmp_path / "fares", "key": None}
    ridge(**options).fit(X, Y, ids=NAMES).close()
    model = ridge(**options)
    for bad in (
        lambda: model.add(X, Y, ids=NAMES, subjects=["u1"]),
        lambda: model.partial_fit(X[:, :1], Y, ids=NAMES),
        lambda: model.forget([None]),
        lambda: model.update(X, Y),
        lambda: model.predict(X),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            bad()
    again = ridge(**options)
    assert again.forget("r1").unknown == []
    again.close()


def test_an_id_twice_in_a_batch_is_refused():
    model = ridge().add(X, Y, ids=NAMES)
    with pytest.raises(ra.InputError, match="another id for each record, got '7' twice - at ids, row 3"):
        model.add(X[:3], Y[:3], ids=["8", 7, "7"])
    assert model._source.stream.waiting == COUNT
    model.add(X[:1], Y[:1], ids=["r1"])


def test_what_is_forgotten_already_is_not_known_again():
    model = ridge().fit(X, Y, ids=NAMES, subjects=["u1", "u2"] * (COUNT // 2))
    assert model.forget("r1").unknown == []
    assert model.forget(["r1", "r2"]).unknown == ["r1"]
    assert model.forget(subject="u1").unknown == []
    assert model.forget(subject=["u1", "u2"]).unknown == ["u1"]
    assert model.forget(["r3", "r4"]).unknown == ["r3", "r4"]
    model.add(X[:1], Y[:1], ids=["r1"], subjects=["u3"])
    assert model.forget("r1").unknown == []


def test_without_a_release_of_its_own_an_estimator_on_a_store_says_so(tmp_path):
    options = {"store": tmp_path / "fares", "key": None}
    with pytest.raises(ValueError, match="has published nothing yet"):
        ridge(**options).predict(X)
    first = ridge(**options).fit(X, Y, ids=NAMES)
    wanted = first.predict(X)
    first.close()
    again = ridge(**options)
    with pytest.raises(ValueError, match="earlier releases of its store are not loaded"):
        again.predict(X)
    with ra.Stream.open(options["store"]) as stream:
        *_, last = stream.releases()
    assert ra.load_model(last).predict(X) == pytest.approx(wanted)
    assert len(again.refresh().predict(X)) == COUNT
    again.close()


def test_a_withdrawn_model_says_so_everywhere():
    model = ridge().fit(X, Y).withdraw()
    for name in ("coef_", "model_", "release_", "intercept_", "n_records_"):
        with pytest.raises(WithdrawnError, match="withdrawn by its operator"):
            getattr(model, name)
        assert not hasattr(model, name)
    with pytest.raises(AttributeError, match="no attribute 'labels'"):
        model.labels  # noqa: B018
    assert model.withdraw().n_features_in_ == 2
    with pytest.raises(WithdrawnError):
        model.coef_  # noqa: B018
    assert model.refresh().coef_.shape == (2,)
    for other in (RetroactivePCA(bounds=(0, 10), key=1), clusterer(key=1)):
        other.fit(X).withdraw()
        for call in (other.get_feature_names_out, lambda other=other: other.transform(X)):
            with pytest.raises(WithdrawnError, match="withdrawn by its operator"):
                call()
    with pytest.raises(AttributeError, match="labels of the records are not private"):
        clusterer().labels_  # noqa: B018


@pytest.mark.parametrize("kind", [RetroactiveRidge, RetroactiveClassifier, RetroactiveNearestMean, RetroactivePCA])
def test_more_features_on_request(kind):
    wide, options = np.zeros((20, 600)), {"bounds": (0, 1), "key": 1}
    options |= {"target_bounds": (0, 1)} if kind is RetroactiveRidge else {}
    options |= {"classes": [0, 1]} if kind in (RetroactiveClassifier, RetroactiveNearestMean) else {}
    target = np.arange(20) % 2
    with pytest.raises(ra.InputError, match="or most=1024"):
        kind(**options).add(wide, target)
    assert kind(**options, most=1024).add(wide, target)._source.stream.waiting == 20
    with pytest.raises(ra.InputError, match="from 1 to 1,024"):
        kind(**options, most=1025).add(wide, target)


# Levels and bounds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [[0, 1, 2], ["0", "1", "2"], [0.0, 1.0, 2.0], np.arange(3)])
def test_levels_may_be_numbers(levels):
    codes = (X[:, 1] / 3.4).astype(int)
    table = np.column_stack([X[:, 0], codes])
    model = ridge(categories={1: levels}, epsilon=900).fit(table, Y)
    frame = pd.DataFrame({"x0": X[:, 0], "x1": codes})
    other = ridge(categories={"x1": levels}, epsilon=900).fit(frame, Y)
    assert (model.coef_ == other.coef_).all()
    assert model.predict(table) == pytest.approx(other.predict(frame))
    assert [name.removesuffix(".0") for name in model.features_] == ["x0", "x1=0", "x1=1", "x1=2"]
    with pytest.raises(ra.InputError, match=r"got '7'.* - at x1, row 2"):
        model.add([[1.0, 1.0], [2.0, 7.0]], [3, 4])


@pytest.mark.parametrize("others", [{"a": X[:, 0]}, {"a": np.arange(COUNT) % 11}, {}])
@pytest.mark.parametrize("levels", [[False, True], ["False", "True"]])
def test_levels_may_be_true_and_false(others, levels):
    frame = pd.DataFrame({**others, "late": X[:, 1] > 5})
    model = RetroactiveCategoricalNB(
        classes={True, False}, bounds=(0, 10), categories={"late": levels}, epsilon=50.0, key=1
    ).fit(frame, X[:, 1] > 5)
    assert model.score(frame, X[:, 1] > 5) > 0.95
    assert list(model.model_.probabilities["late"]) == ["False", "True"]


def test_equal_levels_are_refused():
    with pytest.raises(ra.InputError, match="expected different levels"):
        ridge(categories={1: [0, 1, True]}).fit(X, Y)


@pytest.mark.parametrize("classes", [{0, 1}, frozenset([0, 1]), {0: "a", 1: "b"}.keys()])
def test_classes_may_be_a_set(classes):
    model = RetroactiveClassifier(classes=classes, bounds=(0, 10), epsilon=20.0, key=1).fit(X, X[:, 0] > 5)
    assert model.classes_.tolist() == [0, 1]
    assert model.partial_fit(X, X[:, 0] > 5, classes={1, 0}).n_releases_ == 2
    with pytest.raises(ra.InputError, match="classes of one type"):
        RetroactiveClassifier(classes=[0, None], bounds=(0, 10), key=1).fit(X, X[:, 0] > 5)


@pytest.mark.parametrize("bounds", [([0, 0, 0], [10, 10, 10]), ([0], [10]), ([[0, 0]], [[1, 1]]), ([0, 0], [1, 1, 1])])
def test_bounds_are_as_many_as_columns(bounds):
    with pytest.raises(ra.InputError, match=r"each one number or 2 of them.* - at bounds"):
        ridge(bounds=bounds).fit(X, Y)
    with pytest.raises(ra.InputError, match=r"each one number or 2 of them.* - at bounds"):
        PublicScaler(bounds=bounds).fit(X)
    with pytest.raises(ra.InputError, match="expected numbers"):
        PublicScaler(bounds=("a", "b")).fit(X)


# Pipelines ------------------------------------------------------------------------------------------------------------


def line(**options):
    return make_pipeline(PublicScaler(bounds=(0, 10)), ridge(bounds=(-1, 1), **options))


def test_a_pipeline_takes_ids_everywhere(tmp_path):
    model = line(store=tmp_path / "fares", key=None).fit(X, Y, ids=NAMES, subjects=["u1"] * COUNT)
    assert model.forget("r1").unknown == []
    assert model.add(X[:1], Y[:1], ids=["r1"]).refresh().score(X, Y) > 0.9
    model.close()
    again = line(store=tmp_path / "fares", key=None)
    assert again.forget(subject="u1").unknown == []
    again.close()
    assert line().fit(X, Y, retroactiveridge__ids=NAMES)[-1].forget("r7").unknown == []


@pytest.mark.parametrize("call", ["fit", "add", "partial_fit", "update", "fit_transform"])
def test_steps_that_learn_are_refused_however_they_came_in(call):
    ours = ("last", ridge(bounds=(-3, 3)))
    replaced = line().set_params(publicscaler=StandardScaler())
    inserted = line()
    inserted.steps.insert(0, ("scale", StandardScaler()))
    for model in (replaced, inserted, PublicPipeline([("scale", StandardScaler()), ours])):
        with pytest.raises(ra.InputError, match=r"learn nothing from records, got StandardScaler - at steps\[0\]"):
            getattr(model, call)(X, Y)
    with pytest.raises(ra.InputError, match="at the end"):
        getattr(PublicPipeline([ours, ("scale", PublicScaler(bounds=(0, 1)))]), call)(X, Y)


def test_after_an_error_a_pipeline_knows_no_columns():
    model = line(key=ra.Key.generate())
    with pytest.raises(ra.InputError, match="ids"):
        model.fit(np.hstack([X, X]), Y, ids=["a"] * COUNT)
    assert not hasattr(model[0], "n_features_in_")
    assert model.fit(X, Y, ids=NAMES).score(X, Y) > 0.9
