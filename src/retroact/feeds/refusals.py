"""All that is refused of a source, noted instead of raised: a check goes on without the rows that are bad."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ..arrays import I64, Mask
from ..errors import InputError, Unit
from ..schema import Schema
from .batch import Changes

NAMED = 3
"""How many rows of a kind are named; the others are counted."""
_MISSING = ("no value", "None", "nan", "NaN", "NaT", "''")
_COLUMN = re.compile(r"column \d+")
_NUMBER = re.compile(r"\d[\d,]*")


@dataclass
class Refusal:
    """One reason to refuse rows, at one field or role."""

    place: str
    what: str
    unit: Unit
    count: int = 0
    first: list[int] = field(default_factory=list)
    """The numbers of the first rows."""
    hint: str | None = None

    def add(self, rows: Sequence[int]) -> None:
        self.count += len(rows)
        self.first = sorted({*self.first, *rows[:NAMED]})[:NAMED]


def runs_of(places: I64) -> list[tuple[int, int]]:
    """Where consecutive numbers begin and end.

    >>> runs_of(np.array([0, 1, 2, 5, 6]))
    [(0, 3), (5, 7)]
    """
    cuts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
    return [(int(places[begin]), int(places[end - 1]) + 1) for begin, end in pairwise(cuts)]


class Refusals:
    """
    >>> found = Refusals()
    >>> for row, value in ((7, "900"), (3, "-1"), (5, "'x'")):
    ...     expected = "a number" if value == "'x'" else "a number between 0 and 500"
    ...     found.add(InputError(expected=expected, found=value, place="amount", row=row, source="orders.csv"))
    >>> [(each.place, each.what, each.count, each.first) for each in found.kinds]
    [('amount', 'expected a number between 0 and 500, got -1', 2, [3, 7]), ('amount', "expected a number, got 'x'", \
1, [5])]
    """

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, bool], Refusal] = {}

    @property
    def kinds(self) -> list[Refusal]:
        return list(self._kinds.values())

    def add(self, error: InputError) -> None:
        """Note why a row is refused, or several. What was expected makes a kind, whatever was found instead; but
        missing values are a separate kind."""
        expected = error.message.partition(", got ")[0] if error.expected is None else error.expected
        place = error.path or ""
        if error.expected is None and _COLUMN.fullmatch(place):
            place = ""  # where in a line that cannot be read
        key = place, _NUMBER.sub("#", expected), error.found in _MISSING
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Refusal(place, "", error.unit)
        rows = [row for row in (error.row,) if row is not None] if error.rows is None else sorted(error.rows.tolist())
        kind.add(rows)
        if not kind.what or rows[:1] == kind.first[:1]:  # what is shown is in the first row that is named
            kind.what = f"no value: expected {expected}" if key[2] else error.message
            kind.hint = error.hint

    def of_values(self, schema: Schema, changes: Changes, source: str, unit: Unit) -> Mask:
        """Note all bad values of changes that hold a record. Returns which changes have none."""
        good = np.ones(len(changes), np.bool_)
        for name, values in changes.records().items() if len(changes) else ():
            for error in schema.fields[name].faults(values, name):
                self.add(error.at(changes.numbers, source, unit))
                good[np.asarray(error.rows) - 1] = False
        return good

    def left(self, error: InputError, numbers: I64) -> list[I64]:
        """Note an error in a batch of rows with these numbers. Returns the places of the rows to try again, without
        those that are refused, in parts that are tried one after another.

        If the error names one row, others may be as bad. Then the rest is tried in halves, so that a batch full of bad
        rows takes no more than twice as many trials as it has rows. An error about an option, which is none of the
        rows, is raised.
        """
        if (error.path or "").startswith("--"):
            raise error
        bad = np.array([error.row or 0]) if error.rows is None else error.rows
        good = np.flatnonzero(~np.isin(numbers, bad))
        if len(good) == len(numbers) == 1:
            good, error = good[:0], error.for_rows(numbers)
        if len(good) < len(numbers) or not len(numbers):
            self.add(error)
        half = 0 if error.rows is not None and len(good) < len(numbers) else len(good) // 2
        return [part for part in (good[:half], good[half:]) if len(part)]
