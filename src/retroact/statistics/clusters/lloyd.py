"""Weighted k-means and k-median of a small set of points: from several starts at once, the best one wins.

Post-processing: the points are already noisy. The starts are drawn with coins that are the same in all rounds, so equal
counters give equal centres, and similar ones similar centres.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...arrays import F64, I64
from ...coins import Coins, integer_cells

Objective = Literal["means", "medians"]

STARTS = 10
ROUNDS = 40
# A Weiszfeld step never divides by less than this part of the spread of the points.
NEAR = 1e-6
PULLS = 4


@dataclass(frozen=True)
class Clustering:
    centres: F64
    labels: I64
    """The centre that each point belongs to; every centre has a point."""


def search(points: F64, weights: F64, k: int, objective: Objective, coins: Coins) -> Clustering:
    """Find at most k centres of points with positive weights.

    >>> points = np.array([[0.0], [1.0], [9.0]])
    >>> sorted(search(points, np.ones(3), 2, "means", Coins(bytes(32))).centres.ravel().tolist())
    [0.5, 9.0]
    """
    k = min(k, len(points))
    centres = _starts(points, weights, k, objective, coins)
    labels = _nearest(points, centres)[0]
    for _ in range(ROUNDS):
        centres = _step(points, weights, centres, labels, objective)
        moved = _nearest(points, centres)[0]
        if (moved == labels).all():
            break
        labels = moved
    labels, nearest = _nearest(points, centres)
    costs = ((nearest if objective == "means" else np.sqrt(nearest)) * weights).sum(axis=1)
    best = int(costs.argmin())
    used, label = np.unique(labels[best], return_inverse=True)
    return Clustering(centres[best, used], label)


def squares(points: F64, centres: F64) -> F64:
    """All squared distances, points by centres; rounding may leave one slightly below zero."""
    return np.asarray((points**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * points @ centres.T)


def _starts(points: F64, weights: F64, k: int, objective: Objective, coins: Coins) -> F64:
    """Random seeds, each in proportion to its weight and its distance (squared, for means) from those before it."""
    high, _ = coins.words(np.zeros(STARTS, dtype=int), np.arange(STARTS), integer_cells(k)).block(0)
    uniform = (high >> np.uint64(11)) * 2.0**-53
    centres = np.empty((STARTS, k, points.shape[1]))
    distances = np.ones((STARTS, len(points)))
    for j in range(k):
        sums = np.cumsum(distances * weights, axis=1)
        picked = (sums <= (uniform[:, j] * sums[:, -1])[:, None]).sum(axis=1)
        centres[:, j] = points[np.minimum(picked, len(points) - 1)]
        apart = ((points - centres[:, j, None]) ** 2).sum(axis=2)
        far = apart if objective == "means" else np.sqrt(apart)
        distances = far if j == 0 else np.minimum(distances, far)
    return centres


def _nearest(points: F64, centres: F64) -> tuple[I64, F64]:
    """The nearest centre of each point and its squared distance, for every start."""
    starts, k, width = centres.shape
    table = squares(points, centres.reshape(-1, width)).reshape(len(points), starts, k).transpose(1, 0, 2)
    labels = table.argmin(axis=2)
    return labels, np.maximum(np.take_along_axis(table, labels[:, :, None], axis=2)[:, :, 0], 0.0)


def _step(points: F64, weights: F64, centres: F64, labels: I64, objective: Objective) -> F64:
    own = labels[:, :, None] == np.arange(centres.shape[1])
    if objective == "means":
        return _average(points, own * weights[None, :, None], centres)
    near = NEAR * float(np.abs(points).max(initial=0.0)) + 1e-300
    for _ in range(PULLS):
        mine = np.take_along_axis(centres, labels[:, :, None], axis=1)
        distances = np.sqrt(((points - mine) ** 2).sum(axis=2))
        pull = weights / np.maximum(distances, near)
        centres = _average(points, own * pull[:, :, None], centres)
    return centres


def _average(points: F64, pulls: F64, centres: F64) -> F64:
    """Average the points of each centre; a centre without points stays."""
    total = pulls.sum(axis=1)[:, :, None]
    sums = np.matmul(pulls.transpose(0, 2, 1), points)
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), centres)
