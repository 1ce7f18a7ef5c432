"""Is Gaussian noise coarse compared with what no release can see?

Node values that no release can see form a lattice. Published noise is Gaussian up to a negligible factor if noise is
wide compared with the Gram-Schmidt lengths of some basis of it (docs/proofs.md, 3c): here at least `FINENESS` times,
in units of each node's own deviation. This is computed from weights and laws; what a process says of itself
(`kernel_squared`) is not asked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from ..coins import DiscreteGaussian
from ..errors import VerificationError
from ..noise import Mechanism
from ..noise.process import Terms
from ..privacy import FINENESS
from .claimed_law import Node

# The releases that are looked at: lengths are those of the finest levels, or nearly.
FIRST = 256
# Of a Cholesky factor, and of lengths that are met exactly.
ROUNDED = 1e-9


def check_lattice(which: str, mechanism: Mechanism) -> None:
    """For noise in which every release has a separate node, whose steps all others are multiples of. Of other noise
    nothing is said."""
    for unit in sorted({*mechanism.units}):
        fineness = lattice_fineness(mechanism, unit)
        if fineness is not None and fineness < FINENESS * (1 - ROUNDED):
            raise VerificationError(
                f"noise law of {which}: expected noise at least {FINENESS} times as wide as what no release can see, "
                f"got {fineness:.3g} times"
            )


def lattice_fineness(mechanism: Mechanism, unit: int) -> float | None:
    """How many times the noise is as wide as the longest Gram-Schmidt vector of what the first releases cannot see. The
    basis: every other node up by a step, with the own nodes of its releases down by its weights; fine levels first."""
    last = min(FIRST, mechanism.process.horizon or FIRST)
    terms = mechanism.process.weights_of(np.arange(1, last + 1))
    laws = {level: mechanism.law(level, unit) for level in np.unique(terms.levels).tolist()}
    sizes = {level: law.parameter for level, law in laws.items() if isinstance(law, DiscreteGaussian)}
    seen = [_nodes(terms, row) for row in range(last)]
    times = Counter(node for nodes in seen for node in nodes)
    own = [node for nodes in seen if (node := _own(nodes, times)) is not None]
    if len(sizes) < len(laws) or len(own) < len(seen):
        return None
    others = {node: column for column, node in enumerate(sorted(times.keys() - {*own}))}
    down = np.zeros((last, len(others)))
    for row, (nodes, mine) in enumerate(zip(seen, own, strict=True)):
        for node in nodes.keys() - {mine}:
            down[row, others[node]] = nodes[node] / nodes[mine] / math.sqrt(sizes[mine[0]])
    up = np.diag([1 / float(sizes[level]) for level, _ in others])
    lengths: list[float] = np.diag(np.linalg.cholesky(up + down.T @ down)).tolist()
    # also of a node alone: those of later releases
    return 1 / max([*lengths, *(1 / math.sqrt(size) for size in sizes.values())])


def _nodes(terms: Terms, row: int) -> dict[Node, int]:
    """Those of a release, with their weights."""
    one = terms.of(row)
    return dict(zip(zip(one.levels.tolist(), one.indices.tolist(), strict=True), one.weights.tolist(), strict=True))


def _own(nodes: Mapping[Node, int], times: Mapping[Node, int]) -> Node | None:
    """One that no other release sees, and whose weight divides all others."""
    step = math.gcd(*nodes.values())
    return next((node for node, weight in nodes.items() if times[node] == 1 and abs(weight) == step), None)
