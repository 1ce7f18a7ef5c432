"""Locks that end with the process, however it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..errors import InputError
from ..files import os_errors


class Lock:
    """An exclusive lock, held from the start, against this process and others.

    It is on an open file or folder (flock), not on a process or a name: reading or copying the file does not end it,
    nor does removing what is in the folder.
    """

    def __init__(self, handle: int, path: Path, taken: str) -> None:
        """Lock an open file or folder, which is closed with the lock; `taken` is the error if another holds it."""
        self._handle = handle
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            other = isinstance(error, BlockingIOError) or sys.platform == "win32"
            reason = taken if other else f"cannot be locked: {(error.strerror or str(error)).lower()}"
            raise InputError(f"{path}: {reason}") from None

    @classmethod
    def of_file(cls, path: Path, taken: str) -> Lock:
        """Lock a file that exists only for this."""
        return cls(_opened(path, os.O_RDWR | os.O_CREAT), path, taken)

    @classmethod
    def of_folder(cls, folder: Path, taken: str) -> Lock:
        """Lock the folder itself. Windows cannot lock folders, but an open file cannot be removed there."""
        if sys.platform == "win32":
            return cls.of_file(folder / "lock", taken)
        return cls(_opened(folder, os.O_RDONLY | os.O_DIRECTORY), folder, taken)

    def is_of(self, path: Path) -> bool:
        """Whether the locked file is the one at this path now."""
        try:
            return os.path.samestat(os.fstat(self._handle), os.lstat(path))
        except OSError:
            return False

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _opened(path: Path, flags: int) -> int:
    with os_errors(path):
        return os.open(path, flags, 0o600)
