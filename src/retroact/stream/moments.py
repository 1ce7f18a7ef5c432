"""Columns of times as whole microseconds since 1970, rounded down: moments in UTC, or local times.

Dates are local times, midnight. Texts and datetimes without an offset are local times where there is a time zone for
them, and refused elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64, Mask
from ..checks import is_integral
from ..errors import InputError
from ..messages import At, mismatch
from ..schema.time_texts import MILLION, of_form, zone_of
from ..schema.times import Date, exact_seconds, near_calendar

Unit = Literal["s", "ms", "us", "ns"]
_DAY = 86400
_DAYS = Date(date.min, date.max)
# The years 1 to 9999. Seconds beyond them are milliseconds or finer, mistaken for seconds.
_FIRST, _LAST = _DAYS.encode(date.min, "") * _DAY, (_DAYS.encode(date.max, "") + 1) * _DAY
_PART = 1 << 16
_WITHOUT_OFFSET = re.compile(r"[\d-]{10}[T ][\d:.,]+", re.ASCII | re.IGNORECASE)
_PARTS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCHS = "whole seconds since 1970 (milliseconds are divided by 1000 first)"
_ADVICE = "times as texts with an offset from UTC, as timestamps with a time zone, or as whole seconds since 1970"


def time_of(value: Any, place: str, *, local_times: bool = False) -> tuple[int, bool]:
    """A time that is a whole number of microseconds, and whether it is a local one.

    >>> time_of("1970-01-01T00:00:01.5Z", "start"), time_of(1, "start"), time_of("1970-01-02", "start")
    ((1500000, False), (1000000, False), (86400000000, True))
    >>> time_of("1970-01-01 00:00:01", "start", local_times=True)
    (1000000, True)
    """
    seconds, parts, local = _exact(value, place, "s", local_times)
    if seconds * MILLION % parts:
        raise mismatch("a whole number of microseconds", value, place)
    return seconds * MILLION // parts, local


def is_day(value: Any) -> bool:
    """Whether this is a date without a time of day."""
    if isinstance(value, str):
        return len(value) == 10
    return isinstance(value, date) and not isinstance(value, datetime)


def times_of(
    times: Sequence[Any] | NDArray[Any], at: At, unit: Unit = "s", *, local_times: bool = False
) -> tuple[I64, Mask]:
    """A column of times, and which of them are local: texts of one form, datetime64 and integers at once, others one
    by one. datetime64 is UTC by definition. Whole numbers count ``unit``s since 1970.

    >>> times_of(["1970-01-01T00:00:01Z", "1970-01-01T01:00:00.5+01:00"], str)
    (array([1000000,  500000]), array([False, False]))
    >>> times_of(np.array(["1970-01-02"], "M8[D]"), str)
    (array([86400000000]), array([False]))
    >>> times_of(["1970-01-02", "1970-01-02T00:00:00"], str, local_times=True)
    (array([86400000000, 86400000000]), array([ True,  True]))
    >>> times_of([1000, "1970-01-01T00:00:02Z"], str, "ms")
    (array([1000000, 2000000]), array([False, False]))
    """
    kind = times.dtype.kind if isinstance(times, np.ndarray) else ""
    none = np.zeros(len(times), np.bool_)
    if kind == "M":
        return _of_moments(np.asarray(times), at), none
    if kind in ("i", "u"):
        return _of_epochs(np.asarray(times), at, unit), none
    if kind in ("f", "b") and len(times):
        raise mismatch(_ADVICE, times[0], at(0))
    values = times.tolist() if isinstance(times, np.ndarray) else list(times)
    kinds = set(map(type, values))
    if kinds == {int}:
        with suppress(OverflowError):
            return _of_epochs(np.array(values, np.int64), at, unit), none
    if kinds == {str}:
        return _of_texts(values, at, local_times)
    return _one_by_one(values, range(len(values)), at, unit, local_times)


def _of_epochs(counts: NDArray[Any], at: At, unit: Unit) -> I64:
    first, last = _years(unit)
    _require((counts >= first) & (counts < last), _EPOCHS, counts, at)
    return counts.astype(np.int64).view(f"M8[{unit}]").astype("M8[us]").astype(np.int64)


def _years(unit: Unit) -> tuple[int, int]:
    """The years 1 to 9999 in counts of a unit, as far as datetime64 reaches."""
    return max(_FIRST * _PARTS[unit], -(2**63) + 1), min(_LAST * _PARTS[unit], 2**63)


def _of_moments(moments: NDArray[Any], at: At) -> I64:
    _require(~np.isnat(moments), "a time", moments, at)
    # coarse units reach further than 64 bits of microseconds, which would wrap around
    seconds = near_calendar(moments).astype("M8[s]").astype(np.int64)
    _require((seconds >= _FIRST) & (seconds < _LAST), "a time in the years 1 to 9999", moments, at)
    # numpy rounds down, before 1970 too
    return moments.astype("M8[us]").astype(np.int64)


def _require(fine: Mask, expected: str, values: NDArray[Any], at: At) -> None:
    if not fine.all():
        first = int(np.argmin(fine))
        value = values[first]
        raise mismatch(expected, value if value == value else None, at(first))  # NaT is not even itself


def _of_texts(texts: list[str], at: At, local_times: bool) -> tuple[I64, Mask]:
    result, local = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    left = np.ones(len(texts), np.bool_)
    for start in range(0, len(texts), _PART):
        part = texts[start : start + _PART]
        sizes = np.fromiter(map(len, part), np.int64, len(part))
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            same = part if len(rows) == len(part) else [part[row] for row in rows.tolist()]
            zone = zone_of(same[0])
            found = of_form(same, zone) if zone or local_times or size == 10 else None
            if found is not None:
                result[start + rows], local[start + rows] = found, not zone
                left[start + rows] = False
    rest = np.flatnonzero(left)
    if rest.size:
        result[rest], local[rest] = _one_by_one([texts[row] for row in rest.tolist()], rest, at, "s", local_times)
    return result, local


def _one_by_one(
    values: Sequence[Any], rows: Sequence[int] | I64, at: At, unit: Unit, local_times: bool
) -> tuple[I64, Mask]:
    result, local = np.empty(len(values), np.int64), np.zeros(len(values), np.bool_)
    known: dict[Any, tuple[int, bool]] = {}
    for index, value in enumerate(values):
        # texts alone are remembered: 1, True and 1.0 are equal keys, but not equally times
        found = known.get(value) if type(value) is str else None
        if found is None:
            try:
                seconds, parts, is_local = _exact(value, "", unit, local_times)
            except InputError as error:
                raise error.moved(at(int(rows[index]))) from None
            found = seconds * MILLION // parts, is_local
            if type(value) is str:
                known[value] = found
        result[index], local[index] = found
    return result, local


def _exact(value: Any, place: str, unit: Unit, local_times: bool) -> tuple[int, int, bool]:
    """Seconds since 1970, as a fraction, and whether they are those of a local clock."""
    if value is None:
        raise mismatch("a time", value, place)
    if is_integral(value):
        first, last = _years(unit)
        if not first <= value < last:
            raise mismatch(_EPOCHS, int(value), place)
        return int(value), _PARTS[unit], False
    if is_day(value):
        return _DAYS.encode(value, place) * _DAY, 1, True
    if local_times and isinstance(value, datetime) and value.utcoffset() is None:
        return *exact_seconds(value.replace(tzinfo=UTC), place), True
    if local_times and isinstance(value, str) and _WITHOUT_OFFSET.fullmatch(value):
        return *exact_seconds(f"{value}Z", place), True
    if isinstance(value, str | datetime | np.datetime64):
        return *exact_seconds(value, place), False
    raise mismatch(_ADVICE, value, place)
