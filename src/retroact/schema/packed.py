"""Columns in arrays, without a Python object for each value. A field encodes such a column at once where it can.

What a quick way does not take, or refuses, is encoded as a list: that way decides, and its errors name the row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64, Mask
from ..errors import InputError

if TYPE_CHECKING:
    from .field import Field

EncodedColumn = tuple[NDArray[Any], Mask | None]
"""Encoded values, `Field.blank` for missing ones; and which are missing (None if none are)."""


_FIRST, _LAST = np.datetime64(date.min), np.datetime64(date.max)


class Packed(Sequence[Any], ABC):
    """A column that equals the list of its values, in which None stands for no value."""

    @abstractmethod
    def values(self) -> list[Any]:
        """All values."""

    @abstractmethod
    def take(self, rows: Any) -> Self:
        """The rows at these positions, in a slice, or where a mask is true."""

    @classmethod
    @abstractmethod
    def concatenate(cls, parts: Sequence[Any]) -> Packed:
        """The rows of all parts, which own their memory."""

    @abstractmethod
    def _encoded_by(self, field: Field) -> EncodedColumn | None:
        """As in `encoded_by`; or it raises an error."""

    def encoded_by(self, field: Field) -> EncodedColumn | None:
        """The column as a field encodes it; None if there is no quick way, or a value is refused."""
        try:
            return self._encoded_by(field)
        except InputError:
            return None

    def __getitem__(self, index: Any) -> Any:
        return self.take(index) if isinstance(index, slice) else self.take([index]).values()[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values())

    def __eq__(self, other: object) -> bool:
        return self.values() == (other.values() if isinstance(other, Packed) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.values()!r})"

    def tolist(self) -> list[Any]:
        return self.values()


class Coded(Packed):
    """A dictionary column: value k is ``words[codes[k]]``. Each word is encoded once.

    >>> column = Coded(["DE", "FR", None], np.array([0, 0, 1, 2]))
    >>> list(column), column[2], len(column)
    (['DE', 'DE', 'FR', None], 'FR', 4)
    """

    def __init__(self, words: Sequence[Any], codes: NDArray[np.integer[Any]]) -> None:
        self.words = words
        self.codes = codes

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Any) -> Coded:
        return Coded(self.words, self.codes[rows])

    def values(self) -> list[Any]:
        return [self.words[code] for code in self.codes.tolist()]

    @classmethod
    def concatenate(cls, parts: Sequence[Coded]) -> Coded:
        first = parts[0].words
        if all(part.words is first or list(part.words) == list(first) for part in parts):
            return cls(first, np.concatenate([part.codes for part in parts]))
        begins = np.cumsum([0, *(len(part.words) for part in parts)]).tolist()
        codes = [part.codes.astype(np.int64) + begin for part, begin in zip(parts, begins, strict=False)]
        return cls([word for part in parts for word in part.words], np.concatenate(codes))

    def used(self) -> Coded:
        """Return the column without unused words, which may be anything."""
        present = np.bincount(self.codes, minlength=len(self.words)) > 0
        if present.all():
            return self
        places = np.cumsum(present) - 1
        return Coded([self.words[place] for place in np.flatnonzero(present).tolist()], places[self.codes])

    def _encoded_by(self, field: Field) -> EncodedColumn | None:
        if not len(self):
            return None
        column = self.used()
        encoded, missing = field.encode_column(list(column.words), "")
        return encoded[column.codes], None if missing is None else missing[column.codes]


class Masked(Packed):
    """Values of one type, and which are present; under a missing one lies any value.

    >>> Masked(np.array([1.5, 0.0]), np.array([True, False])).values()
    [np.float64(1.5), None]
    """

    def __init__(self, cells: NDArray[Any], present: Mask) -> None:
        self.cells, self.present = cells, present

    def __len__(self) -> int:
        return len(self.present)

    def take(self, rows: Any) -> Self:
        return type(self)(self.cells[rows], self.present[rows])

    def values(self) -> list[Any]:
        # numpy scalars keep their type, and with it the text that a float32 stands for
        return [value if known else None for value, known in zip(self.cells, self.present.tolist(), strict=True)]

    @classmethod
    def concatenate(cls, parts: Sequence[Masked]) -> Masked:
        return cls(np.concatenate([part.cells for part in parts]), np.concatenate([part.present for part in parts]))

    def _encoded_by(self, field: Field) -> EncodedColumn | None:
        return field.encode_present(self.cells, self.present)


class Days(Masked):
    """Dates as datetime64. Other fields than those of dates refuse them as `datetime.date`."""

    def values(self) -> list[Any]:
        return [day if known else None for day, known in zip(self.cells.tolist(), self.present.tolist(), strict=True)]

    def _encoded_by(self, field: Field) -> EncodedColumn | None:
        near = (self.cells >= _FIRST) & (self.cells <= _LAST) | ~self.present
        return super()._encoded_by(field) if field.kind == "date" and near.all() else None


class Decimals(Packed):
    """Numbers ``units / 10^scale``.

    >>> Decimals(np.array([1250, 0]), 2, np.array([True, False])).values()
    [Decimal('12.50'), None]
    """

    def __init__(self, units: I64, scale: int, present: Mask) -> None:
        self.units, self.scale, self.present = units, scale, present

    def __len__(self) -> int:
        return len(self.units)

    def take(self, rows: Any) -> Decimals:
        return Decimals(self.units[rows], self.scale, self.present[rows])

    def values(self) -> list[Any]:
        pairs = zip(self.units.tolist(), self.present.tolist(), strict=True)
        return [decimal_of(unit, self.scale) if known else None for unit, known in pairs]

    @classmethod
    def concatenate(cls, parts: Sequence[Decimals]) -> Decimals:
        units, present = (np.concatenate([getattr(part, name) for part in parts]) for name in ("units", "present"))
        return cls(units, parts[0].scale, present)

    def _encoded_by(self, field: Field) -> EncodedColumn | None:
        if field.missing != "skip" and not self.present.all():
            return None
        rows = np.flatnonzero(self.present)
        encoded = field.encode_decimals(self.units[rows], self.scale)
        return None if encoded is None else field.scattered(encoded, self.present)


def decimal_of(units: int, scale: int) -> Decimal:
    # from text, since arithmetic would round to the precision of the caller's context
    return Decimal(f"{units}e{-scale}")
