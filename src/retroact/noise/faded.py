"""Crossfade noise: white noise on coarse grids of rounds, each faded from one grid point to the next with constant
power, and fresh noise in every round.

  Z_q = fresh(q) + sum over levels j of W(1 - f) * node(j, i) + W(f) * node(j, i + 1),   i + f = q / P_j,
  W(f)^2 = f^2 (3 - 2f) + 2 f^2 (1 - f)^2 (1 - 2f),   so that W(f)^2 + W(1 - f)^2 = 1.

The spacings P_j grow by 4; the standard deviations, in units of the fresh noise, are the widths. So all rounds have
nearly the same variance, 1 + the sum of the widths squared. W is rounded to multiples of 2^-12 at 1,024 phases, by
whole square roots: the same integers on every machine. Position 0 of a grid is never a round.

**Privacy.** Fresh noise makes every change of the coarse nodes, also by real numbers, complete: put y_0 = v - L y for
any y, and the noise moves by exactly v. The least cost of that is v' S^-1 v with S = I + L diag(widths^2) L', the
covariance; l2_squared is its largest value over the intervals that are hidden, computed for the weights as rounded
(`crossfade_table`). That this is the cost also on the lattice of the noise, for streams that adapt to what they see, is
docs/proofs.md, 3c. It needs sigma >= 4 times the square root of `kernel_squared`, which `Mechanism` sees to.
**Retroactivity.** Nodes and weights depend on the round alone.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ..arrays import I64
from ..errors import InputError
from . import crossfade_table as table
from .least_move import least_move
from .process import Process, Shift, Terms

BITS = 12
PHASES = 1024
GAUSSIAN = "crossfade noise is Gaussian: give a delta above 0, or take noise='bridge'"


@lru_cache(maxsize=1)
def weights() -> I64:
    """round(2^12 W(i / 1024)) for i = 0 .. 1024.

    >>> weights()[[0, 1, 512, 1024]].tolist()
    [0, 9, 2896, 4096]
    """
    n, out = PHASES, []
    for i in range(n + 1):
        square = i * i * (n * n * (3 * n - 2 * i) + 2 * (n - i) ** 2 * (n - 2 * i))  # over n^5
        out.append((math.isqrt((square << 2 * BITS + 2) // n**5) + 1) >> 1)
    return np.array(out, dtype=np.int64)


@lru_cache(maxsize=1)
def weights_hash() -> str:
    return hashlib.sha256(",".join(map(str, weights().tolist())).encode()).hexdigest()


def spacings(bits: int) -> tuple[int, ...]:
    """The spacings up to half of 2^bits.

    >>> spacings(6), spacings(7)
    ((2, 8, 32), (4, 16, 64))
    """
    return tuple((2 + 2 * (bits % 2)) * 4**j for j in range(bits // 2))


class Faded(Process):
    """A coarse node moves in steps 2^12 times those of the fresh noise, so that weights are whole."""

    gaussian_only: ClassVar[bool] = True
    crossable: ClassVar[bool] = False
    spacings: tuple[int, ...]
    widths: tuple[Fraction, ...]
    squared: Fraction

    def spec(self, *, digest: bool = False) -> dict[str, Any]:
        """The parameters, with all that privacy depends on."""
        made = {"spacings": list(self.spacings), "widths": list(map(str, self.widths)), "weights": weights_hash()}
        return {**super().spec(digest=digest), "squared": str(self.squared), **made}

    def terms_at(self, rounds: I64) -> Terms:
        """The fresh node first, then two nodes for each level."""
        one, steps = np.ones_like(rounds), weights()
        levels, indices, found = [0 * one], [rounds], [one]
        for level, spacing in enumerate(self.spacings, 1):
            left, position = np.divmod(rounds, spacing)
            phase = position * PHASES // spacing
            levels += [level * one] * 2
            indices += [left, left + 1]
            found += [steps[PHASES - phase], steps[phase]]
        return Terms(np.stack(levels, axis=1), np.stack(indices, axis=1), np.stack(found, axis=1), 1)

    def shift(self, boundary: int) -> Shift:
        if self.horizon is None:
            raise InputError("expected a pattern to hide: this noise has no last round")
        return least_move(self, self.horizon, boundary, self.horizon, 1)

    def shift_hiding(self, pattern: Sequence[int]) -> Shift:
        """By real numbers, and the least that hides it among the rounds of the pattern."""
        factor, intervals = self.runs(pattern)
        if len(intervals) > 1:
            raise InputError(f"expected one interval of rounds, got {len(intervals)}", place="pattern")
        return least_move(self, len(pattern), *intervals[0], factor) if intervals else {}

    def spread(self, level: int, p: int) -> Fraction:
        width = self.widths[level - 1] / (1 << BITS) if level else Fraction(1)
        return width * width

    def charge(self, p: int) -> Fraction:
        if p == 1:
            raise InputError(GAUSSIAN)
        return self.squared

    @property
    def kernel_squared(self) -> Fraction:
        return Fraction(table.KERNEL) * (1 << 2 * BITS)

    def discreteness(self, variance: Fraction) -> Fraction:
        """Of sigma^2 steps, 16 go into rounding to the lattice, and (1 + 8/v)^2 > 1 + 16/v."""
        return 1 + 8 / variance
