"""Any linear query: the user's own data-independent map F from a record to integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..arrays import F64, I64
from ..checks import positive_int
from ..errors import InputError
from ..messages import mismatch
from ..schema import Rows, Schema, field_names, field_of
from .answer import Answer, Noisy, vector
from .answer_rows import NUMBER, AnswerRows, ByKey, ByPosition
from .linear import Contributions, Layout, Linear
from .statistic import Example

Columns = Mapping[str, npt.NDArray[Any]]
# Sums that norms are checked with stay below this.
LIMIT = 1 << 63
LARGEST_NORM = 1 << 31


class LinearQuery(Linear):
    """**Privacy.** The declared norms bound the column F_x of every record; a record beyond them is refused on arrival.
    The check is exact: norms that cannot be checked in 64 bits are refused in the first place.
    **Retroactivity.** Theorem "linear" for the query matrix F.

    ``function`` takes the encoded columns of a batch (lattice integers, texts as they are) and returns an integer array
    of shape (records, ``size``), or `Contributions`. It must treat each record on its own. ``norm2`` bounds the second
    norm of a record's column, ``norm1`` the first (a missing one is derived from the other). ``name`` identifies the
    function in the specification: change it when the function changes. ``fields`` are those that it reads and is given;
    without them it reads all, and a record that lacks any is left out.

    >>> query = LinearQuery(lambda c: np.stack([c["age"] < 18, c["age"] >= 65], 1).astype(int),
    ...                     size=2, norm2=1, norm1=1, name="young and old")
    >>> query
    LinearQuery(size=2, name='young and old', norm1=1, norm2=1)
    """

    kind: ClassVar[str] = "linear_query"
    refuses = True
    theorem: ClassVar[str] = 'Theorem "linear"'
    unwritten: ClassVar[tuple[str, ...]] = ("function",)
    undigested: ClassVar[tuple[str, ...]] = ("weight", "labels")

    def __init__(
        self,
        function: Callable[[Columns], npt.NDArray[Any] | Contributions],
        *,
        size: int,
        name: str,
        norm1: int | None = None,
        norm2: int | None = None,
        labels: Sequence[str] | None = None,
        fields: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        positive_int(size, "size", expected="a whole number of queries from 1 on")
        for place, norm in (("norm1", norm1), ("norm2", norm2)):
            if norm is not None:
                positive_int(norm, place)
        if norm1 is None and norm2 is None:
            raise InputError("expected norm1 or norm2, the declared bound on the column of a record", place="norm2")
        if labels is not None and len(labels) != size:
            raise InputError(f"expected {size} labels, got {len(labels)}", place="labels")
        self.function, self.size, self.name, self.labels = function, size, name, labels
        self.fields = None if fields is None else field_names(fields)
        if norm1 is not None and norm2 is not None and norm1 == isqrt(size * norm2**2):
            norm1 = None  # it follows from the other, as below
        if max(norm1 or 0, norm2 or 0) > LARGEST_NORM:
            raise InputError(f"expected norms of at most 2^31, got {max(norm1 or 0, norm2 or 0)}", place="norm2")
        # ||v||_2 <= ||v||_1 <= sqrt(size) ||v||_2
        self.norm2_squared = norm2**2 if norm2 is not None else norm1**2  # type: ignore[operator]
        self.norm1 = norm1 if norm1 is not None else isqrt(size * self.norm2_squared)
        # What `refuse` adds up: with amounts in bounds, the first norm of a column is at most size * largest; where it
        # is at most norm1, the squares are at most norm1 * largest.
        self._largest = min(self.norm1, isqrt(self.norm2_squared))
        if max(size, self.norm1) * self._largest >= LIMIT:
            raise InputError(
                "expected norms that can be checked in 64 bits, norm1 and size times min(norm1, norm2) below 2^63, got "
                f"norm1 = {self.norm1}, norm2^2 = {self.norm2_squared}, size = {size}: take a coarser unit, or declare "
                "a smaller norm1",
                place="norm2" if norm2 is not None else "norm1",
            )

    @classmethod
    def examples(cls) -> list[Example]:
        return [Example("linear query", cls(_some_ages, size=3, norm1=2, norm2=2, name="some ages"))]

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return tuple(schema.fields) if self.fields is None else self.fields

    def argument(self, name: str) -> Any:
        return isqrt(self.norm2_squared) if name == "norm2" else super().argument(name)

    def layout(self, schema: Schema) -> Layout:
        for name in self.fields or ():
            field_of(schema, name, place="fields")
        return Layout((1,) * self.size, Fraction(self.norm1), Fraction(self.norm2_squared), self._largest)

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        columns = {name: rows.columns[name].view() for name in self.reads(schema)}
        for column in columns.values():
            column.flags.writeable = False  # other statistics see the same arrays
        out = self.function(columns)
        if isinstance(out, Contributions):
            return self._merged(out, rows.count)
        amounts = np.asarray(out)
        if amounts.shape != (rows.count, self.size):
            raise mismatch(f"an array of shape {(rows.count, self.size)}", amounts.shape, self.name)
        _integers(amounts, self.name)
        row, coordinate = np.nonzero(amounts)
        return Contributions(row, coordinate, self._bounded(amounts[row, coordinate], row))

    def refuse(self, rows: Rows, schema: Schema) -> None:
        parts = self.contribute(rows, schema)
        sizes, squares = np.zeros(rows.count, dtype=np.int64), np.zeros(rows.count, dtype=np.int64)
        # No amount is beyond `_largest` and no coordinate occurs twice: the first sum is at most size * largest < 2^63.
        # The second is at most largest * (the first): where it could wrap around, the first already exceeds norm1.
        np.add.at(sizes, parts.row, np.abs(parts.amount))
        np.add.at(squares, parts.row, parts.amount * parts.amount)
        bad = np.flatnonzero((sizes > self.norm1) | (squares > self.norm2_squared))
        if bad.size:
            raise self._beyond(int(bad[0]))

    def _merged(self, parts: Contributions, count: int) -> Contributions:
        """Sparse contributions, checked, with one entry for each record and coordinate."""
        row, coordinate, amount = (np.asarray(part) for part in (parts.row, parts.coordinate, parts.amount))
        if not row.shape == coordinate.shape == amount.shape or row.ndim != 1:
            raise InputError("expected row, coordinate and amount of one length", place=self.name)
        for part in (row, coordinate, amount):
            _integers(part, self.name)
        if row.size and not (row.min() >= 0 and row.max() < count):
            raise InputError(f"expected rows from 0 to {count - 1}, got {row.min()} to {row.max()}", place=self.name)
        if row.size and not (coordinate.min() >= 0 and coordinate.max() < self.size):
            raise InputError(
                f"expected coordinates below {self.size}, got {coordinate.min()} to {coordinate.max()}", place=self.name
            )
        amount = self._bounded(amount, row)
        if max(count * self.size, len(amount) * self._largest) >= LIMIT:
            raise InputError(
                f"expected fewer records at once, got {count:,} with {len(amount):,} contributions", place=self.name
            )
        # Below count * size, and sums of at most len(amount) * largest: in 64 bits, by what was just checked.
        place, where = np.unique(row.astype(np.int64) * self.size + coordinate.astype(np.int64), return_inverse=True)
        total = np.zeros(len(place), dtype=np.int64)
        np.add.at(total, where, amount)
        return Contributions(place // self.size, place % self.size, self._bounded(total, place // self.size))

    def _bounded(self, amount: npt.NDArray[Any], row: npt.NDArray[Any]) -> I64:
        """Amounts as 64-bit integers, each within the norms; compared before anything can wrap around."""
        bad = np.flatnonzero((amount > self._largest) | (amount < -self._largest))
        if bad.size:
            raise self._beyond(int(row[bad[0]]))
        return amount.astype(np.int64)

    def _beyond(self, row: int) -> InputError:
        return InputError(
            f"expected a column within norm1 = {self.norm1} and norm2^2 = {self.norm2_squared}, got more",
            place=self.name,
            row=row + 1,
        )

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return ByPosition("query", NUMBER) if self.labels is None else ByKey([("query", "text")], NUMBER)

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        found = vector(noisy)
        value, error = self._named(found.value), self._named(found.standard_error)
        return Answer(value, error, lambda level: self._named(found.interval(level)))

    def _named(self, values: F64) -> Any:
        if self.labels is None:
            return values
        return {label: tuple(v) if np.ndim(v) else float(v) for label, v in zip(self.labels, values, strict=True)}


def _some_ages(columns: Columns) -> I64:
    """For the example: the young, the old, and those of the first country."""
    return np.stack([columns["age"] < 18, columns["age"] >= 50, columns["country"] == 0], axis=1).astype(np.int64)


def _integers(values: npt.NDArray[Any], name: str) -> None:
    if values.dtype.kind not in "iu":
        raise InputError(
            f"expected integers, got {values.dtype}: a sum of floats remembers what was deleted", place=name
        )
