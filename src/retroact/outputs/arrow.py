"""Tables over the Arrow C stream interface, by nanoarrow: pyarrow, polars, DuckDB and others read it without a copy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..statistics.answer_rows import Kind
from .table import Column, Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_DAY = date(1970, 1, 1).toordinal()


def c_stream(table: Table, requested_schema: Any = None) -> Any:
    """The capsule of an ArrowArrayStream with one batch."""
    import nanoarrow  # type: ignore[import-untyped]

    types = [_type(nanoarrow, column) for column in table.columns]
    schema = nanoarrow.struct(dict(zip(table.names, types, strict=True)))
    children = [
        nanoarrow.c_array_from_buffers(kind, len(table), buffers(column.kind, cells))
        for kind, column, cells in zip(types, table.columns, table.cells, strict=True)
    ]
    batch = nanoarrow.c_array_from_buffers(schema, len(table), [None], children=children)
    return nanoarrow.Array(batch).__arrow_c_stream__(requested_schema)


def _type(nanoarrow: Any, column: Column) -> Any:
    if column.kind == "time":
        return nanoarrow.timestamp("us", timezone=column.zone)
    names = {"text": "string", "integer": "int64", "number": "float64", "boolean": "bool_", "date": "date32"}
    return getattr(nanoarrow, names.get(column.kind, "binary"))()


def buffers(kind: Kind, cells: list[Any]) -> list[Any]:
    """Which cells are valid, as bits, and their contents.

    >>> valid, values = buffers("number", [1.5, None])
    >>> valid.tolist(), values.tolist()
    ([1], [1.5, 0.0])
    """
    known = np.array([cell is not None for cell in cells], dtype=np.bool_)
    valid = None if known.all() else np.packbits(known, bitorder="little")
    if kind in ("text", "bytes"):
        parts = [b"" if cell is None else cell.encode() if kind == "text" else cell for cell in cells]
        ends = np.cumsum([0, *map(len, parts)])
        if ends[-1] >= 1 << 31:
            raise OverflowError("expected less than 2 GB of text in a column of one table: take fewer rounds at once")
        return [valid, ends.astype(np.int32), b"".join(parts)]
    numbers = _numbers(kind, cells)
    return [valid, np.packbits(numbers, bitorder="little") if kind == "boolean" else numbers]


def _numbers(kind: Kind, cells: list[Any]) -> NDArray[Any]:
    write: Callable[[Any], Any] = {"date": _days, "time": microseconds}.get(kind, lambda cell: cell)
    types = {"date": np.int32, "number": np.float64, "boolean": np.bool_}
    return np.array([0 if cell is None else write(cell) for cell in cells], dtype=types.get(kind, np.int64))


def _days(day: date) -> int:
    return day.toordinal() - _FIRST_DAY


def microseconds(moment: date) -> int:
    """Since 1970 in UTC; a date is its midnight."""
    if not isinstance(moment, datetime):
        return _days(moment) * 86_400_000_000
    return (moment - _EPOCH) // _MICROSECOND
