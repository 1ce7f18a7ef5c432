"""CSV files: a header, a column for every field, and perhaps columns for op, id, subject, stamp and round."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from io import StringIO
from itertools import chain, islice
from typing import Any

import numpy as np

from ...errors import InputError, Unit
from ...messages import show
from ...schema import Schema
from ..batch import Batch, Changes, ColumnValues
from ..options import Options
from ..roles import PROGRESS
from ..row_reader import RowReader
from ..source import LONGEST_LINE, Source
from .csv_blocks import PlainRows
from .csv_cells import cell_readers, encoded, only_adds, role_readers
from .csv_text import delimiter_of, is_open, valid_blocks

ROWS = 4096
Quick = Callable[[Batch], Any]
"""What a quick way makes of plain rows; None if it leaves them to the other."""

OPEN_QUOTE = InputError(
    "expected a closing quote for a cell that begins in this row, got the end of the file",
    hint='a cell with a quote in it is written with two: "6"" pipe"; other programs write CSV so',
)


class CsvFile(RowReader):
    """Columns that are neither fields nor roles are refused, unless they are to be ignored."""

    unit: Unit = "line"

    def __init__(self, source: Source, schema: Schema, options: Options) -> None:
        missing = frozenset(options.columns.na_values)
        self._cell_readers = cell_readers(schema, missing)
        super().__init__(source.name, schema, options, self._cell_readers)
        self.source = source
        self.role_readers = role_readers(missing)
        self.delimiter: str | None = None
        """What separates cells; known once the header was seen."""
        self._known = {*schema.fields, *(own.column for _, own in options.columns.items())}
        self._names: list[str] = []
        self._needed: Collection[str] = ()
        self._line = 1
        """The one that the next row begins on."""
        self._open_quote = False
        self._quick: Quick | None = None
        self._taken: list[Any] | None = None
        """What came of a block that was taken the quick way."""

    def __iter__(self) -> Iterator[Changes]:
        for found in self._found(self._encoded):
            yield from self.read(found) if isinstance(found, Batch) else [found]

    def _found(self, quick: Quick) -> Iterator[Any]:
        """Batches of rows, and what ``quick`` makes of plain ones; no changes at the present end of a followed
        source."""
        self.heading, self._quick = None, quick
        try:
            for found in self._rows():
                if isinstance(found, Batch):
                    left = int(np.searchsorted(found.numbers, self.begin_after, side="right"))
                    found = found.take(slice(left, None)) if left else found
                if not isinstance(found, Batch) or len(found):
                    yield found
        except csv.Error as error:
            raise self._refused(error, self._line) from None

    def _refused(self, error: csv.Error | InputError, line: int) -> InputError:
        if isinstance(error, csv.Error):
            error = OPEN_QUOTE if is_open(error) else InputError(f"expected CSV, got {error}")
        return self.source.refused(error, line)

    def _batch(self, lines: list[int], cells: list[str]) -> Batch:
        columns: dict[str, ColumnValues] = {}
        for place, name in enumerate(self._names):
            if name in self._needed:
                values = np.empty(len(lines), object)
                values[:] = cells[place :: len(self._names)]
                columns[name] = ColumnValues(values)
        return Batch(np.array(lines, np.int64), columns)

    def _plain(self, content: bytes) -> list[Any] | None:
        """What the quick way makes of a block; None if its rows are to be read one by one."""
        known = self.heading is not None and self._quick is not None and content
        rows = PlainRows.of(content, self.delimiter or ",", len(self._names)) if known else None
        if rows is None or self._quick is None:
            return None
        batch = rows.batch(self._names, self._needed, self._line, self.begin_after)
        found = [self._quick(batch)] if len(batch) else []
        if None in found:
            return None
        self._line += rows.line_count
        return found

    def _encoded(self, batch: Batch) -> Changes | None:
        """The changes of a batch, with their fields encoded; None if anything is refused."""
        skipped = self.skipped.copy()
        try:
            return encoded(self._changes(batch), self._cell_readers)
        except InputError:
            self.skipped = skipped
            return None

    def look(self) -> tuple[list[str], list[list[str]]]:
        """The names of the columns, and the cells of the first rows, column by column."""
        try:
            first: Batch | None = next(self._rows(), None)
        except csv.Error as error:
            raise self._refused(error, self._line) from None
        return self._names, [[] if first is None else first.columns[name].listed() for name in self._names]

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
        return self.heading is not None and only_adds(self.heading, dict(zip(self._names, cells, strict=False)))

    def times(self) -> Iterator[tuple[Any, Any]]:
        """The lines that have a time, and their times, batch by batch."""
        time = self.options.time or ""
        for batch in self._found(lambda batch: batch):
            if isinstance(batch, Batch):
                cells = self.role_readers["time"](batch.columns[time], time)
                there = cells.there()
                if there.any():
                    yield batch.numbers[there], cells.take(there).listed()

    def _rows(self) -> Iterator[Any]:
        """Batches of rows, which may be empty, or what the quick way makes of a block; no changes at the present end
        of a followed source."""
        self._line, self._open_quote = 1, False
        contents = self._contents()
        if self.source.follow:
            yield from self._followed(contents)
            return
        self._taken = []
        while self._taken is not None:
            yield from self._taken
            self._taken = None
            yield from self._parsed(self._lines(contents))

    def _lines(self, contents: Iterator[bytes]) -> Iterator[str]:
        """Lines for the reader, up to a block that is taken the quick way."""
        given = self._line
        for content in contents:
            # inside a quoted cell, the reader was given lines beyond the one that its row begins on
            self._taken = self._plain(content) if given == self._line else None
            if self._taken is not None:
                return
            for line in StringIO(content.decode(), newline=""):
                given += 1
                yield line

    def _followed(self, contents: Iterator[bytes]) -> Iterator[Any]:
        pending = ""
        for content in contents:
            taken = None if pending else self._plain(content)
            if taken is not None:
                yield from taken
                yield Changes.nothing()
                continue
            text = content.decode()
            pending += text
            start, known = self._line, self.heading
            found, wrong = [], None
            try:
                for part in self._parsed(StringIO(pending, newline="")):
                    found.append(part)
            except InputError as error:
                wrong = error
            except csv.Error as error:
                if not is_open(error) or len(pending) > LONGEST_LINE:
                    raise
                # inside a quoted cell, whose end is still to come
                self._line, self.heading = start, known
                found, text = [], ""
            if text:
                pending = ""
            yield from found
            if wrong is not None:
                raise wrong
            yield Changes.nothing()
        self._open_quote = bool(pending)
        if pending and not self.source.holds and not self.source.stop.is_set():
            raise csv.Error("unexpected end of data")

    def _parsed(self, texts: Iterable[str]) -> Iterator[Batch]:
        # one list of cells: a list for each row would burden the garbage collector
        lines: list[int] = []
        cells: list[str] = []
        start = self._line
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
                        lines.append(self._line)
                        cells += row
                    elif row and width < 0:
                        needed = self.begin(row, self._line).needed
                        self._names, width = row, len(row)
                        self._needed = row if self._quick is None else {*needed, PROGRESS}
                    elif row:
                        odd = InputError(f"expected {width} cells, as in the header, got {len(row)}")
                        raise self.source.refused(odd, self._line)
                    self._line = start + reader.line_num
                    if len(lines) >= ROWS:
                        yield self._batch(lines, cells)
                        lines, cells = [], []
            except (csv.Error, InputError) as error:
                if refusals is not None and width >= 0:
                    refusals.add(self._refused(error, self._line))
                    self._line = start + reader.line_num
                    continue
                wrong = error
            break
        if lines:
            # rows before the error are good, and may end rounds
            yield self._batch(lines, cells)
        if isinstance(wrong, csv.Error) and self.source.holds and not self.source.follow and is_open(wrong):
            self._open_quote = True
        elif wrong is not None:
            raise wrong

    def _contents(self) -> Iterator[bytes]:
        """Blocks of whole lines; the header comes alone, since it says what the others are."""
        for content in valid_blocks(self.source, self.options.refusals):
            rest = content.lstrip(b"\r\n")
            if rest and self.delimiter is None:
                self.delimiter = self._delimiter(re.split(rb"[\r\n]", rest, maxsplit=1)[0].decode())
            if rest and self.heading is None and not self.source.follow:
                cut = content.find(b"\n", len(content) - len(rest)) + 1
                yield content[:cut]
                content = content[cut:]
            yield content

    def _delimiter(self, header: str) -> str:
        """What separates cells: from the options, or from the header."""
        named, found = self.options.delimiter, delimiter_of(header, self._known)
        if named and named not in header and found in header and header not in self._known:
            expected, hint = f"cells separated by {show(named)}", f"the header looks separated by {show(found)}"
            wrong = InputError(expected=expected, found=show(header), place="--delimiter", hint=hint)
            raise self.source.refused(wrong, 1)
        return named or found
