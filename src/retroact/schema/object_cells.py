"""Columns of Python objects, encoded without a look at each one: numbers with gaps as floats, texts that repeat once
for each word.

What a quick way does not take, or refuses, is encoded cell by cell: that way decides, and its errors name the row.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .packed import Coded, EncodedColumn

if TYPE_CHECKING:
    from .field import Field

MANY = 64
"""A quick way pays from this many cells on."""
_FEW = 0.25
"""Words pay if they are at most this share of the cells."""
_NUMBERS, _TEXTS = {int, float, NoneType}, {str, NoneType}
_NUMERIC, _WORDED = ("number", "integer"), ("text", "category")
"""Kinds of fields: those of numbers; and those that take many texts at once themselves."""
_LARGE = 2.0**53
"""Smaller whole numbers are floats too, and mean the same."""


def encoded_objects(field: Field, values: object) -> EncodedColumn | None:
    """A list, or an array of objects, as a field encodes it; None if there is no quick way, or a value is refused.

    >>> from retroact.schema import Number
    >>> encoded_objects(Number(0, 9, step=0.5, missing="skip"), [1.5, None, 2] * 30)[0][:3]
    array([3, 0, 4])
    """
    cells = values if isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1 else None
    listed = values if cells is None else cells.tolist()
    if type(listed) is not list or len(listed) < MANY:
        return None
    kinds = {*map(type, listed)}
    try:
        if kinds <= _NUMBERS and field.kind in _NUMERIC:
            return _numbers(field, listed, kinds)
        if kinds <= _TEXTS:
            found = None if field.kind in _WORDED else _words(field, listed)
            if found is None:
                cells = np.fromiter(listed, object, len(listed)) if cells is None else cells
                gaps = NoneType in kinds
                found = field.encode_present(cells, cells != None) if gaps else (field.encode_cells(cells), None)  # noqa: E711
            return found
    except (InputError, OverflowError):
        pass
    return None


def _numbers(field: Field, values: list[Any], kinds: set[type]) -> EncodedColumn | None:
    if kinds == {int}:
        return field.encode_cells(np.array(values, np.int64)), None
    # None becomes NaN, which is missing too
    floats = np.array(values, np.float64)
    if int in kinds and (np.abs(floats) >= _LARGE).any():
        return None
    return field.encode_present(floats, ~np.isnan(floats))


def _words(field: Field, values: list[Any]) -> EncodedColumn | None:
    words = dict.fromkeys(values)
    if len(words) > _FEW * len(values):
        return None
    places = dict(zip(words, range(len(words)), strict=True))
    codes = np.fromiter(map(places.__getitem__, values), np.int64, len(values))
    return Coded(list(words), codes).encoded_by(field)
