"""Uniform integers and permutations from named bits, exact: for `map` and for user algorithms that take coins."""

from __future__ import annotations

import numpy as np

from .coins import I64, Coins, integer_cells
from .inverse import Inverse


def below(coins: Coins, bound: int, count: int) -> I64:
    """``count`` independent uniform integers in 0 .. bound-1, with bound at most 2^16.

    >>> sorted(set(below(Coins(bytes(32)), 3, 100).tolist()))
    [0, 1, 2]
    """
    if not 1 <= bound <= 1 << 16:
        raise ValueError(f"expected a bound between 1 and 65536, got {bound}")
    if bound == 1:
        return np.zeros(count, dtype=np.int64)
    table = Inverse(lambda bits: [(k << bits) // bound for k in range(1, bound)])
    found: I64 = table.sample(coins.words([0], [0], integer_cells(count)), 0)[0][0]
    return found


def permutation(coins: Coins, count: int) -> I64:
    """A uniform order of 0 .. count-1: sorted by 128 bits each (a tie has probability below count^2 * 2^-129)."""
    high, low = coins.words([0], [0], integer_cells(count)).block(0)
    return np.lexsort((low[0], high[0])).astype(np.int64)
