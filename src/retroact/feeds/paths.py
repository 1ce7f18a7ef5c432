"""Single values out of JSON lines, without a look at the rest: times and positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from retroact.errors import InputError, Place
from retroact.feeds.events import key_of
from retroact.messages import mismatch
from retroact.stream.grid import Grid
from retroact.stream.open_round import LARGEST

_UNITS: dict[str, Literal["ms", "us", "ns"]] = {"_ms": "ms", "_us": "us", "_ns": "ns"}
_PARTS = {"ms": 10**3, "us": 10**6, "ns": 10**9}
# the years 1 to 9999, in seconds since 1970
_YEARS = (-719162 * 86400, 2932897 * 86400)
_WHOLE = (int, np.integer)


def picker(places: Sequence[tuple[str, ...]]) -> Callable[[bytes], Any]:
    """A function from a line to what it holds at the first of these places that holds something, or to None.

    >>> pick = picker([("after", "lsn"), ("before", "lsn")])
    >>> pick(b'{"after": {"lsn": 7}, "before": null}'), pick(b'{"after": null, "before": {"lsn": 6}}'), pick(b"null")
    (7, 6, None)
    """
    # anything may stand where an object is expected: such a line holds nothing at that place
    decoders = [msgspec.json.Decoder(_nested(place)).decode for place in places]

    def pick(line: bytes) -> Any:
        for decode, place in zip(decoders, places, strict=True):
            try:
                value: Any = decode(line)
                for _ in place:
                    value = None if value is None else value.at
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            if value is not None:
                return value
        return None

    return pick


def _nested(place: tuple[str, ...]) -> Any:
    kind: Any = Any
    for name in reversed(place):
        kind = msgspec.defstruct("At", [("at", kind, msgspec.field(name=key_of(name), default=None))], gc=False) | None
    return kind


def times_of(times: Sequence[Any] | NDArray[Any], column: str) -> Any:
    """A column of times as a grid takes it: whole numbers, each for itself, in the unit that the column's name ends in.

    What is outside of the years 1 to 9999 is left as it is, which is outside for the grid, too.

    >>> times_of([1000, "1970-01-01T00:00:02Z"], "ts_ms")
    [np.datetime64('1970-01-01T00:00:01.000'), '1970-01-01T00:00:02Z']
    >>> times_of([1000, 2000], "ts_ms").tolist() == times_of(np.array([1000, 2000]), "ts_ms").tolist()
    True
    """
    unit = _UNITS.get(column[-3:])
    if unit is None:
        return times
    first, last = (second * _PARTS[unit] for second in _YEARS)
    first, last = max(first, -(2**63) + 1), min(last, 2**63)
    if isinstance(times, np.ndarray) and times.dtype.kind in "iu":
        if ((times >= first) & (times < last)).all():
            return times.astype(np.int64).view(f"M8[{unit}]")
        times = times.tolist()
    elif isinstance(times, np.ndarray) and times.dtype.kind != "O":
        return times
    whole = [isinstance(time, _WHOLE) and not isinstance(time, bool) and first <= time < last for time in times]
    if all(whole):
        return np.array(times, np.int64).view(f"M8[{unit}]")
    return [np.datetime64(int(time), unit) if fits else time for time, fits in zip(times, whole, strict=True)]


def cells_of(grid: Grid, times: Sequence[Any], column: str, lines: Sequence[int], name: str) -> NDArray[np.int64]:
    """The rounds of times; whole numbers are seconds, or what a column such as ts_ms says that they are."""
    try:
        return grid.cells(times_of(times, column), at=lambda index: Place(column, index + 1))
    except InputError as error:
        raise error.at(lines, name, "line") from None


def position_of(value: Any, place: str) -> int:
    """A position as a whole number."""
    number = value
    if isinstance(value, str) and len(value) < 30 and value.isascii() and value.removeprefix("-").isdigit():
        number = int(value)
    if type(number) is not int:
        raise mismatch("a whole number, the position of the event", value, place)
    if not -LARGEST < number < LARGEST:
        raise mismatch("a whole number below 2^62, the position of the event", value, place)
    return number
