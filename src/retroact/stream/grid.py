"""A public grid of rounds over time: the round of a record is a function of its own time alone.

The grid is declared, never derived from the data: nothing depends on which time came first, and no record shifts the
round of another. A round of a complete input closes once all rows of that round and of earlier ones have been read;
rows of later rounds wait.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retroact.arrays import I64
from retroact.checks import positive_int
from retroact.errors import Place
from retroact.messages import At, exact_text, mismatch
from retroact.params import Parameters
from retroact.schema.numbers import exact_number
from retroact.stream.moments import MILLION, Unit, microseconds_of, moment_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"us": 1, "ms": 1000, "s": MILLION, "m": 60 * MILLION, "h": 3600 * MILLION, "d": 86400 * MILLION}
_UNITS["w"] = 7 * _UNITS["d"]
_LENGTH = re.compile(r"(\d{1,12}(?:\.\d{1,6})?) ?(us|ms|s|m|h|d|w)", re.ASCII)
_OFFSET = re.compile(r"([+-])([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_ISO_LENGTH = re.compile(
    r"P(?=.)(?:(\d{1,9})W)?(?:(\d{1,9})D)?"
    r"(?:T(?=.)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)


class Grid(Parameters):
    """Consecutive rounds of one length from a start on, numbered from 1. Equal grids have equal specifications.

    Times are aware datetimes, RFC 3339 texts, dates (midnight in the time zone), numpy datetime64 (UTC by definition)
    or whole seconds since 1970; lengths are timedeltas, texts such as "15m", "1d" or "PT1H", or seconds. The time zone
    is UTC or a fixed offset from it.

    >>> grid = Grid("2026-01-01T00:00:00Z", "1h", end="2026-01-02T00:00:00Z")
    >>> grid, grid.rounds
    (Grid('2026-01-01T00:00:00Z', '1h', end='2026-01-02T00:00:00Z'), 24)
    >>> grid.cells(["2026-01-01T00:59:59.999Z", "2026-01-01T02:00:00+01:00", "2025-12-31", "2026-01-02"])
    array([ 1,  2,  0, 25])
    >>> grid.closes(1).isoformat()
    '2026-01-01T01:00:00+00:00'
    >>> Grid("2026-01-01", "1d", time_zone="+05:30").cells(["2026-01-01", "2026-01-01T18:29:59Z"])
    array([1, 1])
    >>> Grid("2026-01-01", "24h", "2026-01-08", time_zone="+01:00").spec()
    {'start': '2025-12-31T23:00:00Z', 'length': '1d', 'end': '2026-01-07T23:00:00Z', 'time_zone': '+01:00'}
    >>> Grid("2026-01-01", "2h", end="2026-01-01T05:00:00Z")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected an end that is a whole number of lengths (2h) after the start, such as \
2026-01-01T04:00:00Z, got '2026-01-01T05:00:00Z' - at grid end
    """

    def __init__(self, start: Any, length: Any, end: Any = None, *, time_zone: str = "UTC") -> None:
        self.time_zone, self._offset = _zone_of(time_zone)
        self._start = moment_of(start, "grid start", self._offset)
        self._length = length_of(length)
        self.rounds = None if end is None else self._count(end)
        """The number of rounds; None if the grid has no end."""
        self.start, self.length = _text(self._start), length_text(self._length)
        self.end = None if self.rounds is None else _text(self._start + self.rounds * self._length)

    def cells(self, times: Sequence[Any] | NDArray[Any], *, at: At | None = None, unit: Unit = "s") -> I64:
        """The round of each time: 0 before the start, ``rounds + 1`` from the end on.

        ``at`` names the place of a value in error messages; ``unit`` is what whole numbers count.
        """
        at = at or (lambda index: Place("", index + 1))
        since = microseconds_of(times, at, self._offset, unit) - self._start
        cells = since // self._length + 1
        return np.clip(cells, 0, None if self.rounds is None else self.rounds + 1).astype(np.int64, copy=False)

    def closes(self, round: int) -> datetime:
        """When a round ends by the clock.

        >>> Grid("2026-01-01", "1d").closes(31).isoformat()
        '2026-02-01T00:00:00+00:00'
        """
        positive_int(round, "round", most=self.rounds, expected=f"a round from 1 to {self.rounds or 'any'}")
        try:
            return _EPOCH + timedelta(microseconds=self._start + round * self._length)
        except OverflowError:
            raise mismatch("a round that ends before the year 10000", round, "round") from None

    def _count(self, end: Any) -> int:
        span = moment_of(end, "grid end", self._offset) - self._start
        count = Fraction(span, self._length)
        if count.denominator == 1 and count > 0:
            return count.numerator
        nearest = _text(self._start + max(1, round(count)) * self._length)
        raise mismatch(
            f"an end that is a whole number of lengths ({length_text(self._length)}) after the start, such as "
            f"{nearest}",
            end,
            "grid end",
        )


def last_rows(cells: I64, first: int, rounds: int) -> I64:
    """For each round from ``first`` to ``rounds``, how many rows of a complete input must be read before it closes.
    Rows of earlier rounds are late, and belong to ``first``.

    >>> last_rows(np.array([1, 3, 2, 1, 5]), 1, 4)
    array([4, 4, 4, 4])
    >>> last_rows(np.array([1, 0, 3, 2]), 2, 4)
    array([4, 4, 4])
    >>> last_rows(np.array([1, 1, 2, 4]), 1, 4)
    array([2, 3, 3, 4])
    """
    last = np.zeros(max(0, rounds - first + 1), np.int64)
    places = np.maximum(np.asarray(cells, np.int64), first) - first
    inside = np.flatnonzero(places < len(last))
    np.maximum.at(last, places[inside], inside + 1)
    return np.maximum.accumulate(last)


def _zone_of(zone: Any) -> tuple[str, int]:
    """The usual name of a time zone, and how many microseconds it is ahead of UTC.

    >>> _zone_of("UTC"), _zone_of("-03:30")
    (('UTC', 0), ('-03:30', -12600000000))
    """
    if zone in ("UTC", "Z", "+00:00", "-00:00"):
        return "UTC", 0
    found = _OFFSET.fullmatch(zone) if isinstance(zone, str) else None
    if found is None:
        raise mismatch(
            "UTC or a fixed offset such as +01:00 (zones whose clocks change are not supported yet)", zone, "time_zone"
        )
    ahead = (int(found[2]) * 60 + int(found[3])) * 60 * MILLION
    return zone, -ahead if found[1] == "-" else ahead


def length_of(length: Any) -> int:
    """A length in microseconds.

    >>> [length_of(length) for length in ("15m", "P1DT12H", timedelta(hours=1), 0.5)]
    [900000000, 129600000000, 3600000000, 500000]
    """
    if isinstance(length, timedelta):
        exact = Fraction((length.days * 86400 + length.seconds) * MILLION + length.microseconds)
    elif isinstance(length, str):
        exact = _length_of_text(length)
    elif isinstance(length, bool) or length is None:
        raise mismatch("a length such as 1h, PT15M or a number of seconds", length, "grid length")
    else:
        exact = exact_number(length, "grid length") * MILLION
    if exact <= 0 or exact.denominator != 1:
        raise mismatch("a length above 0, of a whole number of microseconds", length, "grid length")
    if exact >= 2**62:
        raise mismatch("a length that is shorter than the calendar", length, "grid length")
    return exact.numerator


def _length_of_text(text: str) -> Fraction:
    usual, iso = _LENGTH.fullmatch(text), _ISO_LENGTH.fullmatch(text)
    if usual is not None:
        return Fraction(usual[1]) * _UNITS[usual[2]]
    if iso is not None:
        return sum((Fraction(n) * _UNITS[u] for n, u in zip(iso.groups(), "wdhms", strict=True) if n), Fraction(0))
    hint = "; months and years differ in length" if re.fullmatch(r"P\d+[YM].*", text) else ""
    raise mismatch(f"a length such as 30s, 15m, 1h, 1d, 2w or PT1H{hint}", text, "grid length")


def length_text(length: int) -> str:
    """
    >>> length_text(3_600_000_000), length_text(129_600_000_000), length_text(1_500_000)
    ('1h', '36h', '1.5s')
    """
    unit = next((unit for unit in "wdhm" if length % _UNITS[unit] == 0), "s")
    return f"{exact_text(Fraction(length, _UNITS[unit]))}{unit}"


def _text(microseconds: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return f"{microseconds} microseconds after 1970"
