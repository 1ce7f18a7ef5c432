"""Greedy centres on nested cells with noisy counts (Mettu and Plaxton), and the pieces of space that follow.

Post-processing: everything here is a function of cells that stand out and of their noisy counts.

The value of a cell is its count times its diameter to the power z: about what its records cost while no centre is near.
Repeatedly, the most valuable cell is taken, the most valuable cell inside it, and so on down to the finest, whose
middle becomes a centre; cells near a centre, for their size, are not taken again. Space is then cut finely around these
centres and coarsely far from them. An opened cell keeps what it holds beyond the cells inside it that stand out: its
counters minus theirs. So every record of a cell that stands out is in one piece, a piece is a difference of few
counters, and a union of nested pieces is a difference of even fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import F64, I64, U64, Mask

# A cell is near a centre within this many of its diameters; a cell is cut unless it is narrower than this part of its
# distance.
NEAR, FINE = 2.0, 0.5


@dataclass(frozen=True)
class GridCells:
    """Cells that stand out, coarser ones first; the first is the whole space."""

    words: U64
    corners: I64
    """The lowest corner of each, cells by axes."""
    sides: I64
    parents: I64
    """The position of the cell around each one; -1 for the first."""
    counts: F64

    @property
    def middles(self) -> F64:
        return np.asarray(self.corners + self.sides[:, None] / 2)

    @property
    def diameters(self) -> F64:
        return np.asarray(self.sides * float(self.corners.shape[1]) ** 0.5)

    def distances(self, point: F64) -> F64:
        """Of every cell from a point; zero if the point is inside."""
        beyond = np.maximum(self.corners - point, point - (self.corners + self.sides[:, None]))
        return np.asarray(np.sqrt((np.maximum(beyond, 0.0) ** 2).sum(axis=1)))

    def take(self, which: Mask) -> GridCells:
        """Some of the cells, which must include the parent of each."""
        places = np.append(np.cumsum(which) - 1, -1)
        return GridCells(
            self.words[which], self.corners[which], self.sides[which], places[self.parents[which]], self.counts[which]
        )


def greedy(cells: GridCells, power: int, wanted: int) -> tuple[F64, F64]:
    """At most ``wanted`` centres, and the distance of every cell from them.

    >>> line = GridCells(
    ...     np.arange(3, dtype=np.uint64), np.array([[0], [0], [4]]), np.array([8, 4, 4]),
    ...     np.array([-1, 0, 0]), np.array([9.0, 3.0, 6.0]),
    ... )
    >>> centres, nearest = greedy(line, 2, 5)
    >>> centres.tolist(), nearest.tolist()
    ([[6.0]], [0.0, 2.0, 0.0])
    """
    diameters, middles = cells.diameters, cells.middles
    values = cells.counts * diameters**power
    left = values.copy()
    nearest = np.full(len(values), np.inf)
    centres: list[F64] = []
    while len(centres) < wanted and (left > 0).any():
        best = int(left.argmax())
        while (inner := np.flatnonzero(cells.parents == best)).size:
            best = int(inner[values[inner].argmax()])
        centres.append(middles[best])
        nearest = np.minimum(nearest, cells.distances(middles[best]))
        left[nearest <= NEAR * diameters] = 0.0
    return np.array(centres), nearest


def refined(cells: GridCells, nearest: F64) -> GridCells:
    """Drops the cells inside those that are small compared with their distance from all centres."""
    cut = cells.diameters > FINE * nearest
    kept = cells.parents < 0
    for _ in range(len(np.unique(cells.sides))):
        kept |= (cells.parents >= 0) & (kept & cut)[cells.parents]
    return cells.take(kept)


def exclusive(values: F64, parents: I64) -> F64:
    """What every cell has beyond the cells inside it.

    >>> exclusive(np.array([9.0, 3.0, 5.0]), np.array([-1, 0, 0])).tolist()
    [1.0, 3.0, 5.0]
    """
    out = values.copy()
    inner = parents >= 0
    np.subtract.at(out, parents[inner], values[inner])
    return out


def within(parents: I64) -> I64:
    """How many cells lie directly inside each."""
    return np.bincount(parents[parents >= 0], minlength=len(parents))


@dataclass(frozen=True)
class Groups:
    """Pieces of space in groups.

    >>> groups = Groups(np.array([0, 0, 1]), np.array([-1, 0, 0]), 2)
    >>> groups.sums(np.array([9.0, 3.0, 5.0])).tolist(), groups.noises.tolist()
    ([4.0, 5.0], [2, 1])
    """

    labels: I64
    """The group of the piece of each cell; -1 for none."""
    parents: I64
    count: int

    def sums(self, values: F64) -> F64:
        """Of a counter of every cell, over the pieces of each group."""
        out = np.zeros((self.count, *values.shape[1:]))
        mine = self.labels >= 0
        np.add.at(out, self.labels[mine], exclusive(values, self.parents)[mine])
        return out

    @property
    def noises(self) -> I64:
        """How many counters such a sum consists of: those of a piece and of one inside it cancel."""
        around = np.where(self.parents >= 0, self.labels[self.parents], -1)
        apart = self.labels != around
        own, other = self.labels[apart & (self.labels >= 0)], around[apart & (around >= 0)]
        return np.bincount(own, minlength=self.count) + np.bincount(other, minlength=self.count)
