"""Locks that end with the process, however that ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..errors import InputError
from ..files import os_errors


class Lock:
    """Held from the beginning on; nobody else gets it meanwhile, in this process or another.

    It is of an open file or folder (flock), not of the process and not of a name: reading or copying it elsewhere does
    not end it, and neither does removing what lies in the folder.
    """

    def __init__(self, handle: int, path: Path, taken: str) -> None:
        """Of a file or folder that is open, which is closed with the lock; what to say when another has it."""
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
        """Of a file that is there for the lock alone."""
        return cls(_opened(path, os.O_RDWR | os.O_CREAT), path, taken)

    @classmethod
    def of_folder(cls, folder: Path, taken: str) -> Lock:
        """Of the folder itself. Windows has no locks of folders, but a file that is open cannot be removed there."""
        if sys.platform == "win32":
            return cls.of_file(folder / "lock", taken)
        return cls(_opened(folder, os.O_RDONLY | os.O_DIRECTORY), folder, taken)

    def is_of(self, path: Path) -> bool:
        """Whether what is locked is what lies there now."""
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
