"""Whatever is a table can become an Arrow table or a frame, and is read by DuckDB and polars as it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .arrow import microseconds
from .table import Column, Table

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]
    import polars
    import pyarrow  # type: ignore[import-untyped]


class Tabular(ABC):
    """Published, so it may be handed on in any form."""

    @abstractmethod
    def _table(self) -> Table:
        """One tidy table."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """A `pyarrow.Table`."""
        return needed("pyarrow", "retroact[parquet]").table(self._table())

    def to_polars(self) -> polars.DataFrame:
        """A `polars.DataFrame`."""
        frame: polars.DataFrame = needed("polars", "polars").DataFrame(self._table())
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """A `pandas.DataFrame`; whole numbers that may be missing are Int64, truth values boolean."""
        library, table = needed("pandas", "pandas"), self._table()
        columns = zip(table.columns, table.cells, strict=True)
        return library.DataFrame({column.name: _series(library, column, cells) for column, cells in columns})


def _series(pandas: Any, column: Column, cells: list[Any]) -> Any:
    if column.kind == "time":
        moments = [None if cell is None else microseconds(cell) for cell in cells]
        return pandas.Series(pandas.to_datetime(moments, unit="us", utc=True)).dt.tz_convert(column.zone)
    if column.kind == "date":
        return pandas.Series(pandas.to_datetime(cells, format="%Y-%m-%d")).astype("datetime64[us]")
    whole = "int64" if None not in cells else "Int64"
    kinds = {"text": "str", "integer": whole, "number": "float64", "boolean": "boolean"}
    return pandas.Series(cells, dtype=kinds.get(column.kind, "object"))


def needed(package: str, install: str) -> Any:
    """An optional package, or an error that says how to install it."""
    try:
        return import_module(package)
    except ImportError:
        raise InputError(f"this needs {package}: pip install '{install}'") from None
