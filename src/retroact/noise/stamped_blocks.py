"""Noise for changes that have one end in every block of rounds, however many blocks there are.

Rounds are cut into public blocks of B. With a tree `OneSided` of n = 2^m >= B boundaries in each and a common noise,
  Z_q = common / 2 + past_b(q) - root_b / 2,   q = 1 .. B the position in block b:
the root is weighted by the tilted ramp q/n - 1/2.

**Patterns.** Of 0 and 1 (times one number), in every block 1 from some position to its end or from its beginning to
some position (or nowhere, or throughout), except that one block may have any interval.

**Privacy.** `OneSided` hides 1[q > a] and moves its root by 1, so with root/2 taken off the same shift r_a of a block
hides 1[q > a] - 1/2 for a = 0 .. n - 1, and -r_a hides 1[q <= a] - 1/2; "nowhere" is -r_0. The common noise, moved by
1, adds 1/2 in every round. So every block is moved by +-r_a, m + 1 nodes by 1 each. In the block with the interval
1[a < q <= b], 0 < a < b < B, it is r_a - r_b - r_0: the root is moved by 1, and the tree by changes at 0, a and b with
alternating signs. As in `few_changes`, with k = 3, O_m = O_(m-1) = 1 and O_j <= 3 below, that is at most 3m - 2 in the
first norm and 3 + (3m - 2) - 1 = 3m in the squared second, attained by a = n/4, b = n/2 < B. In all, for N blocks,
  E = (N - 1)(m + 1) + 3m + 1 (Gaussian) or + 3m - 1 (Laplace), and N(m + 1) if m < 2, where no block has room inside,
at one spread for all blocks. `any_rounds.balance` divides between them and the common noise:
**l1 = l2_squared = 1**, attained. With V the largest variance of a round at spread 1 without the common noise, which is
that of q = n/3, the worst variance is (1/2 + sqrt(V E))^2 for Gaussian noise. Blocks of one round are `AnyRounds`.

**What no round sees.** The independent vectors that docs/proofs.md, 3a, asks for, among the node values that leave the
rounds up to t alone: for every later position, and for positions beyond B that are never released, the move that hides
it alone, which is r_(q-1) - r_q, or r_(n-1) + r_0 for q = n: 2m + 2 in the squared norm, below E if m >= 2. For m < 2
every position has its own node. And "common up by one, -r_0 in every block", which no round sees and costs
1/c + N(m + 1)/s <= 1. As many as nodes minus rounds; **kernel_squared = 1**.
**Retroactivity.** Blocks are numbers of rounds, nodes and weights depend on the round alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..arrays import I64
from ..errors import InputError
from .any_rounds import balance
from .one_sided import OneSided
from .process import Normed, Shift, Terms, check_horizon, combined


class StampedBlocks(Normed):
    """
    >>> [round(StampedBlocks(length, 65_536).worst() ** 0.5, 1) for length in (1, 16, 256)]
    [128.5, 110.1, 49.3]
    """

    kind: ClassVar[str] = "stamped_blocks"

    def __init__(self, length: int, horizon: int) -> None:
        self.horizon: int = check_horizon(horizon)
        self.length = min(check_horizon(length, "length"), horizon)
        self.inner, self.count = OneSided(self.length), -(-horizon // self.length)
        self._common = self.inner.levels + 1
        """The level of the common noise, above the roots."""

    def terms_at(self, rounds: I64) -> Terms:
        block, position = np.divmod(rounds - 1, self.length)
        inner = self.inner.terms_at(position + 1)
        nodes = np.array([self.inner.nodes(level) for level in range(self._common)])
        common = np.zeros((len(rounds), 1), dtype=np.int64)
        half = self.inner.length
        weights = 2 * inner.weights - half * (inner.levels == self.inner.levels)
        trees = Terms(inner.levels, inner.indices + block[:, None] * nodes, weights, 2 * half)
        return trees.extended(common + self._common, common, common + half)

    def shift(self, boundary: int) -> Shift:
        """`shift_hiding` hides an interval at a lower cost than a difference of these, and that is the one that
        counts."""
        return self.shift_hiding([0] * boundary + [1] * (self.horizon - boundary))

    def shift_hiding(self, pattern: Sequence[int]) -> Shift:
        factor, intervals = self.runs(pattern)
        if not intervals:
            return {}
        present = np.zeros(self.count * self.length, dtype=np.int64)
        present[: len(pattern)] = np.asarray(pattern) != 0
        # Rounds of the last block that are never released are free.
        present[self.horizon :] = present[self.horizon - 1]
        out: Shift = {(self._common, 0): factor}
        inner = 0
        for block, row in enumerate(present.reshape(self.count, self.length).tolist()):
            parts = self._steps(row)
            inner += len(parts) > 1
            for (level, index), value in combined(*((sign, self.inner.shift(a)) for sign, a in parts)).items():
                out[level, index + block * self.inner.nodes(level)] = factor * value
        if inner > 1:
            raise InputError(f"expected one block with an interval inside, got {inner}", place="pattern")
        return out

    def _steps(self, row: list[int]) -> list[tuple[int, int]]:
        """Signs and boundaries of the shifts for the pattern of one block."""
        edges = [q for q in range(1, len(row)) if row[q] != row[q - 1]]
        if len(edges) > 2 or (len(edges) == 2 and row[0]):
            raise InputError(f"expected one interval in every block, got {row}", place="pattern")
        if len(edges) == 2:
            return [(1, edges[0]), (-1, edges[1]), (-1, 0)]
        # One step up or down; without one, everything from the start on, or its opposite.
        return [(1 if row[-1] else -1, edges[0] if edges else 0)]

    def spread(self, level: int, p: int) -> Fraction:
        common, other = balance(self._variance, self._cost(p), p)
        return common if level == self._common else other

    def _cost(self, p: int) -> int:
        """E: how much all blocks are moved."""
        m = self.inner.levels
        single = m + 1 if m < 2 else 3 * m - 1 if p == 1 else 3 * m + 1
        return (self.count - 1) * (m + 1) + single

    @cached_property
    def _variance(self) -> Fraction:
        """V: at x = 1/3 all triangles are 2/3, as high as they can be together."""
        terms = self.weights_of(np.array([max(1, (self.inner.length + 1) // 3)]))
        return sum((Fraction(w, terms.denominator) ** 2 for w in terms.weights[0, :-1].tolist()), Fraction(0))

    def worst(self, p: int = 2) -> float:
        """The largest variance of a round, as in `variances`."""
        common, other = balance(self._variance, self._cost(p), p)
        return float(common ** (3 - p) / 4 + self._variance * other ** (3 - p))

    @property
    def kernel_squared(self) -> Fraction:
        return Fraction(1)


def best_block(horizon: int, mu: float, additions: float, every: int = 1, *, p: int = 2) -> int:
    """The block length, in rounds, with the smallest worst error of a count that omits what was added since its block
    began: a standard deviation of the noise, at mu (p = 2) or epsilon (p = 1), plus the bias, which is between 0 and
    ``additions`` a round, and half of that once centred. Releases are every ``every`` rounds. Only powers of two
    releases are tried: they use all boundaries of their trees.

    >>> best_block(65_536, 0.2367, 1.0)
    128
    """
    releases = max(1, check_horizon(horizon) // every)

    def error(length: int) -> float:
        worst = StampedBlocks(length, releases).worst(p) * (1 if p == 2 else 2)
        return math.sqrt(worst) / mu + additions * (length * every - 1) / 2

    return every * min((1 << i for i in range(releases.bit_length())), key=error)
