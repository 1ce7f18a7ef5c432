"""A public grid of rounds over time: the round of a record depends on its time alone.

The grid is declared, never derived from the data: nothing depends on which time came first, and no record shifts the
round of another. A round of a complete input closes once all rows of that round and of earlier ones have been read;
rows of later rounds wait.

Days, weeks, months, quarters and years are those of the local calendar, where a day may have 23 or 25 hours; shorter
lengths are exact. A time zone may change its rules, so a durable stream stores the boundaries that it has used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime, tzinfo
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64
from ..checks import positive_int
from ..errors import Place
from ..messages import At, mismatch
from ..params import Parameters
from .lengths import Length, length_text
from .moments import Unit, time_of, times_of
from .zones import EPOCH, MICROSECOND, Zone, local_text, text_of

LAST_DAY = 28
"""The last day that every month has."""
NEAR = 3
"""How far from the first guess a round is looked for, at first."""


class Grid(Parameters):
    """Consecutive rounds of one length from a start on, numbered from 1. Equal grids have equal specifications.

    Times are aware datetimes, RFC 3339 texts, dates (midnight in the time zone), numpy datetime64 (UTC by definition)
    or whole seconds since 1970; in a time zone other than UTC, also local times. Lengths are timedeltas, texts such as
    "15m", "1d", "1mo", "1q", "1y" or "PT1H", or seconds. The time zone is UTC, a fixed offset from it, or a name.

    >>> grid = Grid("2026-01-01T00:00:00Z", "1h", end="2026-01-02T00:00:00Z")
    >>> grid, grid.rounds
    (Grid('2026-01-01T00:00:00Z', '1h', end='2026-01-02T00:00:00Z'), 24)
    >>> grid.cells(["2026-01-01T00:59:59.999Z", "2026-01-01T02:00:00+01:00", "2025-12-31", "2026-01-02"])
    array([ 1,  2,  0, 25])
    >>> Grid("2026-01-01", "1d", time_zone="+05:30").cells(["2026-01-01", "2026-01-01T18:29:59Z"])
    array([1, 1])
    >>> Grid("2026-01-01", "24h", "2026-01-08", time_zone="+01:00").spec()
    {'start': '2025-12-31T23:00:00Z', 'length': '1d', 'end': '2026-01-07T23:00:00Z', 'time_zone': '+01:00'}
    >>> year = Grid("2026-01-01", "1mo", "2027-01-01", time_zone="Europe/Berlin")
    >>> year.rounds, year.cells(["2026-03-31T21:59:59Z", "2026-03-31T22:00:00Z", "2026-12-31"])
    (12, array([ 3,  4, 12]))
    >>> Grid("2026-01-01", "2h", end="2026-01-01T05:00:00Z")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected an end that is a whole number of lengths (2h) after the start, such as \
2026-01-01T04:00:00Z or 2026-01-01T06:00:00Z, got '2026-01-01T05:00:00Z' - at grid end
    """

    def __init__(self, start: Any, length: Any, end: Any = None, *, time_zone: str = "UTC") -> None:
        self._zone = Zone(time_zone)
        self.time_zone, fixed = self._zone.name, self._zone.fixed
        self._length = Length.of(length, fixed=fixed)
        self.length = str(self._length) if fixed or not self._length.exact else length_text(self._length.exact, "hm")
        self.follows_rules = not fixed and not self._length.exact
        """Whether boundaries depend on the rules of a time zone, which may change."""
        self._kept: dict[int, int] = {}
        self._found: dict[int, int] = {}
        self._start = self._time(start, "grid start")
        if self._length.months and int(local_text(self._start)[8:10]) > LAST_DAY:
            raise mismatch(
                f"a start on day 1 to {LAST_DAY} of a month for a length of {self.length}, as not every month has more",
                start,
                "grid start",
            )
        self.start = self._text(0)
        self.rounds = None if end is None else self._count(end)
        """The number of rounds; None if the grid has no end."""
        self.end = None if self.rounds is None else self._text(self.rounds)

    # Boundaries ------------------------------------------------------------------------------------------------------

    def boundary(self, number: int) -> int:
        """The moment at which round ``number`` ends and the next one begins, in microseconds; the start for 0."""
        if self._length.exact:
            return self._start + number * self._length.exact
        if number in self._kept:
            return self._kept[number]
        if number not in self._found:
            self._found[number] = self._by_rule(number)
        # never before one that is kept, whatever the rules say now
        return max(self._found[number], self._kept.get(len(self._kept) - 1, self._found[number]))

    def _by_rule(self, number: int) -> int:
        return self._zone.moment(self._length.after(self._start, number))

    def keeping(self, boundaries: Sequence[int]) -> Grid:
        """Return a copy with its first boundaries as they were used, whatever the rules of the time zone are now.

        >>> day = Grid("2026-01-01", "1d", time_zone="Europe/Berlin")
        >>> day.keeping([0, 1]).boundary(1), day.keeping([0, 1]) == day
        (1, True)
        """
        same = copy(self)
        vars(same).update(_kept=dict(enumerate(boundaries)), _found={})
        return same

    def unkept(self, last: int) -> list[tuple[int, int]]:
        """The boundaries up to this one that follow the rules of today, with their numbers."""
        last = last if self.rounds is None else min(last, self.rounds)
        return [(number, self.boundary(number)) for number in range(len(self._kept), last + 1)]

    def keep(self, boundaries: Iterable[tuple[int, int]]) -> None:
        """Keep these boundaries from now on."""
        self._kept.update(boundaries)

    def moved(self) -> Mapping[int, tuple[int, int]]:
        """The kept boundaries that today's rules would place elsewhere, with both moments."""
        both = {number: (kept, self._by_rule(number)) for number, kept in self._kept.items()}
        return {number: pair for number, pair in both.items() if pair[0] != pair[1]}

    def span(self, round: int) -> tuple[datetime, datetime]:
        """When a round begins and ends, in UTC.

        >>> [time.isoformat() for time in Grid("2026-03-29", "1d", time_zone="Europe/Berlin").span(1)]
        ['2026-03-28T23:00:00+00:00', '2026-03-29T22:00:00+00:00']
        """
        return self._moment(round - 1), self.closes(round)

    @property
    def zone(self) -> tzinfo:
        """The time zone of times that people read."""
        if self._zone.rules is not None:
            return self._zone.rules
        return UTC if self.time_zone == "UTC" else datetime.strptime(self.time_zone, "%z").tzinfo or UTC

    def closes(self, round: int) -> datetime:
        """When a round ends by the clock.

        >>> Grid("2026-01-01", "1d").closes(31).isoformat()
        '2026-02-01T00:00:00+00:00'
        """
        positive_int(round, "round", most=self.rounds, expected=f"a round from 1 to {self.rounds or 'any'}")
        return self._moment(round)

    def _moment(self, number: int) -> datetime:
        try:
            return EPOCH + self.boundary(number) * MICROSECOND
        except OverflowError:
            raise mismatch("a round that ends before the year 10000", number, "round") from None

    # Times -----------------------------------------------------------------------------------------------------------

    def cells(self, times: Sequence[Any] | NDArray[Any], *, at: At | None = None, unit: Unit = "s") -> I64:
        """The round of each time: 0 before the start, ``rounds + 1`` from the end on.

        ``at`` names the place of a value in error messages; ``unit`` is what whole numbers count.
        """
        at = at or (lambda index: Place("", index + 1))
        found, local = times_of(times, at, unit, local_times=self.time_zone != "UTC")
        if self._length.exact:
            found[local] = self._zone.moments(found[local])
            numbers = (found - self._start) // self._length.exact
        else:
            numbers = np.empty(len(found), np.int64)
            # dates and local times go by the calendar, whatever the rules of the time zone are
            numbers[local] = self._length.number(self._start, found[local])
            numbers[~local] = self._numbers(found[~local])
        return np.clip(numbers + 1, 0, None if self.rounds is None else self.rounds + 1).astype(np.int64, copy=False)

    def _numbers(self, moments: I64) -> I64:
        """How many rounds have ended by each moment; -1 before the start."""
        last = self.rounds
        near = np.unique(self._length.number(self._start, moments + self._zone.offset(self._start)))
        away = NEAR
        while True:
            around = np.unique(np.clip(near[:, None] + np.arange(-away, away + 1), 0, last))
            ends = np.array([self.boundary(number) for number in around.tolist()], np.int64)
            place = np.searchsorted(ends, moments, side="right")
            found = np.concatenate([[-1], around])[place]
            # right if the next boundary was looked at, too
            if ((np.concatenate([around, [-2]])[place] == found + 1) | (found == last)).all():
                return found
            away *= 4

    # What was given --------------------------------------------------------------------------------------------------

    def _time(self, given: Any, place: str) -> int:
        """A moment or, where rounds go by the calendar, a local time."""
        time, local = time_of(given, place, local_times=self.time_zone != "UTC")
        if self._length.exact:
            return self._zone.moment(time) if local else time
        if local:
            return time
        shown = self._zone.local(time)
        if self._zone.moment(shown) != time:
            raise mismatch("a time that the local clock shows for the first time", given, place)
        return shown

    def _text(self, number: int) -> str:
        if self.follows_rules:
            return local_text(self._length.after(self._start, number))
        return text_of(self.boundary(number))

    def rounds_until(self, time: Any, place: str) -> int:
        """How many rounds are over at a time, which must be the end of one.

        >>> Grid("2026-01-01", "1mo", "2027-01-01").rounds_until("2026-03-01", "until")
        2
        """
        number = self._count(time, place)
        if self.rounds is not None and number > self.rounds:
            raise mismatch(f"a time up to the end of the grid, {self.end}", time, place)
        return number

    def _count(self, end: Any, place: str = "grid end") -> int:
        time = self._time(end, place)
        (number,) = self._length.number(self._start, np.array([time], np.int64)).tolist()
        if number > 0 and self._length.after(self._start, number) == time:
            return int(number)
        near = " or ".join(self._text(each) for each in (number, number + 1) if each > 0)
        wanted = (
            f"an end that is a whole number of lengths ({self.length}) after the start, such as {near or self._text(1)}"
        )
        raise mismatch(wanted, end, place)


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
