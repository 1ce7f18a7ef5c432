"""Cells of CSV, which are texts, as values of fields and as roles."""

from __future__ import annotations

from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from ...arrays import Mask
from ...errors import InputError, Place
from ...messages import mismatch
from ...schema import Boolean, Field, Integer, Number, Schema, Vector
from ...schema.decimal_texts import decimals
from ...schema.packed_texts import PackedTexts
from ..batch import ADD, EVERY_RECORD, Changes, ColumnValues, has_record
from ..encoded_cells import EncodedCells
from ..roles import CODES, Heading, position_of
from ..row_reader import RoleReader

_FLOAT_DIGITS = 15
"""A float gives back a decimal of this many characters exactly."""
_DECIMAL = frozenset("0123456789.-")


def number_in(cell: str) -> int | str:
    """A whole number, or else the cell itself.

    >>> number_in("-3"), number_in("+1"), number_in("1.5")
    (-3, 1, '1.5')
    """
    digits = cell[1:] if cell[:1] in ("-", "+") else cell
    return int(cell) if digits.isascii() and digits.isdigit() and len(digits) < 30 else cell


def _blank(cells: ColumnValues, column: str) -> ColumnValues:
    """Texts; an empty cell is missing."""
    if isinstance(cells.values, PackedTexts):
        texts = cells.values.where(cells.values.sizes > 0)
        return ColumnValues(texts, texts.present)
    return ColumnValues.of([cell or None for cell in cells.values.tolist()])


def _wholes(cells: ColumnValues, column: str) -> ColumnValues:
    """Whole numbers from 0 on; an empty cell is missing."""
    found = _numerals(cells, signed=False)
    if found is not None:
        return found
    texts = cells.values.tolist()
    digits = "".join(texts)
    if not digits:
        return ColumnValues.none(len(texts))
    if not (digits.isascii() and digits.isdigit()) or max(map(len, texts)) > 18:
        for row, cell in enumerate(texts):
            if cell and not (cell.isascii() and cell.isdigit() and len(cell) < 20):
                raise mismatch("a whole number", cell, Place(column, row + 1))
        texts = [cell and str(min(int(cell), 2**63 - 1)) for cell in texts]
    present = np.array([bool(cell) for cell in texts], np.bool_) if "" in texts else None
    return ColumnValues(np.array([int(cell or 0) for cell in texts], np.int64), present)


def _moments(cells: ColumnValues, column: str) -> ColumnValues:
    """Times as a grid takes them: whole numbers or texts; an empty cell is missing."""
    found = _numerals(cells)
    if found is not None:
        return found
    if isinstance(cells.values, PackedTexts):
        dates = _blank(cells, column)
        texts = cells.values.take(dates.there())
        if ((texts.sizes >= 10) & (texts.data[texts.starts + 4] == ord("-"))).all():
            return dates
    return ColumnValues.of([number_in(cell) if cell else None for cell in cells.values.tolist()])


def _weights(cells: ColumnValues, column: str) -> ColumnValues:
    coded = cells.values.coded() if isinstance(cells.values, PackedTexts) else None
    if coded is not None:
        return ColumnValues(coded.codes, None, [number_in(word) for word in coded.words])
    return ColumnValues.of([number_in(cell) for cell in cells.values.tolist()])


def _positions(cells: ColumnValues, column: str) -> ColumnValues:
    found = _numerals(cells)
    if found is not None:
        return found
    return ColumnValues.of(
        [position_of(cell, column, row) if cell else None for row, cell in enumerate(cells.values.tolist())]
    )


def _numerals(cells: ColumnValues, *, signed: bool = True) -> ColumnValues | None:
    """Packed texts as whole numbers, if each has nothing but digits, or is empty."""
    if not isinstance(cells.values, PackedTexts):
        return None
    present: Mask = cells.values.sizes > 0
    texts = cells.values.take(present)
    units, _, clear = decimals(texts, points=False)
    signs = texts.data[texts.starts] == ord("-")
    if not clear.all() or (signs.any() and not signed):
        return None
    numbers = np.zeros(len(present), np.int64)
    numbers[present] = units
    return ColumnValues(numbers, None if present.all() else present)


_ROLES = {
    "id": _blank, "subject": _blank, "stamp": _wholes, "round": _wholes,
    "position": _positions, "time": _moments, "weight": _weights,
}  # fmt: skip


def role_readers(missing: Set[str]) -> dict[str, RoleReader]:
    """The readers of cells by role. Missing texts are empty cells."""
    return {role: _without(missing, reader) for role, reader in _ROLES.items()}


def cell_readers(schema: Schema, missing: Set[str] = frozenset()) -> dict[str, CellReader]:
    """The readers of cells by field."""
    return {name: CellReader(field, missing) for name, field in schema.fields.items() if name != EVERY_RECORD}


def _without(missing: Set[str], reader: RoleReader) -> RoleReader:
    """A reader that takes missing texts as empty cells."""
    if not missing:
        return reader

    def read(cells: ColumnValues, column: str) -> ColumnValues:
        if isinstance(cells.values, PackedTexts):
            some = without(cells.values, missing)
            return reader(ColumnValues(PackedTexts(some.data, some.starts, some.sizes)), column)
        texts = np.empty(len(cells), object)
        texts[:] = ["" if cell in missing else cell for cell in cells.values.tolist()]
        return reader(ColumnValues(texts), column)

    return read


def without(texts: PackedTexts, words: Set[str]) -> PackedTexts:
    """Packed texts; those that are among the words are missing."""
    if not words:
        return texts
    gone = np.zeros(len(texts), np.bool_)
    for word in words:
        gone |= texts.equal(word.encode())
    return texts.where(~gone)


class CellReader:
    """Turns the cells of a field into values. Cells that are no values stay as they are, for the field to refuse.
    Those that are among the ``missing`` texts are None.

    >>> read = CellReader(Number(0, 99), frozenset(["NA"]))
    >>> read(["12.50", "NA", "x"]), read(["12.50", ""])
    (['12.50', None, 'x'], ['12.50', None])
    """

    def __init__(self, field: Field, missing: Set[str]) -> None:
        self._field, self._missing = field, missing
        self._empty: str | None = None
        if field.missing != "skip":
            # an empty cell is a missing value, unless it is a value of the field itself
            with suppress(InputError):
                field.encode("", "")
                self._empty = ""

    def __call__(self, cells: list[Any]) -> list[Any]:
        if not self._missing or self._missing.isdisjoint(cells):
            return self._values(cells)
        gone = [cell in self._missing for cell in cells]
        values = self._values(["" if none else cell for none, cell in zip(gone, cells, strict=True)])
        return [None if none else value for none, value in zip(gone, values, strict=True)]

    def _values(self, cells: list[Any]) -> list[Any]:
        field, empty = self._field, self._empty
        if isinstance(field, Number):
            return _numbers(cells, float, empty)
        if isinstance(field, Integer):
            return _numbers(cells, int, empty)
        if isinstance(field, Boolean):
            words = {"1": True, "0": False, "": empty}
            return [words.get(cell, cell) for cell in cells]
        if isinstance(field, Vector):
            return [_json(cell) if cell else empty for cell in cells]
        return [cell or empty for cell in cells]

    def encoded(self, texts: PackedTexts, holds: Mask) -> EncodedCells:
        """Read and encode in one step, for rows that hold a record. A cell that the field refuses raises an error."""
        some = texts if holds.all() else texts.take(holds)
        column = without(some, self._missing)
        encoded = (column if self._empty == "" else column.where(column.sizes > 0)).encoded_by(self._field)
        if encoded is None:
            encoded = self._field.encode_column(self(some.values()), "")
        values, gone = encoded
        if len(some) < len(texts):
            places = np.flatnonzero(holds)
            present = np.zeros(len(texts), np.bool_)
            present[places if gone is None else places[~gone]] = True
            values, gone = self._field.scattered(values if gone is None else values[~gone], present)
        return EncodedCells(texts, self._field, values, gone)


def encoded(changes: Changes, readers: Mapping[str, CellReader]) -> Changes:
    """Changes with their cells encoded, in rows that hold a record. A cell that its field refuses raises an error."""
    holds = has_record(changes)
    cells = {name: read.encoded(changes.fields[name].values, holds) for name, read in readers.items()}
    return replace(changes, fields={name: ColumnValues(column) for name, column in cells.items()})


def only_adds(heading: Heading, cells: Mapping[str, str]) -> bool:
    """Whether a row that begins with these cells can only be an addition."""
    if heading.operation is None:
        return True
    cell = cells.get(heading.operation, "")
    if heading.weighted:
        weight = number_in(cell)
        return isinstance(weight, int) and weight > 0
    return CODES.get(cell) == ADD


def _numbers(cells: list[str], kind: type[float] | type[int], empty: str | None) -> list[Any]:
    """Numbers, which are faster to encode, if all of them are exact; otherwise texts.

    >>> _numbers(["12.50", "3"], float, None), _numbers(["1.5", "nan"], float, None)
    ([12.5, 3.0], ['1.5', 'nan'])
    """
    if max(map(len, cells), default=0) <= _FLOAT_DIGITS and _DECIMAL.issuperset("".join(cells)):
        with suppress(ValueError):
            return list(map(kind, cells))
    return [cell or empty for cell in cells]


def _json(cell: str) -> Any:
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, RecursionError):
        return cell
