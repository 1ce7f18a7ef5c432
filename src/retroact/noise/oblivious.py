"""A noise law that the user brings."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ..coins import Law
from ..params import Parameters
from .tree import Tree


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
