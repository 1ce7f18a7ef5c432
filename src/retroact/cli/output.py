"""Releases as lines: JSON, one release per line; or CSV and Parquet, one number per line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from retroact.checks import is_number
from retroact.cli.files import OutputFile
from retroact.cli.options import option
from retroact.errors import InputError

if TYPE_CHECKING:
    from retroact.stream import Round

CSV_HEADER = ("round", "statistic", "group", "value", "standard_error", "low95", "high95")
GROUP = 65536
"""The number of rows that are written to a Parquet file at a time."""


class Writer:
    """Writes rounds as they close."""

    def __init__(self, file: OutputFile) -> None:
        self._file = file

    def write(self, round: Round) -> None:
        for release in round.values():
            self.write_line(release.to_dict())

    def write_line(self, line: Mapping[str, Any]) -> None:
        """One release, as `Release.to_dict` has it."""
        self._file.write(msgspec.json.encode(line) + b"\n")

    def flush(self) -> None:
        self._file.flush()

    def finish(self) -> None:
        self.flush()


class CsvWriter(Writer):
    def __init__(self, file: OutputFile) -> None:
        super().__init__(file)
        file.write(_csv_lines([CSV_HEADER]))

    def write_line(self, line: Mapping[str, Any]) -> None:
        self._file.write(_csv_lines(flat_rows(line)))


class ParquetWriter(Writer):
    """A value that is not a number goes into the column `text`."""

    def __init__(self, file: OutputFile) -> None:
        super().__init__(file)
        try:
            import pyarrow  # type: ignore[import-untyped]
            import pyarrow.parquet  # type: ignore[import-untyped]
        except ImportError:
            raise InputError("Parquet files need pyarrow: pip install 'retroact[parquet]'", place="--format") from None
        number, text = pyarrow.float64(), pyarrow.string()
        kinds = [pyarrow.int64(), text, text, number, number, number, number, text]
        self._schema = pyarrow.schema(list(zip((*CSV_HEADER, "text"), kinds, strict=True)))
        self._arrow = pyarrow
        self._out = pyarrow.parquet.ParquetWriter(file, self._schema)
        self._rows: list[tuple[Any, ...]] = []

    def write_line(self, line: Mapping[str, Any]) -> None:
        for row in flat_rows(line):
            value, *errors = (float(part) if is_number(part) else None for part in row[3:])
            words = None if row[3] is None or value is not None else str(row[3])
            self._rows.append((*row[:3], value, *errors, words))
        if len(self._rows) >= GROUP:
            self._write_group()

    def finish(self) -> None:
        self._write_group()
        self._out.close()
        self.flush()

    def _write_group(self) -> None:
        columns = zip(*self._rows, strict=True) if self._rows else [[] for _ in self._schema]
        arrays = [self._arrow.array(list(rows), kind.type) for rows, kind in zip(columns, self._schema, strict=True)]
        self._out.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []


class OutputFormat(StrEnum):
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


WRITERS = {OutputFormat.jsonl: Writer, OutputFormat.csv: CsvWriter, OutputFormat.parquet: ParquetWriter}


@dataclass(frozen=True)
class OutputOptions:
    """Where releases are written, and how."""

    out: Path | None = option("Where releases go; appears complete or not at all. Default: stdout.", "FILE")
    format: OutputFormat | None = option("Default: by the suffix of --out, or else jsonl.")

    @contextmanager
    def opened(self, *, before: Iterable[Mapping[str, Any]] | None = None) -> Iterator[Writer]:
        """``before``: releases of earlier runs. A file of lines then starts with them, appears at once, and grows."""
        suffix = "" if self.out is None else self.out.suffix.lower().removeprefix(".")
        found = OutputFormat(suffix) if suffix in OutputFormat.__members__ else OutputFormat.jsonl
        format = self.format or found
        with OutputFile(self.out, None if self.out is None else "--out") as file:
            writer = WRITERS[format](file)
            grows = before is not None and not file.direct and format is not OutputFormat.parquet
            if not file.direct:
                for line in before or ():
                    writer.write_line(line)
            if grows:
                writer.flush()
                file.put()
            yield writer
            writer.finish()
            if grows:
                file.sync()
            else:
                file.put()


def flat_rows(line: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """A row for each group of a grouped statistic, and for each coordinate of a vector."""
    numbers = _flat("", line["value"], line["standard_error"], line["interval95"])
    return [(line["round"], line["statistic"], *row) for row in numbers]


def _flat(group: str, value: Any, error: Any, interval: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, Mapping | list):
        for key in value if isinstance(value, Mapping) else range(len(value)):
            inner = f"{group}/{key}" if group else str(key)
            yield from _flat(inner, value[key], _part(error, key), _part(interval, key))
    else:
        low, high = interval if isinstance(interval, list) and len(interval) == 2 else (None, None)
        yield group, value, error, low, high


def _part(whole: Any, index: Any) -> Any:
    if isinstance(whole, Mapping):
        return whole.get(index)
    return whole[index] if isinstance(whole, list) and isinstance(index, int) and index < len(whole) else None


def _csv_lines(rows: Any) -> bytes:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
