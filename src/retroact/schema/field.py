"""What all fields have in common: they encode a value, or a column of values, as integers or text.

Bounds are declared, so the encoding of a value never depends on other records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64, Mask
from ..checks import choice
from ..errors import InputError, Place
from ..messages import At, mismatch
from ..params import Parameters
from .hints import hint_for
from .object_cells import encoded_objects
from .packed import Coded as Coded
from .packed import EncodedColumn, Packed

if TYPE_CHECKING:
    from .packed_texts import PackedTexts

Encoded = int | str | tuple[int, ...]
Record = tuple[Encoded | None, ...]
"""The encoded values of one record in the order of the fields; None where one is missing."""
Missing = Literal["error", "skip"]


class Field(Parameters, ABC):
    """A declared type of values. Fields are immutable, and compare by what they declare.

    >>> from retroact.schema import Number
    >>> amount = Number(0, 500, step=0.01, missing="skip")
    >>> amount.encode("12.50", "amount"), amount.decode(1250)
    (1250, 12.5)
    >>> amount.encode_column([1.5, None, 2], "amount")
    (array([150,   0, 200]), array([False,  True, False]))
    """

    kinds: ClassVar[dict[str, type[Any]]] = {}
    width: int = 1
    """Integers in one encoded value."""
    shape: tuple[int, ...] = ()
    """The shape of one encoded value; (width,) for a vector."""
    interned: ClassVar[bool] = False
    """Whether the encoded form is text, which the ledger replaces by a code."""
    lower: int = 0
    upper: int = 0
    """Inclusive bounds of every encoded coordinate."""
    step: Fraction = Fraction(1)

    def __init__(self, *, missing: Missing = "error") -> None:
        self.missing: Missing = choice(missing, ("error", "skip"), "missing")

    @property
    def blank(self) -> Encoded:
        """What stands in the place of a missing value, whatever the input had there. It has no meaning: `Rows.missing`
        says that the value is missing."""
        return "" if self.interned else self.lower

    @abstractmethod
    def encode(self, value: object, place: str) -> Encoded:
        """The encoded form of one value. A missing value is an error here, whatever `missing` says."""

    @abstractmethod
    def decode(self, encoded: Any) -> object:
        """The value of an encoded form."""

    def _encode_cells(self, cells: NDArray[Any], at: At) -> NDArray[Any]:
        """The encoded form of all cells; `at` gives the place of a cell."""
        encoded = np.array(encode_each(self.encode, cells, at), object if self.interned else np.int64)
        return encoded.reshape(len(cells), *self.shape)

    def encode_column(self, values: object, place: str) -> EncodedColumn:
        """The encoded form of all values, `blank` for missing ones; and which are missing (None if none are)."""
        if isinstance(values, Packed):
            quick = values.encoded_by(self)
            if quick is not None:
                return quick
            values = values.values()
        quick = encoded_objects(self, values)
        if quick is not None:
            return quick
        try:
            return self._encode_all(self._one_cell_a_row(as_cells(values, place), place), place)
        except InputError as error:
            error.hint = self.advice(error)
            raise

    def advice(self, error: InputError) -> str | None:
        """The next step for somebody whose column was refused."""
        return hint_for(error)

    def _encode_all(self, cells: NDArray[Any], place: str) -> EncodedColumn:
        missing = self._absent(cells) if self.missing == "skip" else None
        if missing is None or not missing.any():
            return self._encode_cells(cells, lambda index: Place(place, index + 1)), None
        rows = np.flatnonzero(~missing)

        def at(index: int) -> str:
            return Place(place, int(rows[index]) + 1)

        # now they may all be of one type
        return self.scattered(self._encode_cells(as_cells(cells[rows], place), at), ~missing)

    def scattered(self, encoded: NDArray[Any], present: Mask) -> EncodedColumn:
        """Encoded values in the rows where one is present."""
        if present.all():
            return encoded, None
        every: NDArray[Any] = np.empty((len(present), *encoded.shape[1:]), object if self.interned else np.int64)
        every[:] = self.blank
        every[present] = encoded
        return every, ~present

    def encode_present(self, cells: NDArray[Any], present: Mask) -> EncodedColumn | None:
        """The values of an array that are present; None if one is missing and must not be."""
        if self.missing == "skip" and cells.dtype.kind in "fM":
            present = present & ~self._absent(cells)
        if self.missing != "skip" and not present.all():
            return None
        return self.scattered(self.encode_cells(cells[present]), present)

    def encode_cells(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Cells, all of them present; an error does not say where it is."""
        return self._encode_cells(cells, str)

    def encode_decimals(self, units: I64, scale: int) -> NDArray[Any] | None:
        """The numbers ``units / 10^scale``; None if the field has no quick way for them."""
        return None

    def encode_texts(self, texts: PackedTexts) -> NDArray[Any] | None:
        """Texts, all of them present; None if the field has no quick way for them."""
        return None

    def faults(self, values: object, place: str) -> list[InputError]:
        """Why `encode_column` refuses values: an error for each bad value, with all rows that have it.

        >>> from retroact.schema import Integer
        >>> [(str(error), error.rows.tolist()) for error in Integer(0, 9).faults([3, 12, 12], "n")]
        [('expected a whole number between 0 and 9, got 12 - at n, row 2', [2, 3])]
        """
        try:
            self.encode_column(values, place)
            return []
        except InputError:
            cells = values.values() if isinstance(values, Packed) else as_cells(values, place)
        rows: dict[object, list[int]] = {}
        for index, value in enumerate(cells):
            # a list or an array cannot be hashed: each one counts as a different value
            rows.setdefault((type(value), value) if isinstance(value, Hashable) else index, []).append(index)
        found: list[InputError] = []
        for places in rows.values():
            value = cells[places[0]]
            try:
                if self.missing == "error" or not self.is_missing(value):
                    self.encode(value, place)
            except InputError as error:
                error.hint = self.advice(error)
                found.append(error.moved(error.path or place).for_rows(np.array(places) + 1))
        return found

    def _one_cell_a_row(self, cells: NDArray[Any], place: str) -> NDArray[Any]:
        if cells.ndim > 1 and len(cells):
            raise mismatch("one value", cells[0], Place(place, 1))
        return cells.reshape(-1)

    def is_missing(self, value: object) -> bool:
        """Whether the value stands for "no value": None, NaN or NaT."""
        if value is None:
            return True
        if isinstance(value, (float, np.floating)):
            return bool(value != value)
        if isinstance(value, Decimal):
            return value.is_nan()
        return isinstance(value, np.datetime64) and bool(np.isnat(value))

    def _absent(self, cells: NDArray[Any]) -> Mask:
        if cells.dtype.kind == "f":
            return np.asarray(np.isnan(cells))
        if cells.dtype.kind == "M":
            return np.asarray(np.isnat(cells))
        if cells.dtype.kind == "O":
            return np.array([value is None or self.is_missing(value) for value in cells], np.bool_)
        return np.zeros(len(cells), np.bool_)


def field_names(given: str | Sequence[str], place: str = "fields") -> tuple[str, ...]:
    """The names of one or more different fields.

    >>> field_names("age"), field_names(["age", "country"])
    (('age',), ('age', 'country'))
    """
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else ()
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise mismatch("the names of one or more different fields", given, place)
    return names


def field_name(given: str) -> str:
    if not isinstance(given, str):
        raise mismatch("the name of a field", given, "field")
    return given


def one_or_list(names: Sequence[str]) -> str | list[str]:
    """
    >>> one_or_list(["age"]), one_or_list(("age", "country"))
    ('age', ['age', 'country'])
    """
    return names[0] if len(names) == 1 else list(names)


def as_cells(values: object, place: str) -> NDArray[Any]:
    """The column as an array of unchanged values: mixed columns are not converted to a common type.

    >>> as_cells([1, 2.5, True], "amount")
    array([1, 2.5, True], dtype=object)
    """
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.asarray(np.ma.getmaskarray(values).reshape(len(values), -1).any(axis=1))
        return _objects([None if gone else value for gone, value in zip(hidden, values.data, strict=True)])
    if isinstance(values, np.ndarray):
        if values.ndim == 0:
            raise mismatch("a column", values, place)
        alike = _alike(values.tolist()) if values.dtype == object and values.ndim == 1 else None
        return values if alike is None else alike
    if hasattr(values, "__array__") and not isinstance(values, np.generic):
        return as_cells(np.asarray(values), place)
    if not isinstance(values, Sequence) or isinstance(values, str) or is_bytes(values):
        raise mismatch("a column", values, place)
    alike = _alike(values)
    return _objects(values) if alike is None else alike


def _alike(values: Sequence[object]) -> NDArray[Any] | None:
    """Numbers of one type; None if they are none."""
    # the type of the first value spares columns of text the look at all types
    if len(values) and type(values[0]) in (float, int):
        types = set(map(type, values))
        if types == {float}:
            return np.array(values, np.float64)
        if types == {int}:
            with suppress(OverflowError):
                return np.array(values, np.int64)
    return None


def is_bytes(value: object) -> TypeGuard[bytes | bytearray | memoryview]:
    """Whether the value is a string of bytes, which Python also calls a sequence of numbers.

    >>> is_bytes(bytearray(b"ab")), is_bytes(memoryview(b"ab")), is_bytes(memoryview(np.zeros(2)))
    (True, True, False)
    """
    if isinstance(value, memoryview):
        return value.ndim == 1 and value.format[-1] in "Bbc"
    return isinstance(value, bytes | bytearray)


def _objects(values: Sequence[object]) -> NDArray[Any]:
    return np.fromiter(values, dtype=object, count=len(values))  # np.array() would look inside nested sequences


def encode_each(encode: Callable[[object, str], Any], cells: Iterable[object], at: At) -> list[Any]:
    """Every cell by the scalar path; the place is worked out only for a cell that is refused."""
    result = []
    for index, value in enumerate(cells):
        try:
            result.append(encode(value, ""))
        except InputError:
            encode(value, at(index))
            raise
    return result
