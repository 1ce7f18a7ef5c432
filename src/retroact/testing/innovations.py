"""What it costs to hide a change of Gaussian noise over any number of releases, from release to release.

A Kalman filter: if F is the variance of a release given those before, and i the innovation that the pattern v causes,
then v' S^-1 v, with S the covariance of the noise, is the sum of i^2 / F over the releases. The state holds the nodes
that were seen and will be seen again. It knows weights and laws, and nothing of how a process hides a pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from ..arrays import F64, I64
from ..noise import Process

INDEX_BITS = 48


def interval_costs(
    process: Process, variance_of: Callable[[int], float], last: int, intervals: Sequence[tuple[int, int]]
) -> F64:
    """Of 1 in the releases start < r <= end of each interval, and 0 in the others up to ``last``. ``variance_of`` a
    level: that of its nodes. Every release has noise that no other one has.

    >>> from retroact.noise import Crossfade
    >>> process = Crossfade(15)
    >>> costs = interval_costs(process, lambda level: float(process.spread(level, 2)), 15, [(0, 15), (1, 14)])
    >>> costs.round(4).tolist(), float(process.l2_squared)
    ([1.2939, 1.6353], 1.6354)
    """
    starts, ends = np.array(intervals).T
    rows, entering, own = _seen(process, variance_of, last)
    slots = rows.shape[1]
    state, mean, total = np.zeros((slots, slots)), np.zeros((slots, len(intervals))), np.zeros(len(intervals))
    for release, (row, new, fresh) in enumerate(zip(rows, entering, own.tolist(), strict=True), 1):
        for slot, variance in new:
            state[slot], state[:, slot], mean[slot] = 0, 0, 0
            state[slot, slot] = variance
        gain = state @ row
        known = float(row @ gain) + fresh
        surprise = ((starts < release) & (release <= ends)) - row @ mean
        total += surprise**2 / known
        step = gain / known
        mean += step[:, None] * surprise
        state -= step[:, None] * gain
    return total


def _seen(
    process: Process, variance_of: Callable[[int], float], last: int
) -> tuple[F64, list[list[tuple[int, float]]], F64]:
    """For each release: the weights of the nodes of the state, which nodes enter it, with their variances, and the
    variance of the noise that is seen in this release alone."""
    terms = process.weights_of(np.arange(1, last + 1))
    levels, number = terms.by_level
    used = terms.weights != 0
    at = np.nonzero(used)[0]
    weights = (terms.weights[used] / terms.denominator).astype(np.float64)
    names, node = np.unique((number.reshape(used.shape)[used] << INDEX_BITS) + terms.indices[used], return_inverse=True)
    sizes = np.array([variance_of(level) for level in levels.tolist()])[names >> INDEX_BITS]
    first, until = np.full(len(names), last), np.zeros(len(names), dtype=np.int64)
    np.minimum.at(first, node, at)
    np.maximum.at(until, node, at)
    lasting = first < until
    stays, slots = lasting[node], _slots(first, until, lasting)
    own = np.bincount(at, weights**2 * sizes[node] * ~stays, minlength=last).astype(np.float64)
    rows = np.zeros((last, int(slots.max(initial=-1)) + 1))
    rows[at[stays], slots[node[stays]]] = weights[stays]
    entering: list[list[tuple[int, float]]] = [[] for _ in range(last)]
    for one in np.flatnonzero(lasting).tolist():
        entering[first[one]].append((int(slots[one]), float(sizes[one])))
    return rows, entering, own


def _slots(first: I64, until: I64, lasting: npt.NDArray[np.bool_]) -> I64:
    """A place in the state for every node that lasts, from its first release to its last one."""
    slots, free, taken = np.full(len(first), -1), list[int](), list[tuple[int, int]]()
    for node in np.flatnonzero(lasting)[np.argsort(first[lasting], kind="stable")].tolist():
        while taken and taken[0][0] < first[node]:
            heappush(free, heappop(taken)[1])
        slots[node] = heappop(free) if free else len(taken)
        heappush(taken, (int(until[node]), int(slots[node])))
    return slots
