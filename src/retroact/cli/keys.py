"""Where the key of a run comes from. It is never shown: not in a message, not in an output."""

from __future__ import annotations

from pathlib import Path

from retroact.coins import Key
from retroact.coins.keyring import from_environment, from_file
from retroact.errors import InputError


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
        key, created = from_file(key_file)
        return key, f"note: key {'created in' if created else 'from'} {key_file}; {once}"
    given = from_environment()
    if given is not None:
        return given[0], f"note: key from {given[1]}; {once}"
    return Key.generate(), "note: a fresh key, used once and forgotten: this run cannot be repeated (see --key-file)"
