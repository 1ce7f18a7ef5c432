"""CSV files: a header row, a column for every field, and columns for op, id, subject, stamp, round if there are any."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from io import StringIO
from typing import Any

import msgspec

from retroact.errors import InputError
from retroact.feeds.events import EVERY_RECORD, OPS, ROLES, Block, ColumnReader, Event, Op, Records, Roles, located
from retroact.feeds.files import Source, not_utf8
from retroact.schema import Boolean, Field, Integer, Number, Schema, Vector
from retroact.schema.messages import mismatch, show

ROWS = 4096
# A decimal of so many characters is the shortest text of its float, so nothing is lost on the way.
_FLOAT_DIGITS = 15
_DECIMAL = frozenset("0123456789.-")


class CsvFile:
    """Columns that no statistic needs are refused when the records are strict, and ignored otherwise."""

    plain = True

    def __init__(self, source: Source, schema: Schema, records: Records, *, roles: Roles) -> None:
        self.source = source
        self.records = records
        self.roles = roles
        self.ignored: tuple[str, ...] = ()
        self._schema = schema
        self._named = roles

    def __iter__(self) -> Iterator[Block]:
        rows = csv.reader(self._lines(), strict=True)
        block, line = Block(), 1
        parse: Callable[[list[str]], Event] | None = None
        try:
            for row in rows:
                if row and parse is None:
                    parse = self._header(row)
                elif row and parse is not None:
                    block.events.append(parse(row))
                    block.lines.append(line)
                    if len(block.events) == ROWS:
                        yield block
                        block = Block()
                line = rows.line_num + 1
        except _NotTextError:
            yield block
            raise
        except (csv.Error, InputError) as error:
            yield block
            wrong = error if isinstance(error, InputError) else InputError(f"expected CSV, got {error}")
            raise located(wrong, self.source.at(line)) from None
        if block.events:
            yield block

    def _lines(self) -> Iterator[str]:
        first = 1
        for content in self.source.blocks():
            try:
                text = content.decode()
            except UnicodeDecodeError as error:
                good = content.rfind(b"\n", 0, error.start) + 1
                yield from StringIO(content[:good].decode(), newline="")
                line = first + content.count(b"\n", 0, error.start)
                wrong = not_utf8(error)
                raise _NotTextError(
                    f"{self.source.at(line)}: {wrong.message}", place=f"column {error.start - good + 1}"
                ) from None
            yield from StringIO(text, newline="")
            first += content.count(b"\n")

    def _header(self, header: list[str]) -> Callable[[list[str]], Event]:
        for position, column in enumerate(header):
            if column in header[:position]:
                raise InputError(f"expected different columns, got {show(column)} twice")
        for role, column in self._named.items():
            if column not in header:
                raise InputError(f"expected a column {show(column)} for the {role}, got {', '.join(header)}")
        known = self._named.known(self._schema.fields).items()
        self.roles = Roles(**{role: column for role, column in known if column in header})
        fields = self.records.columns_read
        roles = [column for _, column in self.roles.items()]
        self.ignored = tuple(name for name in header if name not in (*fields, *roles) and not self._is_op(name))
        missing = [f"no {show(name)}" for name in fields if name not in header]
        unknown = [f"an unknown column {show(name)}" for name in self.ignored] if self.records.strict else []
        if missing or unknown:
            raise InputError(f"expected the columns {', '.join(fields)}, got {' and '.join(missing + unknown)}")
        return self._parser(header)

    def _is_op(self, column: str) -> bool:
        return column == "op" and "op" not in self._schema.fields

    def _parser(self, header: list[str]) -> Callable[[list[str]], Event]:
        width = len(header)
        places = [header.index(name) for name in self.records.columns_read]
        names = {role: header.index(column) for role, column in self.roles.items()}
        op_at = next((position for position, column in enumerate(header) if self._is_op(column)), None)
        id_at, subject_at, stamp_at, round_at = (names.get(role) for role in ROLES)
        make = self.records.row

        def parse(row: list[str]) -> Event:
            if len(row) != width:
                raise InputError(f"expected {width} cells, as in the header, got {len(row)}")
            op: Op = "add" if op_at is None else _op(row[op_at])
            cells = [row[place] for place in places]
            return Event(
                op,
                make(*cells) if op == "add" or any(cells) else None,
                None if id_at is None else row[id_at] or None,
                None if subject_at is None else row[subject_at] or None,
                None if stamp_at is None else _whole(row[stamp_at], header[stamp_at]),
                None if round_at is None else _whole(row[round_at], header[round_at]),
            )

        return parse


class _NotTextError(InputError):
    """Already names its line, which may lie behind the row at hand."""


def _op(cell: str) -> Op:
    if cell not in OPS:
        raise mismatch(f"one of {', '.join(OPS)}", cell, "op")
    return cell


@lru_cache(maxsize=1024)
def _whole(cell: str, place: str) -> int | None:
    if not cell:
        return None
    if not (cell.isascii() and cell.isdigit() and len(cell) < 20):
        raise mismatch("a whole number", cell, place)
    return int(cell)


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
