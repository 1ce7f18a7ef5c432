"""Noise for changes in any set of releases: one common noise and fresh ones, on the grid of halves.

Releases are cut into blocks of n, each with separate noise:
  Z_l = (common(block) + fresh(l)) / 2.

**Privacy.** A pattern d of 0 and 1 over a block is (1 + (2d - 1)) / 2: it moves the common noise by 1 and the fresh
noise of every release of the block by 2 d_l - 1 = +-1, whatever d is. So a block costs 1/c + n/f in the spreads c of
the common and f of the fresh noise (variances for the squared second norm, scales for the first). `balance` makes that
1 with the least error: the variance of Z is ((sqrt(n) + 1) / 2)^2 for Gaussian noise, about a quarter of that of fresh
noise alone. For square n no data-independent Gaussian noise is better; for other n at most a fraction 1/(n^2 - 1) could
be gained, and `by_size` gains most of it. Blocks that d does not touch do not move. Spreads are k times these, with
  R releases:  one block, n = R, k = 1;
  a window:    d lies within w releases in a row, which meet at most two blocks of n = w: k = 2;
  neither:     block i has n = first * 2^i and k = (i+1)(i+2): the sum of 1/k over all blocks is 1.
**l1 = l2_squared = 1**, attained (without a horizon approached). Node values that leave the rounds up to t alone
(docs/proofs.md, 3a) have as a basis "fresh(l) up by one" for l > t, and for every block "common up by one, fresh(l)
down by one" for its l <= t, which no round sees if the whole block is past: at most 1/c + n/f, **kernel_squared = 1**.
**Retroactivity.** Blocks are numbers of releases, nodes and weights depend on the release alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ..arrays import I64
from ..errors import InputError
from .process import Normed, Shift, Terms, check_horizon
from .unbounded import STRIDE

# Common noise of block i has level 64 i where blocks grow and level 0 otherwise; fresh noise has the next level.
COMMON, FRESH = 0, 1
# Spreads are rational. The optimum is flat, so this grid loses nothing.
GRID = 1 << 10


class AnyRounds(Normed):
    """
    >>> AnyRounds(10_000).variance(1) ** 0.5, AnyRounds(None, window=100).variance(10**9) ** 0.5
    (50.5, 7.7781745930520225)
    """

    kind: ClassVar[str] = "any_rounds"

    def __init__(self, horizon: int | None, *, window: int | None = None, first: int = 1024) -> None:
        self.horizon = None if horizon is None else check_horizon(horizon, "releases")
        self.window = None if window is None else check_horizon(window, "window")
        self.first = check_horizon(first, "first")
        # Two blocks of a window cost more than one of twice its length.
        whole = horizon is not None and (window is None or horizon <= 2 * window)
        self._length = horizon if whole else window

    def block(self, number: int) -> tuple[int, int, int]:
        """The last release before the block, its length n, its factor k."""
        if self._length is None:
            return self.first * ((1 << number) - 1), self.first << number, (number + 1) * (number + 2)
        alone = self._length in (1, self.horizon)
        return self._length * number, self._length, 1 if alone else 2

    def _numbers(self, rounds: I64) -> I64:
        if self._length is not None:
            return (rounds - 1) // self._length
        return np.array([((r - 1) // self.first + 1).bit_length() - 1 for r in rounds.tolist()], dtype=np.int64)

    def terms_at(self, rounds: I64) -> Terms:
        numbers = self._numbers(rounds)
        base = numbers * STRIDE if self._length is None else 0 * numbers
        indices = np.stack([numbers, rounds], axis=1)
        return Terms(np.stack([base + COMMON, base + FRESH], axis=1), indices, np.ones_like(indices), 2)

    def shift(self, boundary: int) -> Shift:
        """Minus twice the fresh noise so far: a step, up to a common offset. `shift_hiding` hides an interval at a
        lower cost, and that is the one that counts."""
        terms = self.weights_of(np.arange(1, boundary + 1))
        return dict.fromkeys(zip(*_fresh(terms), strict=True), -2)

    def shift_hiding(self, pattern: Sequence[int]) -> Shift:
        factor, intervals = self.runs(pattern)
        if intervals and self.window is not None and intervals[-1][1] - intervals[0][0] > self.window:
            raise InputError(f"expected all changes within {self.window} releases", place="pattern")
        touched = self._numbers(np.flatnonzero(pattern) + 1)
        out: Shift = {}
        for number in np.unique(touched).tolist():
            start, length, _ = self.block(number)
            end = min(start + length, self.horizon or start + length)
            terms = self.weights_of(np.arange(start + 1, end + 1))
            out[int(terms.levels[0, 0]), number] = factor
            for level, index in zip(*_fresh(terms), strict=True):
                changed = index <= len(pattern) and pattern[index - 1] != 0
                out[level, index] = factor if changed else -factor
        return out

    def spread(self, level: int, p: int) -> Fraction:
        number, kind = divmod(level, STRIDE)
        _, length, factor = self.block(number)
        return factor * balance(Fraction(1, 4), length, p)[kind]

    @property
    def kernel_squared(self) -> Fraction:
        return Fraction(1)


def _fresh(terms: Terms) -> tuple[list[int], list[int]]:
    return terms.levels[:, FRESH].tolist(), terms.indices[:, FRESH].tolist()


@lru_cache(maxsize=1024)
def balance(variance: Fraction, cost: int, p: int) -> tuple[Fraction, Fraction]:
    """Spreads (c, s) of a common noise that has weight 1/2 and moves by 1, and of other noise whose moves cost
    ``cost`` / s and which adds ``variance`` at spread 1.

    c = 1 + g and s = cost * (1 + 1/g) cost 1/(1+g) + g/(1+g) = 1 together, for every g. The sum of c/4 + variance * s
    (Gaussian) is least for g^2 = 4 variance * cost, that of c^2/4 + variance * s^2 (Laplace) for g^3 = 4 variance *
    cost^2. Rounding g loses no privacy.

    >>> balance(Fraction(1, 4), 100, 2)
    (Fraction(11, 1), Fraction(110, 1))
    """
    degree = 4 - p
    g = Fraction(root(int(4 * variance * cost ** (3 - p) * GRID**degree), degree), GRID)
    return 1 + g, cost * (1 + 1 / g)


def root(value: int, degree: int) -> int:
    """The largest integer whose power is at most the value."""
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= value else (low, middle)
    return low
