"""A process with its laws: the noise of one statistic, calibrated to what it may spend.

**Privacy.** A record changes coordinate i by at most unit_i * v_i with ||v||_1 <= norm1 (||v||_2^2 <= norm2_squared),
during one interval. With noise of scale unit_i * norm1 * l1 * spread / epsilon on every node the whole transcript is
epsilon-private; with discrete Gaussian noise of variance unit_i^2 * norm2_squared * l2_squared * spread / mu^2, times
the factor for its lattice (`privacy.gaussian`), it is mu-Gaussian private. The lattice of Gaussian noise is refined by
powers of two until the noise is coarse on it. An oblivious law of the user's own, private for one release, costs
2m epsilon and 2m delta as in Theorem "linear".
**Retroactivity.** Noise is a function of key, name and round (Theorem "linear", part 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
import numpy.typing as npt

from ..arrays import I64, U64, Integers
from ..coins import Coins, DiscreteGaussian, DiscreteLaplace, Law, integer_cells
from ..coins.law import WIDEST
from ..errors import InputError
from ..params import Parameters
from ..privacy import FINENESS, Share
from .process import Process, Terms
from .spread import Spread
from .tails import Summand, Tail
from .tree import Tree

# A sample of scale b exceeds 128 b with probability below 2^-180: this decides whether products fit 64 bits.
REACH = 128
HEADROOM = 1 << 62
# Rounds times coordinates computed at once.
BLOCK = 64
# Named cells drawn at once: as many as fit the cache with the nodes of a round, four times as many for a single node.
CHUNK = 1 << 14
# Streams without a horizon are checked up to this round.
LAST_ROUND = 1 << 36


@dataclass(frozen=True)
class Oblivious(Parameters):
    """An integer noise law of the user's own, drawn independently for every coordinate, with a declared (epsilon,
    delta) for one record and one release of the query (Definition "oblivious-noise mechanism")."""

    unwritten: ClassVar[tuple[str, ...]] = ("law",)

    law: Law
    name: str
    epsilon: float
    delta: float = 0.0

    def cost(self, horizon: int) -> tuple[Fraction, Fraction]:
        """(2m epsilon, 2m delta): Theorem "linear", part 2."""
        factor = 2 * Tree(horizon).height
        return factor * Fraction(self.epsilon), factor * Fraction(self.delta)


class _Block(msgspec.Struct, frozen=True):
    """The noise of consecutive rounds (rounds by coordinates), and its variances by unit."""

    first: int
    numerators: Integers
    denominator: int
    variances: dict[int, npt.NDArray[np.float64]]


class Mechanism:
    """Noise for ``len(units)`` coordinates over the rounds of a process. It can be judged without coins; to draw it,
    put it `under` some."""

    _latest: _Block | None
    _by_coordinate: list[Coins] | None
    _tails: tuple[int, dict[int, Tail]]

    def __init__(
        self,
        process: Process,
        share: Share,
        *,
        units: Sequence[int],
        norm1: Fraction,
        norm2_squared: Fraction,
        oblivious: Oblivious | None = None,
    ) -> None:
        if min(units) < 1:
            raise InputError(f"expected units from 1 on, got {min(units)}")
        self.process, self.share, self.units = process, share, tuple(units)
        self._p, self._norm = (1, norm1) if share.kind == "pure" else (2, norm2_squared)
        self._oblivious = oblivious
        self._coins: Coins | None = None
        self._cells = integer_cells(len(units))
        self._groups = {unit: np.flatnonzero(np.asarray(units, dtype=object) == unit) for unit in dict.fromkeys(units)}
        self.refinement, self._inflation = self._lattice(min(units))
        """How many times finer than the data the noise's lattice is, and the factor that makes up for discreteness."""
        self._laws: dict[Fraction, Law] = {}
        self._by_level: dict[tuple[int, int], Law] = {}
        vars(self).update(_nothing_drawn())
        self._check_width()

    def _copied(self, **attributes: Any) -> Self:
        """A copy with these attributes, and with nothing drawn yet."""
        mine = copy(self)
        vars(mine).update(_nothing_drawn(), **attributes)
        return mine

    def under(self, coins: Coins) -> Self:
        """Bind the noise to the coins that draw it."""
        return self._copied(_coins=coins)

    @property
    def coins(self) -> Coins:
        if self._coins is None:
            raise InputError("expected noise under some coins, got noise that was only calibrated")
        return self._coins

    @property
    def size(self) -> int:
        return len(self.units)

    def draw(self, round: int) -> tuple[Integers, int]:
        """Integer noise for every coordinate, and its denominator."""
        block = self._block(round)
        return block.numerators[round - block.first], block.denominator * self.refinement

    def sample(self, round: int, cells: U64, chosen: Sequence[int] | None = None) -> tuple[Integers, int]:
        """Integer noise for named cells (cells by all coordinates, or by the chosen ones), and its denominator. Nothing
        is kept: noise is drawn by name whenever it is needed."""
        terms, coordinates = self.process.at(round), range(self.size) if chosen is None else chosen
        if self._by_coordinate is None:
            self._by_coordinate = [self.coins.branch("coordinate", i) for i in range(self.size)]
        out: Integers = np.zeros((len(cells), len(coordinates)), dtype=np.int64)
        for column, coordinate in enumerate(coordinates):
            coins, laws = self._by_coordinate[coordinate], self._laws_of(terms.levels, self.units[coordinate])
            if self._is_wide(terms, self.units[coordinate]):
                out = out.astype(object)
            for law, own in laws:
                weights = terms.weights[own].astype(out.dtype)
                size = max(CHUNK, 4 * CHUNK // len(own))
                for start in range(0, len(cells), size):
                    part = slice(start, start + size)
                    words = coins.words(terms.levels[own], terms.indices[own], cells[part])
                    samples: npt.NDArray[Any] = law.sample(words).astype(out.dtype, copy=False)
                    out[part, column] += (samples * weights[:, None]).sum(axis=0)
        return out, terms.denominator * self.refinement

    def variances(self, round: int) -> npt.NDArray[np.float64]:
        """The variances of the noise of all coordinates."""
        block = self._block(round)
        out = np.empty(self.size)
        for unit, coordinates in self._groups.items():
            out[coordinates] = block.variances[unit][round - block.first]
        return out

    def variances_of(self, coordinate: int, rounds: I64) -> npt.NDArray[np.float64]:
        """The variances of one coordinate in many rounds."""
        unit, parts = self.units[coordinate], np.array_split(rounds, max(1, len(rounds) // CHUNK))
        return np.concatenate([self._variances(self.process.weights_of(part), unit) for part in parts])

    def _variances(self, terms: Terms, unit: int) -> npt.NDArray[np.float64]:
        levels, places = terms.by_level
        variance = np.array([self.law(level, unit).variance for level in levels.tolist()])
        squares = (terms.weights / (terms.denominator * self.refinement)) ** 2
        return np.asarray((squares * variance[places]).sum(axis=1))

    def deviation_of(self, coordinate: int, round: int) -> float:
        return math.sqrt(float(self.variances_of(coordinate, np.array([round]))[0]))

    def deviations(self, round: int) -> npt.NDArray[np.float64]:
        """The deviations of all coordinates, without drawing any noise."""
        out = np.empty(self.size)
        for coordinates in self._groups.values():
            out[coordinates] = self.deviation_of(int(coordinates[0]), round)
        return out

    def square_of(self, coordinate: int, round: int) -> int:
        """The variance of a coordinate's numerators, as an integer: the same on every machine."""
        terms, unit = self.process.at(round), self.units[coordinate]
        parts = zip(terms.levels.tolist(), terms.weights.tolist(), strict=True)
        return int(sum(weight**2 * _size_squared(self.law(level, unit)) for level, weight in parts))

    def tail(self, round: int, coordinate: int) -> Tail:
        """The exact law of the noise of one coordinate in one round; kept for the latest round."""
        known, unit = self._tails, self.units[coordinate]  # one reference: any thread may ask for an interval
        if known[0] != round:
            known = self._tails = round, {}
        if unit not in known[1]:
            terms = self.process.at(round)
            denominator = terms.denominator * self.refinement
            laws = self._laws_of(terms.levels, unit)
            parts = [Summand.of(law, terms.weights[own], denominator) for law, own in laws]
            known[1][unit] = Tail(parts, math.gcd(*terms.weights.tolist()) / denominator)
        return known[1][unit]

    def copies(self, coordinate: int, count: int, coins: Coins) -> Mechanism:
        """Draw, for checks, independent copies of the noise of one coordinate, by the same laws."""
        unit = self.units[coordinate]
        groups = {unit: np.arange(count)}
        return self._copied(_coins=coins, units=(unit,) * count, _cells=integer_cells(count), _groups=groups)

    def understated(self, part: Fraction) -> Mechanism:
        """Calibrate wrongly, for tests of checks: as if a record moved the totals by only this part of what it does."""
        return self._copied(_laws={}, _by_level={}, _norm=self._norm * part**self._p)

    def half_width(self, round: int, coordinate: int, level: float) -> float:
        """The absolute value that noise does not exceed with probability ``level``."""
        return self.tail(round, coordinate).half_width(level)

    def spread(self, round: int, coordinate: int) -> Spread | None:
        """What is needed to combine the noise of one coordinate with other noise."""
        return self.tail(round, coordinate).spread

    def _block(self, round: int) -> _Block:
        """Blocks start at fixed rounds, wherever the stream is."""
        length = max(1, BLOCK // self.size)
        first = max(1, round // length * length)
        block = self._latest
        if block is None or block.first != first:
            last = round // length * length + length - 1
            block = self._latest = self._compute(first, min(last, self.process.horizon or last))
        return block

    def _compute(self, first: int, last: int) -> _Block:
        nodes = self.process.block_nodes(first, last)
        terms, drawn = nodes.terms, nodes.drawn
        numerators: Integers = np.zeros((last - first + 1, self.size), dtype=np.int64)
        for unit, coordinates in self._groups.items():
            samples: Integers = np.zeros((len(nodes.levels), len(coordinates)), dtype=np.int64)
            laws = self._laws_of(nodes.levels[drawn], unit)
            for law, own in laws:
                own = drawn[own]
                words = self.coins.words(nodes.levels[own], nodes.indices[own], self._cells[coordinates])
                samples[own] = law.sample(words)
            if self._is_wide(terms, unit):
                numerators, samples = numerators.astype(object), samples.astype(object)
            numerators[:, coordinates] = (terms.weights[:, :, None] * samples[nodes.where]).sum(axis=1)
        variances = {unit: self._variances(terms, unit) for unit in self._groups}
        return _Block(first, numerators, terms.denominator, variances)

    def _laws_of(self, levels: I64, unit: int) -> list[tuple[Law, npt.NDArray[np.intp]]]:
        """The laws of nodes on these levels, each with the positions of its nodes."""
        names = levels.tolist()
        by_level = {level: self.law(level, unit) for level in dict.fromkeys(names)}
        laws = dict.fromkeys(by_level.values())
        return [(law, np.flatnonzero([by_level[level] is law for level in names])) for law in laws]

    def _is_wide(self, terms: Terms, unit: int) -> bool:
        """Whether the numerators might overflow 64 bits with more than a negligible probability."""
        levels, places = terms.by_level
        reach = np.array([REACH * max(1.0, math.sqrt(self.law(level, unit).variance)) for level in levels.tolist()])
        return float((np.abs(terms.weights) * reach[places]).sum(axis=-1).max(initial=0)) >= HEADROOM

    def law(self, level: int, unit: int) -> Law:
        """The law of a level's nodes, in steps of the noise's lattice; levels of equal noise share one object."""
        if self._oblivious is not None:
            return self._oblivious.law
        if (level, unit) not in self._by_level:
            size = self._size(unit, self.process.spread(level, self._p))
            made = DiscreteLaplace(size) if self._p == 1 else DiscreteGaussian(size)
            self._by_level[level, unit] = self._laws.setdefault(size, made)
        return self._by_level[level, unit]

    def _size(self, unit: int, spread: Fraction) -> Fraction:
        """The scale of Laplace noise or the variance of Gaussian noise, in steps of its lattice."""
        size = Fraction(unit**self._p) * self._norm * self.process.charge(self._p) * spread / self.share.amount
        if self._p == 1:
            return size
        return Fraction(math.ceil(size * (self._inflation * self.refinement) ** 2 * 2**20), 2**20)

    def _check_width(self) -> None:
        """Noise too wide for 64 bits in any round is an error before the stream begins."""
        if self._oblivious is not None:
            return
        last = self.process.weights_of(np.array([self.process.horizon or LAST_ROUND]))
        spread = max(self.process.spread(level, self._p) for level in np.unique(last.levels).tolist())
        size = self._size(max(self._groups), spread)
        if size > WIDEST**self._p:
            wide = float(size) ** (1 / self._p)
            raise InputError(
                f"its noise would be {wide:.3g} lattice steps wide, expected at most 2^55: "
                "take a larger budget or a coarser step"
            )

    def _lattice(self, unit: int) -> tuple[int, Fraction]:
        if self._oblivious is not None or self._p == 1:
            return 1, Fraction(1)
        sensitivity = self.process.charge(2)
        variance = unit**2 * self._norm * sensitivity / self.share.amount
        refinement = 1
        while variance * refinement**2 < FINENESS**2 * max(sensitivity, self.process.kernel_squared):
            refinement *= 2
        return refinement, self.process.discreteness(variance * refinement**2)


def _nothing_drawn() -> dict[str, Any]:
    return {"_latest": None, "_by_coordinate": None, "_tails": (0, {})}


def _size_squared(law: Law) -> Fraction:
    if isinstance(law, DiscreteGaussian):
        return law.parameter
    return 2 * law.scale**2 if isinstance(law, DiscreteLaplace) else Fraction(law.variance)
