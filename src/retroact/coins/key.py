"""The secret key, and the rule that it drives one stream only.

The same noise on two data sets reveals their difference, so a key refuses a second stream. Testing keys are the
exception: the twin check runs two streams under one key.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import NoReturn

from ..checks import integer
from ..errors import InputError, KeyReusedError
from .coins import Coins

SIZE = 32

# The keys that already drive a stream in this process, by fingerprint (two Key objects may hold one secret), and the
# place of its store; a stored stream may be opened again from there.
_claimed: dict[bytes, str | None] = {}
_lock = threading.Lock()


class Key:
    """A secret of 32 bytes. It never appears in a repr, a pickle, a log or a release.

    >>> Key.generate()
    Key(secret)
    >>> Key.for_testing(7)
    Key(testing)
    """

    __slots__ = ("_secret", "testing")

    def __init__(self, secret: bytes, *, testing: bool = False) -> None:
        if not isinstance(secret, bytes) or len(secret) != SIZE:
            raise InputError(f"expected a key of {SIZE} bytes")
        self._secret = secret
        self.testing = testing

    @classmethod
    def generate(cls) -> Key:
        """A fresh key from the operating system's entropy."""
        return cls(os.urandom(SIZE))

    @classmethod
    def for_testing(cls, seed: int) -> Key:
        """A key that anybody can guess. Never publish what was made with it."""
        integer(seed, "seed")
        return cls(hashlib.blake2b(f"testing:{seed}".encode(), digest_size=SIZE).digest(), testing=True)

    def claim(self, where: str | None = None, *, only_try: bool = False) -> None:
        """Mark this key as the key of a stream, unless this is only tried; the second time raises, unless it is the
        same place of a store."""
        if self.testing:
            return
        mark = hashlib.blake2b(self._secret, digest_size=16, person=b"retroact-claim").digest()
        with _lock:
            known = mark in _claimed and (where is None or _claimed[mark] != where)
            if not only_try:
                _claimed.setdefault(mark, where)
        if known:
            raise KeyReusedError(
                "this key already drives a stream; the same noise on two data sets would reveal their difference. "
                "Use Key.generate() for every stream (Key.for_testing(seed) in tests)",
                place="key",
            )

    def coins(self, *name: str | int | bytes) -> Coins:
        """The branch of coins under ``name``."""
        return Coins(self._secret).branch("retroact/1", 0, *name)

    def derive(self, purpose: str) -> bytes:
        """A secret of 32 bytes for a purpose other than noise; a different one for each name."""
        return hashlib.blake2b(purpose.encode(), digest_size=SIZE, key=self._secret, person=b"retroact-derive").digest()

    def __repr__(self) -> str:
        return "Key(testing)" if self.testing else "Key(secret)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not pickled: hand the secret over by a channel made for secrets")
