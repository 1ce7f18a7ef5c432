"""The bridge tree of mixed radix: the default for pure epsilon.

With n = k_0 k_1 ... k_(h-1) >= T + 1 boundaries and K_j = k_0 ... k_(j-1), node (j, c) covers boundaries
c K_j .. (c+1) K_j - 1. At every level, within the parent of q, the noise is a random walk over the k_j children tied
down to zero at both ends of the parent: with x = (q mod K_(j+1)) / K_j,
  Z_q = sum over j of [ sum of noise of the children before q + (fraction of q's own child) * its noise
                        - (x / k_j) * sum of noise of all k_j children ].

**Privacy.** A unit at boundary s shifts the h nodes that contain s by +1; the ramps of one level and the steps of the
next telescope. Two boundaries move the nodes that contain one and not the other: at most h each, and exactly that for
some pair because T >= K_(h-1). **l1 = l2_squared = 2h**, attained. Weights are multiples of 1/n with n a power of two.
**Retroactivity.** Nodes and weights depend on the round alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ..arrays import I64
from ..errors import InputError
from .process import Process, Shift, Terms, check_horizon

# Weights are at most the length and indices below it: both are far inside 64 bits.
LONGEST = 1 << 42


class Bridge(Process):
    """
    >>> Bridge(65535).radices, Bridge(65535).l1
    ((16, 16, 16, 16), Fraction(8, 1))
    """

    kind: ClassVar[str] = "bridge"

    def __init__(self, horizon: int, *, radices: Sequence[int] | None = None) -> None:
        self.horizon: int = check_horizon(horizon)
        self.radices = default_radices(horizon) if radices is None else tuple(radices)
        self.length, self.levels = math.prod(self.radices), len(self.radices)
        if any(k < 2 or k & (k - 1) for k in self.radices):
            raise InputError(f"expected powers of two from 2 on, got {self.radices}", place="radices")
        if self.length > LONGEST:
            raise InputError(f"expected a product of at most 2^42, got {self.radices}", place="radices")
        if self.length < horizon + 1 or self.length // self.radices[-1] > horizon:
            raise InputError(
                f"expected radices whose product reaches horizon + 1 = {horizon + 1} and needs the last of them, "
                f"got {self.radices} with product {self.length}",
                place="radices",
            )

    def nodes(self, level: int) -> int:
        return self.length // self._span(level)

    def terms_at(self, rounds: I64) -> Terms:
        n = self.length
        levels, indices, weights = [], [], []
        span = 1
        for level, k in enumerate(self.radices):
            child = np.arange(k)
            inside = rounds[:, None] % (span * k)
            # How much of each child lies before q, minus the ramp, in units of 1/n.
            covered = np.clip(inside - child * span, 0, span) * (n // span)
            weights.append(covered - inside * (n // (span * k)))
            indices.append(rounds[:, None] // (span * k) * k + child)
            levels.append(np.full(indices[-1].shape, level))
            span *= k
        return Terms(np.hstack(levels), np.hstack(indices), np.hstack(weights), n)

    def shift(self, boundary: int) -> Shift:
        return {(level, boundary // self._span(level)): 1 for level in range(self.levels)}

    def charge(self, p: int) -> Fraction:
        return Fraction(2 * self.levels)

    @property
    def kernel_squared(self) -> Fraction:
        """All children of one parent up by one: their walk and their ramp cancel."""
        return Fraction(max(self.radices))

    def _span(self, level: int) -> int:
        return math.prod(self.radices[:level])


@lru_cache(maxsize=256)
def default_radices(horizon: int) -> tuple[int, ...]:
    """The radices up to 64 with the smallest worst error h * sqrt(sum of k) for this horizon."""
    return min(partitions(horizon.bit_length(), 6), key=lambda ks: (len(ks) ** 2 * sum(ks), len(ks)))


def partitions(bits: int, largest: int, smallest: int = 1) -> Iterator[tuple[int, ...]]:
    """All non-increasing sequences of exponents that add up to the bits, as powers of two.

    >>> list(partitions(4, 3, 2)), list(partitions(0, 3))
    ([(4, 4)], [()])
    """
    if bits == 0:
        yield ()
    for exponent in range(min(largest, bits), smallest - 1, -1):
        for rest in partitions(bits - exponent, exponent, smallest):
            yield (1 << exponent, *rest)
