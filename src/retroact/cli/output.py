"""Releases as lines: JSON, one release a line, or CSV and Parquet, one number a line."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import msgspec
import typer

from retroact.checks import is_number
from retroact.cli.files import NamedFile, opened
from retroact.errors import InputError
from retroact.files import os_errors

if TYPE_CHECKING:
    from retroact.stream import Round

STDOUT = "standard output"
CSV_HEADER = ("round", "statistic", "group", "value", "standard_error", "low95", "high95")


# How many rows of a Parquet file are gathered before they are written.
GROUP = 65536


class OutputFormat(StrEnum):
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


FormatOption = Annotated[OutputFormat | None, typer.Option(help="By the name of the file if absent.")]


class Writer:
    """Writes rounds as they close."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, round: Round) -> None:
        for release in round.values():
            self.write_line(release.to_dict())

    def write_line(self, line: Mapping[str, Any]) -> None:
        """One release as `Release.to_dict` has it."""
        self._file.write(msgspec.json.encode(line) + b"\n")

    def flush(self) -> None:
        self._file.flush()

    def finish(self) -> None:
        self.flush()


class CsvWriter(Writer):
    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        file.write(_csv_lines([CSV_HEADER]))

    def write_line(self, line: Mapping[str, Any]) -> None:
        self._file.write(_csv_lines(flat_rows(line)))


class ParquetWriter(Writer):
    """A value that is no number is in the column `text`."""

    def __init__(self, file: BinaryIO) -> None:
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
            numbers = [_number(part) for part in row[3:]]
            value = row[3]
            words = None if value is None or numbers[0] is not None else str(value)
            self._rows.append((*row[:3], *numbers, words))
        if len(self._rows) >= GROUP:
            self._write_group()

    def finish(self) -> None:
        self._write_group()
        self._out.close()
        self.flush()

    def _write_group(self) -> None:
        columns = zip(*self._rows, strict=True) if self._rows else [[] for _ in self._schema]
        arrays = [
            self._arrow.array(list(column), kind.type) for column, kind in zip(columns, self._schema, strict=True)
        ]
        self._out.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []


WRITERS = {OutputFormat.jsonl: Writer, OutputFormat.csv: CsvWriter, OutputFormat.parquet: ParquetWriter}


def format_of(path: Path | None, format: OutputFormat | None) -> OutputFormat:
    """As asked for, or else by the name of the file."""
    if format is not None:
        return format
    suffix = "" if path is None else path.suffix.lower().removeprefix(".")
    return OutputFormat(suffix) if suffix in OutputFormat.__members__ else OutputFormat.jsonl


def _number(value: Any) -> float | None:
    return float(value) if is_number(value) else None


def flat_rows(line: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """A row for each group of a grouped statistic, and for each coordinate of a vector."""
    numbers = _flat("", line["value"], line["standard_error"], line["interval95"])
    return [(line["round"], line["statistic"], *row) for row in numbers]


def _flat(group: str, value: Any, error: Any, interval: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, Mapping):
        parts: list[tuple[str, Any]] = list(value.items())
    elif isinstance(value, list):
        parts = [(str(position), part) for position, part in enumerate(value)]
    else:
        low, high = interval if isinstance(interval, list) and len(interval) == 2 else (None, None)
        yield group, value, error, low, high
        return
    for position, (key, part) in enumerate(parts):
        index = key if isinstance(value, Mapping) else position
        yield from _flat(f"{group}/{key}" if group else key, part, _part(error, index), _part(interval, index))


def _part(whole: Any, index: Any) -> Any:
    if isinstance(whole, Mapping):
        return whole.get(index)
    return whole[index] if isinstance(whole, list) and isinstance(index, int) and index < len(whole) else None


def _csv_lines(rows: Any) -> bytes:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


@contextmanager
def open_output(
    path: Path | None, format: OutputFormat, *, before: Iterable[Mapping[str, Any]] | None = None
) -> Iterator[Writer]:
    """Standard output as it comes, or a file that appears whole or not at all.

    With ``before``, the releases of earlier runs, a file of lines begins with them, is there at once, and grows.
    """
    make = WRITERS[format]
    if path is None:
        writer = make(cast(BinaryIO, NamedFile(sys.stdout.buffer, STDOUT)))
        yield writer
        writer.finish()
        return
    with opened((path, "--out")) as (place,):
        writer = make(cast(BinaryIO, NamedFile(place.file, path, "--out")))
        if place.part is None:
            yield writer
            writer.finish()
            return
        for line in before or ():
            writer.write_line(line)
        grows = before is not None and format is not OutputFormat.parquet
        if grows:
            writer.flush()
            with os_errors(path, "--out"):
                place.part.put()
        yield writer
        writer.finish()
        with os_errors(path, "--out"):
            place.part.sync() if grows else place.part.put()
