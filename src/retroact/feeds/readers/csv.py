"""CSV files: a header, a column for every field, and perhaps columns for op, id, subject, stamp and round."""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from io import StringIO
from itertools import chain, islice
from typing import Any

import numpy as np

from ...errors import InputError, Unit
from ...messages import show
from ...schema import Schema
from ..batch import ADD, Batch, Changes, ColumnValues
from ..options import Options
from ..roles import CODES, PROGRESS
from ..row_reader import RowReader
from ..source import LONGEST_LINE, Source, not_utf8
from .csv_cells import cell_readers, number_in, role_readers

ROWS = 4096
DELIMITERS = (",", ";", "\t", "|")

OPEN_QUOTE = InputError(
    "expected a closing quote for a cell that begins in this row, got the end of the file",
    hint='a cell with a quote in it is written with two: "6"" pipe"; other programs write CSV so',
)


class CsvFile(RowReader):
    """Columns that are neither fields nor roles are refused, unless they are to be ignored."""

    unit: Unit = "line"

    def __init__(self, source: Source, schema: Schema, options: Options) -> None:
        missing = frozenset(options.columns.na_values)
        super().__init__(source.name, schema, options, cell_readers(schema, missing))
        self.source = source
        self.role_readers = role_readers(missing)
        self.delimiter: str | None = None
        """What separates cells; known once the header was seen."""
        self._known = {*schema.fields, *(own.column for _, own in options.columns.items())}
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
        if isinstance(error, csv.Error):
            error = OPEN_QUOTE if _is_open(error) else InputError(f"expected CSV, got {error}")
        return self.source.refused(error, line)

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
        # cells before the last delimiter cannot change any more, unless something is quoted
        cells = rest.split(self.delimiter or ",")[:-1] if '"' not in rest else []
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
            weight = number_in(cell)
            return isinstance(weight, int) and weight > 0
        return CODES.get(cell) == ADD

    def times(self) -> Iterator[tuple[Any, Any]]:
        """The lines that have a time, and their times, batch by batch."""
        time = self.options.time or ""
        for batch in self._batches():
            if batch is not None:
                cells = self.role_readers["time"](batch.columns[time], time)
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
        texts = iter(texts)
        # the delimiter is known with the first text
        first = list(islice(texts, 1))
        reader = csv.reader(chain(first, texts), strict=True, delimiter=self.delimiter or ",")
        refusals = self.options.refusals
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
                    yield self._delimited(content.decode())
                    break
                except UnicodeDecodeError as error:
                    good = content.rfind(b"\n", 0, error.start) + 1
                    yield self._delimited(content[:good].decode())
                    line = first + content.count(b"\n", 0, error.start)
                    wrong = self.source.refused(not_utf8(error, f"column {error.start - good + 1}"), line)
                    if self.options.refusals is None:
                        raise wrong from None
                    self.options.refusals.add(wrong)
                    # a blank line in its place keeps the numbers of those after it
                    end = content.find(b"\n", error.start)
                    first, content = line, content[end:] if end >= 0 else b""
            first += content.count(b"\n")

    def _delimited(self, text: str) -> str:
        """A text, when the delimiter is known: from the options, or from the header."""
        if self.delimiter is None and (header := text.lstrip("\r\n")):
            header, named = re.split(r"[\r\n]", header, maxsplit=1)[0], self.options.delimiter
            found = delimiter_of(header, self._known)
            if named and named not in header and found in header and header not in self._known:
                expected, hint = f"cells separated by {show(named)}", f"the header looks separated by {show(found)}"
                wrong = InputError(expected=expected, found=show(header), place="--delimiter", hint=hint)
                raise self.source.refused(wrong, 1)
            self.delimiter = named or found
        return text


def delimiter_of(header: str, known: Collection[str]) -> str:
    """The delimiter that makes the most known columns of a header or, if several do, the most columns.

    >>> delimiter_of("amount (EUR, net);country", {"country"}), delimiter_of("id\\tamount", {"amount"})
    (';', '\\t')
    >>> delimiter_of("amount", {"amount"})
    ','
    """

    def columns(delimiter: str) -> tuple[int, int]:
        names = next(csv.reader([header], delimiter=delimiter), [])
        return len({*known} & {*names}), len(names)

    return max(DELIMITERS, key=columns)


def _is_open(error: csv.Error) -> bool:
    """Whether the text ended inside a quoted cell."""
    return "unexpected end" in str(error)
