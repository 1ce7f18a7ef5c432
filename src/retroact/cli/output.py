"""Releases as files: JSON lines, one release per line; or CSV, Parquet and Arrow, the tidy table (`outputs.table`)."""

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

from ..errors import InputError
from .files import OutputFile
from .options import OUTPUT, option

if TYPE_CHECKING:
    from ..outputs.table import TableForm
    from ..stream import Round

GROUP = 65536
"""The number of rows that are written to a Parquet or Arrow file at a time."""


class Writer:
    """Writes rounds as they close."""

    def __init__(self, file: OutputFile, form: TableForm) -> None:
        self._file, self._form = file, form

    def write(self, round: Round) -> None:
        for release in round.values():
            self.write_line(release.to_dict())

    def write_line(self, line: Mapping[str, Any]) -> None:
        """One release, as `Release.to_dict` has it."""
        self._file.write(msgspec.json.encode(self._form.line(line)) + b"\n")

    def flush(self) -> None:
        self._file.flush()

    def finish(self) -> None:
        self.flush()


class CsvWriter(Writer):
    def __init__(self, file: OutputFile, form: TableForm) -> None:
        super().__init__(file, form)
        file.write(_csv_lines([form.names]))

    def write_line(self, line: Mapping[str, Any]) -> None:
        self._file.write(_csv_lines(self._form.table([line]).texts()))


class ArrowWriter(Writer):
    """Batches of rows, in an Arrow file."""

    def __init__(self, file: OutputFile, form: TableForm) -> None:
        super().__init__(file, form)
        self._arrow = pyarrow_for("arrow")
        self._out = self._opened(self._arrow.table(form.table([])).schema)
        self._lines: list[Mapping[str, Any]] = []
        self._rows = 0

    def _opened(self, schema: Any) -> Any:
        return self._arrow.ipc.new_file(self._file, schema)

    def write_line(self, line: Mapping[str, Any]) -> None:
        self._lines.append(line)
        self._rows += len(line["value"]) if isinstance(line["value"], Mapping | list) else 1
        if self._rows >= GROUP:
            self._write_batch()

    def finish(self) -> None:
        self._write_batch()
        self._out.close()
        self.flush()

    def _write_batch(self) -> None:
        self._out.write_table(self._arrow.table(self._form.table(self._lines)))
        self._lines, self._rows = [], 0


class ParquetWriter(ArrowWriter):
    def _opened(self, schema: Any) -> Any:
        import pyarrow.parquet  # type: ignore[import-untyped]

        return pyarrow.parquet.ParquetWriter(self._file, schema)


class OutputFormat(StrEnum):
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"


WRITERS = {
    OutputFormat.jsonl: Writer,
    OutputFormat.csv: CsvWriter,
    OutputFormat.parquet: ParquetWriter,
    OutputFormat.arrow: ArrowWriter,
}
SUFFIXES = {".ndjson": OutputFormat.jsonl, **{f".{format}": format for format in OutputFormat}}


def pyarrow_for(format: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise InputError(f"{format} files need pyarrow: pip install 'retroact[parquet]'", place="--format") from None
    return pyarrow


@dataclass(frozen=True)
class OutputOptions:
    """Options for where and how releases are written."""

    out: Path | None = option("Where releases go; written atomically. Default: stdout.", "FILE", group=OUTPUT)
    format: OutputFormat | None = option("Default: by the suffix of --out, or else jsonl.")

    def chosen(self) -> OutputFormat:
        """The format; what cannot be written is refused."""
        suffix = "" if self.out is None else self.out.suffix.lower()
        if self.format is None and suffix and suffix not in SUFFIXES:
            raise InputError(
                f"expected a file name that ends with {', '.join(SUFFIXES)}, or --format, got {self.out}", place="--out"
            )
        format = self.format or SUFFIXES.get(suffix, OutputFormat.jsonl)
        if issubclass(WRITERS[format], ArrowWriter):
            pyarrow_for(format)
        return format

    @contextmanager
    def opened(self, form: TableForm, *, before: Iterable[Mapping[str, Any]] | None = None) -> Iterator[Writer]:
        """``before``: releases of earlier runs. A file of lines then starts with them, appears at once, and grows."""
        format = self.chosen()
        with OutputFile(self.out, None if self.out is None else "--out") as file:
            writer = WRITERS[format](file, form)
            grows = before is not None and not file.direct and not isinstance(writer, ArrowWriter)
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


def _csv_lines(rows: Any) -> bytes:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
