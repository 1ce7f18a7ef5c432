"""Blocks of CSV read a column at a time. What is not plain is left to Python's reader, which decides and refuses."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ...arrays import I64, Mask
from ...schema.packed_texts import PAD, PackedTexts, padded
from ..batch import Batch, ColumnValues

_END, _RETURN, _QUOTE = b'\n\r"'


class PlainRows:
    """The rows of a block: each on one line, and with as many cells as the header.

    >>> rows = PlainRows.of(b'o-1,12.50\\r\\n\\r\\n"o,2",3\\n', ",", 2)
    >>> rows.column(0).values(), rows.column(1).values(), rows.lines, rows.line_count
    (['o-1', 'o,2'], ['12.50', '3'], array([0, 2]), 3)
    >>> PlainRows.of(b"o-1,12.50,x", ",", 2) is PlainRows.of(b'o-1,"a\\nb"', ",", 2) is None
    True
    """

    def __init__(
        self, data: NDArray[np.uint8], starts: I64, bounds: I64, lines: I64, line_count: int, quoted: bool
    ) -> None:
        self._data, self._starts, self._bounds, self._quoted = data, starts, bounds, quoted
        self.lines = lines
        """The lines of the rows, from 0."""
        self.line_count = line_count
        """Of all lines; blank ones are no rows."""

    @classmethod
    def of(cls, content: bytes, delimiter: str, width: int) -> PlainRows | None:
        """The rows of whole lines of UTF-8, of which the first begins a row; None if they are not plain."""
        if b"\0" in content or (b"\r" in content and content.count(b"\r") != content.count(b"\r\n")):
            return None
        if not content.endswith(b"\n"):
            content += b"\n"
        data = padded(content)
        line_ends = data == _END
        between = data == ord(delimiter)
        between |= line_ends
        cuts = np.flatnonzero(between)
        quoted = b'"' in content
        if quoted:
            quotes = np.flatnonzero(data == _QUOTE)
            if not _around_cells(data, quotes, ord(delimiter)):
                return None
            cuts = cuts[np.searchsorted(quotes, cuts) & 1 == 0]
        ends = cuts[width - 1 :: width]
        if len(ends) != np.count_nonzero(line_ends) or (data[ends] != _END).any():
            ends = np.flatnonzero(line_ends)
        starts = np.concatenate([[PAD], ends[:-1] + 1])
        line_count, last = len(ends), ends - (data[ends - 1] == _RETURN)
        lines = np.flatnonzero(last > starts)
        if len(lines) < line_count:
            cuts = cuts[~np.isin(cuts, ends[last <= starts])]
            starts, last, ends = starts[lines], last[lines], ends[lines]
        # a line end inside quotes is among these ends, but not among the cuts
        if len(cuts) != len(lines) * width or (cuts[width - 1 :: width] != ends).any():
            return None
        if int((last - starts).max(initial=0)) > csv.field_size_limit() < int(np.diff(cuts, prepend=PAD).max()):
            return None
        bounds = np.ascontiguousarray(cuts.reshape(-1, width).T)
        bounds[-1] = last
        return cls(data, starts, bounds, lines, line_count, quoted)

    def batch(self, names: Sequence[str], needed: Collection[str], first: int, after: int) -> Batch:
        """The columns that are needed, of rows on lines after this one; the first line has this number."""
        lines = first + self.lines
        left = int(np.searchsorted(lines, after, side="right"))
        columns = {name: self.column(place) for place, name in enumerate(names) if name in needed}
        batch = Batch(lines, {name: ColumnValues(texts) for name, texts in columns.items()})
        return batch.take(slice(left, None)) if left else batch

    def column(self, place: int) -> PackedTexts:
        starts = self._bounds[place - 1] + 1 if place else self._starts
        sizes = self._bounds[place] - starts
        if self._quoted:
            inside = self._data[starts] == _QUOTE
            starts, sizes = starts + inside, sizes - 2 * inside
        return PackedTexts(self._data, starts, sizes)


def _around_cells(data: NDArray[np.uint8], quotes: I64, delimiter: int) -> bool:
    """Whether quotes come in pairs around whole cells, and so there are none inside."""
    if len(quotes) % 2:
        return False
    opens, closes = quotes[::2], quotes[1::2]
    before = np.where(opens == PAD, _END, data[opens - 1])
    return _outside(before, delimiter) and _outside(data[closes + 1], delimiter, _RETURN)


def _outside(letters: NDArray[np.uint8], *more: int) -> bool:
    fine: Mask = letters == _END
    for letter in more:
        fine |= letters == letter
    return bool(fine.all())
