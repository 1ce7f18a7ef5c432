"""Times of rows, as a grid of rounds takes them."""

from __future__ import annotations

from typing import Any

from retroact.arrays import I64
from retroact.errors import InputError, Place, Unit
from retroact.stream import moments
from retroact.stream.grid import Grid

_UNITS: dict[str, moments.Unit] = {"_ms": "ms", "_us": "us", "_ns": "ns"}


def cells_of(grid: Grid, times: Any, column: str, numbers: Any, name: str, unit: Unit = "line") -> I64:
    """The rounds of times; whole numbers are seconds, or what a column such as ts_ms says that they are, each for
    itself."""
    try:
        return grid.cells(times, at=lambda index: Place(column, index + 1), unit=_UNITS.get(column[-3:], "s"))
    except InputError as error:
        raise error.at(numbers, name, unit) from None
