"""Does the released noise have the law that is claimed? Exactly, and statistically.

Exactly: what a stream releases, minus the exact totals, is the noise of its mechanism, integer by integer.
Statistically: many independent copies of that noise have the variance, the distribution and the covariance between
rounds of the law that the guarantee asks for, which is computed here anew from sensitivity and budget. Error rates are
named, and a planted wrong scale must fail (tests do that).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ..coins import DiscreteGaussian, DiscreteLaplace, Key, Law, integer_cells
from ..errors import VerificationError
from ..noise import Mechanism, Oblivious, Summand, Tail
from ..statistics import Linear, Restated
from ..stream import Specification, Stream

# A correct mechanism fails one comparison with probability about 1e-7 (5.3 standard errors).
LIMIT = 5.3
CELLS = 10
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Conformance:
    """How far off, in standard errors: beyond `LIMIT` the claim is refuted."""

    variance: float
    shape: float
    covariance: float

    @property
    def holds(self) -> bool:
        return max(abs(self.variance), abs(self.shape), abs(self.covariance)) <= LIMIT


def check_noise_law(
    spec: Specification, *, draws: int = 2000, rounds: tuple[int, int] = (3, 7)
) -> dict[str, Conformance]:
    """Compare the noise of every statistic with the law it claims; raises where that is refuted."""
    _check_identity(spec, max(rounds))
    out = {}
    for name, statistic in spec.statistics.items():
        if isinstance(statistic.noise, Oblivious) or isinstance(statistic, Restated):
            continue  # the law is the user's own, or that of the inner statistic at its part of the budget
        layout = statistic.layout(spec.schema)
        keyed = not isinstance(statistic, Linear)
        many = Mechanism(
            spec.processes[name],
            spec.shares[name],
            units=(layout.units[0],) * (1 if keyed else draws),
            norm1=layout.norm1,
            norm2_squared=layout.norm2_squared,
            coins=Key.for_testing(draws).coins(name),
        )
        indices = [max(1, round // statistic.every) for round in rounds]
        noise = []
        for index in indices:
            numerators, denominator = many.draw(index) if not keyed else many.sample(index, integer_cells(draws))
            noise.append(np.array([n / denominator for n in numerators.ravel().tolist()]))
        terms = spec.processes[name].at(indices[-1])
        spacing = math.gcd(*terms.weights.tolist()) / (terms.denominator * many.refinement)
        out[name] = conformance(np.array(noise), spec, name, indices, spacing)
        if not out[name].holds:
            raise VerificationError(f"noise law of {name}: refuted by {draws} draws: {out[name]}")
    return out


def conformance(noise: F64, spec: Specification, name: str, indices: list[int], spacing: float = 0.0) -> Conformance:
    """``noise``: for two releases, many independent samples of the noise of the first coordinate, the second on a
    lattice of this spacing."""
    tails = [_claimed_tail(spec, name, index) for index in indices]
    deviations = [math.sqrt(tail.variance) for tail in tails]
    if not all(deviations):
        return Conformance(0.0, 0.0, 0.0) if not noise.any() else Conformance(math.inf, math.inf, math.inf)
    first, last = (samples / deviation for samples, deviation in zip(noise, deviations, strict=True))
    # The fourth moment of a sum of Laplace noises is at most 6, of Gaussian ones 3.
    fourth = 6.0 if spec.shares[name].kind == "pure" else 3.0
    variance = (float((last**2).mean()) - 1) / math.sqrt((fourth - 1) / len(last))
    products = first * last
    error = float(products.std()) / math.sqrt(len(products))
    off = (float(products.mean()) - _claimed_correlation(spec, name, indices)) / (error + 1e-12)
    return Conformance(variance, _shape(noise[-1], tails[-1], spacing), off)


def _check_identity(spec: Specification, rounds: int) -> None:
    key = Key.for_testing(rounds)
    stream = Stream.from_specification(spec, key=key)
    mechanisms = {name: spec.mechanism(name, key.coins("stream")) for name in spec.statistics}
    for round in range(1, rounds + 1):
        for name, release in stream.close_round().items():
            if not isinstance(spec.statistics[name], Linear):
                continue  # an empty stream shows none of its noise; `check_oblivious` compares releases
            numerators, denominator = mechanisms[name].draw(round // spec.statistics[name].every)
            if (tuple(numerators.tolist()), denominator) != (release.numerators, release.denominator):
                raise VerificationError(f"noise law of {name}: round {round} of an empty stream is not its noise")


def _claimed_law(spec: Specification, name: str, level: int) -> tuple[Law, int]:
    """The law that the guarantee asks for, and how many times finer than the data its lattice is."""
    layout, share, process = spec.statistics[name].layout(spec.schema), spec.shares[name], spec.processes[name]
    unit = layout.units[0]
    if share.kind == "pure":
        return DiscreteLaplace(unit * layout.norm1 * process.l1 * process.spread(level, 1) / share.amount), 1
    # Gaussian noise is claimed up to its lattice, which is fine beside it.
    variance = unit**2 * layout.norm2_squared * process.l2_squared * process.spread(level, 2) / share.amount
    return DiscreteGaussian(Fraction(math.ceil(variance * 2**30), 2**10)), 1 << 10


def _claimed_tail(spec: Specification, name: str, index: int) -> Tail:
    terms = spec.processes[name].at(index)
    parts = []
    fine = 1
    for level in np.unique(terms.levels).tolist():
        law, fine = _claimed_law(spec, name, level)
        parts.append(Summand.of(law, terms.weights[terms.levels == level], terms.denominator * fine))
    spacing = math.gcd(*terms.weights.tolist()) / (terms.denominator * fine)
    return Tail(parts, spacing)


def _claimed_correlation(spec: Specification, name: str, indices: list[int]) -> float:
    """What shared nodes give."""
    process = spec.processes[name]
    p = 1 if spec.shares[name].kind == "pure" else 2
    first, last = (process.at(index) for index in indices)
    nodes = zip(first.levels.tolist(), first.indices.tolist(), strict=True)
    weights = dict(zip(nodes, first.weights.tolist(), strict=True))
    shared = sum(
        weights.get((level, node), 0) * weight * float(process.spread(level, p)) ** (3 - p)
        for level, node, weight in zip(last.levels.tolist(), last.indices.tolist(), last.weights.tolist(), strict=True)
    )
    variances = process.variances(indices, p)
    return float(shared / (first.denominator * last.denominator) / math.sqrt(variances[0] * variances[1]))


def _shape(samples: F64, tail: Tail, spacing: float) -> float:
    """Chi-square over cells of the claimed distribution of |noise|, as a normal deviate (Wilson and Hilferty)."""
    edges = [tail.half_width(i / CELLS) * (1 + 1e-6) for i in range(1, CELLS)]
    if tail.gaussian and spacing:
        # The claim is a fine lattice: between two points of the coarser one it says what both together have.
        edges = [(math.floor(edge / spacing) + 0.5) * spacing for edge in edges]
    beyond = [1.0, *(2 * tail.upper(edge) for edge in edges), 0.0]
    expected = -np.diff(beyond) * len(samples)
    observed = np.bincount(np.searchsorted(edges, np.abs(samples)), minlength=CELLS)
    keep = expected > 5
    freedom = int(keep.sum()) - 1
    if freedom < 1:
        return 0.0
    chi = float(((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum())
    return float((chi / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
