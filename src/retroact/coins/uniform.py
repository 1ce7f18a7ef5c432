"""Exact uniform integers, sets and permutations from named bits: for samples, maps and algorithms that take coins."""

from __future__ import annotations

import numpy as np

from ..arrays import I64
from .coins import Coins, integer_cells
from .inverse_cdf import Inverse

# Coins have 32 bits each, four per name.
COIN_BITS = 32


def below(coins: Coins, bound: int, count: int) -> I64:
    """``count`` independent uniform integers in 0 .. bound-1, with bound at most 2^16.

    >>> sorted(set(below(Coins(bytes(32)), 3, 100).tolist()))
    [0, 1, 2]
    """
    if not 1 <= bound <= 1 << 16:
        raise ValueError(f"expected a bound between 1 and 65536, got {bound}")
    if bound == 1:
        return np.zeros(count, dtype=np.int64)
    table = Inverse(lambda bits, precision: ([(k << precision) // bound for k in range(1, bound)], 0))
    return np.asarray(table.sample(coins.words([0], [0], integer_cells(count)), 0)[0][0])


def permutation(coins: Coins, count: int) -> I64:
    """A uniform order of 0 .. count-1: sorted by 128 bits each (a tie has probability below count^2 * 2^-129)."""
    high, low = coins.words([0], [0], integer_cells(count)).block(0)
    return np.lexsort((low[0], high[0])).astype(np.int64)


def integer(coins: Coins, bound: int) -> int:
    """One uniform integer in 0 .. bound-1, however large the bound, by rejection.

    >>> 0 <= integer(Coins(bytes(32)), 10**40) < 10**40
    True
    """
    if bound < 1:
        raise ValueError(f"expected a bound from 1 on, got {bound}")
    bits = (bound - 1).bit_length()
    blocks = -(-bits // 128)
    attempt = 0
    while True:
        words = coins.words([0], [attempt], integer_cells(blocks)).block(0) if blocks else None
        drawn = 0 if words is None else int.from_bytes(np.stack(words, axis=-1).astype("<u8").tobytes(), "little")
        found = drawn & ((1 << bits) - 1)
        if found < bound:
            return found
        attempt += 1


def distinct(coins: Coins, bound: int, count: int) -> I64:
    """A uniform set of ``count`` different integers in 0 .. bound-1, sorted: the first ``count`` different ones of an
    endless sequence of independent uniform integers.

    >>> distinct(Coins(bytes(32)), 5, 5).tolist()
    [0, 1, 2, 3, 4]
    """
    if not 0 <= count <= bound < 1 << 62:
        raise ValueError(f"expected a count up to the bound, and a bound below 2^62, got {count} and {bound}")
    if 2 * count > bound:
        # The complement of a uniform set is uniform too, and is found sooner.
        rest = np.ones(bound, dtype=np.bool_)
        rest[distinct(coins, bound, bound - count)] = False
        return np.flatnonzero(rest)
    if not count:
        return np.zeros(0, dtype=np.int64)
    limit = np.uint64((1 << 64) // bound * bound - 1)
    found = np.zeros(0, dtype=np.int64)
    part = 0
    while len(found) < count:
        # The sequence is cut into parts whose lengths depend on the two numbers alone.
        words = np.stack(coins.words([0], [part], integer_cells(count // 2 + 8)).block(0), axis=-1).ravel()
        drawn = (words[words <= limit] % np.uint64(bound)).astype(np.int64)
        found = np.concatenate([found, drawn])
        _, first = np.unique(found, return_index=True)
        found = found[np.sort(first)]
        part += 1
    return np.sort(found[:count])


def tossed(coins: Coins, number: int, bound: int) -> I64:
    """Which of 0 .. number-1 have a coin below the bound; the coins are independent, with probability bound * 2^-32.

    >>> tossed(Coins(bytes(32)), 5, 1 << 32).tolist(), tossed(Coins(bytes(32)), 5, 0).tolist()
    ([0, 1, 2, 3, 4], [])
    """
    high, low = coins.words([0], [0], integer_cells(-(-number // 4))).block(0)
    coin = np.stack([high[0], low[0]], axis=1).astype("<u8").view("<u4").ravel()[:number]
    return np.flatnonzero(coin < bound)
