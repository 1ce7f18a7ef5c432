"""Times of rows, as a grid of rounds takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from retroact.arrays import I64
from retroact.errors import InputError, Place, Unit
from retroact.stream.grid import Grid

_UNITS: dict[str, Literal["ms", "us", "ns"]] = {"_ms": "ms", "_us": "us", "_ns": "ns"}
_PARTS = {"ms": 10**3, "us": 10**6, "ns": 10**9}
# the years 1 to 9999, in seconds since 1970
_YEARS = (-719162 * 86400, 2932897 * 86400)
_WHOLE = (int, np.integer)


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


def cells_of(grid: Grid, times: Any, column: str, numbers: Any, name: str, unit: Unit = "line") -> I64:
    """The rounds of times; whole numbers are seconds, or what a column such as ts_ms says that they are."""
    try:
        return grid.cells(times_of(times, column), at=lambda index: Place(column, index + 1))
    except InputError as error:
        raise error.at(numbers, name, unit) from None
