"""Where a key is kept: a file that only its owner may read, an environment variable, or a command that prints it.

The key never appears in a message or an output.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from binascii import unhexlify
from pathlib import Path

from ..errors import InputError
from ..files import AtomicFile, os_errors
from .key import SIZE, Key

VARIABLE = "RETROACT_KEY"
COMMAND = "RETROACT_KEY_COMMAND"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def from_environment() -> tuple[Key, str] | None:
    """The key that a variable holds or a command prints, and which of the two; None if neither is set."""
    text = os.environ.get(VARIABLE)
    if text is not None:
        return Key(_expect(_from_hex(text.encode(errors="replace")), VARIABLE)), VARIABLE
    command = os.environ.get(COMMAND)
    if command is None:
        return None
    try:
        done = subprocess.run(shlex.split(command), capture_output=True, timeout=60, check=False)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise InputError(f"expected a command that prints the key, got {type(error).__name__}", place=COMMAND) from None
    if done.returncode:
        raise InputError(f"expected a command that prints the key, got exit code {done.returncode}", place=COMMAND)
    return Key(_expect(_from_hex(done.stdout), COMMAND)), COMMAND


def from_file(path: Path, *, create: bool = True) -> tuple[Key, bool]:
    """The key in a file, and whether it was created just now."""
    with os_errors(path, "key file"):
        if not create or path.exists():
            return Key(_read(path)), False
        secret = os.urandom(SIZE)
        with AtomicFile(path, mode=0o600) as part:
            part.file.write(secret.hex().encode() + b"\n")
            made = part.put_new()
    return (Key(secret), True) if made else (Key(_read(path)), False)


def _read(path: Path) -> bytes:
    with os_errors(path, "key file"), open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        content = file.read(4 * SIZE)
    if os.name == "posix" and mode & _OTHERS:
        raise InputError(f"{path}: expected a file for its owner alone (chmod 600), got mode {mode & 0o777:03o}")
    secret = secret_in(content)
    if secret is None:
        raise InputError(f"{path}: expected {SIZE} bytes or {2 * SIZE} hexadecimal digits", place="key file")
    return secret


def secret_in(content: bytes) -> bytes | None:
    """The secret in a key file with this content; None if it is not a key file."""
    return content if len(content) == SIZE else _from_hex(content)


def _expect(secret: bytes | None, place: str) -> bytes:
    if secret is None:
        raise InputError(f"expected {2 * SIZE} hexadecimal digits", place=place)
    return secret


def _from_hex(content: bytes) -> bytes | None:
    try:
        secret = unhexlify(content.strip())
    except ValueError:
        return None
    return secret if len(secret) == SIZE else None
