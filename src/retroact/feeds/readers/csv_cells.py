"""Cells of CSV, which are texts, as values of fields and as roles."""

from __future__ import annotations

from collections.abc import Set
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from ...errors import InputError, Place
from ...messages import mismatch
from ...schema import Boolean, Field, Integer, Number, Schema, Vector
from ..batch import EVERY_RECORD, ColumnReader, ColumnValues
from ..roles import position_of
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
    return ColumnValues.of([cell or None for cell in cells.values.tolist()])


def _wholes(cells: ColumnValues, column: str) -> ColumnValues:
    """Whole numbers from 0 on; an empty cell is missing."""
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
    return ColumnValues.of([number_in(cell) if cell else None for cell in cells.values.tolist()])


def _weights(cells: ColumnValues, column: str) -> ColumnValues:
    return ColumnValues.of([number_in(cell) for cell in cells.values.tolist()])


def _positions(cells: ColumnValues, column: str) -> ColumnValues:
    return ColumnValues.of(
        [position_of(cell, column, row) if cell else None for row, cell in enumerate(cells.values.tolist())]
    )


_ROLES = {
    "id": _blank, "subject": _blank, "stamp": _wholes, "round": _wholes,
    "position": _positions, "time": _moments, "weight": _weights,
}  # fmt: skip


def role_readers(missing: Set[str]) -> dict[str, RoleReader]:
    """For each role, from cells to values. Missing texts are empty cells."""
    return {role: _without(missing, reader) for role, reader in _ROLES.items()}


def cell_readers(schema: Schema, missing: Set[str] = frozenset()) -> dict[str, ColumnReader]:
    """For each field, from cells to values. Cells that are no values stay as they are, for the field to refuse. Those
    that are among the ``missing`` texts are None."""
    fields = schema.fields.items()
    return {name: _unless(missing, cell_reader(field)) for name, field in fields if name != EVERY_RECORD}


def _unless(missing: Set[str], reader: ColumnReader) -> ColumnReader:
    if not missing:
        return reader

    def read(cells: list[Any]) -> list[Any]:
        if missing.isdisjoint(cells):
            return reader(cells)
        gone = [cell in missing for cell in cells]
        values = reader(["" if none else cell for none, cell in zip(gone, cells, strict=True)])
        return [None if none else value for none, value in zip(gone, values, strict=True)]

    return read


def _without(missing: Set[str], reader: RoleReader) -> RoleReader:
    """A reader that takes missing texts as empty cells."""
    if not missing:
        return reader

    def read(cells: ColumnValues, column: str) -> ColumnValues:
        texts = np.empty(len(cells), object)
        texts[:] = ["" if cell in missing else cell for cell in cells.values.tolist()]
        return reader(ColumnValues(texts), column)

    return read


def cell_reader(field: Field) -> ColumnReader:
    """From cells to values of a field. Cells that are not values stay as they are, for the field to refuse."""
    empty: str | None = None
    if field.missing != "skip":
        # an empty cell is a missing value, unless it is a value of the field itself
        with suppress(InputError):
            field.encode("", "")
            empty = ""
    if isinstance(field, Number):
        return lambda cells: _numbers(cells, float, empty)
    if isinstance(field, Integer):
        return lambda cells: _numbers(cells, int, empty)
    if isinstance(field, Boolean):
        words = {"1": True, "0": False, "": empty}
        return lambda cells: [words.get(cell, cell) for cell in cells]
    if isinstance(field, Vector):
        return lambda cells: [_json(cell) if cell else empty for cell in cells]
    return lambda cells: [cell or empty for cell in cells]


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
