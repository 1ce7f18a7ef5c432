"""Models that forget: classes, covariances and components; what all models promise, and planted bugs."""

import json
from random import Random

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import retroact as ra
from retroact.outputs.charts import charts
from retroact.statistics import Statistic
from retroact.statistics.models.discriminant import ClassMeans
from retroact.statistics.models.noisy_moments import NoisyMoments
from retroact.statistics.models.products import INTERCEPT
from retroact.testing import check_statistic
from retroact.testing.published import check_published
from support.exact_models import ExactSums, exact_answer
from support.in_bound import Planted
from support.sports import COLUMNS, GAUSSIAN, MODELS, PURE, SCHEMA, people, released
from support.tiers import in_turns


@pytest.mark.parametrize("which", MODELS)
def test_a_model_is_plain_data_and_loads_elsewhere(which):
    release, data = released(MODELS[which], people(3000)), people(50, seed=2)
    line = json.dumps(release.to_dict())
    again = ra.load_model(line)
    assert again.to_dict() == release.value.to_dict() == json.loads(line)["value"]
    assert again.kind == which
    assert release.value.records == pytest.approx(3000, abs=600)
    if hasattr(again, "predict"):
        assert (again.predict(data) == release.value.predict(data)).all()
    assert repr(again).startswith(type(again).__name__)


@pytest.mark.parametrize("which", MODELS)
def test_an_erased_subject_leaves_no_trace_in_any_later_model(which):
    key, kept, gone = ra.Key.for_testing(5), people(200), people(30, seed=9)
    one, other = (
        ra.Stream(SCHEMA, {"m": MODELS[which]}, epsilon=1.0, delta=1e-6, horizon=9, key=key) for _ in range(2)
    )
    one.add(kept)
    other.add(kept)
    one.add(gone, subject=["u"] * 30)
    assert one.close_round().encode() != other.close_round().encode()
    one.erase(subject="u")
    first, second = one.close_round(), other.close_round()
    assert first.encode() == second.encode()
    assert first["m"].to_dict() == second["m"].to_dict()


@pytest.mark.parametrize("which", MODELS)
def test_a_model_is_written_as_a_table_of_a_file(which):
    for statistic in (MODELS[which], MODELS[which].replace(every=2, where={"age": {"min": 18}})):
        assert Statistic.from_spec(statistic.spec(), "statistics.model") == statistic
    assert Statistic.from_spec({**MODELS[which].spec(), "by": "town"}, "m") == ra.GroupBy("town", MODELS[which])


@pytest.mark.parametrize("which", ["ridge", "classifier", "nearest_mean", "categorical_nb"])
def test_frames_of_every_kind_are_predicted(which):
    model, data = released(MODELS[which], people(3000)).value, people(40, seed=2)
    expected = model.predict(data).tolist()
    frame = pandas.DataFrame(data)
    for given in (frame, polars.from_pandas(frame), pyarrow.Table.from_pandas(frame), frame.to_dict("records")):
        assert model.predict(given).tolist() == expected


def test_a_person_is_forgotten_by_all_models_after_a_restart(tmp_path):
    options = {"epsilon": 4.0, "delta": 1e-6, "horizon": 8, "key": ra.Key.for_testing(1)}
    data, people_of = people(600), [f"u{number % 30}" for number in range(600)]
    stream = ra.Stream.open(tmp_path / "models", schema=SCHEMA, statistics=MODELS, **options)
    stream.add(data, subject=people_of)
    stream.close_round()
    stream.close()
    stream = ra.Stream.open(tmp_path / "models", key=options["key"])
    stream.erase(subject="u3")
    found = stream.close_round()
    stream.close()
    kept = [number for number in range(600) if number % 30 != 3]
    twin = ra.Stream(SCHEMA, MODELS, **options)
    twin.add({name: column[kept] for name, column in data.items()}, subject=[people_of[number] for number in kept])
    twin.close_round()
    expected = twin.close_round()
    assert {name: found[name].to_dict() for name in MODELS} == {name: expected[name].to_dict() for name in MODELS}


def test_the_revised_past_and_maps_of_models_work():
    statistics = {
        "past": ra.Restated(ra.Ridge(["height", "age"], "weight"), [0, 1]),
        "first": ra.PCA("height", 1).map(lambda model: model.variances[0], name="first variance"),
    }
    stream = ra.Stream(SCHEMA, statistics, epsilon=8.0, delta=1e-6, horizon=8, key=ra.Key.for_testing(1))
    stream.add(people())
    stream.close_round()
    stream.add(people(20_000, seed=3))
    found = stream.close_round()
    assert {past: round(model.records, -4) for past, model in found["past"].value.items()} == {1: 20_000, 2: 40_000}
    assert {"past_round", "feature"} <= set(found["past"]._table().names)
    assert found["first"].value == pytest.approx(people()["height"].var() / 60**2, rel=0.2)


def test_the_bars_of_a_model_are_its_largest_coefficients_of_either_sign():
    options = {"epsilon": 20.0, "delta": 1e-6, "horizon": 4, "key": ra.Key.for_testing(1)}
    stream = ra.Stream(SCHEMA, {"m": ra.Ridge(["smokes", "town", "age"], "weight")}, **options)
    stream.add({**people(), "weight": 100 - 20 * people()["smokes"] + people()["age"] / 10})
    form, table = stream._core.form, stream.close_round()._table()
    (chart,) = charts(form, table)
    assert chart.bars[0].label == "smokes"
    assert chart.bars[0].value < -10
    assert len(chart.bars) == 5  # and not the intercept, which is in another unit
    assert len(chart.rows) == 6


@pytest.mark.parametrize("which", GAUSSIAN)
def test_second_moments_need_delta(which):
    with pytest.raises(ra.InputError, match=r"expected delta > 0: a \w+ has Gaussian noise - at statistics\.model"):
        released(MODELS[which], delta=0.0)


@pytest.mark.parametrize("which", PURE)
def test_counts_and_means_do_without_delta(which):
    release = released(MODELS[which], delta=0.0, horizon=15)
    assert release.guarantee.delta == 0
    data = people(2000, seed=3)
    assert (release.value.predict(data) == data["sport"]).mean() > 0.6


@pytest.mark.parametrize(
    ("statistic", "least"),
    [
        (ra.Classifier(COLUMNS, "sport", method="lda"), 0.75),
        (ra.Classifier(COLUMNS, "sport", method="mean"), 0.65),
        (ra.Classifier(COLUMNS, "sport", knots=3), 0.75),
        (ra.NearestMean(COLUMNS, "sport"), 0.6),
        (ra.CategoricalNB(COLUMNS, "sport"), 0.65),
    ],
)
def test_classes_are_told_apart(statistic, least):
    """Always the most frequent class would be right for one half."""
    model, data = released(statistic).value, people(4000, seed=4)
    found = model.predict(data)
    assert found.dtype.kind == "U"
    assert (found == data["sport"]).mean() > least
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(data)
        assert shares.shape == (4000, 3)
        assert np.allclose(shares.sum(axis=1), 1)
        assert (np.array(model.classes)[shares.argmax(axis=1)] == found).all()


def test_probabilities_are_about_right():
    """Of those with a probability near p, a part of about p is in the class."""
    data = people(20_000, seed=5)
    for statistic in (ra.Classifier(COLUMNS, "sport"), ra.CategoricalNB(["height", "smokes"], "sport")):
        shares = released(statistic).value.predict_proba(data)[:, 1]
        right = data["sport"] == "run"
        for low in (0.2, 0.4, 0.6, 0.8):
            near = (shares >= low) & (shares < low + 0.2)
            assert right[near].mean() == pytest.approx(shares[near].mean(), abs=0.1)


def test_the_method_is_chosen_by_noisy_numbers():
    assert released(ra.Classifier(COLUMNS, "sport")).value.method == "lda"
    few = released(ra.Classifier(COLUMNS, "sport"), people(200), epsilon=0.5).value
    assert few.method == "mean"
    assert few.predict(people(20)).shape == (20,)


def test_two_classes_may_be_true_and_false():
    model = released(ra.Classifier(["height", "weight", "sport"], "smokes")).value
    assert model.classes == (False, True)
    assert model.predict(people(10)).dtype == np.bool_


def test_means_and_counts_are_in_the_units_of_the_columns():
    model, data = released(ra.NearestMean(COLUMNS, "sport"), epsilon=50.0).value, people()
    for place, sport in enumerate(("row", "run", "swim")):
        here = data["sport"] == sport
        assert model.counts[place] == pytest.approx(here.sum(), rel=0.05)
        assert model.means["height"][place] == pytest.approx(data["height"][here].mean(), abs=1)
        assert model.means["smokes"][place] == pytest.approx(data["smokes"][here].mean(), abs=0.05)


def test_probabilities_of_levels_are_those_of_the_records():
    model, data = released(ra.CategoricalNB(["town", "smokes", "age"], "sport", bins=5), epsilon=50.0).value, people()
    rows = data["sport"] == "swim"
    assert model.priors[2] == pytest.approx(rows.mean(), abs=0.01)
    assert model.probabilities["smokes"]["true"][2] == pytest.approx(data["smokes"][rows].mean(), abs=0.02)
    assert list(model.probabilities["age"]) == ["0..19", "20..39", "40..59", "60..79", "80..99"]
    young = (data["age"] < 20)[rows].mean()
    assert model.probabilities["age"]["0..19"][2] == pytest.approx(young, abs=0.02)


def test_covariances_are_those_of_the_records():
    data, columns = people(), ["height", "weight", "smokes"]
    table = np.stack([data[name].astype(float) for name in columns])
    model = released(ra.Covariance(columns), epsilon=200.0).value
    assert model.feature_names == tuple(columns)
    assert np.allclose(model.matrix, np.cov(table, bias=True), rtol=0.1, atol=0.3)
    assert np.allclose(model.means, table.mean(axis=1), rtol=0.02)
    found = released(ra.Correlation(columns), epsilon=200.0).value
    assert np.allclose(found.matrix, np.corrcoef(table), atol=0.05)


def test_the_correlation_of_what_hardly_varies_is_not_known():
    model = released(ra.Correlation(["height", "smokes"]), {**people(), "smokes": np.zeros(20_000, bool)}).value
    assert np.isnan(model.matrix[0, 1])
    assert model.matrix[0, 0] == 1
    assert model.to_dict()["matrix"][0][1] is None
    assert model.error[0][1] is None


def test_components_are_those_of_the_scaled_columns():
    data, columns = people(), ["height", "weight", "age"]
    model = released(ra.PCA(columns, 2), epsilon=200.0).value
    middles, halves = np.array([160, 95, 49.5]), np.array([60, 65, 49.5])
    table = (np.stack([data[name] for name in columns], axis=1) - middles) / halves
    values, vectors = np.linalg.eigh(np.cov(table.T, bias=True))
    assert np.allclose(model.variances, values[::-1][:2], rtol=0.1)
    for found, exact in zip(model.components, vectors.T[::-1], strict=False):
        assert abs(found @ exact) > 0.98
        assert found[np.abs(found).argmax()] > 0
    places = model.transform(data)
    assert np.allclose(places.var(axis=0), model.variances, rtol=0.1)
    assert np.allclose(places.mean(axis=0), 0, atol=0.05)


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list) and (len(value) != 2 or not all(isinstance(one, float) for one in value)):
        return [pair for part in value for pair in numbers(part)]
    return [value]


@pytest.mark.parametrize(("which", "epsilon"), in_turns(["covariance", "correlation", "pca"], [1.0, 4.0]))
def test_the_error_covers_the_model_of_the_exact_sums(which, epsilon):
    """Of all numbers of 60 models, under as many keys, 95 % intervals hold the same model without noise."""
    statistic, columns = MODELS[which], people(8000)
    exact = exact_answer(SCHEMA, statistic, columns, epsilon=epsilon).value
    truth = np.ravel(exact.variances if which == "pca" else exact.matrix).tolist()
    inside = []
    for seed in range(60):
        pairs = numbers(released(statistic, columns, epsilon=epsilon, seed=seed).interval(0.95))
        assert len(pairs) == len(truth)
        known = [(*pair, true) for pair, true in zip(pairs, truth, strict=True) if pair and pair[0] < pair[1]]
        inside += [low <= true <= high for low, high, true in known if not np.isnan(true)]
    assert 0.91 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize("which", MODELS)
def test_without_records_a_model_says_so(which):
    model = released(MODELS[which], people(0), epsilon=0.1).value
    assert any("too few records" in note for note in model.notes)
    json.dumps(model.to_dict(), allow_nan=False)
    if hasattr(model, "predict"):
        assert len(model.predict(people(5))) == 5


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: ra.Classifier("height", "age"), "expected a field of type Category or Boolean, got Integer"),
        (lambda: ra.Classifier("height", "sport", method="svm"), "'auto', 'lda' or 'mean', got 'svm'"),
        (lambda: ra.CategoricalNB("height", "sport", bins=1), "a whole number from 2 to 1,000, got 1"),
        (lambda: ra.CategoricalNB(["height", "sport"], "sport"), "a target that is not one of the columns"),
        (lambda: ra.PCA(["height", "age"], 3), "at most 2 components, the number of features, got 3"),
        (lambda: ra.Covariance("name"), "expected one of the fields"),
        (lambda: ra.NearestMean("height", "height"), "a target that is not one of the columns"),
    ],
)
def test_bad_arguments_are_refused(made, message):
    with pytest.raises(ra.InputError, match=message):
        released(made())


def test_what_is_not_declared_is_refused_and_changes_nothing():
    streams = [
        ra.Stream(
            SCHEMA,
            {"m": ra.Classifier(COLUMNS, "sport")},
            epsilon=1.0,
            delta=1e-6,
            horizon=4,
            key=ra.Key.for_testing(1),
        )
        for _ in range(2)
    ]
    streams[0].add(people(20))
    for bad in ({"sport": ["golf"] * 20}, {"age": [np.nan] * 20}, {"town": [None] * 20}):
        with pytest.raises(ra.InputError):
            streams[0].add({**people(20), **bad})
    streams[1].add(people(20))
    assert streams[0].close_round().encode() == streams[1].close_round().encode()


# Planted bugs ---------------------------------------------------------------------------------------------------------


class ExactPriors(Planted, ra.Classifier):
    """Class priors from exact counts: what is published depends on records not only through noisy sums."""

    class InBound:
        def release(self, totals, noise, at):
            made = self.statistic.products(self.schema)
            first = made.blocks[1].start
            ClassMeans.exact = totals[0][first : first + made.targets] / INTERCEPT
            try:
                return super().release(totals, noise, at)
            finally:
                ClassMeans.exact = None


class ExactSpectrum(Planted, ra.PCA):
    """Eigenvectors of the exact sums, with noise on what is published of them only."""

    class InBound:
        def release(self, totals, noise, at):
            NoisyMoments.exact = exact_answer_of(self, totals, noise, at)
            try:
                return super().release(totals, noise, at)
            finally:
                NoisyMoments.exact = None


def exact_answer_of(bound, totals, noise, at):
    made = bound.statistic.products(bound.schema)
    return NoisyMoments(ExactSums(totals[0], noise.deviations(at.index)), made).spectrum


PEOPLE = {"age": ra.Integer(0, 63), "member": ra.Boolean(), "city": ra.Category(["a", "b"])}


@pytest.mark.parametrize(
    ("name", "planted", "honest"),
    [
        (
            "priors",
            ExactPriors(["age", "member"], "city", method="lda"),
            ra.Classifier(["age", "member"], "city", method="lda"),
        ),
        ("spectrum", ExactSpectrum(["age", "member"], 1), ra.PCA(["age", "member"], 1)),
    ],
)
def test_exact_sums_that_leak_are_caught(monkeypatch, name, planted, honest):
    if name == "priors":
        right = ClassMeans.__init__

        def init(self, moments):
            right(self, moments)
            if ClassMeans.exact is not None:
                self.shares = np.maximum(ClassMeans.exact, 1) / np.maximum(ClassMeans.exact, 1).sum()

        monkeypatch.setattr(ClassMeans, "exact", None, raising=False)
        monkeypatch.setattr(ClassMeans, "__init__", init)
    else:
        true = NoisyMoments.spectrum.fget
        monkeypatch.setattr(NoisyMoments, "exact", None, raising=False)
        monkeypatch.setattr(NoisyMoments, "spectrum", property(lambda self: self.exact or true(self)))

    def spec(statistic):
        return ra.Specification(PEOPLE, {"m": statistic}, epsilon=10.0, delta=1e-6, horizon=8)

    assert check_published(spec(honest), "m", Random(1), keys=1, looks=2)
    with pytest.raises(ra.VerificationError, match="depends on the records not only through its noisy totals"):
        check_published(spec(planted), "m", Random(1), keys=1, looks=2)


def test_an_own_model_passes_the_checks():
    """A subclass with fewer features: the examples are not special."""
    ran = check_statistic(ra.Classifier("age", "city"), PEOPLE, deltas=(1e-6,), horizons=(8,), pairs=2, draws=0)
    assert {"twin", "sensitivity", "gathering", "published numbers"} <= set(ran)
