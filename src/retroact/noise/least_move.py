"""The least change of crossfade nodes that hides a pattern, in real numbers: for checks, never for noise.

With fresh noise in every round any change of the other nodes can be completed to one that moves the rounds by exactly
the pattern. The cheapest is a least-squares problem over the other nodes. Its solution is rounded to 2^-44 and
completed exactly, so that what is returned hides the pattern exactly, at a cost that is the least one up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ..arrays import F64, I64
from ..errors import InputError

if TYPE_CHECKING:
    from .process import Process, Shift

ONE = 1 << 44
# Rounds whose nodes make a matrix of some 50 MB.
MOST = 1 << 11


class Prefix(msgspec.Struct, frozen=True):
    """The first rounds: their fresh nodes, all others, which of these each round adds up with what weights, and how far
    they move for "all rounds up to this one"."""

    fresh: list[tuple[int, int]]
    coarse: list[tuple[int, int]]
    where: I64
    weights: I64
    moved: F64


def least_move(process: Process, rounds: int, start: int, end: int, factor: int) -> Shift:
    """The least move for ``factor`` in the rounds start < round <= end, and 0 in the others."""
    return {node: Fraction(factor * value, ONE) for node, value in _moves(process, rounds, start, end) if value}


@lru_cache(maxsize=1 << 12)
def least_squares(process: Process, rounds: int, start: int, end: int) -> dict[int, Fraction]:
    """The sum of the squares of `least_move` for the factor 1, by level: in whole numbers, which is much faster."""
    out: dict[int, int] = {}
    for (level, _), value in _moves(process, rounds, start, end):
        out[level] = out.get(level, 0) + value * value
    return {level: Fraction(total, ONE**2) for level, total in out.items() if total}


def _moves(process: Process, rounds: int, start: int, end: int) -> Iterator[tuple[tuple[int, int], int]]:
    """How far every node moves, in steps of 1 / `ONE`."""
    if rounds > MOST:
        raise InputError(f"expected a pattern of at most {MOST:,} rounds, got {rounds:,}", place="pattern")
    made = _prefix(process, rounds)
    moved = np.rint((made.moved[end] - made.moved[start]) * ONE).astype(np.int64)
    rest = -(made.weights * moved[made.where]).sum(axis=1)
    rest[start:end] += ONE
    return zip([*made.fresh, *made.coarse], [*rest.tolist(), *moved.tolist()], strict=True)


@lru_cache(maxsize=4)
def _prefix(process: Process, rounds: int) -> Prefix:
    terms = process.weights_of(np.arange(1, rounds + 1))
    nodes = np.stack([terms.levels, terms.indices], axis=2)
    coarse, where = np.unique(nodes[:, 1:].reshape(-1, 2), axis=0, return_inverse=True)
    where, weights = where.reshape(rounds, -1), terms.weights[:, 1:]
    roots, widths = _roots(process, terms.levels[:, 0]), _roots(process, coarse[:, 0])
    scaled = np.zeros((rounds, len(coarse)))
    np.add.at(scaled, (np.arange(rounds)[:, None], where), weights * widths[where] / roots[:, None])
    solved = np.linalg.solve(np.eye(len(coarse)) + scaled.T @ scaled, (scaled / roots[:, None]).T).T * widths
    moved = np.vstack([np.zeros(len(coarse)), np.cumsum(solved, axis=0)])
    fresh, others = ([(level, index) for level, index in part.tolist()] for part in (nodes[:, 0], coarse))
    return Prefix(fresh, others, where, weights, moved)


def _roots(process: Process, levels: I64) -> F64:
    """The root of each node's spread."""
    known = {level: float(process.spread(level, 2)) ** 0.5 for level in np.unique(levels).tolist()}
    return np.array([known[level] for level in levels.tolist()])
