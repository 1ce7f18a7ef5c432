"""Errors a person can act on: what was found, where, and what was expected.

Each class carries the exit code that the command line ends with.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Literal

from retroact.escape import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Unit = Literal["row", "line"]


class RetroactError(Exception):
    """The root of every error that Retroact raises on purpose."""

    exit_code = 1


class Place(str):
    """A path and the number of a row, in one text that remembers both; `InputError` takes it apart again.

    >>> Place("amount", 3), Place("amount", 3).row
    ('amount, row 3', 3)
    """

    path: str
    row: int

    def __new__(cls, path: str, row: int) -> Place:
        place = super().__new__(cls, f"{path}, row {row}" if path else f"row {row}")
        place.path, place.row = path, row
        return place


class InputError(RetroactError, ValueError):
    """Something that was handed in is not what was declared; nothing has changed.

    What is wrong is a ``message``, or what was ``expected`` and what was ``found`` in its place, as a message quotes it
    (not the value itself, which an error would keep). Where it was found is kept in fields: ``source``, the name of a
    file or feed; ``row``, the number of a row or a line in it, from 1; ``path``, of the field, such as ``amount`` or
    ``statistics.n.window``. The argument ``place`` is the path, or a `Place` that names a row too. The text is made of
    these fields, here and nowhere else, and can be shown anywhere.

    >>> error = InputError(expected="a number between 0 and 500", found="'x'", place="amount", row=2)
    >>> print(error)
    expected a number between 0 and 500, got 'x' - at amount, row 2
    >>> print(error.found_in("orders.csv", row=3, unit="line"))
    orders.csv:3: expected a number between 0 and 500, got 'x' - at amount
    >>> print(error.at([17, 18], "orders.parquet"))
    orders.parquet: row 18: expected a number between 0 and 500, got 'x' - at amount
    >>> print(InputError("expected a number", place="lower").under("schema.amount"))
    expected a number - at schema.amount.lower
    """

    exit_code = 2

    def __init__(
        self,
        message: str = "",
        *,
        expected: str | None = None,
        found: str | None = None,
        place: str | None = None,
        row: int | None = None,
        source: str | None = None,
        unit: Unit = "row",
    ) -> None:
        if isinstance(place, Place):
            row, place = place.row, place.path
        self.message = message or f"expected {expected}, got {found}"
        self.expected, self.found = expected, found
        self.path = place or None
        self.row = None if row is None else int(row)
        self.source = source
        self.unit: Unit = unit
        self.during = ""
        super().__init__(self.message)

    @property
    def place(self) -> str | None:
        """The path, and the row where no source is named, as one text."""
        number = f"{self.unit} {self.row}" if self.row is not None and self.source is None else None
        return ", ".join(part for part in (self.path, number) if part) or None

    def found_in(self, source: str, *, row: int | None = None, unit: Unit = "row", during: str = "") -> InputError:
        """The same error, in a source and a row of it, whatever row it had before; ``during`` says when, or in which
        rows, where it is not one row. An error that names its source already stays as it is."""
        if self.source is not None:
            return self
        return self._with(source=source, row=None if row is None else int(row), unit=unit, during=during)

    def at(self, numbers: Sequence[int] | NDArray[np.int64], source: str, unit: Unit = "row") -> InputError:
        """The same error, in a source from which a batch came: the row of the batch is the one with that number there.
        An error that names no row of it is in one of them all."""
        first, last = int(numbers[0]), int(numbers[-1])
        if self.row is None and first != last:
            return self.found_in(source, during=f"{unit}s {first}-{last}")
        return self.found_in(source, row=int(numbers[0 if self.row is None else self.row - 1]), unit=unit)

    def under(self, path: str) -> InputError:
        """The same error, one step further in."""
        return self.moved(".".join(part for part in (path, self.path) if part))

    def moved(self, place: str | None) -> InputError:
        """The same error, at another path, or `Place`."""
        if isinstance(place, Place):
            return self._with(path=place.path or None, row=place.row)
        return self._with(path=place or None)

    def _with(self, **fields: object) -> InputError:
        twin = copy(self)
        vars(twin).update(fields)
        return twin

    def __str__(self) -> str:
        before = ""
        if self.source is not None:
            number = "" if self.row is None else f":{self.row}" if self.unit == "line" else f": row {self.row}"
            before = f"{self.source}{number}: "
        before += f"{self.during}: " if self.during else ""
        return printable(f"{before}{self.message}" + (f" - at {self.place}" if self.place else ""))


class KeyReusedError(InputError):
    """A key was about to drive a second stream, which would put the same noise on two data sets."""


class ExhaustedError(RetroactError):
    """The horizon (or the budget) that was promised in advance is used up."""

    exit_code = 3


class VerificationError(RetroactError):
    """Something that must be equal, or must hold, does not."""

    exit_code = 4
