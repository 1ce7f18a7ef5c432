"""Steps before an estimator: they learn nothing from records, and give each row the same numbers in every batch."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline as sklearns
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import retroact as ra
from retroact.sklearn import PublicFourier, PublicScaler, RetroactiveKMeans, make_pipeline

ROWS = np.random.default_rng(1).uniform(-1.2, 1.2, (501, 7))
STEPS = [PublicScaler(bounds=(-1, 1)), PublicFourier(bounds=(-1, 1), n_components=40, gamma=2.0, seed=3)]
each = pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)


@each
def test_scikit_learns_checks(step):
    results = check_estimator(step, on_skip=None, on_fail=None)
    assert {found["check_name"] for found in results if found["status"] != "passed"} <= {"check_array_api_input"}


@each
def test_a_row_has_the_same_numbers_in_every_batch(step):
    whole = step.fit(ROWS).transform(ROWS)
    assert (step.transform(np.asfortranarray(ROWS)) == whole).all()
    assert (np.concatenate([step.transform(ROWS[k : k + 7]) for k in range(0, len(ROWS), 7)]) == whole).all()
    assert (step.transform(ROWS[::-1])[::-1] == whole).all()
    assert (step.transform(np.delete(ROWS, 250, axis=0)) == np.delete(whole, 250, axis=0)).all()
    assert (step.fit(ROWS[:3]).transform(ROWS) == whole).all()


def test_fourier_features_are_those_of_the_kernel():
    step = PublicFourier(bounds=(-1, 1), n_components=4000, gamma=0.5, seed=1)
    features = step.fit_transform(ROWS[:60])
    assert np.abs(features @ features.T - rbf_kernel(ROWS[:60].clip(-1, 1), gamma=0.5)).max() < 0.06
    lengths = np.linalg.norm(features, axis=1)
    assert lengths.max() <= 1
    assert lengths.min() > 0.9999
    other = PublicFourier(bounds=(-1, 1), n_components=4000, gamma=0.5, seed=2)
    assert np.abs(features - other.fit_transform(ROWS[:60])).max() > 0.001


def test_seeds_are_frozen():
    step = PublicFourier(bounds=(0, 1), n_components=2, seed=7).fit(np.zeros((1, 2)))
    assert step.waves_.tolist() == [[-308799.0, 4272505.0], [3515977.0, 1148635.0]]


@pytest.mark.parametrize(
    ("step", "place"),
    [
        (PublicScaler(), "bounds"),
        (PublicScaler(bounds=(1, 1)), "bounds"),
        (PublicScaler(bounds=(0, np.inf)), "bounds"),
        (PublicScaler(bounds=([0, 0], 1)), "bounds"),
        (PublicFourier(bounds=(0, 1), n_components=0), "n_components"),
        (PublicFourier(bounds=(0, 1), gamma=0), "gamma"),
        (PublicFourier(bounds=(0, 1), gamma=1e12), "gamma"),
        (PublicFourier(bounds=(0, 1), seed=-1), "seed"),
    ],
)
def test_parameters_are_checked_by_fit(step, place):
    with pytest.raises(ra.InputError) as caught:
        step.fit(ROWS)
    assert caught.value.place == place


def test_steps_that_learn_from_records_are_refused():
    last = RetroactiveKMeans(n_clusters=2, radius=2)
    for place, steps in enumerate([(StandardScaler(),), (Normalizer(), PCA(2)), (Normalizer(), "passthrough", last)]):
        with pytest.raises(ra.InputError, match="learn nothing from records") as caught:
            make_pipeline(*steps, last)
        assert caught.value.place == f"steps[{place}]"
    for steps in [(), (StandardScaler(),), (last, PublicScaler(bounds=(0, 1)))]:
        with pytest.raises(ra.InputError, match="at the end"):
            make_pipeline(*steps)


def test_a_pipeline_adds_and_forgets():
    def line():
        last = RetroactiveKMeans(n_clusters=2, radius=3, epsilon=50, max_releases=4, key=1)
        return make_pipeline(PublicScaler(bounds=(-1, 1)), FunctionTransformer(), "passthrough", last)

    found, never = line().fit(ROWS), line().fit(ROWS[100:])
    assert found.add(ROWS[:5]).forget([*range(100), *range(501, 506)]).unknown == []
    assert (found.refresh()[-1].cluster_centers_ == never.refresh()[-1].cluster_centers_).all()
    assert (found.predict(ROWS) == never.predict(ROWS)).all()
    ours, plain = line().partial_fit(ROWS).update(ROWS[:9]), sklearns(*line()).fit(ROWS)
    assert ours[-1].n_releases_ == 2
    assert (plain[-1].cluster_centers_ == line().fit(ROWS)[-1].cluster_centers_).all()
    with pytest.raises(ra.RetroactError, match="withdrawn"):
        ours.withdraw().predict(ROWS)
