"""What the columns of a table are for, and what each of its rows says is to be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retroact.arrays import I64
from retroact.errors import InputError, Place
from retroact.feeds.columns import Batch, Cells
from retroact.feeds.operations import WEIGHT_COLUMNS, kind_of, weigh
from retroact.feeds.roles import Heading, heading
from retroact.messages import mismatch
from retroact.schema import Schema
from retroact.stream.open_round import LARGEST

if TYPE_CHECKING:
    from retroact.feeds.options import Options

ADD, UPDATE, DELETE, ERASE, CLOSE, NOTHING = range(6)
"""An update is an addition that needs an id; the image before an update is a deletion that needs none."""
_CODES = {"add": ADD, "update": UPDATE, "delete": DELETE, "erase": ERASE, "close": CLOSE}


class Layout(Heading):
    """The columns of a table, by what they are for."""

    @property
    def weighted(self) -> bool:
        return self.operation in WEIGHT_COLUMNS

    @property
    def needed(self) -> set[str]:
        """Every column that is read."""
        others = (self.operation, self.time, self.position)
        return {*self.fields, *(column for _, column in self.roles.items()), *(name for name in others if name)}

    @property
    def words(self) -> set[str]:
        """Those whose texts are likely to repeat."""
        return {*self.fields, *((self.operation,) if self.operation else ())}


def layout_of(names: list[str], schema: Schema, options: Options) -> Layout:
    """Who is who.

    >>> from retroact.feeds.options import Options
    >>> from retroact.schema import Number
    >>> from retroact.stream.columns import Columns
    >>> schema, columns = Schema({"amount": Number(0, 500)}), Columns.from_spec({"id": "order", "ignore": ["note"]})
    >>> layout = layout_of(["order", "amount", "note"], schema, Options(columns))
    >>> layout.roles.id, layout.operation, layout.ignored
    ('order', None, ('note',))
    """
    timed = options.time is not None
    found = heading(names, schema, options.columns, by_number=options.by_number, timed=timed)
    return Layout(**{**vars(found), **({} if timed else {"time": None})})


def operations(batch: Batch, layout: Layout, contribution: int | None) -> tuple[NDArray[np.int8], I64 | None]:
    """What each row says is to be done; and how many copies it stands for, where that may be more than one."""
    if layout.operation is None:
        return np.full(len(batch), ADD, np.int8), None
    cells = batch.columns[layout.operation]
    if layout.weighted:
        return _weights(cells, layout.operation, contribution)
    if cells.words is not None and cells.present is None:
        used = np.bincount(cells.values, minlength=len(cells.words)) > 0
        table = np.full(len(cells.words), NOTHING, np.int8)
        try:
            for place in np.flatnonzero(used).tolist():
                table[place] = _code(cells.words[place], layout.operation)
            return table[cells.values], None
        except InputError:
            pass  # row by row, to name the first
    known: dict[Any, int] = {}
    codes = np.empty(len(cells), np.int8)
    for row, word in enumerate(cells.listed()):
        code = known.get(word) if isinstance(word, str) else None
        if code is None:
            code = known[word] = _code(word, Place(layout.operation, row + 1))
        codes[row] = code
    return codes, None


def positions_of(batch: Batch, layout: Layout) -> I64 | None:
    """Where each row stands in its source, if a column says so."""
    if layout.position is None:
        return None
    cells = batch.columns[layout.position]
    if not cells.there().all():
        row = int(np.argmin(cells.there())) + 1
        raise InputError("expected the position of the row, got none", place=layout.position, row=row)
    positions = cells.whole(layout.position)
    odd = (positions <= -LARGEST) | (positions >= LARGEST)
    if odd.any():
        row = int(np.argmax(odd))
        expected = "a whole number below 2^62, the position of the row"
        raise mismatch(expected, int(positions[row]), Place(layout.position, row + 1))
    return positions


def _code(word: Any, place: str) -> int:
    kind = kind_of(word, place)
    return _CODES[kind]


def _weights(cells: Cells, place: str, contribution: int | None) -> tuple[NDArray[np.int8], I64 | None]:
    there = cells.there()
    if not there.all():
        weigh(None, Place(place, int(np.argmin(there)) + 1), contribution)
    weights = cells.whole(place)
    most = contribution or 1
    odd = (weights > most) | (weights < -most)  # not by abs, which leaves -2^63 as it is
    if odd.any():
        first = int(np.argmax(odd))
        weigh(int(weights[first]), Place(place, first + 1), contribution)
    codes = np.where(weights > 0, ADD, np.where(weights < 0, DELETE, NOTHING)).astype(np.int8)
    copies = np.abs(weights)
    return codes, copies if bool((copies > 1).any()) else None
