"""Samples that persist: ranks and coins.

**Privacy.** A rank (coin) belongs to a place among the copies of a key. The two histories can be coupled so that they
differ by one rank, of one place, for as long as they differ and by none before or after, also where copies of the key
are left (docs/proofs.md, 12). Fix the ranks of all other copies. The extra copy, with its own secret rank, enters the
sample while it matters with probability p at most; else both transcripts have the same law. So they are (1 - p) m0 + p
m1 and (1 - p) m0 + p m1', where m0, m1 and m1' are averages over inclusion patterns of the copy in the at most W
releases of its life. Advanced joint convexity (Balle, Barthe and Gaboardi 2018, Theorem 2) gives, with
e^x = 1 + p (e^y - 1),
  D(S+ || S-)(x) = p D(m1 || (1 - b) m0 + b m1')(y) <= p max(D(m1 || m0)(y), D(m1 || m1')(y)) <= p delta_W(y),
because any two patterns differ in at most W releases; the other way round m1 and m1' change places. In a release where
two patterns differ, the samples differ by a substitution for ranks (with at least k other live copies, which the
occupancy promises wherever it matters: with fewer, the copy is in both samples) and by one record for coins (the copy
is there or not, nothing else moves). For coins p is the rate; for ranks p is the largest of at most W thresholds, and
exceeds `rank_reach` with probability at most beta. Hence (ln(1 + p (e^y - 1)), p delta_W(y) + beta), without a
condition on y or p, and never worse than y. The stream must be fixed in advance: a stream that answers to the releases
may correlate the other copies with the secret rank. And no (stamp, value) may be added again after its deletion.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .halving import halved


@lru_cache(maxsize=1024)
def rank_reach(releases: int, size: int, occupancy: int, failure: float) -> float:
    """The smallest p with W P[Bin(n, p) < k] <= beta, rounded up: in all W releases, k of n other ranks lie below it.

    About half of the paper's (2k + 8 ln(W/beta)) / n.

    >>> round(rank_reach(1, 1, 3, 0.125), 6)
    0.5
    """
    if failure <= 0 or occupancy < size:
        return 1.0
    target = math.log(failure / releases) - 1e-6
    _, high = halved(lambda chance: _log_below(occupancy, chance, size) > target, 0.0, 1.0, relative=1e-12)
    return min(1.0, high * (1 + 1e-9))


def _log_below(trials: int, chance: float, count: int) -> float:
    """ln P[Bin(n, p) < k]: the largest term times a sum of ratios, cut where the rest is a geometric series."""
    if (trials + 1) * chance <= count:
        return 0.0
    last = count - 1
    log_term = (
        math.lgamma(trials + 1)
        - math.lgamma(last + 1)
        - math.lgamma(trials - last + 1)
        + last * math.log(chance)
        + (trials - last) * (math.log1p(-chance) if chance < 1 else -math.inf)
    )
    steps = np.arange(last, max(0, last - 64 * math.isqrt(count) - 64), -1, dtype=np.float64)
    ratios = steps * (1 - chance) / ((trials - steps + 1) * chance)
    terms = np.cumprod(ratios)
    cut = len(steps) > 0 and steps[-1] > 1
    rest = float(terms[-1] * ratios[-1] / (1 - ratios[-1])) if cut else 0.0
    return log_term + math.log1p(float(terms.sum()) + rest)
