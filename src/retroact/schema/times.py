"""Dates and timestamps: `Date` counts days from 1970-01-01, `Timestamp` counts steps from its midnight in UTC.

A timestamp needs an offset from UTC. A local time is refused: it means a different moment in every time zone, and two
or none when clocks change. numpy's datetime64 is UTC by definition.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64
from ..errors import InputError
from ..messages import At, mismatch
from .field import Missing
from .hints import hint_for
from .lattice import INT64_MAX, INT64_MIN, column_to_lattice, half_even
from .numbers import Bounded, exact_number
from .time_texts import MILLION, days_in, moments_in

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1).toordinal()
_DAY = 86400
_FIRST_SECOND = (date.min.toordinal() - _FIRST_DAY) * _DAY
_LAST_SECOND = (date.max.toordinal() - _FIRST_DAY + 1) * _DAY
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?)(?:(?<=:\d\d:\d\d)[.,](\d{1,18}))?(Z|[+-]\d\d:?[0-5]\d)?", re.ASCII | re.I
)
_A_DATE, _A_TIMESTAMP = "a date such as 2020-12-31", "a timestamp such as 2020-12-31T23:59:59Z"
_SECONDS = {"W": 7 * _DAY, "D": _DAY, "h": 3600, "m": 60, "s": 1}
_FRACTIONS = {"ms": 3, "us": 6, "ns": 9, "ps": 12, "fs": 15, "as": 18}


class Date(Bounded):
    """A day between two days, as a date or as ISO text.

    >>> day = Date("2020-01-01", "2029-12-31")
    >>> day.encode("2020-01-02", "day"), day.decode(18263)
    (18263, datetime.date(2020, 1, 2))
    """

    kind: ClassVar[str] = "date"
    noun: ClassVar[str] = "a date"
    bounds_as_text: ClassVar[bool] = True

    def __init__(self, lower: object, upper: object, *, clip: bool = False, missing: Missing = "error") -> None:
        low, high = (self._declared(*bound) for bound in ((lower, "lower"), (upper, "upper")))
        super().__init__(low, high, Fraction(1), clip=clip, missing=missing)

    def _declared(self, value: object, name: str) -> Fraction:
        days = self._nearest(value, name)
        if not date.min.toordinal() <= days + _FIRST_DAY <= date.max.toordinal():
            raise mismatch("a date in the years 1 to 9999", value, name)
        return Fraction(days)

    def _nearest(self, value: object, place: str) -> int:
        if isinstance(value, str):
            try:
                value = date.fromisoformat(value)
            except ValueError:
                raise _hinted(_A_DATE, value, place) from None
        if isinstance(value, np.datetime64):
            return int(self._nearest_cells(np.array([value]), lambda _: place)[0])
        if isinstance(value, datetime):
            raise mismatch("a date without a time of day", value, place)
        if not isinstance(value, date):
            raise mismatch("a date", value, place)
        return value.toordinal() - _FIRST_DAY

    def _nearest_cells(self, cells: NDArray[Any], at: At) -> I64:
        if cells.dtype.kind != "M":
            found = days_in(cells.tolist())
            return super()._nearest_cells(cells, at) if found is None else found
        near = near_calendar(cells)
        days = near.astype("datetime64[D]")
        odd = np.isnat(cells) | (days != near)
        if odd.any():
            first = int(np.argmax(odd))
            expected = "a date" if np.isnat(cells[first]) else "a date without a time of day"
            raise mismatch(expected, cells[first], at(first))
        return days.astype(np.int64)

    def _text(self, multiple: Fraction | int) -> str:
        return self.decode(int(multiple)).isoformat()

    def decode(self, encoded: int) -> date:
        return date.fromordinal(int(encoded) + _FIRST_DAY)


class Timestamp(Bounded):
    """A moment between two moments, rounded to a step in seconds (a whole number of microseconds).

    >>> moment = Timestamp("2020-01-01T00:00:00Z", "2029-12-31T00:00:00Z")
    >>> moment.encode("2020-01-01T01:00:00.5+01:00", "at"), moment.decode(1577836800)
    (1577836800, datetime.datetime(2020, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))
    >>> moment.encode("2020-01-01T01:00:00", "at")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected an offset from UTC, such as Z (a time without one is ambiguous), \
got '2020-01-01T01:00:00' - at at
    """

    kind: ClassVar[str] = "timestamp"
    noun: ClassVar[str] = "a timestamp"
    bounds_as_text: ClassVar[bool] = True

    def __init__(
        self, lower: object, upper: object, *, step: object = 1, clip: bool = False, missing: Missing = "error"
    ) -> None:
        size = exact_number(step, "step")
        if size <= 0 or (size * 10**6).denominator != 1:
            raise mismatch("a step of a whole number of microseconds, in seconds", step, "step")
        low, high = (_declared(*bound) for bound in ((lower, "lower"), (upper, "upper")))
        super().__init__(low, high, size, clip=clip, missing=missing)

    def _nearest(self, value: object, place: str) -> int:
        numerator, denominator = exact_seconds(value, place)
        return half_even(numerator * self.step.denominator, denominator * self.step.numerator)

    def _nearest_cells(self, cells: NDArray[Any], at: At) -> I64:
        if cells.dtype.kind != "M":
            found = moments_in(cells.tolist())
            if found is None:
                return super()._nearest_cells(cells, at)
            return column_to_lattice(found, self.step * MILLION, at=at)
        ticks, tick = _ticks(cells, at)
        return column_to_lattice(ticks, self.step / tick, at=at)

    def _text(self, multiple: Fraction | int) -> str:
        moment = _EPOCH + timedelta(microseconds=round(multiple * self.step * 10**6))
        return moment.isoformat().replace("+00:00", "Z")

    def decode(self, encoded: int) -> datetime:
        return _EPOCH + timedelta(microseconds=int(int(encoded) * self.step * 10**6))


def _declared(value: object, name: str) -> Fraction:
    seconds = Fraction(*exact_seconds(value, name))
    if not _FIRST_SECOND <= seconds < _LAST_SECOND:
        raise mismatch("a timestamp in the years 1 to 9999", value, name)
    return seconds


def exact_seconds(value: object, place: str) -> tuple[int, int]:
    """Seconds since 1970 in UTC, as an exact fraction."""
    if isinstance(value, str):
        return _seconds_of_text(value, place)
    if isinstance(value, np.datetime64):
        ticks, tick = _ticks(np.array([value]), lambda _: place)
        return int(ticks[0]) * tick.numerator, tick.denominator
    if not isinstance(value, datetime):
        raise mismatch("a timestamp", value, place)
    if value.utcoffset() is None:
        raise _naive(value, place)
    since = value - _EPOCH
    microseconds = (since.days * _DAY + since.seconds) * 10**6 + since.microseconds
    # pandas keeps nanoseconds in an attribute that datetime does not have
    return microseconds * 1000 + getattr(value, "nanosecond", 0), 10**9


def _seconds_of_text(text: str, place: str) -> tuple[int, int]:
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        raise _hinted(_A_TIMESTAMP, text, place)
    moment, digits, offset = parts.groups()
    if offset is None:
        raise _naive(text, place)
    try:
        since = datetime.fromisoformat(moment + offset.upper()) - _EPOCH
    except ValueError:
        raise _hinted(_A_TIMESTAMP, text, place) from None
    # fromisoformat() would drop digits after the sixth
    scale = 10 ** len(digits or "")
    return (since.days * _DAY + since.seconds) * scale + int(digits or 0), scale


def _ticks(cells: NDArray[Any], at: At) -> tuple[I64, Fraction]:
    """The integers in an array of datetime64, and their unit in seconds."""
    absent = np.isnat(cells)
    if absent.any():
        first = int(np.argmax(absent))
        raise mismatch("a timestamp", cells[first], at(first))
    if np.datetime_data(cells.dtype)[0] in ("Y", "M", "generic"):
        cells = near_calendar(cells).astype("datetime64[D]")
    unit, count = np.datetime_data(cells.dtype)
    return cells.astype(np.int64), _tick(unit, count)


def near_calendar(cells: NDArray[Any]) -> NDArray[Any]:
    """Moments outside the years 1 to 9999, moved to just outside: numpy converts units in 64 bits, where others would
    wrap around to any day at all. NaT stays.

    >>> near_calendar(np.array([50, 2**62], dtype="datetime64[Y]")).astype(np.int64).tolist()
    [50, 8030]
    """
    unit, count = np.datetime_data(cells.dtype)
    if unit == "generic":
        return cells
    if unit in ("Y", "M"):
        months = Fraction(count if unit == "M" else 12 * count)
        before, after = (date.min.year - 1 - 1970) * 12 / months, (date.max.year + 1 - 1970) * 12 / months
    else:
        tick = _tick(unit, count)
        before, after = (_FIRST_SECOND - _DAY) / tick, _LAST_SECOND / tick
    # never the smallest integer, which is NaT
    low, high = max(math.floor(before), INT64_MIN + 1), min(math.ceil(after), INT64_MAX)
    return np.where(np.isnat(cells), cells, np.clip(cells.astype(np.int64), low, high).view(cells.dtype))


def _tick(unit: str, count: int) -> Fraction:
    """The length of a tick in seconds."""
    return count * (Fraction(_SECONDS[unit]) if unit in _SECONDS else Fraction(1, 10 ** _FRACTIONS[unit]))


def _hinted(expected: str, found: object, place: str) -> InputError:
    error = mismatch(expected, found, place)
    error.hint = hint_for(error)
    return error


def _naive(value: object, place: str) -> InputError:
    return mismatch("an offset from UTC, such as Z (a time without one is ambiguous)", value, place)
