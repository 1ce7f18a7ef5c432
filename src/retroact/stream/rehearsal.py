"""A stream that takes everything and publishes nothing: what it refuses, a stream of this specification refuses."""

from __future__ import annotations

import sys

from ..coins import Key
from .core import Core, Persistence
from .specification import Specification
from .stream import Stream


class Unpublished(Persistence):
    """In memory; every round closes without a release."""

    silent = sys.maxsize


class Rehearsal(Stream):
    """It spends nothing: no noise is drawn, no key is made or read, and nothing is written.

    >>> import retroact as ra
    >>> spec = Specification({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=10)
    >>> stream = Rehearsal(spec)
    >>> stream.add({"age": [31, 44]})
    1
    >>> closed = stream.close_round()
    >>> len(closed), closed.applied.added
    (0, 2)
    """

    def __init__(self, specification: Specification) -> None:
        # erased subjects are rejected in a store alone
        spec = specification.replace(after_erasure="accept")
        self._core = Core.new(spec, Key.for_testing(0), persistence=Unpublished())
