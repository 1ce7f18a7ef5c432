"""Files of events: opened with errors a person can act on, read in blocks of whole lines, and followed as they grow."""

from __future__ import annotations

import codecs
import os
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedIOBase, BufferedReader, UnsupportedOperation
from pathlib import Path
from typing import Literal, cast

from retroact.errors import InputError

Format = Literal["JSON lines", "CSV"]
STDIN = "-"
BLOCK = 1 << 19
LONGEST_LINE = 16 << 20
POLL = 0.2
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_OTHER_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@dataclass
class Source:
    """An open file, or standard input."""

    name: str
    format: Format
    file: BufferedIOBase
    size: int | None = None
    """In bytes, where it is known in advance."""
    bytes_read: int = 0
    follow: bool = False
    """Whether to wait for more at the end; an empty block then says that nothing came for a while."""
    path: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by whoever wants a followed source to end."""
    holds: bool = False
    """Whether a last line without an end is left unread: more of it may be on its way."""
    rest: bytes = b""
    """What was left."""
    lines: int = 0
    """How many were read, what was left included."""

    def blocks(self) -> Iterator[bytes]:
        """Whole lines; as they come, when they come slowly.

        >>> import io
        >>> list(Source("", "JSON lines", io.BytesIO(b"1\\n2\\n3")).blocks())
        [b'1\\n2\\n', b'3']
        >>> list(Source("", "JSON lines", io.BytesIO(b"1\\n2\\n3"), holds=True).blocks())
        [b'1\\n2\\n']
        """
        rest, self.lines = b"", 0
        for piece in self._pieces():
            if self.bytes_read == 0 and piece:
                for mark, encoding in _OTHER_ENCODINGS.items():
                    if piece.startswith(mark):
                        raise self.refused(InputError(f"expected UTF-8 text, got {encoding}"), 1)
                self.bytes_read = len(piece)
                piece = piece.removeprefix(codecs.BOM_UTF8)
            else:
                self.bytes_read += len(piece)
            rest += piece
            cut = rest.rfind(b"\n") + 1
            if cut or not piece:
                whole, rest = rest[:cut], rest[cut:]
                self._count(whole)
                yield whole
            if len(rest) > LONGEST_LINE:
                longest = f"expected a line of at most {LONGEST_LINE >> 20} MB, got a longer one"
                raise self.refused(InputError(longest), self.lines + 1)
        self.rest = b""
        self._count(rest)
        # what a followed source has of a line when it is told to end may be half a line
        if self.stop.is_set() or self.holds:
            # the reader of CSV takes either for the end of a line
            cut = rest.rfind(b"\r") + 1 if self.format == "CSV" else 0
            rest, self.rest = rest[:cut], rest[cut:]
        if rest:
            yield rest

    def _count(self, block: bytes) -> None:
        ends: tuple[bytes, ...] = (b"\n",)
        self.lines += block.count(b"\n")
        if self.format == "CSV":
            # such as the reader takes for ends of lines
            ends = (b"\n", b"\r")
            self.lines += block.count(b"\r") - block.count(b"\r\n")
        self.lines += bool(block) and not block.endswith(ends)

    def progress(self) -> tuple[int, str]:
        """How much was read, as a number beside the size, and in words."""
        return self.bytes_read, f"{self.bytes_read / 1e6:,.0f} MB"

    def again(self) -> None:
        """Back to the beginning."""
        try:
            self.file.seek(0)
        except (OSError, UnsupportedOperation):
            raise InputError(
                "a grid reads the times of a complete input first: expected a file, or --follow", source=self.name
            ) from None
        self.bytes_read = 0

    def refused(self, error: InputError, line: int) -> InputError:
        return error.found_in(self.name, row=line, unit="line")

    def _pieces(self) -> Iterator[bytes]:
        if not self.follow:
            while piece := self.file.read1(BLOCK):
                yield piece
            return
        while not self.stop.is_set():
            if self.path is None and not self._readable():
                yield b""
            elif piece := self.file.read1(BLOCK):
                yield piece
            elif self.path is None:
                # the other end of the pipe is closed
                return
            else:
                self._same_file(self.path)
                yield b""
                self._wait()

    def _readable(self) -> bool:
        """Whether a read from standard input would return at once, waiting a little for that."""
        with suppress(KeyboardInterrupt, UnsupportedOperation):
            if isinstance(self.file, BufferedReader):
                # what a buffer holds cannot be waited for
                self.file = cast(BufferedIOBase, _Unbuffered(self.file.fileno()))
            return bool(select.select([self.file.fileno()], [], [], POLL)[0])
        # no descriptor to wait for, or asked to end
        return not isinstance(self.file, _Unbuffered)

    def _wait(self) -> None:
        try:
            self.stop.wait(POLL)
        except KeyboardInterrupt:
            self.stop.set()

    def _same_file(self, path: str) -> None:
        try:
            now, here = os.stat(path), os.fstat(self.file.fileno())
        except FileNotFoundError:
            raise InputError(
                f"the followed file is gone; it was read up to byte {self.bytes_read:,}", source=self.name
            ) from None
        if (now.st_dev, now.st_ino) != (here.st_dev, here.st_ino):
            raise InputError(
                f"the followed file was replaced by another; it was read up to byte {self.bytes_read:,}",
                source=self.name,
            )
        if now.st_size < self.bytes_read:
            raise InputError(
                f"the followed file was truncated to {now.st_size:,} bytes; {self.bytes_read:,} were read",
                source=self.name,
            )


class _Unbuffered:
    """Standard input by its descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def read1(self, size: int) -> bytes:
        return os.read(self._descriptor, size)


@contextmanager
def open_source(path: str, *, follow: bool = False, holds: bool = False) -> Iterator[Source]:
    """A file, which holds back half a line if it is told to, or standard input, whose end is an end."""
    if path == STDIN:
        yield Source("stdin", "JSON lines", cast(BufferedIOBase, sys.stdin.buffer), follow=follow)
        return
    with _open(path) as file:
        start = file.peek(BLOCK).removeprefix(codecs.BOM_UTF8)
        size = os.fstat(file.fileno()).st_size or None
        yield Source(
            path, format_of(path, start), file, None if follow else size, follow=follow, path=path, holds=holds
        )


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
        raise not_utf8(error).found_in(str(path), row=line, unit="line") from None


def not_utf8(error: UnicodeDecodeError, place: str | None = None) -> InputError:
    return InputError(f"expected UTF-8 text, got the byte 0x{error.object[error.start]:02x}", place=place)


def _open(path: str) -> BufferedReader:
    try:
        return open(path, "rb")
    except IsADirectoryError:
        raise InputError("expected a file, got a directory", source=path) from None
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), source=path) from None
