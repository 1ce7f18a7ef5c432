"""CSV files: a header row, a column for every field, and columns for op, id, subject, stamp, round if there are any."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from io import StringIO
from typing import Any

import msgspec

from retroact.errors import InputError
from retroact.feeds.envelopes import PROGRESS
from retroact.feeds.events import EVERY_RECORD, ROLES, Block, ColumnReader, Event, Moment, Records, Roles
from retroact.feeds.files import LONGEST_LINE, Source, not_utf8
from retroact.feeds.operations import (
    WEIGHT_COLUMNS,
    Kind,
    copied,
    deletion,
    kind_of,
    update,
    weigh,
)
from retroact.feeds.options import Options
from retroact.feeds.paths import position_of
from retroact.feeds.roles import heading
from retroact.messages import mismatch, show
from retroact.schema import Boolean, Field, Integer, Number, Schema, Vector

Parse = Callable[[list[str]], Event | list[Event]]
ROWS = 4096
# A decimal of so many characters is the shortest text of its float, so nothing is lost on the way.
_FLOAT_DIGITS = 15
_DECIMAL = frozenset("0123456789.-")


class CsvFile:
    """Columns that are neither fields nor roles are refused, unless they are to be ignored."""

    named = True

    def __init__(self, source: Source, schema: Schema, options: Options) -> None:
        self.source = source
        self.schema = schema
        self.options = options
        self.records = Records(list(schema.fields), strict=False, readers=cell_readers(schema))
        self.roles = Roles()
        self.ignored: tuple[str, ...] = ()
        self.skipped: Counter[str] = Counter()
        self.label: str | None = None
        """What says which rows are added and which deleted, once the header was read."""
        self.begin_after = 0
        """The rows that begin on lines up to this one were read before."""
        self._line = 1
        self._time_at: int | None = None
        self._position_at: int | None = None
        self._beside = False
        self._open_quote = False
        self._adds: Callable[[list[str]], bool] | None = None
        """Whether a row that begins with these cells can only be an addition; None before the header."""

    def __iter__(self) -> Iterator[Block]:
        self.skipped.clear()
        block = Block()
        parse: Parse | None = None
        try:
            for line, row in self._rows():
                if row is None:
                    yield block
                    block = Block()
                elif parse is None:
                    parse = self._header(row)
                elif line > self.begin_after:
                    event = parse(row)
                    if self._beside or isinstance(event, list):
                        self._several(block, line, row, event if isinstance(event, list) else [event])
                    else:
                        block.events.append(event)
                        block.lines.append(line)
                    if len(block.events) >= ROWS:
                        yield block
                        block = Block()
        except (csv.Error, InputError) as error:
            # what comes before the error is good, and may have ended rounds
            yield block
            raise self._located(error) from None
        if block.events:
            yield block

    def unfinished(self) -> tuple[int, bool] | None:
        """The number of the line that begins a last row which nothing ends, and whether it can only become an
        addition."""
        rest = self.source.rest.decode(errors="replace")
        if self._open_quote:
            return self._line, self._adds is not None and self._adds([])
        if not rest.strip():
            return None
        # what stands before the last comma, and is not quoted, cannot change any more
        cells = rest.split(",")[:-1] if '"' not in rest else []
        return self._line, self._adds is not None and self._adds(cells)

    def times(self) -> Iterator[tuple[list[int], list[Any]]]:
        """The lines that have a time, many at once, with their times."""
        place: int | None = None
        lines: list[int] = []
        times: list[Any] = []
        try:
            for line, row in self._rows():
                if row is not None and place is None:
                    self._header(row)
                    place = row.index(self.options.time or "")
                elif row is not None and place is not None and place < len(row) and row[place]:
                    lines.append(line)
                    times.append(_moment(row[place]))
                    if len(lines) == ROWS:
                        yield lines, times
                        lines, times = [], []
        except (csv.Error, InputError) as error:
            raise self._located(error) from None
        yield lines, times

    def _located(self, error: Exception) -> InputError:
        if isinstance(error, InputError) and error.source is not None:
            # names its line already, which may lie behind the row at hand
            return error
        wrong = error if isinstance(error, InputError) else InputError(f"expected CSV, got {error}")
        return self.source.refused(wrong, self._line)

    def _rows(self) -> Iterator[tuple[int, list[str] | None]]:
        """Rows with the line that each begins on; None after all that a followed source has so far."""
        self._line, self._open_quote, self._adds = 1, False, None
        if self.source.follow:
            return self._followed()
        return self._parsed(line for text in self._texts() for line in StringIO(text, newline=""))

    def _followed(self) -> Iterator[tuple[int, list[str] | None]]:
        pending = ""
        for text in self._texts():
            pending += text
            start = self._line
            try:
                rows = list(self._parsed(StringIO(pending, newline="")))
            except csv.Error as error:
                if not _is_open(error) or len(pending) > LONGEST_LINE:
                    raise
                # inside a cell of several lines, whose end is to come
                self._line = start
            else:
                end = self._line
                for self._line, row in rows:
                    yield self._line, row
                self._line, pending = end, ""
            yield self._line, None
        self._open_quote = bool(pending)
        if pending and not self.source.holds and not self.source.stop.is_set():
            raise csv.Error("unexpected end of data")

    def _parsed(self, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        start = self._line
        rows = csv.reader(lines, strict=True)
        try:
            for row in rows:
                if row:
                    yield self._line, row
                self._line = start + rows.line_num
        except csv.Error as error:
            if not self.source.holds or self.source.follow or not _is_open(error):
                raise
            self._open_quote = True

    def _texts(self) -> Iterator[str]:
        first = 1
        for content in self.source.blocks():
            try:
                yield content.decode()
            except UnicodeDecodeError as error:
                good = content.rfind(b"\n", 0, error.start) + 1
                yield content[:good].decode()
                line = first + content.count(b"\n", 0, error.start)
                wrong = not_utf8(error, f"column {error.start - good + 1}")
                raise self.source.refused(wrong, line) from None
            first += content.count(b"\n")

    def _header(self, header: list[str]) -> Parse:
        for position, column in enumerate(header):
            if column in header[:position]:
                raise InputError(f"expected different columns, got {show(column)} twice")
        options = self.options
        found = heading(
            header, self.schema, options.columns, by_number=options.by_number, timed=options.time is not None
        )
        self.roles, self.ignored, mark = found.roles, found.ignored, found.operation
        self.label = (
            None if mark is None else f"{'weights' if mark in WEIGHT_COLUMNS else 'operations'} in {show(mark)}"
        )
        self._time_at = None if options.time is None or found.time is None else header.index(found.time)
        self._position_at = None if found.position is None else header.index(found.position)
        return self._parser(header, mark)

    def _several(self, block: Block, line: int, row: list[str], events: list[Event]) -> None:
        """The events of one row, with its time and position."""
        if self._position_at is not None and events:
            cell = row[self._position_at]
            # a round may end without a position
            known = bool(cell) or events[0].op != "close"
            block.positions += [position_of(cell, self.options.position or "") if known else None] * len(events)
        if self._time_at is not None:
            block.times += [_moment(row[self._time_at])] * len(events)
        block.events += events
        block.lines += [line] * len(events)

    def _parser(self, header: list[str], mark: str | None) -> Parse:
        width = len(header)
        places = [header.index(name) for name in self.records.columns_read]
        names = {role: header.index(column) for role, column in self.roles.items()}
        id_at, subject_at, stamp_at, round_at = (names.get(role) for role in ROLES)
        make = self.records.row
        # where every field may be missing, empty cells are a record too
        bare = bool(places) and {*self.records.columns_read} <= {*self.schema.optional}
        self._beside = self._time_at is not None or self._position_at is not None

        def parse(row: list[str], kind: Kind = "add") -> Event:
            if len(row) != width:
                raise InputError(f"expected {width} cells, as in the header, got {len(row)}")
            cells = [row[place] for place in places]
            by_value = bare and kind == "delete" and (id_at is None or not row[id_at])
            return Event(
                "add" if kind == "update" else kind,
                make(*cells) if kind == "add" or kind == "update" or any(cells) or by_value else None,
                None if id_at is None else row[id_at] or None,
                None if subject_at is None else row[subject_at] or None,
                None if stamp_at is None else _whole(row[stamp_at], header[stamp_at]),
                None if round_at is None else _whole(row[round_at], header[round_at]),
            )

        at = None if mark is None else header.index(mark)
        self._adds = lambda cells: (
            at is None or (at < len(cells) and _is_addition(cells[at], mark not in WEIGHT_COLUMNS))
        )
        if mark is None:
            return parse
        if mark not in WEIGHT_COLUMNS:
            return self._worded(parse, header.index(mark), mark)
        return self._weighted(parse, header.index(mark), mark, header.index(PROGRESS) if PROGRESS in header else None)

    def _worded(self, parse: Callable[[list[str], Kind], Event], at: int, mark: str) -> Parse:
        def parse_worded(row: list[str]) -> Event:
            kind = kind_of(row[at], mark) if at < len(row) else "add"
            event = parse(row, kind)
            if kind == "delete":
                return self._removed(event, row)
            return update(event) if kind == "update" else event

        return parse_worded

    def _weighted(self, parse: Callable[[list[str], Kind], Event], at: int, mark: str, progress: int | None) -> Parse:
        def parse_weighted(row: list[str]) -> Event | list[Event]:
            event = parse(row, "add")
            if progress is not None and row[progress] in ("t", "true", "True", "1"):
                if self.options.close_by == "progress":
                    return Event("close")
                self.skipped["progress messages"] += 1
                return []
            weight = weigh(_number(row[at]), mark, self.options.contribution)
            if weight == 0:
                self.skipped["weights of 0"] += 1
                return []
            return copied(event if weight > 0 else self._removed(event, row), weight, mark)

        return parse_weighted

    def _removed(self, event: Event, row: list[str]) -> Event:
        stamp: Any = event.stamp
        if stamp is None and self._time_at is not None:
            stamp = Moment(_moment(row[self._time_at]))
        found = deletion(event.record, event.id, event.subject, stamp)
        found.round = event.round
        return found


def _is_open(error: csv.Error) -> bool:
    """Whether the end came inside a quoted cell."""
    return "unexpected end" in str(error)


@lru_cache(maxsize=1024)
def _whole(cell: str, place: str) -> int | None:
    if not cell:
        return None
    if not (cell.isascii() and cell.isdigit() and len(cell) < 20):
        raise mismatch("a whole number", cell, place)
    return int(cell)


def _is_addition(cell: str, worded: bool) -> bool:
    """What the cell that says what to do with a row says."""
    if not worded:
        weight = _number(cell)
        return isinstance(weight, int) and weight > 0
    try:
        return kind_of(cell, "") == "add"
    except InputError:
        return False


def _number(cell: str) -> int | str:
    """A whole number as one; anything else as it is.

    >>> _number("-3"), _number("+1"), _number("1.5")
    (-3, 1, '1.5')
    """
    digits = cell[1:] if cell[:1] in ("-", "+") else cell
    return int(cell) if digits.isascii() and digits.isdigit() and len(digits) < 30 else cell


def _moment(cell: str) -> int | str | None:
    """A time as a grid takes it: seconds, a text, or none."""
    return _number(cell) if cell else None


def cell_readers(schema: Schema) -> dict[str, ColumnReader]:
    """For each field, from cells to values. A cell that is no value stays as it is, for the field to refuse."""
    return {name: _column_reader(field) for name, field in schema.fields.items() if name != EVERY_RECORD}


def _column_reader(field: Field) -> ColumnReader:
    # an empty cell is a missing value, unless it is a value of the field itself
    empty = "" if field.missing != "skip" and _accepts(field, "") else None
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


def _accepts(field: Field, value: object) -> bool:
    try:
        field.encode(value, "")
    except InputError:
        return False
    return True


def _numbers(cells: list[str], kind: type[float] | type[int], empty: str | None) -> list[Any]:
    """As numbers where that is exact for all of them, which are quicker to encode; as text otherwise.

    >>> _numbers(["12.50", "3"], float, None), _numbers(["1.5", "nan"], float, None)
    ([12.5, 3.0], ['1.5', 'nan'])
    """
    if max(map(len, cells)) <= _FLOAT_DIGITS and _DECIMAL.issuperset("".join(cells)):
        with suppress(ValueError):
            return list(map(kind, cells))
    return [cell or empty for cell in cells]


def _json(cell: str) -> Any:
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, RecursionError):
        return cell
