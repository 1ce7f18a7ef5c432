"""Rounds by the calendar of a time zone: compared with datetime and zoneinfo, day by day and moment by moment."""

from datetime import UTC, date, datetime, timedelta
from itertools import count, pairwise
from time import process_time
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retroact.errors import InputError
from retroact.stream.grid import Grid
from retroact.stream.zones import Zone, local_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = [
    "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu",
    "America/St_Johns", "Africa/Casablanca", "Asia/Gaza", "UTC", "+05:30",
]  # fmt: skip


def clock(zone):
    return datetime.fromisoformat(f"2026-01-01T00:00{zone}").tzinfo if zone[0] == "+" else ZoneInfo(zone)


def first_moment(local, zone):
    """The first whole minute at which a clock shows this local time or a later one, found by looking at it."""
    earliest = local.replace(tzinfo=UTC) - timedelta(hours=26)
    minutes = (earliest + timedelta(minutes=n) for n in count())
    return next(m for m in minutes if m.astimezone(clock(zone)).replace(tzinfo=None) >= local)


def months_later(day, months):
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return day.replace(year=year, month=month + 1)


def boundaries(start, length, zone, last):
    amount, unit = int(length[:-1].rstrip("mo")), length.lstrip("0123456789")
    found = []
    for n in range(last + 1):
        if unit in "dw":
            local = start + timedelta(days=n * amount * (7 if unit == "w" else 1))
        else:
            local = months_later(start, n * amount * {"mo": 1, "q": 3, "y": 12}[unit])
        found.append(first_moment(local, zone))
    return found


starts = st.datetimes(datetime(1971, 1, 1), datetime(2036, 1, 1)).map(
    lambda time: time.replace(day=min(time.day, 28), minute=time.minute // 30 * 30, second=0, microsecond=0)
)


@settings(max_examples=60, deadline=None)
@given(starts, st.sampled_from(["1d", "2d", "1w", "1mo", "1q", "1y"]), st.sampled_from(ZONES), st.data())
@example(datetime(2026, 3, 28), "1d", "Europe/Berlin", None)
@example(datetime(2026, 10, 24, 2, 30), "1d", "Europe/Berlin", None)
@example(datetime(2026, 3, 28, 2, 30), "1d", "Europe/Berlin", None)
@example(datetime(2026, 3, 7, 2, 0), "1d", "America/New_York", None)
@example(datetime(2026, 4, 4, 1, 30), "1d", "Australia/Lord_Howe", None)
@example(datetime(2026, 10, 3, 2, 0), "1d", "Australia/Lord_Howe", None)
@example(datetime(2018, 11, 2), "1d", "America/Sao_Paulo", None)
@example(datetime(2018, 2, 16), "1d", "America/Sao_Paulo", None)
@example(datetime(2011, 12, 28), "1d", "Pacific/Apia", None)
@example(datetime(2011, 12, 28, 6, 0), "1d", "Pacific/Apia", None)
@example(datetime(2006, 10, 28), "1d", "America/St_Johns", None)
def test_boundaries_and_rounds_are_those_of_the_clocks(start, length, zone, data):
    rounds = 5
    expected = boundaries(start, length, zone, rounds)
    given = f"{start:%Y-%m-%dT%H:%M:%S}" + {"UTC": "Z", "+05:30": "+05:30"}.get(zone, "")
    grid = Grid(given, length, time_zone=zone)
    assert [grid.span(number + 1) for number in range(rounds)] == list(pairwise(expected))
    edges = [edge + timedelta(microseconds=more) for edge in expected for more in (-1, 0, 1)]
    if data is not None:
        first, last = (edge.replace(tzinfo=None) for edge in expected[::rounds])
        edges += data.draw(st.lists(st.datetimes(first, last, timezones=st.just(UTC))))
    cells = [sum(edge <= time for edge in expected) for time in edges]
    inside = [(time, cell) for time, cell in zip(edges, cells, strict=True) if cell <= rounds]
    times, wanted = [time for time, _ in inside], [cell for _, cell in inside]
    assert grid.cells(times).tolist() == wanted
    assert grid.cells([time.isoformat() for time in times]).tolist() == wanted
    assert grid.cells(np.array([time.replace(tzinfo=None) for time in times], "M8[us]")).tolist() == wanted
    closed = Grid(given, length, grid.span(rounds)[1], time_zone=zone)
    assert closed.rounds == rounds
    assert closed.cells(edges).tolist() == cells
    assert eval(repr(closed)) == closed


def lasts(zone, day, length="1d"):
    begin, end = Grid(day, length, time_zone=zone).span(1)
    return (end - begin) / timedelta(hours=1)


def test_days_have_the_hours_that_they_have():
    assert lasts("Europe/Berlin", "2026-03-29") == 23
    assert lasts("Europe/Berlin", "2026-10-25") == 25
    assert lasts("Europe/Berlin", "2026-03-29", "24h") == 24
    assert lasts("America/New_York", "2026-03-08") == 23
    assert lasts("America/New_York", "2026-11-01") == 25
    assert lasts("Australia/Lord_Howe", "2026-10-04") == 23.5
    assert lasts("Australia/Lord_Howe", "2026-04-05") == 24.5
    assert lasts("America/Sao_Paulo", "2018-11-04") == 23
    assert lasts("America/Sao_Paulo", "2018-02-17") == 25
    assert lasts("Pacific/Apia", "2011-12-30") == 0
    assert lasts("Europe/Berlin", "2026-03-01", "1mo") == 31 * 24 - 1
    assert lasts("Europe/Berlin", "2026-10-01", "1q") == 92 * 24 + 1
    assert lasts("UTC", "2024-01-01", "1y") == 366 * 24


def test_a_day_that_clocks_skip_has_its_own_round():
    grid = Grid("2011-12-29", "1d", "2012-01-02", time_zone="Pacific/Apia")
    assert grid.cells(["2011-12-29", "2011-12-30", "2011-12-31"]).tolist() == [1, 2, 3]
    assert grid.cells(["2011-12-30T09:59:59Z", "2011-12-30T10:00:00Z"]).tolist() == [1, 3]


def test_local_times_that_come_twice_or_never():
    moment = {time: Zone("Europe/Berlin").moment(local_of(f"2026-{time}")) for time in
              ("03-29T01:59", "03-29T02:00", "03-29T02:59", "03-29T03:00", "10-25T02:00", "10-25T03:00")}  # fmt: skip
    hours = [(EPOCH + timedelta(microseconds=each)).isoformat()[5:16] for each in moment.values()]
    assert hours == ["03-29T00:59", "03-29T01:00", "03-29T01:00", "03-29T01:00", "10-25T00:00", "10-25T02:00"]


@given(st.sampled_from(ZONES), st.lists(st.datetimes(datetime(1850, 1, 1), datetime(2100, 1, 1)), min_size=1))
def test_a_column_of_local_times_is_each_of_them(zone, times):
    zone, local = Zone(zone), [local_of(time.isoformat()) for time in times]
    assert zone.moments(np.array(local)).tolist() == [zone.moment(time) for time in local]


@given(st.sampled_from(ZONES), starts, starts)
def test_later_local_times_are_not_earlier_moments(zone, one, other):
    earlier, later = sorted([local_of(one.isoformat()), local_of(other.isoformat())])
    assert Zone(zone).moment(earlier) <= Zone(zone).moment(later)


def test_local_times_of_records():
    local = ["2026-03-28 23:59:59", "2026-03-29T00:00:00", "2026-03-29T23:59:59.5", "2026-03-30T00:00"]
    days = Grid("2026-03-28", "1d", time_zone="Europe/Berlin")
    assert days.cells(local).tolist() == [1, 2, 2, 3]
    assert days.cells([datetime.fromisoformat(time) for time in local]).tolist() == [1, 2, 2, 3]
    assert days.cells([*local, date(2026, 3, 30), "2026-03-29T22:00:00Z"]).tolist() == [1, 2, 2, 3, 3, 3]
    hours = Grid("2026-03-28", "1h", time_zone="Europe/Berlin")
    assert hours.cells(local).tolist() == [24, 25, 47, 48]
    assert hours.cells(["2026-03-29T01:59:59", "2026-03-29T02:30:00", "2026-03-29T03:00:00"]).tolist() == [26, 27, 27]
    assert Grid("2026-03-28", "1h", time_zone="+01:00").cells(["2026-03-28T01:00:00"]).tolist() == [2]
    with pytest.raises(InputError, match="a time without one is ambiguous"):
        Grid("2026-03-28", "1d").cells(local)


@pytest.mark.parametrize("day", [29, 30, 31])
def test_months_from_days_that_not_every_month_has(day):
    for length in ("1mo", "1q", "1y", "P1M"):
        with pytest.raises(InputError, match=r"a start on day 1 to 28 of a month for a length of .*grid start"):
            Grid(f"2024-01-{day}", length)
    # by the local calendar
    Grid("2024-01-31T23:00:00Z", "1mo", time_zone="Europe/Berlin")
    Grid(f"2024-01-{day}", "1w", time_zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("zone", "hint"),
    [("Europe/Berlyn", "did you mean 'Europe/Berlin'"), ("../Europe/Berlin", ""), ("/etc/localtime", ""), ("", ""),
     ("localtime", ""), ("posix/Europe/Berlin", ""), (5, ""), ("+25:00", ""), ("Europe", "")],
)  # fmt: skip
def test_zones_that_are_none(zone, hint):
    with pytest.raises(InputError, match=f"a time zone such as Europe/Berlin, got .*{hint}.*time_zone"):
        Grid("2026-01-01", "1d", time_zone=zone)


def test_lengths_in_a_zone_whose_clocks_change():
    given = ["1d", "P1D", "24h", "PT24H", "7d", "P1W", "P12M", "3mo", "18mo", "90m", 86400, timedelta(days=1)]
    made = [Grid("2026-01-01", length, time_zone="Europe/Berlin").length for length in given]
    assert made == ["1d", "1d", "24h", "24h", "1w", "1w", "1y", "1q", "6q", "90m", "24h", "24h"]
    for length in ("1.5d", "P1DT12H", "0.5w"):
        with pytest.raises(InputError, match="expected whole days, or hours"):
            Grid("2026-01-01", length, time_zone="Europe/Berlin")


def test_ends_that_do_not_fit_name_the_nearest():
    with pytest.raises(
        InputError, match=r"\(1mo\) after the start, such as 2026-02-01 or 2026-03-01, got '2026-02-20'"
    ):
        Grid("2026-01-01", "1mo", "2026-02-20", time_zone="Europe/Berlin")
    with pytest.raises(InputError, match="such as 2026-04-01T00:00:00Z"):
        Grid("2026-01-01", "1q", "2025-01-01")
    with pytest.raises(InputError, match="shows for the first time"):
        Grid("2026-10-25T01:30:00Z", "1d", time_zone="Europe/Berlin")
    assert Grid("2026-01-01", "1mo", "2026-12-31T23:00:00Z", time_zone="Europe/Berlin").rounds == 12


def test_far_rounds():
    grid = Grid("2026-01-01", "1mo", time_zone="Europe/Berlin")
    assert grid.cells(["0001-01-05", "9999-12-31T00:00:00Z", "9998-12-31"]).tolist() == [0, 95688, 95676]
    with pytest.raises(InputError, match="year 10000"):
        grid.closes(10**8)


def test_boundaries_that_were_used_stay():
    rule = Grid("2026-01-01", "1d", "2026-01-05", time_zone="Europe/Berlin")
    hour = 3600 * 10**6
    old = [rule.boundary(number) + hour for number in range(3)]
    kept = rule.keeping(old)
    assert [kept.boundary(number) - rule.boundary(number) for number in range(5)] == [hour, hour, hour, 0, 0]
    assert kept.moved() == {number: (old[number], old[number] - hour) for number in range(3)}
    times = ["2026-01-01T23:30:00Z", "2026-01-02T23:30:00Z", "2026-01-03T23:30:00Z"]
    assert (rule.cells(times).tolist(), kept.cells(times).tolist()) == ([2, 3, 4], [1, 2, 4])
    # dates go by the calendar, not by the moment at which a day began
    assert kept.cells(["2026-01-02", "2026-01-04"]).tolist() == [2, 4]
    # a rule that moves a day away cannot turn the order around
    late = rule.keeping([rule.boundary(0), rule.boundary(1) + 48 * hour])
    assert [late.boundary(number) for number in range(4)] == [
        rule.boundary(0), rule.boundary(3), rule.boundary(3), rule.boundary(3)
    ]  # fmt: skip


def test_a_year_of_flights_in_columns():
    random = np.random.default_rng(1)
    seconds = 1356998400 + random.integers(0, 365 * 86400, 336_776)
    moments = seconds.astype("M8[s]")
    texts = np.char.add(np.datetime_as_string(moments), "Z").tolist()
    local = [text[:-1] for text in texts]
    for length in ("1d", "1mo", "1h"):
        grid = Grid("2012-12-01", length, "2014-01-01", time_zone="America/New_York")
        for times in (moments, texts, local):
            before = process_time()
            cells = grid.cells(times)
            assert process_time() - before < 1.0
            assert 0 < cells.min() <= cells.max() <= grid.rounds
