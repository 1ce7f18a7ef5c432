"""Errors a person can act on: what was found, where, and what was expected.

Each class carries the exit code that the command line ends with.
"""

from __future__ import annotations

from typing import Literal

from retroact.escape import printable

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

    Where it was found is kept in fields: ``source``, the name of a file or feed; ``row``, the number of a row or a line
    in it, from 1; ``path``, of the field, such as ``amount`` or ``statistics.n.window``. The argument ``place`` is the
    path, or a `Place` that names a row too. The text is made of these fields, here and nowhere else, and can
    be shown anywhere.

    >>> error = InputError("expected a number between 0 and 500, got 'x'", place="amount")
    >>> print(error)
    expected a number between 0 and 500, got 'x' - at amount
    >>> print(error.found_in("orders.csv", row=3, unit="line"))
    orders.csv:3: expected a number between 0 and 500, got 'x' - at amount
    >>> print(error.found_in("orders.parquet", row=3))
    orders.parquet: row 3: expected a number between 0 and 500, got 'x' - at amount
    >>> print(InputError("expected a number", place="lower").under("schema.amount"))
    expected a number - at schema.amount.lower
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        place: str | None = None,
        row: int | None = None,
        source: str | None = None,
        unit: Unit = "row",
    ) -> None:
        if isinstance(place, Place):
            row, place = place.row, place.path
        self.message = message
        self.path = place or None
        self.row = None if row is None else int(row)
        self.source = source
        self.unit: Unit = unit
        super().__init__(self._text())

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
        message = f"{during}: {self.message}" if during else self.message
        return InputError(message, place=self.path, row=row, source=source, unit=unit)

    def under(self, path: str) -> InputError:
        """The same error, one step further in."""
        return self.moved(".".join(part for part in (path, self.path) if part))

    def moved(self, path: str | None) -> InputError:
        """The same error, at another path."""
        return InputError(self.message, place=path, row=self.row, source=self.source, unit=self.unit)

    def _text(self) -> str:
        before = ""
        if self.source is not None:
            number = "" if self.row is None else f":{self.row}" if self.unit == "line" else f": row {self.row}"
            before = f"{self.source}{number}: "
        return printable(f"{before}{self.message}" + (f" - at {self.place}" if self.place else ""))


class KeyReusedError(InputError):
    """A key was about to drive a second stream, which would put the same noise on two data sets."""


class ExhaustedError(RetroactError):
    """The horizon (or the budget) that was promised in advance is used up."""

    exit_code = 3


class VerificationError(RetroactError):
    """Something that must be equal, or must hold, does not."""

    exit_code = 4
