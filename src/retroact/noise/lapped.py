"""The lapped tree: the default for pure epsilon over a known horizon.

Level 0 has a node for each boundary. Node l of level j + 1 gathers the nodes i of level j with l k - k <= i < l k + k,
in four half blocks with the shares 1/4, 3/4, 3/4, 1/4: every node gives all of itself, to two parents. With spans
P_j = k_0 ... k_(j-1), a unit at boundary s and the step of round q are smoothed level by level:
  phi_0 = 1 at s,          phi_(j+1)(l) = sum over i of share(i, l) * phi_j(i),
  H_0(i) = 1[i < q],       H_j(l) = clip((q + (P_1 + ... + P_(j-1)) / 2) / P_j - l + 1/2, 0, 1).
Node (j, i) has the weight H_j(i) - sum over l of share(i, l) * H_(j+1)(l), at the top level H(i) - g, where g is about
the mean of H over the nodes there.

**Privacy.** phi_(j+1) is the share-weighted sum of phi_j, so the weights of level j times phi_j are F_j - F_(j+1), with
F_j = sum of H_j * phi_j. They telescope to F_0 - g = 1[s < q] - g, whatever H_1, H_2, ... and g are: a unit at s shifts
level j by phi_j. That is not negative and sums to 1, so two boundaries move level j by at most 2, exactly that if they
share no node. With scales 1/w_j, **l1 = 2 * sum of w_j**; one boundary alone moves the sum of w_j. phi_j is a multiple
of 4^-j, the lattice of level j, and weights are multiples of 1/(8 P): all of it is integers (docs/proofs.md, 2a).
Laplace noise only: nothing is claimed for Gaussian noise.
**Retroactivity.** Nodes and weights depend on the round alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ..arrays import I64
from ..errors import InputError
from .bridge import partitions
from .process import Process, Shift, Terms, check_horizon

LAPLACE = "lapped noise is for pure epsilon: give no delta, or take noise='schauder'"
# A top level of 2^TOP nodes or more has another level above it.
TOP = 6
# Widths are whole numbers; those that are chosen are eighths of that of level 0.
WIDTH = 8
WIDEST = 1 << 10
# Denominators up to this leave room for weights and their sums in 64 bits.
FINEST = 1 << 57


class Lapped(Process):
    """
    >>> Lapped(65535).radices, Lapped(65535).l1
    ((16, 16, 16), Fraction(33, 4))
    """

    kind: ClassVar[str] = "lapped"
    pure_only: ClassVar[bool] = True

    def __init__(
        self, horizon: int, *, radices: Sequence[int] | None = None, widths: Sequence[int] | None = None
    ) -> None:
        self.horizon: int = check_horizon(horizon)
        self.radices = default_radices(horizon) if radices is None else tuple(radices)
        if any(k < 4 or k & (k - 1) for k in self.radices) or math.prod(self.radices) > horizon:
            raise InputError(
                f"expected powers of two from 4 on with a product of at most the horizon, got {self.radices}",
                place="radices",
            )
        self.spans, self.counts = spans_and_counts(horizon, self.radices)
        self.levels = len(self.spans)
        self.widths = widths_for(self.radices, self.counts[-1]) if widths is None else tuple(widths)
        if len(self.widths) != self.levels or not all(0 < width <= WIDEST for width in self.widths):
            raise InputError(f"expected {self.levels} widths from 1 to {WIDEST}, got {self.widths}", place="widths")
        self._offsets = [0, *(sum(self.spans[1:level]) // 2 for level in range(1, self.levels))]
        # Weights before the lattice: g is rounded to this, a small part of 1 / the number of nodes at the top.
        self._unit = max(8 * self.spans[-1], 16 << self.counts[-1].bit_length())
        if self._unit << 2 * (self.levels - 1) > FINEST:
            raise InputError(f"expected fewer or smaller radices, got {self.radices}", place="radices")

    def nodes(self, level: int) -> int:
        return self.counts[level]

    def _passed(self, level: int, nodes: I64, rounds: I64) -> I64:
        """H, in units."""
        if level == 0:
            return np.where(nodes < rounds, self._unit, 0)
        span = self.spans[level]
        halves = 2 * (rounds + self._offsets[level] - nodes * span) + span
        passed: I64 = np.clip(halves, 0, 2 * span) * (self._unit // (2 * span))
        return passed

    def terms_at(self, rounds: I64) -> Terms:
        q, top = rounds[:, None], self.levels - 1
        levels, indices, weights = [], [], []
        for level, k in enumerate(self.radices):
            # One parent is neither passed nor ahead; only its children have a weight.
            span = self.spans[level + 1]
            parent = (2 * (q + self._offsets[level + 1]) + span) // (2 * span)
            nodes = (parent - 1) * k + np.arange(2 * k)
            left = nodes // k
            low, high = self._passed(level + 1, left, q), self._passed(level + 1, left + 1, q)
            shared = np.where(nodes % k < k // 2, 3 * low + high, low + 3 * high) // 4
            there = (nodes >= 0) & (nodes < self.counts[level])
            levels.append(np.full(nodes.shape, level))
            indices.append(np.where(there, nodes, 0))
            weights.append(np.where(there, self._passed(level, nodes, q) - shared, 0) << 2 * (top - level))
        nodes = np.broadcast_to(np.arange(self.counts[top]), (len(rounds), self.counts[top]))
        passed = self._passed(top, nodes, q)
        mean = (2 * passed.sum(axis=1, keepdims=True) + self.counts[top]) // (2 * self.counts[top])
        levels.append(np.full(nodes.shape, top))
        indices.append(nodes)
        weights.append(passed - mean)
        return Terms(np.hstack(levels), np.hstack(indices), np.hstack(weights), self._unit << 2 * top)

    def shift(self, boundary: int) -> Shift:
        """phi of every level, in steps of its lattice."""
        out: Shift = {}
        parts = {boundary: 1}
        for level, k in enumerate([*self.radices, 0]):
            out.update({(level, node): part for node, part in parts.items()})
            above: dict[int, int] = {}
            for node, part in parts.items() if k else ():
                low = 3 if node % k < k // 2 else 1
                for parent, share in ((node // k, low), (node // k + 1, 4 - low)):
                    above[parent] = above.get(parent, 0) + share * part
            parts = above
        return out

    def spread(self, level: int, p: int) -> Fraction:
        return Fraction(self.widths[0] * 4**level, self.widths[level])

    def charge(self, p: int) -> Fraction:
        if p == 2:
            raise InputError(LAPLACE)
        return Fraction(2 * sum(self.widths), self.widths[0])


def spans_and_counts(horizon: int, radices: Sequence[int]) -> tuple[list[int], list[int]]:
    """The boundaries that a node spans, and the number of nodes, for each level.

    >>> spans_and_counts(100, (8,))
    ([1, 8], [101, 14])
    """
    spans, counts = [1], [horizon + 1]
    for k in radices:
        spans.append(spans[-1] * k)
        counts.append((counts[-1] - 1) // k + 2)
    return spans, counts


def sizes(radices: Sequence[int], top: int) -> list[int]:
    """About the largest sum of squared weights of each level, in hundredths: 18 k at level 0, where the step is sharp,
    a sixth of k above it; a quarter of the nodes at the top."""
    return [*(18 * k if level == 0 else 50 * k // 3 for level, k in enumerate(radices)), 25 * (top - bool(radices))]


def widths_for(radices: Sequence[int], top: int) -> tuple[int, ...]:
    """Proportional to the cube roots of the sizes, which makes the variance least for a given sum of the widths."""
    first, *others = sizes(radices, top)
    return WIDTH, *(_nearest_root(8 * WIDTH**3 * size, first) for size in others)


def _nearest_root(numerator: int, denominator: int) -> int:
    """The whole number nearest to half the cube root of a ratio, from 1 on."""
    found = 1
    while (2 * found + 1) ** 3 * denominator <= numerator:
        found += 1
    return found


@lru_cache(maxsize=256)
def default_radices(horizon: int) -> tuple[int, ...]:
    """The radices from 4 to 32 with the least (sum of w)^2 * sum of size / w^2: about the worst variance."""
    bits, found = horizon.bit_length(), []
    for reached in range(max(0, bits - TOP), bits):
        for radices in partitions(reached, 5, 2):
            top = spans_and_counts(horizon, radices)[1][-1]
            widths = widths_for(radices, top)
            parts = zip(sizes(radices, top), widths, strict=True)
            cost = sum(widths) ** 2 * sum((Fraction(size, width**2) for size, width in parts), Fraction(0))
            found.append((cost, len(radices), radices))
    return min(found)[2]
