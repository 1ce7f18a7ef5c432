"""The names and types of the columns of a file, and nothing else of what is in it.

Parquet and Arrow files declare types. CSV and JSON lines do not: there the type is a guess, from what most cells of the
first rows look like, and it is coarse on purpose. Whether numbers are whole, how large they are, whether values are
missing or which texts there are is data, and does not show: nine cells in ten decide, so one record does not.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import InputError
from ..schema import Integer, Schema
from ..stream.columns import Columns
from .batch import EVERY_RECORD
from .envelopes import recognise, row_in
from .native_events import NATIVE
from .options import Options
from .readers.arrow import is_table, open_table
from .readers.csv import CsvFile
from .readers.json_lines import JsonLines
from .refusals import Refusals
from .roles import OPERATION_COLUMNS, WEIGHT_COLUMNS
from .source import open_source

Kind = Literal["number", "integer", "boolean", "date", "time", "text", "vector", "other"]
SHARE = 0.9
_EMPTY = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "-"}
_CELLS: dict[Kind, re.Pattern[str]] = {
    "number": re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII),
    "time": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*", re.ASCII),
    "date": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "boolean": re.compile(r"true|false", re.I),
}
_ARROW: dict[Kind, re.Pattern[str]] = {
    "integer": re.compile(r"u?int\d+"),
    "number": re.compile(r"(half)?float|double|decimal.*"),
    "boolean": re.compile(r"bool"),
    "date": re.compile(r"date.*"),
    "time": re.compile(r"timestamp.*"),
    "text": re.compile(r"(large_)?(string|utf8)(_view)?"),
    "vector": re.compile(r"fixed_size_list<\w+: (float|double)[^>]*>\[(\d+)\]"),
}
_WORDS = re.compile(r"dictionary<values=(\w+)")


@dataclass(frozen=True)
class FileHeader:
    """What a file says about its columns."""

    columns: dict[str, Kind]
    declared: bool
    """Whether the types are declared, and not a guess."""
    events: bool = False
    """Whether the file has native events, whose keys say what is id and subject."""


def header_of(path: str) -> FileHeader:
    """Read the header, and the first rows where types are a guess.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("order,amount,day\\no-1,12.5,2026-01-01\\n")
    ...     file.flush()
    ...     header_of(file.name).columns
    {'order': 'text', 'amount': 'number', 'day': 'date'}
    """
    if is_table(path):
        table = open_table(path)
        return FileHeader({name: _declared(type) for name, type in zip(table.names, table.types, strict=True)}, True)
    options = Options(Columns(ignore=True), refusals=Refusals())
    schema = Schema({EVERY_RECORD: Integer(0, 0)})
    with open_source(os.fspath(path)) as source:
        if source.format == "CSV":
            names, columns = CsvFile(source, schema, options).look()
            found = FileHeader(dict(zip(names, map(_guessed, columns), strict=True)), False)
        else:
            found = _of_rows(JsonLines(source, schema, options).look())
    if not found.columns:
        raise InputError("expected a file with columns, got none", source=source.name)
    return found


def _declared(type: str) -> Kind:
    """
    >>> _declared("int64"), _declared("dictionary<values=string, indices=int8>"), _declared("list<item: int8>")
    ('integer', 'text', 'other')
    """
    words = _WORDS.match(type)
    name = type if words is None else words[1]
    return next((kind for kind, pattern in _ARROW.items() if pattern.fullmatch(name)), "other")


def _guessed(cells: Iterable[Any]) -> Kind:
    """
    >>> _guessed(["1", "2.5", "NA"]), _guessed(["2026-01-01"]), _guessed([True, None]), _guessed(["x", "1"])
    ('number', 'date', 'boolean', 'text')
    """
    found = Counter(_kind_of(cell) for cell in cells if cell is not None and cell not in _EMPTY)
    kind, count = found.most_common(1)[0] if found else ("text", 0)
    return kind if count >= SHARE * found.total() else "text"


def _kind_of(cell: Any) -> Kind:
    if isinstance(cell, str):
        return next((kind for kind, pattern in _CELLS.items() if pattern.fullmatch(cell)), "text")
    if isinstance(cell, bool):
        return "boolean"
    return "number" if isinstance(cell, int | float) else "other"


def _of_rows(values: Iterable[Any]) -> FileHeader:
    """From decoded lines: the keys of the first record, with the types of its values in all of them."""
    marks = {"op", "payload", "insert", "update", "delete", *OPERATION_COLUMNS, *WEIGHT_COLUMNS}
    first, rows = None, []
    for value in values:
        label = recognise(value, (), {*value} - marks) if isinstance(value, dict) else recognise(value, (), set())
        first = first or label
        if label is not None and label == first:
            rows.append(row_in(label, value))
    cells = {name: [row.get(name) for row in rows] for name in (rows[0] if rows else ())}
    return FileHeader({name: _guessed(map(_plain, column)) for name, column in cells.items()}, False, first == NATIVE)


def _plain(value: Any) -> Any:
    """Lists and objects cannot be looked up."""
    return ... if isinstance(value, list | dict) else value
