"""The fence: a small file outside the store that says up to which round noise was spent.

A restored backup of the store is older than its fence, and is seen by that. So the fence must not be in the same
backup: it lies beside the key, not in the folder of the stream.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import msgspec

from ..errors import InputError, VerificationError
from .lock import Lock


class Mark(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The stream, by its keyed id, the last round that may have been published, and the salt of its coins."""

    stream: str
    round: int
    salt: str = ""


class Fence:
    """
    >>> import tempfile
    >>> fence = Fence(Path(tempfile.mkdtemp()) / "orders.fence")
    >>> fence.read() is None
    True
    >>> fence.advance(Mark("5eed", 3))
    >>> fence.read()
    Mark(stream='5eed', round=3, salt='')
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: Lock | None = None

    def lock(self) -> None:
        """From now on for this process alone: a copy of a store that is open cannot spend the same noise."""
        beside = self.path.with_name(f"{self.path.name}.lock")
        self._lock = Lock(beside, f"{self.path}: another process has a stream with this fence open")

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def read(self) -> Mark | None:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self.path}: {(error.strerror or str(error)).lower()}", place="fence") from None
        try:
            return msgspec.json.decode(content, type=Mark)
        except msgspec.MsgspecError as error:
            raise VerificationError(f"{self.path}: expected a fence, got something else ({error})") from None

    def advance(self, mark: Mark) -> None:
        """On disk when this returns: a file of its own, put in place of the old one."""
        part = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.part")
        try:
            with part.open("xb") as file:
                file.write(msgspec.json.encode(mark) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise InputError(f"{self.path}: {(error.strerror or str(error)).lower()}", place="fence") from None


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
