"""Lengths of rounds: exact durations, local days, or calendar months."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from ..arrays import I64
from ..messages import exact_text, mismatch
from ..schema.numbers import exact_number
from .zones import DAY, HOUR, SECOND

_UNITS = {"us": 1, "ms": 1000, "s": SECOND, "m": 60 * SECOND, "h": HOUR, "d": DAY, "w": 7 * DAY}
_MONTHS = {"mo": 1, "q": 3, "y": 12}
_LENGTH = re.compile(r"(\d{1,12}(?:\.\d{1,6})?) ?(us|ms|s|m|h|d|w)", re.ASCII)
_CALENDAR = re.compile(r"(\d{1,5}) ?(mo|q|y)", re.ASCII)
_ISO = re.compile(
    r"P(?=.)(?:(\d{1,9})W)?(?:(\d{1,9})D)?"
    r"(?:T(?=.)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
_END = (10_000 - 1970) * 12
_ISO_CALENDAR = re.compile(r"P(?=.)(?:(\d{1,4})Y)?(?:(\d{1,5})M)?", re.ASCII)


class Length(msgspec.Struct, frozen=True):
    """One of these is above 0."""

    exact: int = 0
    """The length of exact time, in microseconds."""
    days: int = 0
    """Days of the local calendar, which have 23 or 25 hours where clocks change."""
    months: int = 0

    @classmethod
    def of(cls, given: Any, *, fixed: bool) -> Length:
        """Create a length. Where the offset from UTC is ``fixed``, a day is 24 hours.

        >>> Length.of("2q", fixed=True), Length.of("P1D", fixed=False), Length.of("1d", fixed=True).exact == DAY
        (Length(exact=0, days=0, months=6), Length(exact=0, days=1, months=0), True)
        >>> Length.of("1.5d", fixed=False)
        Traceback (most recent call last):
        ...
        retroact.errors.InputError: expected whole days, or hours, which differ where clocks change, got '1.5d' - at
        grid length
        """
        months = _months(given)
        if months:
            return cls(months=months)
        days, exact = _parts(given)
        if fixed or not days:
            return cls(exact=length_of(given))
        if exact or days.denominator != 1 or days > 10**7:
            raise mismatch("whole days, or hours, which differ where clocks change", given, "grid length")
        return cls(days=days.numerator)

    def __str__(self) -> str:
        """
        >>> [str(Length(months=m)) for m in (1, 6, 24)], str(Length(days=14)), str(Length(exact=DAY))
        (['1mo', '2q', '2y'], '2w', '1d')
        """
        if self.months:
            unit = next(unit for unit in ("y", "q", "mo") if self.months % _MONTHS[unit] == 0)
            return f"{self.months // _MONTHS[unit]}{unit}"
        return length_text(self.days * DAY or self.exact)

    def after(self, start: int, number: int) -> int:
        """The local time that is a number of lengths after another, by the calendar."""
        if not self.months:
            return start + number * (self.days * DAY or self.exact)
        month, rest = (int(part[0]) for part in _in_month(np.array([start], np.int64)))
        month += number * self.months
        if month >= _END:
            return month * 31 * DAY  # beyond the calendar, and still in order
        return int(np.array([month], "M8[M]").astype("M8[us]").astype(np.int64)[0]) + rest

    def number(self, start: int, local: I64) -> I64:
        """How many whole lengths lie between a local time and these, by the calendar."""
        if not self.months:
            return (local - start) // (self.days * DAY or self.exact)
        (first, begin), (months, rest) = _in_month(np.array([start], np.int64)), _in_month(local)
        return (months - first - (rest < begin)) // self.months


def _in_month(local: I64) -> tuple[I64, I64]:
    """Months since 1970, and how long after their beginning."""
    months = local.view("M8[us]").astype("M8[M]")
    return months.astype(np.int64), local - months.astype("M8[us]").astype(np.int64)


def _months(given: Any) -> int:
    if not isinstance(given, str):
        return 0
    if (usual := _CALENDAR.fullmatch(given)) is not None:
        return int(usual[1]) * _MONTHS[usual[2]]
    iso = _ISO_CALENDAR.fullmatch(given)
    return 0 if iso is None else int(iso[1] or 0) * 12 + int(iso[2] or 0)


def length_of(length: Any) -> int:
    """An exact length in microseconds; days have 24 hours.

    >>> [length_of(length) for length in ("15m", "P1DT12H", timedelta(hours=1), 0.5)]
    [900000000, 129600000000, 3600000000, 500000]
    """
    if _months(length):
        raise mismatch("a length such as 30s, 15m, 1h or 1d", length, "grid length")
    days, rest = _parts(length)
    exact = days * DAY + rest
    if exact <= 0 or exact.denominator != 1:
        raise mismatch("a length above 0, of a whole number of microseconds", length, "grid length")
    if exact >= 2**62:
        raise mismatch("a length that is shorter than the calendar", length, "grid length")
    return exact.numerator


def _parts(length: Any) -> tuple[Fraction, Fraction]:
    """The days of a length, as far as they are called so, and the rest in microseconds."""
    if isinstance(length, timedelta):
        return Fraction(0), Fraction((length.days * 86400 + length.seconds) * SECOND + length.microseconds)
    if isinstance(length, bool) or length is None:
        raise mismatch("a length such as 1h, PT15M or a number of seconds", length, "grid length")
    if not isinstance(length, str):
        return Fraction(0), exact_number(length, "grid length") * SECOND
    usual, iso = _LENGTH.fullmatch(length), _ISO.fullmatch(length)
    if usual is None and iso is None:
        raise mismatch("a length such as 30s, 15m, 1h, 1d, 2w, 1mo, 1q, 1y or PT1H", length, "grid length")
    found = [(usual[1], usual[2])] if usual is not None else zip(iso.groups() if iso else (), "wdhms", strict=True)
    days = rest = Fraction(0)
    for count, unit in found:
        if unit in "dw":
            days += Fraction(count or 0) * (_UNITS[unit] // DAY)
        else:
            rest += Fraction(count or 0) * _UNITS[unit]
    return days, rest


def length_text(length: int, units: str = "wdhm") -> str:
    """
    >>> length_text(3_600_000_000), length_text(129_600_000_000), length_text(1_500_000), length_text(DAY, "hm")
    ('1h', '36h', '1.5s', '24h')
    """
    unit = next((unit for unit in units if length % _UNITS[unit] == 0), "s")
    return f"{exact_text(Fraction(length, _UNITS[unit]))}{unit}"
