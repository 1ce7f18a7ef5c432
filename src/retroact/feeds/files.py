"""Files of events: opened with errors a person can act on, and read in blocks of whole lines."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Literal, cast

from retroact.errors import InputError
from retroact.feeds.events import located

Format = Literal["JSON lines", "CSV"]
STDIN = "-"
BLOCK = 1 << 19
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


@dataclass
class Source:
    """An open file, or standard input."""

    name: str
    format: Format
    file: BufferedIOBase
    size: int | None = None
    """In bytes, where it is known in advance."""
    bytes_read: int = 0

    def blocks(self) -> Iterator[bytes]:
        """Whole lines; as they come, when they come slowly.

        >>> import io
        >>> list(Source("", "JSON lines", io.BytesIO(b"1\\n2\\n3")).blocks())
        [b'1\\n2\\n', b'3']
        """
        rest = b""
        while piece := self.file.read1(BLOCK):
            if self.bytes_read == 0:
                piece = piece.removeprefix(codecs.BOM_UTF8)
            self.bytes_read += len(piece)
            rest += piece
            cut = rest.rfind(b"\n") + 1
            if cut:
                yield rest[:cut]
                rest = rest[cut:]
        if rest:
            yield rest

    def at(self, line: int) -> str:
        return f"{self.name}:{line}"

    def nothing(self) -> InputError:
        return InputError(f"no events in {self.name}")


@contextmanager
def open_events(path: str) -> Iterator[Source]:
    if path == STDIN:
        yield Source("stdin", "JSON lines", cast(BufferedIOBase, sys.stdin.buffer))
        return
    with _open(path) as file:
        start = file.peek(BLOCK).removeprefix(codecs.BOM_UTF8)
        yield Source(path, format_of(path, start), file, os.fstat(file.fileno()).st_size or None)


def format_of(name: str, start: bytes) -> Format:
    """By the name or, where it tells nothing, by the first character.

    >>> format_of("events.CSV", b"{"), format_of("events", b' {"op"'), format_of("events.txt", b"id,amount")
    ('CSV', 'JSON lines', 'CSV')
    """
    suffix = Path(name).suffix.lower()
    if suffix == ".csv":
        return "CSV"
    return "JSON lines" if suffix in _JSON_SUFFIXES or start.lstrip()[:1] in (b"{", b"[", b"") else "CSV"


def read_text(path: Path) -> str:
    """A small file, whole."""
    with _open(str(path)) as file:
        content = file.read().removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise located(not_utf8(error), f"{path}:{line}") from None


def not_utf8(error: UnicodeDecodeError, place: str | None = None) -> InputError:
    return InputError(f"expected UTF-8 text, got the byte 0x{error.object[error.start]:02x}", place=place)


def _open(path: str) -> BufferedReader:
    try:
        return open(path, "rb")
    except IsADirectoryError:
        raise InputError(f"{path}: expected a file, got a directory") from None
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
