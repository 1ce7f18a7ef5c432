"""Rounds over time: every form of a time has one round, and what is no time is refused with its row."""

from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retroact.errors import InputError
from retroact.stream.grid import Grid, last_rows
from retroact.stream.moments import time_of, times_of

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = Grid(START, "1h", "2026-01-02T00:00:00Z")


@pytest.mark.parametrize(
    ("length", "seconds"),
    [
        ("1h", 3600), ("15m", 900), ("1d", 86400), ("2w", 1209600), ("30s", 30), ("PT1H", 3600), ("P1D", 86400),
        ("P1W", 604800), ("P1DT12H", 129600), ("PT0.5S", Fraction(1, 2)), ("1.5h", 5400), ("250ms", Fraction(1, 4)),
        (timedelta(minutes=5), 300), (7, 7), (0.25, Fraction(1, 4)), ("PT90M", 5400),
    ],
)  # fmt: skip
def test_lengths(length, seconds):
    closes = Grid(0, length).closes(1)
    assert Fraction((closes - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), 10**6) == seconds


@pytest.mark.parametrize(
    "length",
    ["P1M1D", "1.5y", "0mo", "P0M", "", "P", "PT", "h", "-1h", 0, -5, None, True, "1e3s", 1e-7, "1 hour", "1 month"],
)
def test_lengths_that_are_none(length):
    with pytest.raises(InputError, match="grid length"):
        Grid(0, length)


@pytest.mark.parametrize(
    "start",
    [START, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01", date(2026, 1, 1), 1767225600,
     np.datetime64("2026-01-01"), START.astimezone(timezone(timedelta(hours=-8)))],
)  # fmt: skip
def test_starts(start):
    assert Grid(start, "1h") == Grid(START, "1h")
    assert hash(Grid(start, "1h")) == hash(Grid(START, 3600))


@pytest.mark.parametrize(
    "start",
    ["2026-01-01T00:00:00", datetime(2026, 1, 1), 1.5, None, True, "x", "2026-13-01", 10**15,
     "1970-01-01T00:00:00.0000001Z"],
)  # fmt: skip
def test_starts_that_are_none(start):
    with pytest.raises(InputError, match="grid start"):
        Grid(start, "1h")


def test_an_end_that_does_not_fit_names_the_nearest():
    with pytest.raises(InputError, match="such as 2026-01-01T02:00:00Z"):
        Grid(START, "1h", "2026-01-01T02:10:00Z")
    with pytest.raises(InputError, match="such as 2026-01-01T01:00:00Z"):
        Grid(START, "1h", START)
    assert Grid(START, "90m", "2026-01-01T03:00:00Z").rounds == 2
    assert Grid(START, "1h").rounds is None


def test_repr_is_the_grid():
    for grid in (DAY, Grid(5, "1.5s"), Grid("2026-01-01", "2w")):
        assert eval(repr(grid)) == grid


EDGES = [
    (START - timedelta(microseconds=1), 0),
    (START, 1),
    (START + timedelta(minutes=59, seconds=59, microseconds=999999), 1),
    (START + timedelta(hours=1), 2),
    (START + timedelta(hours=24, microseconds=-1), 24),
    (START + timedelta(hours=24), 25),
    (START + timedelta(days=400), 25),
    (datetime(1, 1, 3, tzinfo=UTC), 0),
]


def test_edges_in_every_form():
    times, cells = [time for time, _ in EDGES], [cell for _, cell in EDGES]
    naive = [time.replace(tzinfo=None) for time in times]
    forms = [
        times,
        [time.isoformat() for time in times],
        [time.isoformat().replace("+00:00", "Z") for time in times],
        [time.astimezone(timezone(timedelta(hours=5, minutes=30))).isoformat(" ") for time in times],
        np.array(naive, "M8[us]"),
        np.array(times, dtype=object),
    ]
    for form in forms:
        assert DAY.cells(form).tolist() == cells
    whole = [int(time.timestamp() // 1) for time in times]
    assert DAY.cells(whole).tolist() == DAY.cells(np.array(whole)).tolist() == cells
    assert DAY.cells(np.array(naive[:-1], "M8[ns]")).tolist() == cells[:-1]
    assert DAY.cells([]).tolist() == []


def test_what_is_finer_than_microseconds_goes_down():
    texts = ["1969-12-31T23:59:59.9999999Z", "1970-01-01T00:00:00.0000001Z"]
    assert Grid(0, 1).cells(texts).tolist() == [0, 1]
    assert Grid(0, 1).cells(np.array([-1, 1], "M8[ns]")).tolist() == [0, 1]


def test_dates_are_midnight_in_utc():
    days = Grid("2026-01-01", "1d")
    for form in (["2026-01-31"], [date(2026, 1, 31)], np.array(["2026-01-31"], "M8[D]")):
        assert days.cells(form).tolist() == [31]


@given(
    st.lists(
        st.tuples(
            st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)),
            st.integers(-14 * 60, 14 * 60),
            st.sampled_from(["seconds", "milliseconds", "microseconds"]),
            st.sampled_from("T "),
        ),
        max_size=20,
    )
)
def test_texts_at_once_are_texts_one_by_one(parts):
    texts = [
        time.replace(tzinfo=timezone(timedelta(minutes=offset))).isoformat(separator, size)
        for time, offset, size, separator in parts
    ]
    found, local = times_of(texts, str)
    assert list(zip(found.tolist(), local.tolist(), strict=True)) == [time_of(text, "") for text in texts]


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        (["2026-01-01T00:00:00Z", "2026-01-01T00:00:00"], "a time without one is ambiguous"),
        ([START, datetime(2026, 1, 1)], "a time without one is ambiguous"),
        (["2026-01-01", None], "expected a time, got None"),
        ([START, None], "expected a time, got None"),
        ([0, 1.5], "whole seconds since 1970"),
        ([0, True], "whole seconds since 1970"),
        ([0, 1767225600000], "milliseconds are divided by 1000"),
        (["2026-01-01", "2026-02-29"], "a date such as"),
        (["2026-01-01T00:00:00Z", "2026-01-01T24:00:00Z"], "a timestamp such as"),
        (["2026-01-01T00:00:00Z", "2026-01-01T23:60:00Z"], "a timestamp such as"),
        (["2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00+00:60"], "a timestamp such as"),
        (["2026-01-01T00:00:00Z", "２026-01-01T00:00:00Z"], "a timestamp such as"),
        (["2026-01-01", "now"], "a timestamp such as"),
        (["2026-01-01", ""], "a timestamp such as .*, got ''"),
        (np.array(["2026-01-01", "NaT"], "M8[us]"), "expected a time, got None"),
        (np.array([0, 10**13]), "milliseconds are divided by 1000"),
        (np.array(["2026", "90000"], "M8[Y]"), "years 1 to 9999"),
    ],
)
def test_what_is_no_time_names_its_row(times, reason):
    with pytest.raises(InputError, match=reason) as caught:
        DAY.cells(times)
    assert caught.value.place == "row 2"


def test_floats_are_refused():
    with pytest.raises(InputError, match="row 1"):
        DAY.cells(np.array([1767225600.0]))


def test_rounds_without_a_time():
    for round in (0, 25, True):
        with pytest.raises(InputError, match="a round from 1 to 24"):
            DAY.closes(round)
    with pytest.raises(InputError, match="year 10000"):
        Grid(START, "1d").closes(10**7)


@given(st.lists(st.integers(0, 8), max_size=30), st.integers(1, 4), st.integers(0, 7))
def test_last_rows_is_its_definition(cells, first, rounds):
    expected = [
        max((row + 1 for row, cell in enumerate(cells) if max(cell, first) <= round), default=0)
        for round in range(first, rounds + 1)
    ]
    assert last_rows(np.array(cells, np.int64), first, rounds).tolist() == expected
