"""Where the key of a run comes from. It is never shown: not in a message, not in an output."""

from __future__ import annotations

import os
import stat
from binascii import unhexlify
from pathlib import Path

from retroact.coins import Key
from retroact.errors import InputError

VARIABLE = "RETROACT_KEY"
SIZE = 32
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def choose_key(key_file: Path | None, testing_seed: int | None) -> tuple[Key, str]:
    """The key, and a line on where it comes from and what follows from that."""
    if key_file is not None and testing_seed is not None:
        raise InputError("expected one key, got --key-file and --testing-key")
    if testing_seed is not None:
        return Key.for_testing(
            testing_seed
        ), "warning: a testing key, which anybody can guess: do not publish this output"
    once = "use it for this stream only: the same noise on other data would reveal the difference"
    if key_file is not None:
        secret, created = _from_file(key_file)
        return Key(secret), f"note: key {'created in' if created else 'from'} {key_file}; {once}"
    text = os.environ.get(VARIABLE)
    if text is not None:
        given = _from_hex(text.encode(errors="replace"))
        if given is None:
            raise InputError(f"expected {2 * SIZE} hexadecimal digits", place=VARIABLE)
        return Key(given), f"note: key from {VARIABLE}; {once}"
    return Key.generate(), "note: a fresh key, used once and forgotten: this run cannot be repeated (see --key-file)"


def _from_file(path: Path) -> tuple[bytes, bool]:
    """The secret, and whether it was made just now."""
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(path), False
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}", place="--key-file") from None
    secret = os.urandom(SIZE)
    with open(made, "wb") as file:
        file.write(secret.hex().encode() + b"\n")
    return secret, True


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(4 * SIZE)
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}", place="--key-file") from None
    if os.name == "posix" and mode & _OTHERS:
        raise InputError(f"{path}: expected a file for its owner alone (chmod 600), got mode {mode & 0o777:03o}")
    secret = content if len(content) == SIZE else _from_hex(content)
    if secret is None:
        raise InputError(f"{path}: expected {SIZE} bytes or {2 * SIZE} hexadecimal digits", place="--key-file")
    return secret


def _from_hex(content: bytes) -> bytes | None:
    try:
        secret = unhexlify(content.strip())
    except ValueError:
        return None
    return secret if len(secret) == SIZE else None
