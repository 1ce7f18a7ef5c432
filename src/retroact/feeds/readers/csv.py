"""CSV files: a header, a column for every field, and perhaps columns for op, id, subject, stamp and round."""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import StringIO
from typing import Any

import msgspec
import numpy as np

from ...errors import InputError, Place, Unit
from ...messages import mismatch
from ...schema import Boolean, Field, Integer, Number, Schema, Vector
from ..batch import ADD, EVERY_RECORD, Batch, Changes, ColumnReader, ColumnValues
from ..options import Options
from ..roles import CODES, PROGRESS, position_of
from ..row_reader import RowReader
from ..source import LONGEST_LINE, Source, not_utf8

ROWS = 4096
_FLOAT_DIGITS = 15
"""A float gives back a decimal of this many characters exactly."""
_DECIMAL = frozenset("0123456789.-")


class CsvFile(RowReader):
    """Columns that are neither fields nor roles are refused, unless they are to be ignored."""

    unit: Unit = "line"

    def __init__(self, source: Source, schema: Schema, options: Options) -> None:
        readers = {name: cell_reader(field) for name, field in schema.fields.items() if name != EVERY_RECORD}
        super().__init__(source.name, schema, options, readers)
        self.source = source
        self.role_readers = _ROLES
        self._names: list[str] = []
        self._line = 1
        self._open_quote = False

    def __iter__(self) -> Iterator[Changes]:
        for batch in self._batches():
            if batch is None:
                yield Changes.nothing()
            else:
                yield from self.read(batch)

    def _batches(self) -> Iterator[Batch | None]:
        """Rows in columns; None at the present end of a followed source."""
        self.heading = None
        try:
            for lines, cells in self._rows():
                if not lines:
                    yield None
                    continue
                width = len(self._names)
                left = bisect_right(lines, self.begin_after)
                if left < len(lines):
                    lines, cells = (lines[left:], cells[left * width :]) if left else (lines, cells)
                    yield self._batch(lines, cells)
        except csv.Error as error:
            raise self._refused(error, self._line) from None

    def _refused(self, error: csv.Error | InputError, line: int) -> InputError:
        wrong = error if isinstance(error, InputError) else InputError(f"expected CSV, got {error}")
        return self.source.refused(wrong, line)

    def _batch(self, lines: list[int], cells: list[str]) -> Batch:
        assert self.heading is not None
        needed = self.heading.needed | ({PROGRESS} if self.heading.weighted else set())
        columns: dict[str, ColumnValues] = {}
        for place, name in enumerate(self._names):
            if name in needed:
                values = np.empty(len(lines), object)
                values[:] = cells[place :: len(self._names)]
                columns[name] = ColumnValues(values)
        return Batch(np.array(lines, np.int64), columns)

    def look(self) -> tuple[list[str], list[list[str]]]:
        """The names of the columns, and the cells of the first rows, column by column."""
        try:
            cells = next((cells for lines, cells in self._rows() if lines), [])
        except csv.Error as error:
            raise self._refused(error, self._line) from None
        return self._names, [cells[place :: len(self._names)] for place in range(len(self._names))]

    def unfinished(self) -> tuple[int, bool] | None:
        """The line on which a last row without an end begins, and whether it can only become an addition."""
        rest = self.source.rest.decode(errors="replace")
        if self._open_quote:
            return self._line, self._adds([])
        if not rest.strip():
            return None
        # cells before the last comma cannot change any more, unless something is quoted
        cells = rest.split(",")[:-1] if '"' not in rest else []
        return self._line, self._adds(cells)

    def _adds(self, cells: list[str]) -> bool:
        """Whether a row that begins with these cells can only be an addition."""
        if self.heading is None:
            return False
        mark = self.heading.operation
        if mark is None:
            return True
        cell = dict(zip(self._names, cells, strict=False)).get(mark, "")
        if self.heading.weighted:
            weight = _number(cell)
            return isinstance(weight, int) and weight > 0
        return CODES.get(cell) == ADD

    def times(self) -> Iterator[tuple[Any, Any]]:
        """The lines that have a time, and their times, batch by batch."""
        time = self.options.time or ""
        for batch in self._batches():
            if batch is not None:
                cells = _moments(batch.columns[time], time)
                there = cells.there()
                if there.any():
                    yield batch.numbers[there], cells.take(there).listed()

    def _rows(self) -> Iterator[tuple[list[int], list[str]]]:
        """The lines that rows begin on, and all their cells, batch by batch; an empty batch at the present end of a
        followed source."""
        self._line, self._open_quote = 1, False
        if self.source.follow:
            return self._followed()
        return self._parsed(line for text in self._texts() for line in StringIO(text, newline=""))

    def _followed(self) -> Iterator[tuple[list[int], list[str]]]:
        pending = ""
        for text in self._texts():
            pending += text
            start, known = self._line, self.heading
            found, wrong = [], None
            try:
                for part in self._parsed(StringIO(pending, newline="")):
                    found.append(part)
            except InputError as error:
                wrong = error
            except csv.Error as error:
                if not _is_open(error) or len(pending) > LONGEST_LINE:
                    raise
                # inside a quoted cell, whose end is still to come
                self._line, self.heading = start, known
                found, text = [], ""
            if text:
                pending = ""
            yield from found
            if wrong is not None:
                raise wrong
            yield [], []
        self._open_quote = bool(pending)
        if pending and not self.source.holds and not self.source.stop.is_set():
            raise csv.Error("unexpected end of data")

    def _parsed(self, texts: Iterable[str]) -> Iterator[tuple[list[int], list[str]]]:
        # one list of cells: a list for each row would burden the garbage collector
        lines: list[int] = []
        cells: list[str] = []
        start = line = self._line
        width = -1 if self.heading is None else len(self._names)
        wrong: Exception | None = None
        reader, refusals = csv.reader(texts, strict=True), self.options.refusals
        while True:
            try:
                for row in reader:
                    if len(row) == width:
                        lines.append(line)
                        cells += row
                    elif row and width < 0:
                        self.begin(row, line)
                        self._names, width = row, len(row)
                    elif row:
                        odd = InputError(f"expected {width} cells, as in the header, got {len(row)}")
                        raise self.source.refused(odd, line)
                    line = start + reader.line_num
                    if len(lines) >= ROWS:
                        yield lines, cells
                        lines, cells = [], []
            except (csv.Error, InputError) as error:
                if refusals is not None and width >= 0:
                    refusals.add(self._refused(error, line))
                    line = start + reader.line_num
                    continue
                wrong = error
            break
        self._line = line
        if lines:
            # rows before the error are good, and may end rounds
            yield lines, cells
        if isinstance(wrong, csv.Error) and self.source.holds and not self.source.follow and _is_open(wrong):
            self._open_quote = True
        elif wrong is not None:
            raise wrong

    def _texts(self) -> Iterator[str]:
        first = 1
        for content in self.source.blocks():
            while True:
                try:
                    yield content.decode()
                    break
                except UnicodeDecodeError as error:
                    good = content.rfind(b"\n", 0, error.start) + 1
                    yield content[:good].decode()
                    line = first + content.count(b"\n", 0, error.start)
                    wrong = self.source.refused(not_utf8(error, f"column {error.start - good + 1}"), line)
                    if self.options.refusals is None:
                        raise wrong from None
                    self.options.refusals.add(wrong)
                    # a blank line in its place keeps the numbers of those after it
                    end = content.find(b"\n", error.start)
                    first, content = line, content[end:] if end >= 0 else b""
            first += content.count(b"\n")


def _is_open(error: csv.Error) -> bool:
    """Whether the text ended inside a quoted cell."""
    return "unexpected end" in str(error)


def _number(cell: str) -> int | str:
    """A whole number, or else the cell itself.

    >>> _number("-3"), _number("+1"), _number("1.5")
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
    return ColumnValues.of([_number(cell) if cell else None for cell in cells.values.tolist()])


def _weights(cells: ColumnValues, column: str) -> ColumnValues:
    return ColumnValues.of([_number(cell) for cell in cells.values.tolist()])


def _positions(cells: ColumnValues, column: str) -> ColumnValues:
    return ColumnValues.of(
        [position_of(cell, column, row) if cell else None for row, cell in enumerate(cells.values.tolist())]
    )


_ROLES = {
    "id": _blank, "subject": _blank, "stamp": _wholes, "round": _wholes,
    "position": _positions, "time": _moments, "weight": _weights,
}  # fmt: skip


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
