"""A data-independent family of regions and the counters over them (property P1), and how a release reads them.

Counters come in kinds: the number of records of a region, the sum of their points, the sum of their squares. A kind has
a share of the budget, and one noise for each (region, coordinate), whether or not the region ever held a record.

**Privacy.** Let a record move the counters of kind x by a vector of first norm at most a_x and second norm at most b_x,
over all regions. With units u_x proportional to b_x / sqrt(share_x), its whole column is at most sum a_x / u_x in the
first norm and sum (b_x / u_x)^2 in the squared second: `layout`. The noise of kind x is u_x wide, so kind x gets
share_x of a Gaussian budget mu^2; a pure budget is divided as a_x / u_x.
**Retroactivity.** Regions depend on the key alone; a release reads counters of the current round (P2).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from ...arrays import F64, I64, U64, Integers
from ...coins import Coins
from ...noise import Mechanism
from ..answer import NoisyTotals, with_noise
from ..by_round import Pick
from ..grant import Layout
from ..tally import Tally
from .ball import RADIUS
from .lloyd import Objective

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Table = TypeVar("Table", bound="DataclassInstance")

# Units are multiples of 1/1024 of the smallest sensitivity: fine enough for any division of the budget.
FINE = 1 << 10
# A region stands out if its count is this many deviations of its noise.
KEEP = 3.0
# The relative error of an estimated cost apart from noise, measured in benchmarks/clustering.py.
MODEL_ERROR = 0.05
ROOT = np.zeros(1, dtype=np.uint64)
"""The region that is everything."""


@dataclass(frozen=True)
class Kind:
    """One kind of counter: how far a record moves it, in both norms, and its share of the budget."""

    name: str
    norm1: int
    norm2_squared: int
    share: float
    width: int = 1
    """Coordinates of one region."""

    @cached_property
    def unit(self) -> int:
        # The share need not be met exactly: `layout` takes the norms of the actual units.
        return max(1, round(math.sqrt(self.norm2_squared / self.share) * FINE))


class Sums(tuple[Any, ...]):
    """Totals in several parts, each an Abelian group with an exact zero."""

    __slots__ = ()

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        return Sums(one + two for one, two in zip(self, other, strict=True))

    def __sub__(self, other: Sums) -> Sums:
        return Sums(one - two for one, two in zip(self, other, strict=True))


class Reader:
    """The noisy counters of one release: all that post-processing gets to see."""

    def __init__(self, noise: Mechanism, index: int) -> None:
        self._noise, self._index = noise, index
        self._deviations: dict[int, float] = {}
        self.counts: list[int] = []
        """The noisy numerators that were read, over `denominator`, of kinds with one coordinate."""
        self.denominator = 1
        self._read: list[tuple[int, U64, int, Integers]] = []

    def noisy(self) -> NoisyTotals:
        """Everything that was read."""
        out: NoisyTotals = {}
        for kind, regions, width, numbers in self._read:
            cells = ((region, axis) for region in regions.tolist() for axis in range(width))
            out.update(((0, cell, kind), number) for cell, number in zip(cells, numbers.tolist(), strict=True))
        return out

    @property
    def coins(self) -> Coins:
        """Coins for choices that are not noise: starting points of a search, the same in all rounds."""
        return self._noise.coins.branch("search")

    def read(self, kind: int, regions: U64, exact: I64) -> F64:
        """The noisy counters of one kind (regions by coordinates)."""
        count, width = exact.shape
        cells = np.empty((count * width, 2), dtype="<u8")
        cells[:, 0] = np.repeat(regions, width)
        cells[:, 1] = np.tile(np.arange(width, dtype=np.uint64), count)
        drawn, self.denominator = self._noise.sample(self._index, cells, [kind])
        noisy = with_noise(exact.reshape(-1), drawn[:, 0], self.denominator)
        self._read.append((kind, regions, width, noisy))
        if width == 1:
            self.counts += noisy.tolist()
        return (noisy / self.denominator).astype(np.float64).reshape(count, width)

    def deviation(self, kind: int) -> float:
        if kind not in self._deviations:
            self._deviations[kind] = self._noise.deviation_of(kind, self._index)
        return self._deviations[kind]


@dataclass(frozen=True)
class Found:
    """What a release makes of the counters, in steps of the ball, relative to its middle."""

    centres: F64
    weights: F64
    weight_errors: F64
    records: float
    cost: float | None
    cost_error: float | None
    length: float | None
    """The root mean square distance of the records from the middle of the ball."""

    @classmethod
    def nothing(cls, dimension: int, records: float, error: float) -> Found:
        """The answer for too few records: one centre in the middle of the ball."""
        there = max(records, 0.0)
        return cls(np.zeros((1, dimension)), np.array([there]), np.array([error]), records, None, None, None)


class RegionScheme(ABC):
    """Regions, what a record adds to their counters, and how a release finds centres."""

    kinds: tuple[Kind, ...]
    counts: int
    """The kind that counts the records of a region."""
    text: str
    """A description of the regions."""
    shape: dict[str, Any]
    """What determines its regions, in fixed words: part of the names of coins."""
    loose: float
    """The radius is loose if the root mean square distance is below this part of it."""

    @classmethod
    def most_instances(cls, releases: int | None, objective: Objective) -> int:
        """How many instances run side by side over ``releases`` releases."""
        return 1

    def notes(self, objective: Objective) -> tuple[str, ...]:
        """What a plan should say in addition to its error."""
        return ()

    @abstractmethod
    def error(self, deviations: F64, k: int) -> float:
        """The deviation of the noise in one coordinate of the sum over one of k clusters, in steps of the ball."""

    @property
    def layout(self) -> Layout:
        # The largest single amount is a squared length. So a stream holds at most 2^62 / 2^32 = 2^30 records, and no
        # sum over them, of points or of squares, exceeds 64 bits.
        return Layout(
            tuple(kind.unit for kind in self.kinds),
            sum((Fraction(kind.norm1, kind.unit) for kind in self.kinds), Fraction(0)),
            sum((Fraction(kind.norm2_squared, kind.unit**2) for kind in self.kinds), Fraction(0)),
            RADIUS * RADIUS,
        )

    def drawn(self, coins: Coins) -> Self:
        """Draw random regions, once, from coins that are not kept."""
        return self

    @abstractmethod
    def tallies(self, points: I64, weights: I64, *first: U64) -> list[Tally]:
        """The totals of points, times their weights, by drawn region; ``first`` are words in front of the region's."""

    def gather(self, points: I64, weights: I64) -> Sums:
        return Sums(self.tallies(points, weights))

    def gather_by(self, points: I64, weights: I64, group: I64, count: int) -> Pick:
        """The totals of the groups 0, 1, ... below ``count``."""
        each = [tally.each(count) for tally in self.tallies(points, weights, group.astype(np.uint64))]
        return lambda place: Sums(pick(place) for pick in each)

    @abstractmethod
    def coordinates(self, totals: Sums) -> dict[Hashable, int]:
        """Every nonzero counter: ((region, coordinate), kind) -> amount."""

    @abstractmethod
    def cluster(self, totals: Sums, reader: Reader, k: int, objective: Objective) -> Found:
        """Memoryless post-processing of noisy counters."""


def sums(points: I64, weights: I64) -> I64:
    """Count and sums of each point, times its weight."""
    return np.column_stack([weights, points * weights[:, None]])


def moments(points: I64, weights: I64) -> I64:
    """Count, sums and sum of squares of each point, times its weight."""
    return np.column_stack([sums(points, weights), np.einsum("ij,ij->i", points, points) * weights])


def joined(parts: Sequence[Table]) -> Table:
    """Concatenates dataclasses of arrays with a row for each cell."""
    names = [field.name for field in fields(parts[0])]
    return type(parts[0])(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def counters(kind: int, regions: U64, amounts: I64) -> dict[Hashable, int]:
    """The coordinates of one kind."""
    row, column = np.nonzero(amounts)
    return {
        ((int(regions[i]), int(j)), kind): int(amounts[i, j])
        for i, j in zip(row.tolist(), column.tolist(), strict=True)
    }
