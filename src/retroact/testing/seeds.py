"""All randomness of an audit, by name from one seed: the same on any number of cores, in any order of tests.

The keys of an audit follow from its seed, so anybody can guess them: nothing made with them is private.
"""

from __future__ import annotations

import hashlib
from random import Random

import numpy as np

from ..coins import Coins, Key


class Seeds:
    """
    >>> Seeds(7).branch("twin").random().random() == Seeds(7).branch("twin").random().random()
    True
    >>> Seeds(7).branch("twin").number(0) == Seeds(8).branch("twin").number(0)
    False
    """

    def __init__(self, seed: int, *names: str | int) -> None:
        self._path: tuple[str | int, ...] = (seed, *names)

    def branch(self, *names: str | int) -> Seeds:
        """Separate randomness for one test, or one part of it."""
        return Seeds(*self._path, *names)  # type: ignore[arg-type]

    def number(self, index: int = 0) -> int:
        """A number of 63 bits."""
        text = "\0".join(map(repr, (*self._path, index)))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1

    def random(self) -> Random:
        return Random(self.number())

    def numpy(self) -> np.random.Generator:
        return np.random.default_rng(self.number())

    def key(self, index: int = 0) -> Key:
        """A throw-away key."""
        return Key.for_testing(self.number(index))

    def coins(self) -> Coins:
        return self.key().coins("audit")
