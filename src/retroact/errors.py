"""Errors that people can act on: what was found, where, and what was expected.

Each class has the exit code of the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Literal

from .escape import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Unit = Literal["row", "line"]


class RetroactError(Exception):
    """Base class of every error that Retroact raises on purpose."""

    exit_code = 1


class Place(str):
    """A path and a row number as one text, which `InputError` can take apart again.

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
    """The input is not what was declared; nothing has changed.

    What is wrong is a ``message``, or what was ``expected`` and what was ``found`` instead, as quoted text (the error
    does not hold the value itself). Where it is wrong: ``source``, the name of a file or feed; ``row``, the number of a
    row or line in it, from 1; ``path``, of a field or option, such as ``amount`` or ``statistics.n.window``. The
    argument ``place`` is the path, or a `Place` with a row too. Only `__str__` makes a text of these fields, and it is
    safe to show anywhere. The next step, a ``hint``, is not part of it: the program shows it on a separate line.

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
        hint: str | None = None,
    ) -> None:
        if isinstance(place, Place):
            row, place = place.row, place.path
        self.message = message or f"expected {expected}, got {found}"
        self.expected, self.found = expected, found
        self.path = place or None
        self.row = None if row is None else int(row)
        self.rows: NDArray[np.int64] | None = None
        """Every row of a batch that is refused for this reason, where one check sees them all."""
        self.source = source
        self.unit: Unit = unit
        self.during = ""
        self.hint = hint
        super().__init__(self.message)

    @property
    def place(self) -> str | None:
        """The path, and the row unless a source is named, as one text."""
        number = f"{self.unit} {self.row}" if self.row is not None and self.source is None else None
        return ", ".join(part for part in (self.path, number) if part) or None

    def found_in(self, source: str, *, row: int | None = None, unit: Unit = "row", during: str = "") -> InputError:
        """The same error in this row of a source, whatever row it had before. Where it is not one row, ``during`` says
        which, or when. An error that names its source already is returned unchanged."""
        if self.source is not None:
            return self
        return self._with(source=source, row=None if row is None else int(row), unit=unit, during=during)

    def at(self, numbers: Sequence[int] | NDArray[np.int64], source: str, unit: Unit = "row") -> InputError:
        """The same error in the source of a batch: row k of the batch has number ``numbers[k - 1]`` there. An error
        without a row names the first and the last of them."""
        if self.source is not None:
            return self
        first, last = int(numbers[0]), int(numbers[-1])
        if self.row is None and first != last:
            return self.found_in(source, during=f"{unit}s {first}-{last}")
        named = self.renumbered(numbers)
        return named.found_in(source, row=named.row, unit=unit)

    def renumbered(self, numbers: Sequence[int] | NDArray[np.int64]) -> InputError:
        """The same error, where row k is called ``numbers[k - 1]``; without a row, it is in the first."""
        own = numbers[0 if self.row is None else self.row - 1]
        return self._with(row=int(own), rows=None if self.rows is None else numbers[self.rows - 1])  # type: ignore[call-overload]

    def for_rows(self, rows: NDArray[np.int64]) -> InputError:
        """The same error in the first of these rows, all of which are refused for this reason."""
        return self._with(row=int(rows[0]), rows=rows)

    def of_a_file(self) -> InputError:
        """The same error, where a value is missing in a file: there is no ``None`` in it.

        >>> print(InputError(expected="a number", found="None", place="amount").of_a_file())
        expected a number, got no value - at amount
        """
        if self.found != "None":
            return self
        return self._with(found="no value", message=f"expected {self.expected}, got no value")

    def under(self, path: str) -> InputError:
        """The same error, with its path prefixed."""
        return self.moved(".".join(part for part in (path, self.path) if part))

    def moved(self, place: str | None) -> InputError:
        """The same error at another path or `Place`."""
        if isinstance(place, Place):
            return self._with(path=place.path or None, row=place.row, rows=None)
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
    """A second stream was about to use a key, which would put the same noise on two data sets."""


class ExhaustedError(RetroactError):
    """The declared horizon (or budget) is used up."""

    exit_code = 3


class VerificationError(RetroactError):
    """A check failed: stored data, a signature or a claim is not what it must be."""

    exit_code = 4
