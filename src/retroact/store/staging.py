"""Releases of a pass that are sealed with the data of its last round, and wait there to be committed.

The data of the rounds between are never stored, so after a crash these releases could not be computed again. They are
written by the transaction that seals the data, encrypted under the key of the stream; committing copies them to the
journal, all in one transaction; then they are deleted here. Rounds f to l, step by step:

| killed | data | journal and view `published` | opened again |
|---|---|---|---|
| before the seal ends | of round f − 1 | releases up to f − 1 | the rounds may get other data, and other answers |
| before the commit ends | of round l, with encrypted releases | the same | these releases are committed |
| later | of round l, perhaps still with them | releases up to l | they are deleted here |

**Privacy.** A release with some noise may be published on one data set only, as the difference of two answers with the
same noise is exact. Whoever reads the journal, or its view, at any moment, sees no release before its commit; and that
comes after the seal, which fixes the data. Whoever reads all files finds no release before its commit in plain bytes,
not even in the log or in dead rows of a transaction that was broken off. Their length can be seen there, by those who
can also read the records. **Retroactivity.** What a seal that was broken off leaves behind is wiped like other remains
of data, since a pass notes that before it seals (`unscrubbed`).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence

import msgspec

from ..errors import VerificationError
from .store import Store
from .tables import Stored

NAME = "staged"
"""The state that says which rounds wait. The names of the others begin with it, too."""
Cipher = Callable[[bytes, bytes], bytes]
"""Encrypts or decrypts a content, tied to a name."""


def staged(first: int, last: int, releases: Sequence[Stored], encrypt: Cipher) -> Iterator[tuple[str, str]]:
    """The states that hold the releases of these rounds."""
    yield NAME, f"{first} {last}"
    for number, release in enumerate(releases):
        name = f"{NAME} {number}"
        content = encrypt(msgspec.msgpack.encode(release), name.encode())
        yield name, base64.b64encode(content).decode()


def waiting(store: Store) -> range:
    """The rounds whose releases wait; none if they are not of these data."""
    first, _, last = (store.state(NAME) or "").partition(" ")
    return range(int(first), int(last) + 1) if last == str(store.sealed) else range(0)


def releases(store: Store, decrypt: Cipher) -> list[Stored]:
    """Those that wait, round by round."""
    found = []
    for name, value in store.states(f"{NAME} ").items():
        try:
            content = decrypt(base64.b64decode(value, validate=True), name.encode())
            found.append(msgspec.msgpack.decode(content, type=Stored))
        except (ValueError, msgspec.MsgspecError):
            raise VerificationError(f"{store.where}: table state: expected a release at {name}, got none") from None
    return sorted(found)


def forget(store: Store) -> None:
    """Once they are committed."""
    if names := [*store.states(NAME)]:
        store.forget_states(names)
