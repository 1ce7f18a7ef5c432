"""Files of lines: opened, read in blocks of whole lines, and followed as they grow."""

from __future__ import annotations

import codecs
import os
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedIOBase, BufferedReader, FileIO, RawIOBase, UnsupportedOperation
from pathlib import Path
from typing import Literal, cast

import numpy as np

from ..errors import InputError
from ..files import os_errors
from .compressed import SUFFIXES, decompressed, kind_of, require_text
from .workbook import refuse_document, refuse_workbook

Format = Literal["JSON lines", "CSV"]
FORMATS: dict[str, Format] = {"csv": "CSV", "tsv": "CSV", "jsonl": "JSON lines"}
"""The formats by their names in `--input-format`."""
STDIN = "-"
BLOCK = 1 << 19
LONGEST_LINE = 16 << 20
POLL = 0.2
OTHER_TEXT = (
    "text in another encoding can be converted: iconv -f LATIN1 -t UTF-8 old.csv > new.csv. Any other file: export it "
    "as CSV, JSON lines or Parquet"
)
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
    """The size in bytes, if known in advance."""
    bytes_read: int = 0
    follow: bool = False
    """Whether to wait for more at the end; an empty block then means that nothing came for a while."""
    path: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    """Set it to end a followed source."""
    holds: bool = False
    """Whether a last line without an end is left unread: more of it may be on its way."""
    rest: bytes = b""
    """That line."""
    count: int = 0
    """How many lines were read, with the one left unread."""
    compressed: str | None = None
    """How, if the file is."""
    is_table = False

    def blocks(self) -> Iterator[bytes]:
        """Whole lines, as they come.

        >>> import io
        >>> list(Source("", "JSON lines", io.BytesIO(b"1\\n2\\n3")).blocks())
        [b'1\\n2\\n', b'3']
        >>> list(Source("", "JSON lines", io.BytesIO(b"1\\n2\\n3"), holds=True).blocks())
        [b'1\\n2\\n']
        """
        rest, self.count = b"", 0
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
                self._count_lines(whole)
                yield whole
            if len(rest) > LONGEST_LINE:
                longest = f"expected a line of at most {LONGEST_LINE >> 20} MB, got a longer one"
                raise self.refused(InputError(longest), self.count + 1)
        self.rest = b""
        self._count_lines(rest)
        # where a followed source is stopped, it may be in the middle of a line
        if self.stop.is_set() or self.holds:
            cut = rest.rfind(b"\r") + 1 if self.format == "CSV" else 0
            rest, self.rest = rest[:cut], rest[cut:]
        if rest:
            yield rest

    def _count_lines(self, block: bytes) -> None:
        self.count += line_ends(block)
        # the reader of CSV takes either for the end of a line
        either = self.format == "CSV" and b"\r" in block
        self.count += block.count(b"\r") - block.count(b"\r\n") if either else 0
        self.count += bool(block) and not block.endswith((b"\n", b"\r") if either else b"\n")

    def progress(self) -> tuple[int, str]:
        """How much of the size was read, as a number and in words."""
        return self.bytes_read, f"{self.bytes_read / 1e6:,.0f} MB"

    def again(self) -> None:
        """Go back to the beginning."""
        try:
            self.file.seek(0)
        except (OSError, UnsupportedOperation):
            raise InputError(
                "a grid reads the times of a complete input first: expected a file, or --follow", source=self.name
            ) from None
        self.bytes_read = 0

    @property
    def rereadable(self) -> bool:
        return self.path is not None and self.file.seekable()

    def require_whole_lines(self) -> None:
        if self.holds and self.rest.strip():
            wrong = "the last line has no end, so it may be half of one: end it, or say --complete, before rounds close"
            raise self.refused(InputError(wrong), self.count)

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
        """Wait a little until a read from standard input would return at once; whether it would."""
        with suppress(KeyboardInterrupt, UnsupportedOperation):
            if isinstance(self.file, BufferedReader):
                # what a buffer holds cannot be waited for
                self.file = cast(BufferedIOBase, _Unbuffered(self.file.fileno(), closefd=False))
            return bool(select.select([self.file.fileno()], [], [], POLL)[0])
        # there is no descriptor to wait for, or Ctrl-C was pressed
        return not isinstance(self.file, _Unbuffered)

    def _wait(self) -> None:
        try:
            self.stop.wait(POLL)
        except KeyboardInterrupt:
            self.stop.set()

    def _same_file(self, path: str) -> None:
        done = f"it was read up to byte {self.bytes_read:,}"
        try:
            now, here = os.stat(path), os.fstat(self.file.fileno())
        except FileNotFoundError:
            raise InputError(f"the followed file is gone; {done}", source=self.name) from None
        if (now.st_dev, now.st_ino) != (here.st_dev, here.st_ino):
            raise InputError(f"the followed file was replaced by another; {done}", source=self.name)
        if now.st_size < self.bytes_read:
            wrong = f"the followed file was truncated to {now.st_size:,} bytes; {self.bytes_read:,} were read"
            raise InputError(wrong, source=self.name)


class _Unbuffered(FileIO):
    """Standard input, read by its descriptor."""

    read1 = FileIO.read


@contextmanager
def open_source(path: str, *, follow: bool = False, holds: bool = False, format: str | None = None) -> Iterator[Source]:
    """A file, or standard input, whose end always ends a line; so does that of a compressed file, which is whole."""
    if path == STDIN:
        yield _standard_input(follow, format)
        return
    with open_file(path) as file:
        content, start, kind = _content(file, path)
        if follow and kind is not None:
            raise InputError(
                f"expected a file that can grow, got one compressed with {kind}", place="follow", source=path
            )
        size = None if follow or kind else os.fstat(file.fileno()).st_size or None
        found = _format(path, start, format)
        whole = kind is not None
        yield Source(path, found, content, size, follow=follow, path=path, holds=holds and not whole, compressed=kind)


def _standard_input(follow: bool, format: str | None) -> Source:
    buffer = cast(BufferedIOBase, sys.stdin.buffer)
    if follow:
        # nothing is read in advance: what a buffer holds cannot be waited for
        return Source("stdin", FORMATS[format or "jsonl"], buffer, follow=True)
    file = buffer if isinstance(buffer, BufferedReader) else BufferedReader(cast(RawIOBase, buffer))
    content, start, kind = _content(file, "stdin")
    return Source("stdin", _format("stdin", start, format), content, compressed=kind)


def _content(file: BufferedReader, name: str) -> tuple[BufferedReader, bytes, str | None]:
    """A file without its compression, how it starts, and how it is compressed."""
    kind = kind_of(file.peek(BLOCK))
    content = file if kind is None else decompressed(file, kind, name)
    start = content.peek(BLOCK).removeprefix(codecs.BOM_UTF8)
    refuse_workbook(name, start)
    require_text(start, name)
    return content, start, kind


def _format(name: str, start: bytes, named: str | None) -> Format:
    found = FORMATS[named] if named else format_of(name, start)
    if found == "JSON lines":
        refuse_document(name, start)
    return found


def format_of(name: str, start: bytes) -> Format:
    """Choose the format by the suffix or, if that is another, by the first character.

    >>> format_of("events.CSV.gz", b"{"), format_of("events", b' {"op"'), format_of("events.txt", b"id,amount")
    ('CSV', 'JSON lines', 'CSV')
    """
    path = Path(name)
    suffix = (path.with_suffix("") if path.suffix.lower() in SUFFIXES else path).suffix.lower()
    if suffix in (".csv", ".tsv"):
        return "CSV"
    return "JSON lines" if suffix in _JSON_SUFFIXES or start.lstrip()[:1] in (b"{", b"[", b"") else "CSV"


def read_text(path: Path) -> str:
    """The whole text of a small file."""
    with open_file(str(path)) as file:
        content = file.read().removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise not_utf8(error).found_in(str(path), row=line, unit="line") from None


def line_ends(content: bytes) -> int:
    """How many line feeds there are, several times as fast as bytes count them."""
    return int(np.count_nonzero(np.frombuffer(content, np.uint8) == ord("\n")))


def not_utf8(error: UnicodeDecodeError, place: str | None = None) -> InputError:
    got = f"expected UTF-8 text, got the byte 0x{error.object[error.start]:02x}"
    return InputError(got, place=place, hint=OTHER_TEXT)


def open_file(path: str) -> BufferedReader:
    if os.path.isdir(path):
        raise InputError("expected a file, got a directory", source=path)
    with os_errors(path):
        return open(path, "rb")
