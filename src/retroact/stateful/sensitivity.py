"""How far all flips of one value can shift the Schauder tree.

Let q and q' be the presence of one value in two neighbouring histories, each frozen after w flips, and d = q - q': a
path of -1, 0 and 1 over rounds, 0 before the first. Ended by a return to 0 after the last round it has at most 2w unit
changes: q and q' flip at most w times each, and if d ends at +-1, one of them an odd and the other an even number of
times, so they flip at most 2w - 1 times together and the return makes 2w.

A unit change at boundary s shifts node (j, s >> (j+1)) by +1 or -1 as bit j of s is 0 or 1 (`noise.Schauder`). So a
path that is a before the boundaries of a node, c at their middle and b after them shifts it by (c - a) - (b - c): the
squared length of the shift is the sum of (2c - a - b)^2 over all nodes.

- w = 1: d is the indicator of one interval, for which the tree has 2m + 2.
- w > 1: for every price p >= 0 the length of a path with at most 2w unit changes is at most
  2w p + max over *all* paths of (length - p * changes).
  The maximum has no constraint left, so it splits at the middle of a node into the same problem for either half, given
  a, c and b: three values each. The least over whole p is the bound: all in integers, and what it gives is a proof.

It does not use which pairs (q, q') are neighbours, so it holds for many updates a round as well. Tests attain it on a
horizon of 63 for w = 3, 4, 8 and 16. Bounding every level on its own would give 8w m, nearly twice as much.
"""

from __future__ import annotations

from functools import lru_cache

STATES = (-1, 0, 1)


@lru_cache(maxsize=1024)
def longest_shift(levels: int, flips: int) -> int:
    """The largest squared length of the shift, for a Schauder tree of that many levels.

    >>> longest_shift(17, 1), longest_shift(17, 8), longest_shift(17, 256)
    (36, 480, 11564)
    """
    if flips == 1:
        return 2 * levels + 2
    # Beyond 4 a level a change costs more than it can ever gain: N^2 <= 4 (changes in the node), since |N| <= 4.
    return min(2 * flips * price + _best(levels, price) for price in range(4 * levels + 1))


@lru_cache(maxsize=4096)
def _best(levels: int, price: int) -> int:
    """max of (length - price * changes) over all paths from 0 to 0."""
    best = {(a, b): -price * abs(b - a) for a in STATES for b in STATES}
    for _ in range(levels):
        best = {
            (a, b): max(best[a, c] + best[c, b] + (2 * c - a - b) ** 2 for c in STATES) for a in STATES for b in STATES
        }
    return best[0, 0]
