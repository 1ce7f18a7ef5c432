"""Noise over rounds: what a process is, and everything that follows from its two maps.

One operation changes the truth by a fixed amount on one interval of rounds (paper, proof of Theorem "linear"; so does a
whole lifecycle). A process hides such intervals. It has nodes with independent integer noise, and two maps that do not
depend on the data:

- ``terms(round)``: the noise of a round is Z = sum of weight * noise(node), over ``denominator``;
- ``shift(s)``: the change of the nodes that adds 1 to Z in every round after boundary s, up to an offset that is the
  same for every s. Boundary s means "present from round s + 1 on"; "never" has a shift too.

Tests check by brute force, for all s < e and all rounds: L(shift(s) - shift(e)) = 1[s < round <= e].

Some statistics change on other sets of rounds. A process that hides those has ``shift_hiding(pattern)``, the change of
the nodes with L(shift_hiding(d)) = d; its ``l1`` and ``l2_squared`` are over the patterns that it promises to hide.

**Privacy.** If the truth differs by F_x on rounds s + 1 .. e, shifting the noise by F_x * (shift(s) - shift(e)) makes
both transcripts equal, so the privacy of the whole transcript is that of this shift: ``l1`` bounds the sum of
|shift| / spread over all intervals (Laplace), ``l2_squared`` the sum of shift^2 / spread (Gaussian, spread in
variance). **Retroactivity.** Nodes and weights depend on the round alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from ..arrays import I64
from ..checks import choice, positive_int
from ..errors import InputError
from ..params import Parameters
from ..privacy.gaussian import discreteness

# Rounds times nodes examined for the worst and the typical round.
LOOKED_AT = 1 << 21
INDEX_BITS = 48
KEPT_BLOCKS = 3

Shift = dict[tuple[int, int], int | Fraction]


class Terms(msgspec.Struct, frozen=True, dict=True):
    """The K nodes (level, index) of each of R rounds, with integer weights over a common denominator."""

    levels: I64
    indices: I64
    weights: I64
    denominator: int

    def of(self, row: int) -> Terms:
        """One round without its zero weights."""
        used = np.flatnonzero(self.weights[row])
        return Terms(self.levels[row, used], self.indices[row, used], self.weights[row, used], self.denominator)

    @cached_property
    def by_level(self) -> tuple[I64, I64]:
        """The levels, and for every node the position of its level among them."""
        levels = np.unique(self.levels)  # they are few: quicker than sorting all nodes
        return levels, np.searchsorted(levels, self.levels)

    def extended(self, levels: I64, indices: I64, weights: I64) -> Terms:
        """Add nodes to every round."""
        return Terms(
            np.hstack([self.levels, levels]),
            np.hstack([self.indices, indices]),
            np.hstack([self.weights, weights]),
            self.denominator,
        )


class Outlook(msgspec.Struct, frozen=True):
    """The rounds with the largest and with a typical variance, and the deviation in the former at a budget of 1. It is
    rounded to 9 digits, so that the last bits of a sum decide nothing."""

    worst: int
    typical: int
    deviation: float


class BlockNodes(msgspec.Struct, frozen=True):
    """The nodes of some rounds in a row, each once: ``where`` has the place of every term among them, and ``drawn`` the
    places of those with a weight."""

    terms: Terms
    levels: I64
    indices: I64
    where: I64
    drawn: I64


class Process(Parameters, ABC):
    """Noise over rounds 1 .. horizon (``None``: without end). Its `spec` is part of the names of coins."""

    kinds: ClassVar[dict[str, type[Any]]] = {}
    horizon: int | None
    most_intervals: int = 1
    gaussian_only: ClassVar[bool] = False
    pure_only: ClassVar[bool] = False
    crossable: ClassVar[bool] = True
    """Whether its product with a process over past times is known to hide rectangles (`noise.Rectangle`)."""
    _latest: tuple[int, Terms] | None = None
    _blocks: dict[tuple[int, int], BlockNodes] | None = None
    _outlooks: dict[tuple[int, int], tuple[int, int, float] | None] | None = None

    def weights_of(self, rounds: I64) -> Terms:
        """The nodes and weights of any rounds."""
        if rounds.size and (rounds.min() < 1 or (self.horizon is not None and rounds.max() > self.horizon)):
            raise InputError(f"expected rounds in 1 .. {self.horizon or 'any'}, got {rounds.min()} .. {rounds.max()}")
        return self.terms_at(rounds)

    @abstractmethod
    def terms_at(self, rounds: I64) -> Terms:
        """Return the terms without a check: processes built on this one may also use its end points."""

    @abstractmethod
    def shift(self, boundary: int) -> Shift:
        """The change of the nodes for boundary 0, 1, ..., horizon (the last one: "never")."""

    def shift_hiding(self, pattern: Sequence[int]) -> Shift:
        """The change of the nodes that moves rounds 1 .. len(pattern) by the pattern and no other round. Here a pattern
        is one number on one interval (or on as many as the process hides at once), and 0 elsewhere."""
        factor, intervals = self.runs(pattern)
        if len(intervals) > self.most_intervals:
            most = "one interval" if self.most_intervals == 1 else f"at most {self.most_intervals} intervals"
            raise InputError(f"expected {most} of rounds, got {len(intervals)}", place="pattern")
        return combined(*((factor, difference(self.shift(s), self.shift(e))) for s, e in intervals))

    def runs(self, pattern: Sequence[int]) -> tuple[int, list[tuple[int, int]]]:
        """The one nonzero number of a pattern, and the intervals s < round <= e where it stands."""
        if self.horizon is not None and len(pattern) > self.horizon:
            raise InputError(f"expected at most {self.horizon} rounds, got {len(pattern)}", place="pattern")
        numbers = sorted({*pattern} - {0})
        if len(numbers) > 1:
            raise InputError(f"expected 0 and one other number, got {numbers}", place="pattern")
        edges = np.flatnonzero(np.diff([0, *(number != 0 for number in pattern), 0])).tolist()
        return (numbers or [0])[0], list(zip(edges[::2], edges[1::2], strict=True))

    def at(self, round: int) -> Terms:
        """The terms of one round. The latest is cached: all statistics of a stream ask for the same round."""
        latest = self._latest
        if latest is None or latest[0] != round:
            latest = self._latest = round, self.weights_of(np.array([round])).of(0)
        return latest[1]

    def block_nodes(self, first: int, last: int) -> BlockNodes:
        """The nodes of rounds first .. last. A few blocks are cached: all statistics and keys ask for the same ones."""
        known = self._blocks or {}
        if (first, last) not in known:
            newest = dict(list(known.items())[1 - KEPT_BLOCKS :])
            known = self._blocks = {**newest, (first, last): self._block_nodes(first, last)}
        return known[first, last]

    def _block_nodes(self, first: int, last: int) -> BlockNodes:
        terms = self.weights_of(np.arange(first, last + 1))
        # Levels get new numbers: theirs may be too large to share a word with an index.
        levels, number = terms.by_level
        # Two nodes must never share a name. No horizon is above 2^40, and a rectangle packs two indices below 2^24.
        if int(terms.indices.max(initial=0)) >> INDEX_BITS or len(levels) >> (63 - INDEX_BITS):
            raise InputError(f"expected nodes with indices below 2^{INDEX_BITS}, got rounds {first:,} to {last:,}")
        nodes, where = np.unique((number << INDEX_BITS) + terms.indices, return_inverse=True)
        where = where.reshape(number.shape)
        drawn = np.flatnonzero(np.bincount(where[terms.weights != 0], minlength=len(nodes)))
        return BlockNodes(terms, levels[nodes >> INDEX_BITS], nodes & ((1 << INDEX_BITS) - 1), where, drawn)

    @property
    def name(self) -> str:
        return self.kind.replace("_", " ")

    def serves(self, kind: str) -> bool:
        """Whether it has noise of this kind, pure or Gaussian."""
        return not (self.gaussian_only if kind == "pure" else self.pure_only)

    @abstractmethod
    def charge(self, p: int) -> Fraction:
        """The largest sum of |shift|^p / spread(level, p) over all intervals (or patterns): l1, or l2_squared."""

    @property
    def l1(self) -> Fraction:
        return self.charge(1)

    @property
    def l2_squared(self) -> Fraction:
        return self.charge(2)

    @property
    def kernel_squared(self) -> Fraction:
        """The squared length, in spreads, of the longest vector in a basis of the node values that no round can see.
        Gaussian noise must be coarse compared with it (docs/proofs.md, 3a). It is 0 if there are as many nodes as
        rounds."""
        return Fraction(0)

    def discreteness(self, variance: Fraction) -> Fraction:
        """The factor on sigma that makes up for the lattice, for a node of spread 1 with this variance in its steps."""
        return discreteness(variance / self.charge(2))

    def spread(self, level: int, p: int) -> Fraction:
        """How much larger the noise of a level is than the unit: a scale for p = 1, a variance for p = 2."""
        return Fraction(1)

    def sensitivity(self, p: int) -> float:
        """The sensitivity to the indicator of one interval with two free ends, in the norm p = 1 or 2."""
        return float(self.charge(1)) if choice(p, (1, 2), "p") == 1 else math.sqrt(self.charge(2))

    def variances(self, rounds: npt.ArrayLike, p: int = 2) -> npt.NDArray[np.float64]:
        """Variance of Z when a node of spread 1 has variance 1."""
        terms = self.weights_of(np.atleast_1d(np.asarray(rounds, dtype=np.int64)))
        weights = terms.weights / terms.denominator
        if self._even:
            return np.asarray((weights * weights).sum(axis=1))
        levels, places = terms.by_level
        spread = np.array([float(self.spread(level, p)) ** (3 - p) for level in levels.tolist()])
        return np.asarray((weights * weights * spread[places]).sum(axis=1))

    def variance(self, round: int, p: int = 2) -> float:
        return float(self.variances([round], p)[0])

    def outlook(self, p: int, last: int) -> Outlook | None:
        """Over rounds 1 .. last, or a sample of them. None where no round has noise, which means that none is ever
        released (a lag that reaches back too far)."""
        known = self._outlooks = self._outlooks or {}
        place = (0 if self._even else p), last
        if place not in known:
            known[place] = self._outlook(p, last)
        found = known[place]
        if found is None:
            return None
        norm = float(self.charge(p)) ** (3 - p)
        return Outlook(found[0], found[1], float(f"{math.sqrt(norm * found[2]):.9g}"))

    def _outlook(self, p: int, last: int) -> tuple[int, int, float] | None:
        """The worst and a typical round, and the largest variance."""
        nodes = self.weights_of(np.array([1])).levels.size
        rounds = some_rounds(last, max(1, LOOKED_AT // nodes))
        parts = np.array_split(rounds, len(rounds) // 1024 + 1)  # each fits the cache
        variances = np.concatenate([self.variances(part, p) for part in parts])
        rounds, variances = rounds[variances > 0], variances[variances > 0]
        if not rounds.size:
            return None
        # In steps of a billionth of the largest, so that rounds of equal noise are equal on every machine.
        largest = float(f"{variances.max():.9g}")
        steps = np.rint(variances / largest * 1e9)
        worst = int(rounds[int(np.argmax(steps))])
        typical = int(rounds[int(np.argmin(np.abs(steps - np.rint(steps.mean()))))])
        return worst, typical, largest

    @property
    def _even(self) -> bool:
        """Whether all nodes have the same noise."""
        return type(self).spread is Process.spread


class Normed(Process):
    """A process whose spreads are chosen so that both norms are 1."""

    def charge(self, p: int) -> Fraction:
        return Fraction(1)


def some_rounds(last: int, most: int) -> I64:
    """The rounds 1 .. last, or a sample of them: an odd stride visits every phase of every level.

    >>> some_rounds(3, 8).tolist(), len(some_rounds(1000, 8))
    ([1, 2, 3], 8)
    """
    if last <= most:
        return np.arange(1, last + 1)
    return np.arange(most, dtype=np.int64) * ((last // most) | 1) % last + 1


def check_horizon(horizon: int, place: str = "horizon") -> int:
    return positive_int(horizon, place, most=1 << 40, expected="a whole number of rounds between 1 and 2^40")


def difference(first: Shift, second: Shift) -> Shift:
    """first - second without zeros: what one interval moves."""
    return combined((1, first), (-1, second))


def combined(*parts: tuple[int, Shift]) -> Shift:
    """The sum of factor * shift over all parts, without zeros."""
    out: Shift = {}
    for factor, shift in parts:
        for node, value in shift.items():
            out[node] = out.get(node, 0) + factor * value
    return {node: value for node, value in out.items() if value}
