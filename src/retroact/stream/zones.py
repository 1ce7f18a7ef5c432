"""Time zones: UTC, fixed offsets from it, and the zones of the tz database, whose clocks change.

**Local times that clocks skip or show twice.** A local time stands for the first moment at which the local clock has
reached it: the first of two where clocks were set back, and the moment of the change where they were set forward over
it. So later local times are never earlier moments.

All times are whole microseconds since 1970: of UTC for moments, of the local clock for local times.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import numpy as np

from ..arrays import I64
from ..errors import InputError
from ..messages import hint, show

SECOND = 10**6
HOUR = 3600 * SECOND
DAY = 24 * HOUR
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = datetime(1970, 1, 1)
_FIRST, _LAST = ((end - _LOCAL_EPOCH) // MICROSECOND for end in (datetime.min, datetime.max))
_OFFSET = re.compile(r"([+-])([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", re.ASCII)
# not zones of the database, but of a machine, or with other seconds
_OTHERS = ("localtime", "posixrules", "Factory", "posix/", "right/")


class Zone:
    """
    >>> Zone("Z").name, Zone("-03:30").name, Zone("Europe/Berlin").fixed
    ('UTC', '-03:30', False)
    >>> berlin = Zone("Europe/Berlin")
    >>> [text_of(berlin.moment(local_of(f"2026-{time}"))) for time in ("03-29T02:30", "03-29T03:00", "10-25T02:30")]
    ['2026-03-29T01:00:00Z', '2026-03-29T01:00:00Z', '2026-10-25T00:30:00Z']
    >>> Zone("Europe/Berlyn")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected UTC, an offset such as +01:00, or a time zone such as Europe/Berlin, got
    'Europe/Berlyn' (did you mean 'Europe/Berlin'?) - at time_zone
    """

    def __init__(self, given: Any) -> None:
        self._offset = 0
        self.rules: tzinfo | None = None
        """None if a day always has 24 hours."""
        found = _OFFSET.fullmatch(given) if isinstance(given, str) else None
        if given in ("UTC", "Z", "+00:00", "-00:00"):
            given = "UTC"
        elif found is not None:
            ahead = int(found[2]) * HOUR + int(found[3]) * 60 * SECOND
            self._offset = -ahead if found[1] == "-" else ahead
        else:
            self.rules = _rules(given)
        self.name: str = given
        self.fixed = self.rules is None

    def offset(self, local: int, *, fold: int = 0) -> int:
        """How far the clocks are ahead of UTC at a local time: before or, with ``fold``, after they are changed
        there."""
        if self.rules is None:
            return self._offset
        # the rules end with the calendar
        time = _LOCAL_EPOCH + min(max(local, _FIRST), _LAST) * MICROSECOND
        found = time.replace(tzinfo=self.rules, fold=fold).utcoffset()
        assert found is not None
        return found // MICROSECOND

    def moment(self, local: int) -> int:
        """The first moment at which the clocks have reached this local time."""
        before, after = self.offset(local), self.offset(local, fold=1)
        if before >= after:
            return local - before
        # The clocks skip this time. They change in whole seconds.
        low, high = (local - after) // SECOND, -((before - local) // SECOND)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.local(middle * SECOND) >= local else (middle, high)
        return high * SECOND

    def local(self, moment: int) -> int:
        """What the clocks show."""
        if self.rules is None:
            return moment + self._offset
        try:
            shown = (EPOCH + moment * MICROSECOND).astimezone(self.rules)
        except OverflowError:
            return moment
        return (shown.replace(tzinfo=None) - _LOCAL_EPOCH) // MICROSECOND

    def moments(self, local: I64) -> I64:
        """Apply `moment` to a column."""
        if self.rules is None:
            return local - self._offset
        hours, where = np.unique(local // HOUR, return_inverse=True)
        ends = ((hour * HOUR, (hour + 1) * HOUR - 1) for hour in hours.tolist())
        offsets = [{self.offset(end, fold=fold) for end in pair for fold in (0, 1)} for pair in ends]
        found = local - np.array([next(iter(one)) for one in offsets], np.int64)[where.reshape(-1)]
        changing = np.array([len(one) > 1 for one in offsets], np.bool_)[where.reshape(-1)]
        if changing.any():
            times, where = np.unique(local[changing], return_inverse=True)
            found[changing] = np.array([self.moment(time) for time in times.tolist()], np.int64)[where.reshape(-1)]
        return found


def _rules(name: Any) -> tzinfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones  # slow to import

    if isinstance(name, str) and _NAME.fullmatch(name) and not name.startswith(_OTHERS):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, OSError, ValueError):
            pass
    known = sorted(available_timezones()) if isinstance(name, str) else []
    raise InputError(
        expected="UTC, an offset such as +01:00, or a time zone such as Europe/Berlin",
        found=f"{show(name)}{hint(name, known)}",
        place="time_zone",
    )


def text_of(moment: int) -> str:
    try:
        return (EPOCH + moment * MICROSECOND).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return f"{moment} microseconds after 1970"


def local_text(local: int) -> str:
    """
    >>> local_text(0), local_text(HOUR)
    ('1970-01-01', '1970-01-01T01:00:00')
    """
    try:
        time = _LOCAL_EPOCH + local * MICROSECOND
    except OverflowError:
        return text_of(local)
    return time.date().isoformat() if local % DAY == 0 else time.isoformat()


def local_of(text: str) -> int:
    """
    >>> local_of("1970-01-01T01:00")
    3600000000
    """
    return (datetime.fromisoformat(text) - _LOCAL_EPOCH) // MICROSECOND
