"""The noises that hide the worst that one operation can do to a statistic.

A process hides a change of the truth by moving independent noises ("nodes") by whole numbers. So all an attacker who
sees every node can use is: which law each of the moved ones has, and how far it moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..arrays import F64
from ..coins import DiscreteGaussian, DiscreteLaplace, Law
from ..noise import Process
from ..privacy import Share
from ..statistics import Linear
from ..statistics.restated import Lagged
from ..statistics.wrapper import layers
from ..stream import Specification
from ..testing.claimed import Claim, claimed_size
from ..testing.worst_pair import Candidate
from .result import Result, idle

READABLE = 64


@dataclass(frozen=True)
class Node:
    """``count`` independent noises that move by ``shift`` steps of the data: their own law, on a lattice
    ``refinement`` times finer, and the scale or variance that the claim asks for, in units of the data."""

    law: Law
    claimed: Fraction
    shift: int
    refinement: int
    count: int

    def scaled(self, factor: float) -> Node:
        """The same with noise so many times smaller."""
        exact = Fraction(factor).limit_denominator(10**6)
        law = self.law
        if isinstance(law, DiscreteLaplace):
            law = DiscreteLaplace(law.scale / exact)
        elif isinstance(law, DiscreteGaussian):
            law = DiscreteGaussian(law.parameter / exact**2)
        return Node(law, self.claimed, self.shift, self.refinement, self.count)


def nodes(spec: Specification, name: str, candidate: Candidate) -> list[Node]:
    """The moved noises of a candidate, equal ones together."""
    out: dict[tuple[Law, Fraction, int, int], int] = {}
    for coordinate, noise, shift in candidate.moved:
        unit, claim = noise.units[coordinate], claim_of(spec, name, noise.process)
        for (level, _), value in shift.items():
            key = noise.law(level, unit), claimed_size(claim, level, unit), abs(value), noise.refinement
            out[key] = out.get(key, 0) + 1
    return [Node(*key, count) for key, count in out.items()]


def claim_of(spec: Specification, name: str, process: Process) -> Claim:
    """What the budget asks of one noise of a statistic: lags that have noise of their own divide it."""
    share, mechanism = spec.shares[name], spec.bounds[name].noise
    if isinstance(mechanism, Lagged) and not mechanism.shared:
        share = Share(share.kind, share.amount / len(mechanism.parts))
    return Claim(spec.bounds[name].layout, share, process)


def readable(spec: Specification, name: str, candidate: Candidate) -> bool | None:
    """Whether the moved noises follow from the published numbers and the truth; None where that was not computed."""
    releases = spec.releases(name)
    if not isinstance(layers(spec.statistics[name])[-1], Linear):
        return False  # not every total is published
    if releases is None or releases > READABLE or len({id(moved.noise) for moved in candidate.moved}) > 1:
        return None
    matrix, names = weights(candidate.moved[0].noise.process, releases)
    wanted = {names.get(node) for moved in candidate.moved for node in moved.shift}
    if None in wanted:
        return False  # a noise that no release has
    picked = np.zeros((len(wanted), len(names)))
    picked[np.arange(len(wanted)), sorted(place for place in wanted if place is not None)] = 1
    rank = np.linalg.matrix_rank(matrix)
    return bool(np.linalg.matrix_rank(np.vstack([matrix, picked])) == rank)


def weights(process: Process, rounds: int) -> tuple[F64, dict[tuple[int, int], int]]:
    """The matrix that makes the noise of rounds 1 .. n from nodes, and in which column each node stands.

    >>> from retroact.noise import Tree
    >>> weights(Tree(3), 3)[0].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    """
    names: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, int, float]] = []
    for row in range(rounds):
        terms = process.at(row + 1)
        for level, index, weight in zip(
            *(a.tolist() for a in (terms.levels, terms.indices, terms.weights)), strict=True
        ):
            rows.append((row, names.setdefault((level, index), len(names)), weight / terms.denominator))
    matrix = np.zeros((rounds, len(names)))
    for row, column, weight in rows:
        matrix[row, column] += weight
    return matrix, names


def idle_inside(test: str, reason: str) -> Result:
    """A test from inside that cannot look at this target."""
    return idle(
        "privacy", test, "Does the noise hide one record as well as is claimed?", f"It does not apply: {reason}."
    )
