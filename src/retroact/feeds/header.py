"""The names and types of the columns of a file, and nothing else of what is in it.

Parquet and Arrow files declare types. CSV and JSON lines do not: there the type is a guess, from what most cells of the
first rows look like, and it is coarse on purpose. Whether numbers are whole, how large they are, whether values are
missing or which texts there are is data, and does not show: nine cells in ten decide, so one record does not.

The names in the first line of CSV are taken for names unless they look like values: a file without a header would
otherwise give its first record away.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import InputError
from ..messages import show
from ..schema import Integer, Schema
from ..schema.hints import OTHER_NUMBERS, OTHER_TIMES
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
_ODD: dict[Kind, re.Pattern[str]] = {"number": OTHER_NUMBERS, "time": OTHER_TIMES}
"""Forms that a run refuses, since they can be read in more than one way."""
_ARROW: dict[Kind, re.Pattern[str]] = {
    "integer": re.compile(r"u?int\d+"),
    "number": re.compile(r"(half)?float|double|decimal.*"),
    "boolean": re.compile(r"bool"),
    "date": re.compile(r"date.*"),
    "time": re.compile(r"timestamp.*"),
    "text": re.compile(r"(large_)?(string|utf8)(_view)?"),
    "vector": re.compile(r"fixed_size_list<\w+: (float|double)[^>]*>\[(\d+)\]"),
}
_VALUE = re.compile(
    r"(?=\D*\d)[\W\d_]+"  # digits and signs: a number, a date, a time, a sum of money, a telephone number
    r"|\d{1,4}([-/.])\d{1,2}\1\d{1,4}(T|\b).*|\d{1,2}:\d\d.*|\d{1,2}\W(MONTHS)\w*\W\d+.*|(MONTHS)\w* \d{1,2}, ?\d{4}.*"
    r"|[^@\s]+@[^@\s]+|\w+://.*|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|true|false".replace(
        "MONTHS", "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
    ),
    re.I | re.DOTALL,
)
"""What is hardly the name of a column."""
NO_NAMES = (
    "a file without a header needs a line with the names of its columns above the first row. If these are names, such "
    "as years: --header"
)
_WORDS = re.compile(r"dictionary<values=(\w+)")


@dataclass(frozen=True)
class FileHeader:
    """What a file says about its columns."""

    columns: dict[str, Kind]
    declared: bool
    """Whether the types are declared, and not a guess."""
    events: bool = False
    """Whether the file has native events, whose keys say what is id and subject."""
    odd: frozenset[str] = frozenset()
    """Columns of numbers or times in a form that a run refuses."""


def header_of(path: str, *, named: bool = False) -> FileHeader:
    """Read the header, and the first rows where types are a guess. A first line of CSV that looks like data is refused,
    unless it is said to have the names (``named``).

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
            if not named:
                _require_names(names, columns, source.name)
            kinds = dict(zip(names, map(_guessed, columns), strict=True))
            found = FileHeader({name: kind for name, (kind, _) in kinds.items()}, False, odd=_odd_ones(kinds))
        else:
            found = _of_rows(JsonLines(source, schema, options).look())
    if not found.columns:
        raise InputError("expected a file with columns, got none", source=source.name)
    return found


def _require_names(names: Sequence[str], columns: Sequence[Sequence[str]], source: str) -> None:
    for place, (name, cells) in enumerate(zip(names, columns, strict=True)):
        what = show(name)
        if not name.strip():
            # programs leave the name of row numbers empty, and end lines with a delimiter
            odd = place > 0 and any(cells)
        elif name in cells:
            odd, what = True, f"{what}, which is a value of its column too"
        else:
            odd = name in _EMPTY or _VALUE.fullmatch(name.strip()) is not None
        if odd:
            raise InputError(
                expected="the names of the columns in the first line",
                found=what,
                source=source,
                row=1,
                unit="line",
                hint=NO_NAMES,
            )


def _declared(type: str) -> Kind:
    """
    >>> _declared("int64"), _declared("dictionary<values=string, indices=int8>"), _declared("list<item: int8>")
    ('integer', 'text', 'other')
    """
    words = _WORDS.match(type)
    name = type if words is None else words[1]
    return next((kind for kind, pattern in _ARROW.items() if pattern.fullmatch(name)), "other")


def _guessed(cells: Iterable[Any]) -> tuple[Kind, bool]:
    """What most cells are, and whether most of these are in a form that a run refuses.

    >>> _guessed(["1", "2.5", "NA"]), _guessed(["2026-01-01"]), _guessed([True, None]), _guessed(["x", "1"])
    (('number', False), ('date', False), ('boolean', False), ('text', False))
    >>> _guessed(["41,39", "7"]), _guessed(["31.12.2026 10:00", "3.1.2026"])
    (('number', True), ('time', True))
    """
    found = Counter(_kind_of(cell) for cell in cells if cell is not None and cell not in _EMPTY)
    kinds: Counter[Kind] = Counter()
    for (kind, _), count in found.items():
        kinds[kind] += count
    kind, count = kinds.most_common(1)[0] if kinds else ("text", 0)
    return (kind, found[kind, True] > 0.1 * count) if count >= SHARE * found.total() else ("text", False)


def _odd_ones(columns: Mapping[str, tuple[Kind, bool]]) -> frozenset[str]:
    return frozenset(name for name, (_, odd) in columns.items() if odd)


def _kind_of(cell: Any) -> tuple[Kind, bool]:
    if isinstance(cell, str):
        usual = next((kind for kind, pattern in _CELLS.items() if pattern.fullmatch(cell)), None)
        if usual is not None:
            return usual, False
        odd = next((kind for kind, pattern in _ODD.items() if pattern.fullmatch(cell)), None)
        return ("text", False) if odd is None else (odd, True)
    if isinstance(cell, bool):
        return "boolean", False
    return "number" if isinstance(cell, int | float) else "other", False


def _of_rows(values: Iterable[Any]) -> FileHeader:
    """The header of decoded lines: the keys of the first record, with the types of its values in all of them."""
    marks = {"op", "payload", "insert", "update", "delete", *OPERATION_COLUMNS, *WEIGHT_COLUMNS}
    first, rows = None, []
    for value in values:
        label = recognise(value, (), {*value} - marks) if isinstance(value, dict) else recognise(value, (), set())
        first = first or label
        if label is not None and label == first:
            rows.append(row_in(label, value))
    cells = {name: [row.get(name) for row in rows] for name in (rows[0] if rows else ())}
    kinds = {name: _guessed(map(_plain, column)) for name, column in cells.items()}
    return FileHeader({name: kind for name, (kind, _) in kinds.items()}, False, first == NATIVE, _odd_ones(kinds))


def _plain(value: Any) -> Any:
    """Lists and objects cannot be looked up."""
    return ... if isinstance(value, list | dict) else value
