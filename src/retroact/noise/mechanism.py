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
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ..coins import Coins, DiscreteGaussian, DiscreteLaplace, Law, integer_cells
from ..errors import InputError
from ..privacy import FINENESS, Share, discreteness
from .process import Process, Terms
from .tails import Summand, Tail
from .tree import Tree

# A sample of scale b is beyond 128 b with probability below 2^-180; the bound decides how products are computed.
REACH = 128
HEADROOM = 1 << 62


@dataclass(frozen=True)
class Oblivious:
    """An integer noise law of the user's own, on every coordinate independently, with a declared (epsilon, delta) for
    one release of the query and one record (Definition "oblivious-noise mechanism")."""

    law: Law
    name: str
    epsilon: float
    delta: float = 0.0

    def cost(self, horizon: int) -> tuple[Fraction, Fraction]:
        """(2m epsilon, 2m delta): Theorem "linear", part 2."""
        factor = 2 * Tree(horizon).height
        return factor * Fraction(self.epsilon), factor * Fraction(self.delta)


class Mechanism:
    """Noise of ``len(units)`` coordinates over the rounds of a process."""

    def __init__(
        self,
        process: Process,
        share: Share,
        *,
        units: Sequence[int],
        norm1: Fraction,
        norm2_squared: Fraction,
        coins: Coins,
        oblivious: Oblivious | None = None,
    ) -> None:
        if min(units) < 1:
            raise InputError(f"expected units from 1 on, got {min(units)}")
        self.process = process
        self.share = share
        self._norm1, self._norm2_squared = norm1, norm2_squared
        self._oblivious = oblivious
        self.coins = coins
        self._cells = integer_cells(len(units))
        self._groups = {unit: np.flatnonzero(np.asarray(units, dtype=object) == unit) for unit in dict.fromkeys(units)}
        self._refinement, self._inflation = self._lattice(min(units))
        self._laws: dict[tuple[int, Fraction], Law] = {}
        self._by_level: dict[tuple[int, int], Law] = {}

    @property
    def size(self) -> int:
        return len(self._cells)

    def draw(self, round: int) -> tuple[npt.NDArray[np.int64] | npt.NDArray[np.object_], int]:
        """Integer noise for every coordinate, and the denominator it is over."""
        terms = self.process.at(round)
        denominator = terms.denominator << self._refinement
        out = np.zeros(self.size, dtype=object)
        wide = False
        for coordinates, nodes, law in self._parts(terms):
            weights = terms.weights[nodes]
            samples = law.sample(self.coins.words(terms.levels[nodes], terms.indices[nodes], self._cells[coordinates]))
            reach = REACH * max(1.0, law.variance**0.5) * float(np.abs(weights).sum())
            if reach < HEADROOM:
                out[coordinates] += weights @ samples
            else:
                wide = True
                out[coordinates] += weights.astype(object) @ samples.astype(object)
        return (out if wide else out.astype(np.int64)), denominator

    def tail(self, round: int, coordinate: int) -> Tail:
        """The exact law of the noise of one coordinate in one round."""
        terms = self.process.at(round)
        denominator = terms.denominator << self._refinement
        parts = [p for p in self._parts(terms) if coordinate in p[0]]
        spacing = math.gcd(*(int(w) for w in terms.weights)) / denominator
        return Tail([Summand.of(law, terms.weights[nodes], denominator) for _, nodes, law in parts], spacing)

    def variances(self, round: int) -> npt.NDArray[np.float64]:
        terms = self.process.at(round)
        denominator = terms.denominator << self._refinement
        out = np.zeros(self.size)
        for coordinates, nodes, law in self._parts(terms):
            weights = terms.weights[nodes] / denominator
            out[coordinates] += float(weights @ weights) * law.variance
        return out

    def law(self, level: int, unit: int) -> Law:
        """The law of the nodes of a level, in the lattice of the noise."""
        if (level, unit) not in self._by_level:
            self._by_level[level, unit] = self._calibrate(level, unit)
        return self._by_level[level, unit]

    def _calibrate(self, level: int, unit: int) -> Law:
        if self._oblivious is not None:
            return self._oblivious.law
        p = 1 if self.share.kind == "pure" else 2
        spread = self.process.spread(level, p)
        key = (unit, spread)
        if key not in self._laws:
            if p == 1:
                self._laws[key] = DiscreteLaplace(unit * self._norm1 * self.process.l1 * spread / self.share.amount)
            else:
                variance = unit**2 * self._norm2_squared * self.process.l2_squared * spread / self.share.amount
                exact = variance * self._inflation**2 * 4**self._refinement
                self._laws[key] = DiscreteGaussian(Fraction(math.ceil(exact * 2**20), 2**20))
        return self._laws[key]

    def _lattice(self, unit: int) -> tuple[int, Fraction]:
        if self._oblivious is not None or self.share.kind == "pure":
            return 0, Fraction(1)
        coarseness = unit**2 * self._norm2_squared / self.share.amount
        refinement = 0
        while coarseness * 4**refinement < FINENESS**2:
            refinement += 1
        return refinement, discreteness(coarseness * 4**refinement)

    def _parts(self, terms: Terms) -> list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Law]]:
        """(coordinates, nodes, law) for every group of equal laws."""
        parts = []
        for unit, coordinates in self._groups.items():
            laws = [self.law(level, unit) for level in terms.levels.tolist()]
            for law in dict.fromkeys(laws):
                nodes = np.array([i for i, other in enumerate(laws) if other is law])
                parts.append((coordinates, nodes, law))
        return parts
