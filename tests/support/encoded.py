"""Stateful algorithms, smoothed or not, with bytes as answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from retroact.coins import Key
from retroact.ledger.definition import Update


class Encoded:
    """A stateful algorithm, smoothed or not, with bytes as answers."""

    def __init__(self, inside: Any) -> None:
        self.inside = inside

    def close(self, updates: Sequence[Update]) -> bytes:
        answer = self.inside.close(updates)
        encoded: bytes = answer.encode() if hasattr(answer, "encode") else str(answer).encode()
        return encoded


@dataclass(frozen=True)
class Encode:
    """Makes an `Encoded` algorithm from a function of a key and a second key for smoothing.

    >>> from retroact.ledger.definition import Add
    >>> from retroact.compilers.maps import RankMap
    >>> from retroact.compilers.smooth import smooth
    >>> from retroact.stateful import MedianTracker
    >>> def median(key, own):
    ...     base = MedianTracker(0, 9, 3, epsilon=60, delta=1e-6, records=100, key=key)
    ...     return smooth(base, failure=1e-4, map=RankMap(0, 9), key=own)
    >>> Encode(median)(Key.for_testing(1)).close([Add(5)])[:4]
    b'(1, '
    """

    make: Callable[[Key, Key], Any]

    def __call__(self, key: Key, /) -> Encoded:
        return Encoded(self.make(key, Key(key.derive("smoothing"), testing=key.testing)))
