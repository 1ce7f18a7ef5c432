"""A lock on a file that ends with the process, however that ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..errors import InputError


class Lock:
    """Held from the beginning on; nobody else gets it meanwhile, in this process or another.

    The lock is of the open file (flock), not of the process: reading or copying the file elsewhere does not end it.
    """

    def __init__(self, path: Path, message: str) -> None:
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(self._handle, msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise InputError(message) from None

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
