"""The binary trie of a sorted multiset of integers: where it branches, and its heavy path. Nodes are never built: the
values below a node are a range of the sorted list, and a range branches at the first bit in which its ends differ."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def branching(values: Sequence[int], low: int, high: int) -> int:
    """Where the range low .. high of sorted values, whose ends differ, parts in two: the index of the first on the
    right.

    >>> branching([1, 2, 3, 7], 0, 4)
    3
    """
    bit = (values[low] ^ values[high - 1]).bit_length() - 1
    return bisect_left(values, values[high - 1] >> bit << bit, low, high)


def heavy_path(values: Sequence[int]) -> tuple[int, int]:
    """The leaf to which the heavier child leads at every node (the left one of equals), and the largest weight of a
    lighter child on the way; (0, 0) for no values.

    The latter is the maximum, over all nodes of the trie, of the smaller of the weights of the two children: a node off
    the path lies below a lighter child, and its smaller child weighs less. So one value more moves it by 0 or 1.

    >>> heavy_path([1, 2, 3, 7])
    (2, 1)
    """
    low, high, largest = 0, len(values), 0
    if not high:
        return 0, 0
    while values[low] != values[high - 1]:
        split = branching(values, low, high)
        left, right = split - low, high - split
        largest = max(largest, min(left, right))
        low, high = (low, split) if left >= right else (split, high)
    return values[low], largest


def deepest(values: Sequence[int], leaf: int, bits: int, count: int) -> tuple[list[int], list[int]]:
    """The levels of all but the deepest values, and the ``count`` deepest values, by level and then by value. The level
    of a value is how many of its leading bits, of ``bits`` in all, it shares with the leaf.

    >>> deepest([1, 2, 3, 7], 2, 3, 2)
    ([0, 1], [3, 2])
    """
    by_level = sorted((bits - (value ^ leaf).bit_length(), value) for value in values)
    cut = max(len(by_level) - count, 0)
    return [level for level, _ in by_level[:cut]], [value for _, value in by_level[cut:]]


def branchings(values: Sequence[int], least: int) -> list[tuple[int, int, int]]:
    """All branching nodes: (index of the first value on the right, 1, weight of the lighter child), but for subtrees of
    fewer than 2 ``least`` values, which stand together: (index of their first value, size, 0).

    >>> branchings([1, 2, 3, 7], 1)
    [(3, 1, 1), (1, 1, 1), (2, 1, 1)]
    >>> branchings([1, 2, 3, 7], 2)
    [(3, 1, 1), (0, 3, 0)]
    """
    found, open_ranges = [], [(0, len(values))]
    while open_ranges:
        low, high = open_ranges.pop()
        if high - low < 2 or values[low] == values[high - 1]:
            continue
        if high - low < 2 * least:
            found.append((low, high - low, 0))
            continue
        split = branching(values, low, high)
        found.append((split, 1, min(split - low, high - split)))
        open_ranges += [(split, high), (low, split)]
    return found
