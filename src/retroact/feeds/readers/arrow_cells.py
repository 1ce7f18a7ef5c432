"""Arrays of pyarrow as columns of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...schema.arrow import columns_of
from ...texts import ABSENT, Texts
from ..batch import ColumnValues

_FEW = 0.25
"""A dictionary pays if it has at most this share of distinct words."""


class Words:
    """Encodes texts by a dictionary, as long as that pays."""

    def __init__(self) -> None:
        self._pays = True

    def __call__(self, array: Any) -> ColumnValues:
        import pyarrow as pa  # type: ignore[import-untyped]

        if pa.types.is_dictionary(array.type) or not self._pays:
            return arrow_cells(array)
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
            return arrow_cells(array)
        coded = array.dictionary_encode()
        self._pays = len(coded.dictionary) <= max(256, _FEW * len(array))
        return arrow_cells(coded)


def name_cells(array: Any) -> ColumnValues:
    """Read columns that are not fields, such as ids: texts stay in columns.

    >>> import pyarrow as pa
    >>> name_cells(pa.array(["o-1", None, "o-3"]).slice(1)).listed()
    [None, 'o-3']
    """
    import pyarrow as pa

    kind = array.type
    if not len(array) or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return arrow_cells(array)
    _, offsets, data = array.buffers()
    wide = np.int64 if pa.types.is_large_string(kind) else np.int32
    bounds = np.frombuffer(offsets, wide)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    lengths = np.diff(bounds).astype(np.int32)
    present = None if not array.null_count else array.is_valid().to_numpy(zero_copy_only=False)
    if present is not None:
        lengths[~present] = ABSENT
    content = np.frombuffer(b"" if data is None else data, np.uint8)[bounds[0] : bounds[-1]]
    return ColumnValues(Texts.from_buffer(content, bounds[:-1] - bounds[0], lengths), present)


def arrow_cells(array: Any) -> ColumnValues:
    """The values of a pyarrow array; types without a fast way are read like those of other frames.

    >>> import pyarrow as pa
    >>> arrow_cells(pa.array(["DE", None])).listed(), arrow_cells(pa.array([1, 2], pa.int8())).listed()
    (['DE', None], [1, 2])
    """
    import pyarrow as pa

    kind = array.type
    present = None if not array.null_count else array.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(kind):
        if len(array.dictionary) > max(256, _FEW * len(array)):
            return arrow_cells(array.dictionary_decode())
        codes = (array.indices if present is None else array.indices.fill_null(0)).to_numpy().astype(np.int64)
        words = arrow_cells(array.dictionary)
        if present is None and words.present is not None:
            # a null may also be a word
            return ColumnValues.of([words.listed()[code] for code in codes.tolist()])
        return ColumnValues(codes, present, words.listed())
    if pa.types.is_string_view(kind):
        return arrow_cells(array.cast(pa.large_string()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        try:
            return ColumnValues(array.to_numpy(zero_copy_only=False), present)
        except pa.ArrowException:
            pass  # the slow way says which bytes are no text
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        whole = array if present is None else array.fill_null(0)
        # a copy, since a mapped file goes away
        return ColumnValues(np.array(whole.to_numpy(zero_copy_only=False)), present)
    return ColumnValues.of(columns_of(pa.table({"": array}))[""])
