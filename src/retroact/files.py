"""Files that are written atomically: next to their place, synced to disk, and renamed."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import InputError


@contextmanager
def os_errors(path: Path | str, option: str | None = None) -> Iterator[None]:
    """Errors of the operating system as bad input, with the file and the option that named it."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has gone; there is nobody to tell
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), place=option, source=str(path)) from None


def is_pipe_or_device(path: Path) -> bool:
    """Whether it is a pipe or a device, which is written to and never replaced."""
    with suppress(OSError):
        mode = os.stat(path).st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False


class AtomicFile:
    """A file that is not in place yet. Links to its place are followed, and the mode of an existing file is kept.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "report.json"
    >>> with AtomicFile(path) as part:
    ...     _ = part.file.write(b"{}")
    ...     part.put()
    >>> path.read_bytes(), len(list(path.parent.iterdir()))
    (b'{}', 1)
    """

    def __init__(self, path: Path, *, mode: int | None = None) -> None:
        self.target = Path(os.path.realpath(path))
        try:
            about = os.stat(self.target)
        except FileNotFoundError:
            about = None
        if about is not None and stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(None, "is a directory")
        if not self.target.parent.is_dir():
            raise FileNotFoundError(None, "expected a file in a folder that exists")
        # not tempfile, whose mode would shut out other readers; and no longer than a file name may be
        name = os.fsdecode(os.fsencode(self.target.name)[:200])
        self.path = self.target.with_name(f".{name}.{secrets.token_hex(4)}.part")
        self.file = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode or 0o666), "wb")
        if about is not None and mode is None:
            with suppress(OSError):
                self.path.chmod(stat.S_IMODE(about.st_mode))

    def sync(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())

    def put(self) -> None:
        """On disk and in its place when this returns; more may be written afterwards."""
        self.sync()
        os.replace(self.path, self.target)
        sync_folder(self.target.parent)

    def put_new(self) -> bool:
        """The same, but never over an existing file: whether there was none."""
        self.sync()
        try:
            os.link(self.path, self.target)
        except FileExistsError:
            return False
        sync_folder(self.target.parent)
        return True

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a failed write has been reported
            self.file.close()
        self.path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # a folder that cannot be read, or a system that cannot open folders
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
