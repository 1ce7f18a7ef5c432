"""The fence: a small file outside the store with the last round that may have been published, and the number of
erasures that were acknowledged since.

A restored backup of the store is detected because it is older than its fence. So the fence must not be in the same
backup: it is next to the key, not in the folder of the stream.
"""

from __future__ import annotations

import hmac
import os
import stat
import sys
from pathlib import Path

import msgspec

from ..errors import InputError, VerificationError
from ..files import AtomicFile, os_errors
from .lock import Lock

TAKEN = "another process has a stream with this fence open"


class Mark(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The keyed id of the stream, the last round that may have been published, the salt of its coins, and the number of
    erasures acknowledged since that round; there may be more if an earlier fence was lost after it."""

    stream: str
    round: int
    salt: str = ""
    erasures: int = 0
    lost: str = ""
    """Drawn again with each loss; the store has the operator's statement about it under the same text."""


class _SignedMark(Mark, frozen=True):
    """A mark as it is written, with a keyed hash of the rest."""

    mac: str = ""


class Fence:
    """One process holds it at a time. The lock is on the file itself, and passes to the file that replaces it.

    >>> import tempfile
    >>> fence = Fence(Path(tempfile.mkdtemp()) / "orders.fence", "5eed", b"secret")
    >>> fence.read() is None
    True
    >>> fence.advance(Mark("5eed", 3))
    >>> fence.read()
    Mark(stream='5eed', round=3, salt='', erasures=0, lost='')
    """

    def __init__(self, path: Path, stream: str, secret: bytes) -> None:
        self.path = Path(os.path.realpath(path))  # the file that links point to, since it will be replaced
        self._stream, self._secret = stream, secret
        self._lock: Lock | None = None

    def lock(self) -> None:
        """Lock the fence for this process alone, so that two copies of a store cannot spend the same noise."""
        if sys.platform == "win32":
            # an open file cannot be replaced or removed there
            self._lock = self._lock or Lock.of_file(self.path.with_name(f"{self.path.name}.lock"), TAKEN)
            return
        while self._regular():
            # the file may be replaced between the two steps
            lock = Lock(self._open(os.O_RDWR), self.path, TAKEN)
            if lock.is_of(self.path):
                self._lock = lock
                return
            lock.close()

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def read(self) -> Mark | None:
        """None if there is no fence, or an empty one that was about to be made."""
        if not self._regular():
            return None
        with open(self._open(os.O_RDONLY), "rb") as file:
            content = file.read(1 << 16)
        if not content:
            return None
        try:
            signed = msgspec.json.decode(content, type=_SignedMark)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise VerificationError(f"{self.path}: expected a fence, got something else ({error})") from None
        if signed.stream != self._stream:
            raise VerificationError(f"{self.path}: expected the fence of this stream, got that of another one")
        mark = Mark(signed.stream, signed.round, signed.salt, signed.erasures, signed.lost)
        if not hmac.compare_digest(signed.mac.encode(), self._signed(mark).mac.encode()):
            raise VerificationError(
                f"{self.path}: expected the fence as this stream wrote it, got one that was edited or damaged: bring "
                "back a mirror of it, or treat it as lost (docs/operations.md)"
            )
        return mark

    def advance(self, mark: Mark) -> None:
        """Write the fence to disk: a new file, locked before it replaces the old one."""
        self._hold()
        with os_errors(self.path, "fence"), AtomicFile(self.path, mode=0o600) as part:
            own: Lock | None = None
            if sys.platform != "win32":
                os.fchmod(part.file.fileno(), 0o600)  # whatever the umask
                own = Lock(os.dup(part.file.fileno()), self.path, TAKEN)
            part.file.write(msgspec.json.encode(self._signed(mark)) + b"\n")
            try:
                part.put()
            except BaseException:
                if own is not None:
                    own.close()
                raise
        if own is not None:
            self.close()
            self._lock = own

    def _hold(self) -> None:
        """Require that this process holds the file about to be replaced, or that there is none yet."""
        if self._lock is None:
            if sys.platform != "win32":
                os.close(self._open(os.O_RDWR | os.O_CREAT))
            self.lock()
            if self.read() is not None:
                raise InputError(f"{self.path}: another process made this fence meanwhile")
        elif sys.platform != "win32" and not self._lock.is_of(self.path):
            raise VerificationError(
                f"{self.path}: the fence was replaced or removed while this stream was open: another copy of it may "
                "have gone on. Close it and open it again"
            )

    def _regular(self) -> bool:
        """Whether it exists: a regular file with one name, for its owner alone."""
        with os_errors(self.path, "fence"):
            try:
                found = os.lstat(self.path)
            except FileNotFoundError:
                return False
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{self.path}: expected a regular file, got something else", place="fence")
            if found.st_nlink > 1:
                raise InputError(
                    f"{self.path}: expected a file under one name, got {found.st_nlink} hard links to it: copy it to a "
                    "new file",
                    place="fence",
                )
            if os.name == "posix" and stat.S_IMODE(found.st_mode) != 0o600:
                os.chmod(self.path, 0o600)
        return True

    def _open(self, flags: int) -> int:
        with os_errors(self.path, "fence"):
            return os.open(self.path, flags, 0o600)

    def _signed(self, mark: Mark) -> _SignedMark:
        parts = msgspec.structs.asdict(mark)
        mac = hmac.digest(self._secret, msgspec.json.encode(list(parts.values())), "sha256")
        return _SignedMark(**parts, mac=mac.hex())
