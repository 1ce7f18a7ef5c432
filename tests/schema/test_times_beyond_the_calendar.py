"""Times far beyond the calendar: numpy converts their units in 64 bits, where they come out as days of any year."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retroact as ra
from retroact.stream.grid import Grid
from retroact.stream.moments import times_of

FIRST, LAST = 18262, 21914  # 2020-01-01 and 2030-01-01, in days since 1970
DATES = ra.Date("2020-01-01", "2029-12-31")
TIMES = ra.Timestamp("2020-01-01T00:00:00Z", "2029-12-31T00:00:00Z")
# 400 years are 146,097 days, and about 2^64 / 146,097 times as many wrap around once.
CYCLES = 2**64 // 146_097


def wrapping_years():
    """Years since 1970 that are days of the twenties in 64 bits."""
    for years in range(500):
        days = int(np.datetime64(years, "Y").astype("M8[D]").astype(np.int64)) + 146_097 * CYCLES - 2**64
        if FIRST <= days < LAST:
            yield 400 * CYCLES + years


FAR = [
    *((year, "Y") for year in wrapping_years()),
    *((12 * year + 5, "M") for year in list(wrapping_years())[:3]),
    *(((2**64 + day) // 7, "W") for day in range(FIRST, FIRST + 100) if (2**64 + day) % 7 == 0),
]


def test_these_years_do_wrap_around():
    assert {unit for _, unit in FAR} == {"Y", "M", "W"}
    for value, unit in FAR:
        assert FIRST <= np.array([value], f"M8[{unit}]").astype("M8[D]").astype(np.int64)[0] < LAST + 200


@pytest.mark.parametrize("field", [DATES, TIMES], ids=["date", "timestamp"])
@pytest.mark.parametrize(("value", "unit"), FAR[::9])
def test_a_time_beyond_the_calendar_is_not_a_day_within_the_bounds(field, value, unit):
    cells = np.array([value], f"M8[{unit}]")
    for refused in (lambda: field.encode(cells[0], "t"), lambda: field.encode_column(cells, "t")):
        with pytest.raises(ra.InputError, match=r"expected a (date|timestamp) between"):
            refused()
    clipped = type(field)(field._text(field.lower), field._text(field.upper), clip=True)
    assert clipped.encode(cells[0], "t") == field.upper
    assert clipped.encode(np.array([-value], f"M8[{unit}]")[0], "t") == field.lower


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        *FAR[::12],
        (2**64 // 86_400 + 1 + FIRST, "D"),
        (2**64 // 3600 + 1 + 24 * FIRST, "h"),
        (2**63 - 1, "us"),
        (-(2**63) + 1, "us"),
    ],
)
def test_a_time_beyond_the_calendar_is_in_no_round(value, unit):
    grid = Grid("2020-01-01", "1d", end="2030-01-01")
    with pytest.raises(ra.InputError, match="expected a time in the years 1 to 9999"):
        grid.cells(np.array([value], f"M8[{unit}]"))


@given(st.integers(-719_162, 2_932_896), st.sampled_from(["D", "h", "m", "s", "ms", "us"]))
def test_every_day_of_the_calendar_is_itself_in_every_unit(day, unit):
    cells = np.array([day], "M8[D]").astype(f"M8[{unit}]")
    whole = ra.Date("0001-01-01", "9999-12-31")
    assert whole.encode(cells[0], "t") == whole.encode_column(cells, "t")[0][0] == day
    assert times_of(cells, str, "s")[0].tolist() == [day * 86_400_000_000]
