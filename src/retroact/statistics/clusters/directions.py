"""Random directions from coins, in whole numbers: which side of a hyperplane a point lies on is decided exactly.

Dot products of such directions with points of the ball are sums of integers, and the absolute values of all their terms
add up to at most ||u|| ||x|| <= (2 * 2^20 + 2^7) * 2^16 < 2^38 (by Cauchy and Schwarz; isqrt and floors lengthen a
direction of at most 2^14 coordinates by less than that). So a product of float matrices is exact, whatever the order of
its sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

import numpy as np

from ...arrays import F64, I64
from ...coins import Coins, DiscreteGaussian, integer_cells

# The length of a direction.
LENGTH = 1 << 20
COARSE = Fraction(1 << 24)


def seed_of(coins: Coins, purpose: str) -> bytes:
    """The seed of a stream's geometry: a function of its key, not of its data."""
    high, low = coins.branch(purpose).words([0], [0]).block(0)
    return int(high[0, 0]).to_bytes(8, "little") + int(low[0, 0]).to_bytes(8, "little")


def orthogonal(seed: bytes, count: int, dimension: int) -> F64:
    """``count`` directions, each orthogonal to those before it up to rounding (dimension by count)."""
    found: list[list[int]] = []
    for vector in _normal(seed, count, dimension).tolist():
        own = [part << 20 for part in vector]
        for other in found:
            inner = _dot(own, other)
            square = _dot(other, other)
            own = [a - (inner * b) // square for a, b in zip(own, other, strict=True)]
        found.append(_scaled(own))
    return _frozen(np.array(found, dtype=np.float64).T)


def independent(seed: bytes, count: int, dimension: int) -> F64:
    """``count`` independent directions (dimension by count)."""
    vectors = [_scaled(vector) for vector in _normal(seed, count, dimension).tolist()]
    return _frozen(np.array(vectors, dtype=np.float64).T)


def _normal(seed: bytes, count: int, dimension: int) -> I64:
    words = Coins(seed).words(np.zeros(count, dtype=int), np.arange(count), integer_cells(dimension))
    return DiscreteGaussian(COARSE).sample(words)


def _scaled(vector: Sequence[int]) -> list[int]:
    length = max(1, isqrt(_dot(vector, vector)))
    return [part * LENGTH // length for part in vector]


def _dot(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _frozen(array: F64) -> F64:
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array
