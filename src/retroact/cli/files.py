"""Files that a command writes: opened before the work begins, and put in their places after it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from retroact.files import AtomicFile, is_endless, os_errors
from retroact.store.targets import check_targets

if TYPE_CHECKING:
    from retroact.stream import Stream


class Place(NamedTuple):
    path: Path
    option: str
    file: BinaryIO
    part: AtomicFile | None
    """None for a device or a pipe, which is written to and never replaced."""


@contextmanager
def opened(*asked: tuple[Path | None, str]) -> Iterator[list[Place]]:
    """Places to write to, which are seen by nobody until `put`."""
    with ExitStack() as stack:
        yield [_open(path, option, stack) for path, option in asked if path is not None]


def _open(path: Path, option: str, stack: ExitStack) -> Place:
    with os_errors(path, option):
        if is_endless(path):
            file = path.open("wb")
            stack.callback(_close, file)
            return Place(path, option, file, None)
        part = stack.enter_context(AtomicFile(path))
        return Place(path, option, cast(BinaryIO, part.file), part)


def check_sources(targets: Sequence[tuple[str, Path | None]], stream: Stream) -> None:
    """Refuse to write over what a stream was ever fed from."""
    names = [name for name in stream.sources if "\0" not in name]
    check_targets(targets, used={f"source {name}": Path(name) for name in names}, folders=True)


def put(outputs: list[Place], contents: list[bytes]) -> None:
    """All files appear, whole, or none does."""
    with suppress(OSError, AttributeError):  # it may be closed
        sys.stdout.flush()
    # devices last: what they got is not taken back
    for one, content in sorted(zip(outputs, contents, strict=True), key=lambda pair: pair[0].part is None):
        with os_errors(one.path, one.option):
            one.file.write(content)
            one.file.flush() if one.part is None else one.part.sync()
    with ExitStack() as undo:
        for one in outputs:
            if one.part is not None:
                new = not one.part.target.exists()
                with os_errors(one.path, one.option):
                    one.part.put()
                if new:
                    undo.callback(one.part.target.unlink, missing_ok=True)
        undo.pop_all()


def _close(file: BinaryIO) -> None:
    # what could not be written has been reported
    with suppress(OSError):
        file.close()


class NamedFile:
    """A file that says where it could not be written."""

    closed = False

    def __init__(self, file: BinaryIO, path: Path | str, option: str | None = None) -> None:
        self._file, self._where = file, (path, option)

    def write(self, content: bytes) -> int:
        if self._file.closed:
            # a writer that failed, and is done away with, tries again
            return len(content)
        with os_errors(*self._where):
            return self._file.write(content)

    def flush(self) -> None:
        with os_errors(*self._where):
            self._file.flush()

    def close(self) -> None:
        """What is written is there; whoever opened the file closes it."""
        if not self._file.closed:
            self.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
