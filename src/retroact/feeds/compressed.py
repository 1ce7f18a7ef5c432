"""Compressed files, recognised by their first bytes and read a piece at a time, whatever they are called.

Memory is bounded: a piece of compressed bytes is so small that what it expands to fits, and lines have a longest size.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from io import BufferedReader, RawIOBase
from typing import Any

from ..errors import InputError

SUFFIXES = (".gz", ".gzip", ".zst", ".zstd")
PIECE = 1 << 10
"""The bytes read at a time: at most 32 MB in Zstandard, where four may stand for 128 KB."""
WINDOW = 1 << 27
"""How far back Zstandard may refer, as its own program allows by default."""
OUT = 1 << 19
GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
PACK = "unpack it, or compress it with gzip or Zstandard"
OTHERS = {
    b"BZh": ("a file compressed with bzip2", PACK),
    b"\xfd7zXZ": ("a file compressed with xz", PACK),
    b"PAR1": ("Parquet", "give the file a name that ends with .parquet, and do not compress it"),
    b"ARROW1": ("Arrow", "give the file a name that ends with .arrow, and do not compress it"),
}


def kind_of(start: bytes) -> str | None:
    """
    >>> kind_of(b"\\x1f\\x8b\\x08"), kind_of(b"id,amount")
    ('gzip', None)
    """
    return "gzip" if start.startswith(GZIP) else "Zstandard" if start.startswith(ZSTANDARD) else None


def require_text(start: bytes, name: str) -> None:
    """Refuse a file that is not text, by its first bytes."""
    for magic, (found, hint) in OTHERS.items():
        if start.startswith(magic):
            raise InputError(expected="JSON lines or CSV", found=found, source=name, hint=hint)


def decompressed(file: BufferedReader, kind: str, name: str) -> BufferedReader:
    """The content of a compressed file; it can go back to the beginning if the file can."""
    return BufferedReader(_Expanding(file, kind, name), OUT)


class _Expanding(RawIOBase):
    def __init__(self, file: BufferedReader, kind: str, name: str) -> None:
        self._file, self._kind, self._name = file, kind, name
        self._begin()

    def _begin(self) -> None:
        self._read: Callable[[int], bytes] = (
            gzip.GzipFile(fileobj=self._file).read1 if self._kind == "gzip" else _zstandard(self._file, self._name)
        )
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def fileno(self) -> int:
        return self._file.fileno()

    def tell(self) -> int:
        return self._place

    def seek(self, place: int, whence: int = 0) -> int:
        if (place, whence) != (0, 0):
            return super().seek(place, whence)
        self._file.seek(0)
        self._begin()
        return 0

    def readinto(self, buffer: Any) -> int:
        try:
            found = self._read(min(len(buffer), OUT))
        except InputError:
            raise
        except EOFError:
            raise self._refused("one that ends too early: it may still be written, or be cut") from None
        except (OSError, zlib.error) as error:
            raise self._refused(f"one that cannot be read ({error})") from None
        buffer[: len(found)] = found
        self._place += len(found)
        return len(found)

    def _refused(self, what: str) -> InputError:
        return InputError(f"expected a file compressed with {self._kind}, got {what}", source=self._name)


def _zstandard(file: BufferedReader, name: str) -> Callable[[int], bytes]:
    """Open with zstandard, or with pyarrow."""
    try:
        import zstandard
    except ImportError:
        pass
    else:
        return _ZstandardFrames(file, zstandard).read
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
    except ImportError:
        raise InputError(
            "files compressed with Zstandard need zstandard: pip install 'retroact[zstd]'", source=name
        ) from None
    stream = pa.CompressedInputStream(pa.PythonFile(_Shared(file), mode="r"), "zstd")
    return lambda size: bytes(stream.read(size))


class _Shared:
    """A file that others may close without effect."""

    closed = False

    def __init__(self, file: BufferedReader) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._file.read(min(size, PIECE) if size >= 0 else PIECE)

    def close(self) -> None: ...


class _ZstandardFrames:
    """Frame after frame, since a file may have several."""

    def __init__(self, file: BufferedReader, zstandard: Any) -> None:
        self._file, self._zstandard = file, zstandard
        self._frame: Any = None
        self._left = self._out = b""

    def read(self, size: int) -> bytes:
        while not self._out:
            piece, self._left = self._left or self._file.read(PIECE), b""
            if not piece:
                if self._frame is not None:
                    raise EOFError
                return b""
            if self._frame is None:
                self._frame = self._zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()
            try:
                self._out = self._frame.decompress(piece)
            except self._zstandard.ZstdError as error:
                raise OSError(str(error)) from None
            if self._frame.eof:
                self._left, self._frame = self._frame.unused_data, None
        found, self._out = self._out[:size], self._out[size:]
        return found
