"""The gate of Lemma "Removing the occupancy promise": how far the count of the paper's Laplace tree can be off.

A binary tree over T = 2^h releases puts Laplace noise of scale b = 2 (h + 1) / epsilon on each node; the count at
release l is off by the sum of popcount(l) of them. `gate_union` is the error that no release exceeds, except with
probability delta; the lemma asks for n - 1 of at least that. The gate of `compilers.gate` has tighter tails.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ..errors import InputError


def gate_union(horizon: int, epsilon: float, delta: float) -> int:
    """All 2T - 1 nodes are within b ln(2T/delta), so each count is within (h + 1) b ln(2T/delta).

    >>> [gate_union(2**h, 1.0, 1e-6) for h in (10, 12, 16, 20)]
    [5189, 7716, 14797, 25024]
    """
    if horizon < 2 or horizon & (horizon - 1):
        raise InputError(f"expected a power of two from 2 on, got {horizon!r}", place="horizon")
    nodes = horizon.bit_length()
    return math.ceil(2 * nodes**2 * math.log(2 * horizon / delta) / epsilon)


def paper_limit(records: int, releases: int, epsilon: Fraction, failure: Fraction, place: str) -> int:
    """The noisy count from which there is an answer: the lemma passes from 2n on, if n is large enough."""
    least = 1 + gate_union(1 << max(1, (releases - 1).bit_length()), float(epsilon), float(failure))
    if records < least:
        raise InputError(
            f"expected at least {least:,} records over {releases:,} releases, as the lemma asks, got {records:,}",
            place=f"{place}.gate",
        )
    return 2 * records
