"""Noise for changes in any set of a known number of releases, hidden by how many of them change.

  Z_l = (common + fresh(l)) / D,   l = 1 .. R.

`AnyRounds` moves its common noise by one half, whatever the pattern. Here it moves by more the more releases change.
Each law has a whole number k with R/2 <= k <= R, the one of least variance.

**Privacy**, Gaussian noise (``p = 2``). D = 2k + 1. A pattern d of j ones is hidden by moving the common noise by j and
fresh(l) by D d_l - j. With spreads F = k (k + 1) D of the fresh noise and C = F / (D - R) of the common one that costs
  j^2/C + (j (D - j)^2 + (R - j) j^2)/F = (j^2 (D - R) + j D^2 - 2 j^2 D + R j^2)/F = j (D - j)/(k (k + 1)) <= 1,
with equality for j = k and j = k + 1. The variance is (C + F)/D^2 = k (k + 1)/D * (1 + 1/(D - R)).

*How good it is.* Averaged over all orders of the releases, any covariance S takes the form a I + b J. The mean of its
diagonal is no larger than the largest entry was, and no pattern costs more than the costliest did, since d' S^-1 d is
convex in S. So the best data-independent Gaussian noise has this form, with the least a + b for which j/a (1 - j b/(a +
b R)) <= 1 for all j = 1 .. R. For square R that is the noise of `AnyRounds`, ((sqrt(R) + 1)/2)^2: the quadratic in j is
largest at (R + sqrt(R))/2, which is then a whole number. Otherwise there is room between two whole numbers: R = 2 takes
4/3, where `AnyRounds` takes 1.457. With B = b/(a + b R) < 1/R the largest cost over real j is at most B/(4a) above that
over whole ones, and j = R/2 (or next to it) gives a >= (R^2 - 1)/(4R): so at most a fraction 1/(R^2 - 1) could be
gained. The better of the two processes is at most 0.23 % above the least variance for R up to 64; a test computes it.

Laplace noise (``p = 1``). D = 1. With up to k ones, fresh(l) moves by d_l; with more, the common noise moves by 1 and
fresh(l) by d_l - 1. With scales F = k and C = k/(2k + 1 - R) that costs j/k <= 1, or (2k + 1 - R)/k + (R - j)/k <= 1:
both attained. For k = R there is no common noise. The variance, 2 (C^2 + F^2), is below that of `AnyRounds`: half of it
for R = 1 and 2, and lower by 2/R for large R.

So **l1 = 1 (p = 1), l2_squared = 1 (p = 2)**, attained. Node values that leave the releases up to t alone
(docs/proofs.md, 3a) have as a basis "fresh(l) up by one" for l > t and "common up by one, fresh(l) down by one for
l <= t": at most 1/C + R/F = D/F = 1/(k (k + 1)), **kernel_squared**.
**Retroactivity.** Nodes and weights depend on the release alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ..arrays import I64
from ..checks import choice
from ..errors import InputError
from .process import Normed, Shift, Terms, check_horizon

COMMON, FRESH = 0, 1
# By norm: with more releases it saves less than one part in 500 of the variance, and the fine grid of Gaussian noise
# would need ever wider integers.
MOST = {1: 1 << 10, 2: 1 << 6}


class BySize(Normed):
    """
    >>> [BySize(2, p=p).variance(1, p) for p in (1, 2)]
    [2.0, 1.3333333333333333]
    """

    kind: ClassVar[str] = "by_size"

    def __init__(self, horizon: int, *, p: int) -> None:
        self.horizon: int = check_horizon(horizon, "releases")
        self.p: int = choice(p, (1, 2), "p")
        if horizon > MOST[p]:
            raise InputError(f"expected at most {MOST[p]:,} releases, got {horizon:,}", place="releases")
        self.size = _best(horizon, p)
        """k"""
        self.denominator = 1 if p == 1 else 2 * self.size + 1
        self._shared = p == 2 or self.size < horizon
        """Whether there is a common noise."""

    def terms_at(self, rounds: I64) -> Terms:
        indices = np.stack([np.zeros_like(rounds), rounds], axis=1)
        levels = np.broadcast_to(np.array([COMMON, FRESH]), indices.shape)
        weights = np.broadcast_to(np.array([int(self._shared), 1]), indices.shape)
        return Terms(levels, indices, weights, self.denominator)

    def shift(self, boundary: int) -> Shift:
        """Minus the fresh noise so far: a step, up to a common offset. `shift_hiding` hides an interval at a lower
        cost, and that is the one that counts."""
        return {(FRESH, release): -self.denominator for release in range(1, boundary + 1)}

    def shift_hiding(self, pattern: Sequence[int]) -> Shift:
        factor, _ = self.runs(pattern)
        changed = {release for release, value in enumerate(pattern, 1) if value}
        common = len(changed) if self.p == 2 else int(len(changed) > self.size)
        out = {(COMMON, 0): factor * common}
        for release in range(1, self.horizon + 1):
            out[FRESH, release] = factor * (self.denominator * (release in changed) - common)
        return {node: value for node, value in out.items() if value}

    def spread(self, level: int, p: int) -> Fraction:
        if p != self.p:
            raise InputError(f"expected the norm that this noise is made for, {self.p}, got {p}", place="p")
        common, fresh = _spreads(self.horizon, self.size, p)
        return common if level == COMMON and self._shared else fresh

    @property
    def kernel_squared(self) -> Fraction:
        return Fraction(1, self.size * (self.size + 1)) if self.p == 2 else Fraction(0)


def _spreads(releases: int, size: int, p: int) -> tuple[Fraction, Fraction]:
    """C and F; C is 0 where no common noise is needed."""
    over = 2 * size + 1 - releases
    if p == 2:
        fresh = Fraction(size * (size + 1) * (2 * size + 1))
        return fresh / over, fresh
    return Fraction(size, over) if size < releases else Fraction(0), Fraction(size)


def _variance(releases: int, size: int, p: int) -> Fraction:
    """The variance that `Process.variances` returns."""
    denominator = 1 if p == 1 else 2 * size + 1
    return sum((spread ** (3 - p) for spread in _spreads(releases, size, p)), Fraction(0)) / denominator**2


@lru_cache(maxsize=1024)
def _best(releases: int, p: int) -> int:
    return min(range(-(-releases // 2), releases + 1), key=lambda size: (_variance(releases, size, p), size))
