"""Histograms: what is refused leaves no mark."""

import math
from datetime import date

import numpy as np
import pytest

import retroact as ra
from retroact.coins import DiscreteLaplace
from retroact.noise import Oblivious
from retroact.statistics.keys import LONGEST_KEY
from support.histogram_streams import SCHEMA, pages, specification, stream_of, totals


def unchanged(stream, refused, match):
    """The call raises and leaves the stream as it was."""
    before = stream.state(), totals(stream), stream.round
    with pytest.raises(ra.InputError, match=match):
        refused()
    assert (stream.state(), totals(stream), stream.round) == before


@pytest.mark.parametrize(
    "page", ["x" * 10**6, "x" * (LONGEST_KEY + 1), "é" * (LONGEST_KEY // 2 + 1), "€" * (LONGEST_KEY // 3 + 1)],
    ids=["a megabyte", "one byte", "two-byte letters", "three-byte letters"],
)  # fmt: skip
@pytest.mark.parametrize("statistic", [ra.Histogram("page"), ra.Histogram("page", bins=["a"]).map(len)], ids=repr)
def test_bins_that_are_too_long_are_refused_at_the_door(statistic, page):
    stream = stream_of(statistic)
    stream.add(pages("a", "b"))
    stream.close_round()
    message = f"at most 4,096 bytes, got {len(page.encode()):,}"
    unchanged(stream, lambda: stream.add({"page": page, "amount": 1}), message)
    unchanged(stream, lambda: stream.add(pages("c", page, "d")), f"{message} - at page, row 2")
    stream.close_round()


def test_the_longest_bins_are_taken():
    stream = stream_of(ra.Histogram("page"))
    for page in ("x" * LONGEST_KEY, "é" * (LONGEST_KEY // 2)):
        stream.add(pages(page, page, page))
    assert len(stream.close_round()["h"].value) == 2
    fields = {"one": ra.Bytes(), "two": ra.Text(), "n": ra.Integer(0, 9)}
    both = stream_of(ra.Histogram(["one", "two", "n"]), schema=fields)
    longest = {"one": b"\xff" * (LONGEST_KEY - 6), "two": "ééé", "n": 1}
    both.add([longest] * 3)
    assert list(both.close_round()["h"].value) == [(longest["one"], "ééé", 1)]
    unchanged(both, lambda: both.add({**longest, "two": "éééx"}), "got 4,097")


@pytest.mark.parametrize(
    ("record", "match"),
    [
        ({"page": "a", "amount": math.nan}, "amount"), ({"page": "a", "amount": math.inf}, "amount"),
        ({"page": "a", "amount": 501}, "amount"), ({"page": None, "amount": 1}, "page"),
        ({"page": 7, "amount": 1}, "page"), ({"page": "\ud800", "amount": 1}, "page"), ({"page": "a"}, "amount"),
        ({"page": "a", "amount": 1, "colour": 2}, "colour"),
    ],
)  # fmt: skip
def test_bad_records_leave_the_stream_as_it_was(record, match):
    stream = stream_of(ra.Histogram("page", sum="amount"))
    stream.add(pages("a", "b"))
    stream.close_round()
    unchanged(stream, lambda: stream.add(record), match)
    unchanged(stream, lambda: stream.add([{"page": "c", "amount": 2}, record]), match)


@pytest.mark.parametrize(
    ("options", "name"), [({"limit": 3}, "limit"), ({"adaptive": True, "most_bins": 3}, "most_bins")]
)
def test_too_many_bins_are_refused_before_anything_is_written(options, name):
    """Nothing is written, and when the surplus is taken back the round closes as if it had never come."""
    stream, twin = (stream_of(ra.Histogram("page", **options)) for _ in range(2))
    for each in (stream, twin):
        each.add(pages("a", "a", "b"))
        each.close_round()
    before = stream._core.ledger.state(), totals(stream), stream.round
    stream.add(pages("c", "c", "d"))
    for _ in range(2):
        with pytest.raises(ra.InputError, match=rf"at most 3 bins with records \({name}\), got 4.*statistics\.h"):
            stream.close_round()
        assert (stream._core.ledger.state(), totals(stream), stream.round) == before
    stream.delete({"page": "d", "amount": 1}, stamp=2)
    twin.add(pages("c", "c"))
    assert stream.close_round().encode() == twin.close_round().encode()
    assert stream.state() == twin.state()


def test_bins_that_nobody_listed_need_a_delta():
    for statistic in (ra.Histogram("page"), ra.Histogram(["page", "amount"]).map(len)):
        with pytest.raises(ra.InputError, match=r"give a delta, or declare the bins.*statistics\.h"):
            specification(statistic, delta=0.0)
    specification(ra.Histogram("page", bins=["a"]), delta=0.0)
    specification(ra.Histogram("country"), delta=0.0, schema=SCHEMA)


def test_a_law_of_your_own_needs_declared_bins():
    own = Oblivious(DiscreteLaplace(50), "fifty", epsilon=0.02)
    with pytest.raises(ra.InputError, match=r"no proven threshold: declare the bins - at statistics\.h\.noise"):
        specification(ra.Histogram("page", noise=own))
    stream = stream_of(ra.Histogram("page", noise=own, bins=["a", "b"]), epsilon=1.0, delta=0.0)
    assert set(stream.close_round()["h"].value) == {"a", "b"}


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"field": []}, "field"), ({"field": ["page", "page"]}, "field"), ({"field": 5}, "field"),
        ({"field": [["page"]]}, "field"),
        ({"bins": []}, "bins"), ({"bins": "abc"}, "bins"), ({"bins": 7}, "bins"), ({"bins": np.arange(3)}, "bins"),
        ({"most_bins": 0}, "most_bins"), ({"most_bins": 1.5}, "most_bins"),
        ({"limit": 0}, "limit"), ({"noise": "white"}, "noise"), ({"every": 0}, "every"), ({"window": -1}, "window"),
    ],
    ids=str,
)  # fmt: skip
def test_arguments_that_make_no_histogram(arguments, place):
    with pytest.raises(ra.InputError, match=rf"- at {place}$"):
        ra.Histogram(**({"field": "page"} | arguments))


def test_an_adaptive_guarantee_needs_a_bound_where_there_is_a_threshold():
    with pytest.raises(ra.InputError, match=r"a public bound on how many bins.*most_bins$"):
        specification(ra.Histogram("page", adaptive=True))
    listed = ra.Specification(
        {"country": ra.Category(["DE", "FR"])}, {"h": ra.Histogram("country", adaptive=True)}, epsilon=1.0, horizon=8
    )
    assert listed.guarantee.adaptive


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"field": "colour"}, "got 'colour'"), ({"field": ["page", "colour"]}, "got 'colour'"),
        ({"field": "page", "sum": "colour"}, "got 'colour'"), ({"field": "page", "sum": "day"}, "Number or Integer"),
        ({"field": "page", "where": {"colour": 1}}, "colour"), ({"field": "place"}, "a vector"),
        ({"field": "page", "bins": ["a", "b", "a"]}, "every bin once"),
        ({"field": "day", "bins": ["2020-01-01", date(2020, 1, 1)]}, "every bin once"),
        ({"field": "country", "bins": ["DE", "XX"]}, "got 'XX'"),
        ({"field": "page", "bins": [7]}, "expected text, got 7"),
        ({"field": ["page", "age"], "bins": ["a"]}, r"expected 2 values \(page, age\), got 'a'"),
        ({"field": ["page", "age"], "bins": [("a", 1, 2)]}, "expected 2 values"),
        ({"field": ["country", "member"], "limit": 3}, "at most 3 bins .*got 4 combinations"),
        ({"field": "page", "noise": "tree", "window": 3}, "does not go with a window"),
    ],
    ids=str,
)  # fmt: skip
def test_histograms_that_do_not_fit_the_schema(arguments, message):
    schema = {**SCHEMA, "place": ra.Vector(2, radius=1, step=0.1)}
    with pytest.raises(ra.InputError, match=rf"{message}.* - at statistics\.h"):
        specification(ra.Histogram(**arguments), schema=schema)


def test_bins_may_be_written_with_numpy_numbers():
    plain, numpy = (
        stream_of(ra.Histogram(["age", "country"], bins=bins), schema=SCHEMA).close_round().encode()
        for bins in ([(1, "DE"), (2, "FR")], [(np.int64(1), np.str_("DE")), (np.int32(2), "FR")])
    )
    assert plain == numpy
