"""Single values out of JSON lines, without a look at the rest: times and positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from retroact.errors import InputError
from retroact.feeds.events import located
from retroact.feeds.grid import Grid
from retroact.schema.messages import mismatch

_UNITS = {"_ms": "ms", "_us": "us", "_ns": "ns"}


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
        kind = msgspec.defstruct("At", [("at", kind, msgspec.field(name=name, default=None))], gc=False) | None
    return kind


def cells_of(grid: Grid, times: Sequence[Any], column: str, lines: Sequence[int], name: str) -> NDArray[np.int64]:
    """The rounds of times; whole numbers are seconds, or what a column such as ts_ms says that they are."""
    unit = _UNITS.get(column[-3:])
    given: Any = times
    if unit is not None and all(type(time) is int and abs(time) < 1 << 62 for time in times):
        given = np.array(times, dtype=f"M8[{unit}]")
    places: list[int] = []

    def at(index: int) -> str:
        places.append(index)
        return column

    try:
        return grid.cells(given, at=at)
    except InputError as error:
        raise located(error, f"{name}:{lines[places[-1] if places else 0]}") from None


def position_of(value: Any, place: str) -> int:
    """A position as a whole number."""
    if type(value) is int:
        return value
    if isinstance(value, str) and len(value) < 30 and value.isascii() and value.removeprefix("-").isdigit():
        return int(value)
    raise mismatch("a whole number, the position of the event", value, place)
