"""Releases as lines: JSON, one release a line, or CSV, one number a line."""

from __future__ import annotations

import csv
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from retroact.errors import InputError

if TYPE_CHECKING:
    from retroact.stream import Release, Round

CSV_HEADER = ("round", "statistic", "group", "value", "standard_error", "low95", "high95")


class OutputFormat(StrEnum):
    jsonl = "jsonl"
    csv = "csv"


class Writer:
    """Writes rounds as they close."""

    def __init__(self, file: BinaryIO, format: OutputFormat) -> None:
        self._file = file
        self._format = format
        if format is OutputFormat.csv:
            file.write(_csv_lines([CSV_HEADER]))

    def write(self, round: Round) -> None:
        for release in round.values():
            self._file.write(
                json_line(release) if self._format is OutputFormat.jsonl else _csv_lines(csv_rows(release))
            )

    def flush(self) -> None:
        self._file.flush()


def json_line(release: Release) -> bytes:
    import msgspec

    return msgspec.json.encode(release.to_dict()) + b"\n"


def csv_rows(release: Release) -> list[tuple[Any, ...]]:
    """A line for each group of a grouped statistic, and for each coordinate of a vector."""
    line = release.to_dict()
    numbers = _flat("", line["value"], line["standard_error"], line["interval95"])
    return [(release.round, release.statistic, *row) for row in numbers]


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
def open_output(path: Path | None, format: OutputFormat, *, events: str) -> Iterator[Writer]:
    """Standard output as it comes, or a file that appears whole or not at all."""
    if path is None:
        writer = Writer(sys.stdout.buffer, format)
        yield writer
        writer.flush()
        return
    if path.exists() and Path(events).exists() and path.samefile(events):
        raise InputError(f"expected another file than the events, got {path}", place="--out")
    target = path.resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        # a device or a pipe is written to, never replaced
        with open(target, "wb") as file:
            yield Writer(file, format)
        return
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        try:
            if target.is_dir():
                raise IsADirectoryError(None, "is a directory")
            # not a tempfile, whose mode would hide it from other readers
            file = part.open("xb")
        except OSError as error:
            raise InputError(f"{path}: {(error.strerror or str(error)).lower()}", place="--out") from None
        with file:
            writer = Writer(file, format)
            yield writer
            writer.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
