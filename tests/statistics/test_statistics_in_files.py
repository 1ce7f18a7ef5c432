"""Statistics as they are written in a specification file."""

import pytest

import retroact as ra
from retroact.statistics import Statistic

WRITTEN = [
    ({"type": "histogram", "field": "c"}, ra.Histogram("c")),
    ({"type": "histogram", "field": ["c", "n"], "sum": "n"}, ra.Histogram(["c", "n"], sum="n")),
    (
        {"type": "histogram", "field": "c", "bins": ["a", "b"], "window": 3},
        ra.Histogram("c", bins=["a", "b"], window=3),
    ),
    (
        {"type": "histogram", "field": "c", "adaptive": True, "most_bins": 50},
        ra.Histogram("c", adaptive=True, most_bins=50),
    ),
    ({"type": "quantiles", "field": "n"}, ra.Quantiles("n")),
    (
        {"type": "quantiles", "field": "n", "probabilities": [0.5], "cdf": [3], "counts": [[1, 2]]},
        ra.Quantiles("n", [0.5], cdf=[3], counts=[(1, 2)]),
    ),
    ({"type": "distinct", "field": "c", "flips": 2}, ra.Distinct("c", flips=2)),
    ({"type": "distinct", "field": ["c", "n"], "every": 7}, ra.Distinct(["c", "n"], every=7)),
    ({"type": "count", "lags": [1, 7]}, ra.Restated(ra.Count(), [1, 7])),
    (
        {"type": "sum", "field": "n", "by": "g", "lags": [0, 1], "across": "lags", "weight": 2},
        ra.Restated(ra.GroupBy("g", ra.Sum("n", weight=2)), [0, 1], across="lags"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "statistic"), WRITTEN, ids=[repr(s) for _, s in WRITTEN])
def test_a_file_says_what_python_says(spec, statistic):
    read = Statistic.from_spec(spec, "statistics.x")
    assert type(read) is type(statistic)
    assert read.spec() == statistic.spec()
    assert read.weight == statistic.weight


WRONG = [
    ({"type": "histogram"}, "statistics.x.field", "expected field, which is missing"),
    ({"type": "histogram", "field": 3}, "statistics.x.field", "the names of one or more different fields"),
    ({"type": "quantiles", "field": ["n"]}, "statistics.x.field", "the name of a field"),
    ({"type": "quantiles", "field": "n", "probabilities": [1.5]}, "statistics.x.probabilities", "between 0 and 1"),
    ({"type": "histogram", "field": "c", "probabilities": [1]}, "statistics.x.probabilities", "expected only"),
    ({"type": "quantiles", "field": "n", "basis": "haar"}, "statistics.x.basis", "expected only"),
    ({"type": "histogram", "field": "c", "by": "g"}, "statistics.x.by", "a count, sum, mean, variance, ratio or query"),
    ({"type": "distinct", "field": "c", "lags": [1]}, "statistics.x.lags", "no restated series"),
    ({"type": "count", "lags": []}, "statistics.x.lags", "a list of lags"),
    ({"type": "count", "across": "lags"}, "statistics.x.lags", "expected lags"),
    ({"type": "distinct", "field": "c", "form": "other"}, "statistics.x.form", "expected"),
    ({"type": "histogram", "field": "c", "most_bins": 0}, "statistics.x.most_bins", "from 1 on"),
    ({"type": "topk"}, "statistics.x.type", "expected one of"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "place", "message"), WRONG, ids=[p for _, p, _ in WRONG])
def test_errors_name_the_place(spec, place, message):
    with pytest.raises(ra.InputError, match=message) as caught:
        Statistic.from_spec(spec, "statistics.x")
    assert caught.value.place == place
