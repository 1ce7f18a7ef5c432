"""Files that a command writes: opened before the work begins, and moved into place after it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..files import AtomicFile, is_pipe_or_device, os_errors
from ..store.targets import check_targets

if TYPE_CHECKING:
    from ..stream import Stream

PAGES = (".html", ".htm")


class OutputFile:
    """A file that nobody sees until `put`; or standard output, a device or a pipe, which are written to directly.
    Errors name it, and the option that asked for it."""

    closed = False

    def __init__(self, path: Path | None, option: str | None = None) -> None:
        self._where = (path or "standard output", option)
        self._owned = path is not None
        self._part: AtomicFile | None = None
        with os_errors(*self._where):
            if path is None:
                self._file: Any = sys.stdout.buffer
            elif is_pipe_or_device(path):
                self._file = path.open("wb")
            else:
                self._part = AtomicFile(path)
                self._file = self._part.file

    @property
    def direct(self) -> bool:
        return self._part is None

    def write(self, content: bytes) -> int:
        if self._file.closed:
            # the finalizer of a writer that failed tries again
            return len(content)
        with os_errors(*self._where):
            return int(self._file.write(content))

    def flush(self) -> None:
        if not self._file.closed:
            with os_errors(*self._where):
                self._file.flush()

    close = flush
    """Called by a Parquet writer, which does not own the file."""

    def sync(self) -> None:
        with os_errors(*self._where):
            self._file.flush() if self._part is None else self._part.sync()

    def put(self) -> Path | None:
        """Move the file into place, on disk; it may still grow. The path, if nothing was there before."""
        if self._part is None:
            return None
        new = not self._part.target.exists()
        with os_errors(*self._where):
            self._part.put()
        return self._part.target if new else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, *error: object) -> None:
        if self._part is not None:
            self._part.__exit__(*error)
        elif self._owned:
            with suppress(OSError):  # what could not be written has been reported
                self._file.close()


def require_page(path: Path | None) -> None:
    """Refuse a name that no page has."""
    if path is not None and path.suffix.lower() not in PAGES and not is_pipe_or_device(path):
        raise InputError(expected=f"a file name that ends with {PAGES[0]}", found=str(path), place="--html")


@contextmanager
def opened(*asked: tuple[Path | None, str]) -> Iterator[list[OutputFile]]:
    """The files that options ask for."""
    with ExitStack() as stack:
        yield [stack.enter_context(OutputFile(path, option)) for path, option in asked if path is not None]


def put(outputs: Sequence[OutputFile], contents: Sequence[bytes]) -> None:
    """All files appear, complete, or none does."""
    with suppress(OSError, AttributeError):  # it may be closed
        sys.stdout.flush()
    # devices last: what they received cannot be taken back
    for output, content in sorted(zip(outputs, contents, strict=True), key=lambda pair: pair[0].direct):
        output.write(content)
        output.sync()
    with ExitStack() as undo:
        for output in outputs:
            made = output.put()
            if made is not None:
                undo.callback(made.unlink, missing_ok=True)
        undo.pop_all()


def check_sources(targets: Sequence[tuple[str, Path | None]], stream: Stream) -> None:
    """Refuse to overwrite any file that a stream was ever fed from."""
    names = [name for name in stream.sources if "\0" not in name]
    check_targets(targets, used={f"source {name}": Path(name) for name in names}, folders=True)
