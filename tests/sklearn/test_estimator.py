"""The estimators: scikit-learn's own checks, and what they promise beyond those."""

import copy
import pickle
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone, is_clusterer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import retroact as ra
from retroact.messages import decimal_text
from retroact.sklearn import ClusterWarning, RetroactiveKMeans, RetroactiveKMedian, WithdrawnError
from retroact.sklearn.public_columns import step_of

BOTH = pytest.mark.parametrize("kind", [RetroactiveKMeans, RetroactiveKMedian], ids=["means", "median"])
quiet = pytest.mark.filterwarnings("ignore::retroact.sklearn.ClusterWarning")

# scikit-learn's checks that cannot hold, and why.
CANNOT_HOLD = {
    "check_clustering": "it reads labels_ and calls fit_predict; the labels of the records are not private",
}
# Not run where an environment variable of SciPy's is not set.
MAY_BE_SKIPPED = {"check_array_api_input"}

CORNERS = np.array([[-6.0, -6.0], [-6.0, 6.0], [6.0, 0.0]])


def mixture(seed=0, size=1000):
    """Three clear clusters, one after the other."""
    random = np.random.default_rng(seed)
    return np.concatenate([random.normal(corner, 0.7, (size, 2)) for corner in CORNERS])


def estimator(kind=RetroactiveKMeans, **changes):
    return kind(**{"n_clusters": 3, "radius": 12, "epsilon": 20.0, "max_releases": 8, "key": 5, **changes})


def distance(model, wanted):
    """How far the furthest of the wanted centres is from one that was found, and the order that they were found in."""
    assert len(model.cluster_centers_) == len(wanted)
    apart = np.linalg.norm(model.cluster_centers_[:, None] - wanted, axis=2)
    return apart.min(axis=0).max(), apart.argmin(axis=0)


def same(one, two):
    return one.release_.encode() == two.release_.encode() and (
        one.cluster_centers_.tobytes() == two.cluster_centers_.tobytes()
    )


# scikit-learn's checks ------------------------------------------------------------------------------------------------


@quiet
@BOTH
@pytest.mark.parametrize("changes", [{"epsilon": 1000.0}, {"center": None, "epsilon": 1.0}], ids=["clear", "noisy"])
def test_scikit_learns_checks(kind, changes):
    plain = kind(n_clusters=2, radius=20, key=1, **changes)
    results = check_estimator(plain, expected_failed_checks=CANNOT_HOLD, on_skip=None, on_fail=None)
    by_status = {}
    for result in results:
        by_status.setdefault(result["status"], []).append((result["check_name"], result["exception"]))
    assert not by_status.get("failed")
    assert {name for name, _ in by_status.get("skipped", [])} <= MAY_BE_SKIPPED
    # Those that cannot hold do fail, always, and for the reason given.
    assert {name for name, _ in by_status["xfail"]} == set(CANNOT_HOLD)
    assert not {name for name, _ in by_status["passed"]} & set(CANNOT_HOLD)
    assert all("not private" in str(error) for _, error in by_status["xfail"])
    assert len(by_status["passed"]) > 40


# What is found --------------------------------------------------------------------------------------------------------


@BOTH
def test_clear_clusters_are_found(kind):
    points = mixture()
    model = estimator(kind).fit(points)
    far, order = distance(model, CORNERS)
    assert far < 0.5
    assert np.abs(model.cluster_weights_ - 1000).max() < 100
    assert abs(model.n_records_ - 3000) < 100
    assert (model.predict(points) == np.repeat(order, 1000)).mean() > 0.99
    assert model.transform(points[:5]).shape == (5, 3)
    wanted = np.abs(model.transform(points)).min(axis=1)
    assert model.score(points) == pytest.approx(-(wanted**2 if kind is RetroactiveKMeans else wanted).sum())
    assert (model.n_features_in_, model.n_releases_) == (2, 1)
    assert model.get_feature_names_out().tolist() == [f"{kind.__name__.lower()}{i}" for i in range(3)]
    assert is_clusterer(model)
    if kind is RetroactiveKMeans:
        assert model.cost_error_ > 0
        assert abs(model.cost_ + model.score(points)) < 8 * model.cost_error_ + 0.2 * model.cost_
    else:
        assert (model.cost_, model.cost_error_) == (None, None)
    assert model.guarantee_ == model.release_.guarantee.text
    assert "promised" not in model.guarantee_


@BOTH
def test_records_may_come_in_parts(kind):
    points = mixture()
    model = estimator(kind).partial_fit(points[:1500]).partial_fit(points[1500:])
    assert (model.n_releases_, model.n_features_in_) == (2, 2)
    assert distance(model, CORNERS)[0] < 0.5
    assert same(model, estimator(kind).fit(points[:1000]).update(points[1000:]))


@BOTH
def test_many_columns(kind):
    random = np.random.default_rng(3)
    corners = np.eye(8)[:2] * 10
    points = np.concatenate([random.normal(corner, 0.5, (2000, 8)) for corner in corners])
    model = estimator(kind, n_clusters=2, radius=12, epsilon=100.0).fit(points)
    assert distance(model, corners)[0] < 1


# What is forgotten ----------------------------------------------------------------------------------------------------


@quiet
@BOTH
def test_a_forgotten_cluster_has_never_been(kind):
    points = mixture()
    model = estimator(kind).fit(points)
    never = estimator(kind).fit(points[1000:])
    assert not same(model, never)
    before = model.release_
    assert model.forget(range(1000)).unknown == []
    assert model.release_ is before
    model.refresh()
    never.refresh()
    assert same(model, never)
    assert np.linalg.norm(model.cluster_centers_ - CORNERS[0], axis=1).min() > 5
    extra = mixture(1, 50)
    assert same(model.partial_fit(extra), never.partial_fit(extra))
    # Numbers go on over all calls, also those of what is forgotten.
    assert same(model.update(forget=np.arange(3000, 3150)), never.update(forget=np.arange(2000, 2150)))
    assert same(model, estimator(kind).partial_fit(points[1000:]).refresh().refresh().refresh())


@BOTH
def test_unknown_ids_change_nothing(kind):
    points = mixture()
    model = estimator(kind).fit(points)
    done = model.forget([3000, "nobody", 10**9, 7])
    assert (done.unknown, done.final) == (["3000", "nobody", "1000000000"], False)
    model.partial_fit(points[7:8])
    assert same(model, estimator(kind).fit(points).refresh())


def test_ids_of_the_callers_own():
    points = mixture()
    names = [f"r{i}" for i in range(3000)]
    model = estimator().fit(points, ids=names)
    assert same(model, estimator().fit(points))
    # One that is there already is replaced; one that is both added and forgotten is forgotten.
    model.update(points[:2], ids=["r0", "r1"], forget=["r1", "r2"])
    assert same(model, estimator().fit(np.delete(points, [1, 2], axis=0)).update())
    model.partial_fit(points[1:3], ids=np.array(["r1", "r2"]))
    assert same(model, estimator().fit(points).update().update())


def test_ids_are_given_always_or_never():
    points = mixture()
    with pytest.raises(ra.InputError, match="or in none"):
        estimator().fit(points).partial_fit(points[:1], ids=[0])
    with pytest.raises(ra.InputError, match="or in none"):
        estimator().fit(points, ids=range(3000)).partial_fit(points[:1])
    with pytest.raises(ra.InputError, match="expected 3,000 ids"):
        estimator().fit(points, ids=range(2999))
    with pytest.raises(ra.InputError, match="expected the records"):
        estimator().fit(points).update(ids=[1])
    with pytest.raises(ra.InputError, match="expected a text or a whole number"):
        estimator().fit(points).forget([None])


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_call_leaves_nothing_behind(failure, monkeypatch):
    points = mixture()
    model, never = estimator().fit(points), estimator().fit(points)
    before = dict(vars(model))

    def interrupted(*arguments, **options):
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr("retroact.statistics.clusters.kmeans.KMeansBound.release", interrupted)
        for call in (lambda: model.partial_fit(points), lambda: model.update(forget=range(100))):
            with pytest.raises(failure):
                call()
    assert vars(model) == before
    assert same(model.partial_fit(points[:10]), never.partial_fit(points[:10]))


def test_there_is_nothing_to_forget_before_a_fit():
    with pytest.raises(NotFittedError):
        estimator().forget([1])
    with pytest.raises(NotFittedError):
        estimator().predict([[0, 0]])


@BOTH
def test_add_and_forget_publish_nothing(kind):
    points = mixture()
    model = estimator(kind).add(points[:1500])
    with pytest.raises(NotFittedError, match="published nothing yet"):
        model.predict(points)
    assert not hasattr(model, "release_")
    assert model.add(points[1500:]).forget([0, 1]).unknown == []
    model.refresh()
    assert model.n_releases_ == 1
    assert same(model, estimator(kind).fit(points[2:]))


def test_subjects_are_forgotten_with_all_their_records():
    points = mixture()
    owners = [f"u{i % 10}" for i in range(3000)]
    model = estimator().fit(points, subjects=owners)
    done = model.forget(subject=["u3", "nobody"])
    assert (done.unknown, done.final) == (["nobody"], False)
    kept = points[[i for i in range(3000) if i % 10 != 3]]
    assert same(model.refresh(), estimator().fit(kept).refresh())
    assert model.forget(subject="u3").unknown == ["u3"]
    for wrong in ({}, {"ids": [1], "subject": "u1"}):
        with pytest.raises(ra.InputError, match="either ids or a subject"):
            model.forget(**wrong)


def test_a_withdrawn_model_says_nothing_about_records():
    points = mixture()
    model = estimator().fit(points).withdraw()
    for each in (model, pickle.loads(pickle.dumps(model))):
        for read in (each.predict, each.transform, each.score):
            with pytest.raises(WithdrawnError, match=r"^this model was withdrawn by its operator$"):
                read(points)
        assert not hasattr(each, "cluster_centers_")
        assert not hasattr(each, "release_")
    assert model.forget([0]).unknown == []
    assert same(model.refresh(), estimator().fit(points[1:]).refresh())
    assert len(model.predict(points)) == 3000


def test_people_are_forgotten_after_a_restart(tmp_path):
    points, place = mixture(), tmp_path / "clusters"
    names, owners = [f"r{i}" for i in range(3000)], [f"u{i % 10}" for i in range(3000)]
    parameters = {"center": [1.0, 1.0], "store": place}
    model = estimator(**parameters).fit(points, ids=names, subjects=owners)
    assert same(model, estimator(center=[1.0, 1.0]).fit(points))
    model.add(points[:5], ids=[f"late{i}" for i in range(5)], subjects=["u3"] * 5).close()
    with pytest.raises(ra.InputError, match="continue it"):
        estimator(**parameters).fit(points, ids=names)
    with pytest.raises(ra.InputError, match=r"made with.*'radius': '12'.* in the store, .*'11'.* given"):
        estimator(**{**parameters, "radius": 11}).forget(["r0"])
    again = estimator(**parameters)
    assert again.forget(subject="u3").unknown == []
    assert again.forget(["r0", "r3000"]).unknown == ["r3000"]
    kept = points[[i for i in range(1, 3000) if i % 10 != 3]]
    assert same(again.refresh(), estimator(center=[1.0, 1.0]).fit(kept).refresh())
    with pytest.raises(ra.InputError, match="expected ids"):
        again.partial_fit(points[:1])
    again.close()
    third = pickle.loads(pickle.dumps(again))
    assert third.store is None
    assert (third.predict(points) == again.predict(points)).all()
    with pytest.raises(ra.InputError, match="copy"):
        third.forget(["r1"])
    with pytest.raises(ra.InputError, match="expected ids"):
        estimator(store=tmp_path / "other").fit(points)


# What is refused ------------------------------------------------------------------------------------------------------


def test_releases_end_where_they_were_promised_to():
    points = mixture()
    model = estimator(max_releases=2).fit(points).update(forget=[0])
    before, attributes = model._source.stream.state(), dict(vars(model))
    for more in (lambda: model.partial_fit(points), lambda: model.add(points), model.update, model.refresh):
        with pytest.raises(ra.ExhaustedError, match="max_releases"):
            more()
        assert model._source.stream.state() == before
        assert vars(model) == attributes
    # Records are forgotten all the same, and at once; the published model stays.
    done = model.forget([0, 1, 2])
    assert (done.unknown, done.final) == (["0"], True)
    assert "published model was made before" in str(done)
    assert model._source.stream.records == 2997
    assert vars(model) == attributes
    assert model.fit(points).n_releases_ == 1


@quiet
def test_without_a_number_of_releases():
    model = estimator(max_releases=None, radius=8).fit(mixture())
    for _ in range(5):
        model.update()
    assert model.n_releases_ == 6


def test_the_radius_is_not_taken_from_the_data():
    with pytest.raises(ra.InputError, match="would reveal"):
        RetroactiveKMeans().fit(mixture())


def test_errors_change_nothing():
    points = mixture()
    model = estimator(clip=False).fit(points)
    attributes, state = dict(vars(model)), model._source.stream.state()
    bad = points[:3].copy()
    bad[1, 0] = np.nan
    far = points[:3] * 100
    for change in (model.partial_fit, model.fit, model.update):
        with pytest.raises(ValueError, match="NaN"):
            change(bad)
        with pytest.raises(ra.InputError, match=r"at most 12, got .* at x, row 1"):
            change(far)
    with pytest.raises(ra.InputError, match="length"):
        model.fit(np.full((2, 7), 50.0))
    for change in (model.partial_fit, model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match="3 features"):
            change(np.zeros((2, 3)))
        with pytest.raises(ValueError, match="2D"):
            change(None)
    with pytest.raises(ra.InputError, match="forget"):
        model.update(points, forget=[1.5])
    with pytest.raises(TypeError, match="sample_weight"):
        model.fit(points, sample_weight=np.ones(3000))
    assert vars(model) == attributes
    assert model._source.stream.state() == state
    assert same(model.partial_fit(points), estimator(clip=False).fit(points).partial_fit(points))


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"n_clusters": 0}, "n_clusters"), ({"max_releases": 0}, "max_releases"), ({"radius": -1}, "radius"),
        ({"epsilon": 0}, "epsilon"), ({"center": [1, 2, 3]}, "center"), ({"center": [1, np.inf]}, "center"),
        ({"center": "ab"}, "center"), ({"mode": "best"}, "mode"), ({"expected": 0}, "expected"), ({"key": "k"}, "key"),
        ({"key": True}, "key"), ({"clip": 1}, "clip"),
    ],
)  # fmt: skip
def test_parameters_are_checked_by_fit(changes, place):
    model = estimator(**changes)
    with pytest.raises(ra.InputError) as caught:
        model.fit(mixture())
    assert caught.value.place == place


# The ball -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", ["100", "0.1", "1", "65536", "1e-9", "7e12", "0.33333"])
def test_the_lattice_is_as_fine_as_the_ball(radius):
    exact = Fraction(radius)
    step = step_of(exact)
    assert step <= exact / 2**16 < 2 * step
    assert decimal_text(step) is not None
    assert 1 in (step.numerator, step.denominator)
    assert (step.numerator * step.denominator).bit_count() == 1


@BOTH
def test_a_centre_moves_the_ball(kind):
    points = np.round(mixture() * 1024) / 1024
    shift = np.array([1000.0, -250.5])
    away = estimator(kind, center=shift).fit(points + shift)
    home = estimator(kind, center=[0, 0]).fit(points)
    assert np.abs(away.cluster_centers_ - shift - home.cluster_centers_).max() < 1e-9
    assert (away.release_.value.centres == away.cluster_centers_).all()
    assert away.release_.value.centre.tolist() == shift.tolist()
    assert (away.predict(points + shift) == home.predict(points)).all()
    assert away.score(points + shift) == pytest.approx(home.score(points))
    # Changed parameters wait for the next fit.
    away.set_params(center=None).update(points + shift)
    assert np.abs(away.cluster_centers_ - shift - home.update(points).cluster_centers_).max() < 1e-9
    with pytest.raises(ra.InputError, match="at x - center, row 1"):
        estimator(kind, center=shift, clip=False).fit(points)


@BOTH
def test_points_outside_are_brought_to_the_rim(kind):
    far = np.tile([100.0, 500.0], (1000, 1))
    model = estimator(kind, n_clusters=1, radius=8, center=[100, 100]).fit(far)
    assert np.abs(model.cluster_centers_ - [100, 108]).max() < 0.5


# The key --------------------------------------------------------------------------------------------------------------


def test_a_number_repeats_and_nothing_does_not():
    points = mixture()
    assert same(estimator(key=3).fit(points), estimator(key=np.int64(3)).fit(points))
    assert same(estimator(key=3).fit(points), estimator(key=ra.Key.for_testing(3)).fit(points))
    assert not same(estimator(key=3).fit(points), estimator(key=4).fit(points))
    fresh = estimator(key=None)
    assert fresh.fit(points).cluster_centers_.tobytes() != fresh.fit(points).cluster_centers_.tobytes()


def test_a_secret_key_drives_one_stream():
    points = mixture()
    key = ra.Key.generate()
    model = estimator(key=key, clip=False)
    with pytest.raises(ra.InputError, match="at most 12"):
        model.fit(points * 100)
    with pytest.raises(ra.InputError, match="ids"):
        model.fit(points, ids=[1])
    twin = clone(model)
    assert twin.key is key
    model.fit(points).partial_fit(points)
    for again in (twin, model):
        with pytest.raises(ra.KeyReusedError):
            again.fit(points)
    assert model.n_releases_ == 2


# Copies ---------------------------------------------------------------------------------------------------------------


@BOTH
def test_an_estimator_clones_and_pickles(kind):
    model = estimator(kind, center=np.array([1.0, 2.0]))
    for twin in (clone(model), pickle.loads(pickle.dumps(model)), clone(model.fit(mixture()))):
        assert type(twin) is kind
        assert repr(twin.get_params()) == repr(model.get_params())
        assert not hasattr(twin, "cluster_centers_")
    assert estimator(kind).set_params(epsilon=2.0).get_params()["epsilon"] == 2.0


@BOTH
@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy, copy.copy])
def test_a_copy_has_the_published_model_alone(kind, copied):
    points = mixture()
    key = ra.Key.generate()
    model = estimator(kind, key=key).fit(points)
    assert key._secret not in pickle.dumps(model)
    twin = copied(model)
    assert twin.key is None
    assert "_source" not in vars(twin)
    assert same(twin, model)
    assert (twin.predict(points) == model.predict(points)).all()
    assert twin.score(points) == model.score(points)
    assert (twin.guarantee_, twin.n_releases_, twin.cost_) == (model.guarantee_, 1, model.cost_)
    for more in (lambda: twin.partial_fit(points), lambda: twin.add(points), lambda: twin.forget([1]), twin.refresh):
        with pytest.raises(ra.InputError, match="copy"):
            more()
    assert twin.fit(points).n_releases_ == 1
    assert model.update(forget=[1]).n_releases_ == 2


# What is withheld, and what is told -----------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("name", ["labels_", "inertia_", "fit_predict"])
def test_nothing_exact_about_the_records(kind, name):
    for model in (estimator(kind), estimator(kind).fit(mixture())):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match="not private"):
            getattr(model, name)


def test_doubtful_releases_warn():
    points = mixture()
    with pytest.warns(ClusterWarning, match="loose"):
        estimator(radius=1000).fit(points)
    model = estimator()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(points[:10])
    assert any("few" in str(warning.message) for warning in told)
    assert {warning.category for warning in told} == {ClusterWarning}
    assert {str(warning.message) for warning in told} == set(model.release_.value.notes)
    assert {warning.filename for warning in told} == {__file__}
    # As an error it comes when all is done.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ClusterWarning):
            model.partial_fit(points[:10])
    assert model.n_releases_ == 2
    # So does the stream's own, after four fifths of the releases.
    model = estimator(max_releases=2)
    with pytest.warns(ra.HorizonWarning):
        model.fit(points)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = estimator(max_releases=2)
        with pytest.raises(ra.HorizonWarning):
            model.fit(points)
    assert model.n_releases_ == 1


# In company -----------------------------------------------------------------------------------------------------------


def test_in_a_pipeline():
    points = mixture()
    line = make_pipeline(FunctionTransformer(lambda X: X / 2), estimator(radius=6))
    found = line.fit(points).predict(points)
    order = distance(line[-1], CORNERS / 2)[1]
    assert (found == np.repeat(order, 1000)).mean() > 0.99
    assert not hasattr(line, "fit_predict")
    as_features = make_pipeline(estimator(), FunctionTransformer()).fit_transform(points)
    assert as_features.shape == (3000, 3)


def test_frames_have_names():
    points = mixture()
    frame = pa.table({"east": points[:, 0], "north": points[:, 1]})
    model = estimator().fit(frame)
    assert model.feature_names_in_.tolist() == ["east", "north"]
    assert same(model, estimator().fit(points))
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(pa.table({"east": points[:, 0], "south": points[:, 1]}))


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)


def test_scikit_learn_is_loaded_only_when_asked_for():
    done = run("import sys, retroact; retroact.KMeans, retroact.Stream; assert 'sklearn' not in sys.modules")
    assert done.returncode == 0, done.stderr
    done = run("import sys; sys.modules['sklearn'] = None; import retroact.sklearn")
    assert "ImportError: retroact.sklearn needs scikit-learn 1.6 or later" in done.stderr
