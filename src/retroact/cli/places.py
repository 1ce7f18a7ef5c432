"""Files that appear whole or not at all: opened before the work begins, beside their place, and renamed into it."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from retroact.errors import InputError


def part_of(target: Path) -> Path:
    """Where a file is written before it is whole. Not a tempfile, whose mode would hide it from other readers."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")


def same_file(one: Path, other: Path) -> bool:
    """Also where neither is there yet."""
    try:
        return one.samefile(other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


class Place(NamedTuple):
    path: Path
    option: str
    file: BinaryIO
    target: Path | None
    """What the file becomes; None for a device or a pipe, which is written to and never replaced."""


@contextmanager
def opened(*asked: tuple[Path | None, str]) -> Iterator[list[Place]]:
    """Places to write to, which are seen by nobody until `put`."""
    with ExitStack() as stack:
        yield [_open(path, option, stack) for path, option in asked if path is not None]


def _open(path: Path, option: str, stack: ExitStack) -> Place:
    with told(path, option):
        about = path.stat() if path.exists() else None
        if about is not None and not stat.S_ISREG(about.st_mode):
            file: BinaryIO = path.open("wb")
            stack.callback(_close, file)
            return Place(path, option, file, None)
        if about is not None and any(os.path.samestat(about, stream) for stream in _streams()):
            raise InputError(f"expected a file that nothing else is written to, got {path}", place=option)
        target = Path(os.path.realpath(path))
        if not target.parent.is_dir():
            raise InputError(f"{path}: expected a file in a folder that exists", place=option)
        part = part_of(target)
        file = part.open("xb")
        stack.callback(part.unlink, missing_ok=True)
        stack.callback(_close, file)
        return Place(path, option, file, target)


def put(outputs: list[Place], contents: list[bytes]) -> None:
    """All files appear, whole, or none does."""
    with suppress(OSError, AttributeError):  # it may be closed
        sys.stdout.flush()
    # devices last: what they got is not taken back
    for one, content in sorted(zip(outputs, contents, strict=True), key=lambda pair: pair[0].target is None):
        with told(one.path, one.option):
            one.file.write(content)
            one.file.flush()
            if one.target is not None:
                os.fsync(one.file.fileno())
            one.file.close()
    with ExitStack() as undo:
        for one in outputs:
            if one.target is not None:
                new = not one.target.exists()
                with told(one.path, one.option):
                    os.replace(one.file.name, one.target)
                if new:
                    undo.callback(one.target.unlink, missing_ok=True)
        undo.pop_all()


def _streams() -> Iterator[os.stat_result]:
    """Where standard output and error go."""
    for number in (1, 2):
        with suppress(OSError):
            yield os.fstat(number)


def _close(file: BinaryIO) -> None:
    # what could not be written has been told
    with suppress(OSError):
        file.close()


@contextmanager
def told(path: Path | str, option: str | None = None) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # whoever reads has gone: nobody is there to be told
        raise
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), place=option, source=str(path)) from None


class Told:
    """A file that says where it could not be written."""

    closed = False

    def __init__(self, file: BinaryIO, path: Path | str, option: str | None = None) -> None:
        self._file, self._where = file, (path, option)

    def write(self, content: bytes) -> int:
        if self._file.closed:
            # a writer that failed, and is done away with, tries again
            return len(content)
        with told(*self._where):
            return self._file.write(content)

    def flush(self) -> None:
        with told(*self._where):
            self._file.flush()

    def close(self) -> None:
        """What is written is there; whoever opened the file closes it."""
        if not self._file.closed:
            self.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
