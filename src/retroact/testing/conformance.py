"""Does the released noise have the law that is claimed? Exactly, and statistically.

Exactly: what a stream releases, minus the exact totals, is the noise of its mechanism, integer by integer.
Statistically: many independent copies of that noise have the variance, the distribution and the covariance between
rounds of the law that the guarantee asks for, which is computed here anew from sensitivity and budget. Error rates are
named, and a planted wrong scale must fail (tests do that).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..coins import Coins, DiscreteGaussian, DiscreteLaplace, Key, Law, integer_cells
from ..compilers import sample_in
from ..compilers.gate import Gated
from ..errors import VerificationError
from ..noise import Mechanism, Oblivious, Process, Summand, Tail
from ..privacy import Share
from ..statistics import Layout, Linear, Restated
from ..statistics.around import layers
from ..statistics.restated import Lagged
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


class Claim(NamedTuple):
    """What a guarantee asks of one noise."""

    layout: Layout
    share: Share
    process: Process


def check_noise_law(
    spec: Specification, *, draws: int = 2000, rounds: tuple[int, int] = (3, 7)
) -> dict[str, Conformance]:
    """Compare the noise of every statistic with the law it claims; raises where that is refuted."""
    _check_identity(spec, max(rounds))
    out = {}
    for name, statistic in spec.statistics.items():
        if isinstance(statistic.noise, Oblivious):
            continue  # the law is the user's own
        for which, later, claim in _claims(spec, name):
            indices = [max(1, round // statistic.every) + later for round in rounds]
            if claim.process.horizon is not None and max(indices) > claim.process.horizon:
                continue
            dense = isinstance(layers(statistic)[-1], Linear) or sample_in(statistic) is not None
            out[which] = _conforms(claim, indices, draws, dense, Key.for_testing(draws).coins(name))
            if not out[which].holds:
                raise VerificationError(f"noise law of {which}: refuted by {draws} draws: {out[which]}")
    return out


def _claims(spec: Specification, name: str) -> Iterator[tuple[str, int, Claim]]:
    """The noises of a statistic: one, or one for each lag, which begins as many releases later."""
    statistic, share = spec.statistics[name], spec.shares[name]
    layout = statistic.layout(spec.schema)
    noise = spec.mechanism(name, Coins(bytes(32)))
    if sample_in(statistic) is not None:
        if isinstance(noise, Gated):  # the rest of it has no noise
            yield f"{name}, gate", 0, Claim(layout, noise.share, spec.processes[name])
        return
    if not isinstance(noise, Lagged) or not isinstance(statistic, Restated):
        yield name, 0, Claim(layout, share, spec.processes[name])
        return
    part = share if noise.shared else Share(share.kind, share.amount / len(statistic.lags))
    for lag, mechanism in zip(statistic.lags, noise.parts, strict=True):
        yield f"{name}, lag {lag}", -(-lag // statistic.every), Claim(layout, part, mechanism.process)


def _conforms(claim: Claim, indices: list[int], draws: int, dense: bool, coins: Coins) -> Conformance:
    many = Mechanism(
        claim.process,
        claim.share,
        units=(claim.layout.units[0],) * (draws if dense else 1),
        norm1=claim.layout.norm1,
        norm2_squared=claim.layout.norm2_squared,
        coins=coins,
    )
    noise = []
    for index in indices:
        numerators, denominator = many.draw(index) if dense else many.sample(index, integer_cells(draws))
        noise.append(np.array([n / denominator for n in numerators.ravel().tolist()]))
    terms = claim.process.at(indices[-1])
    spacing = math.gcd(*terms.weights.tolist()) / (terms.denominator * many.refinement)
    return conformance(np.array(noise), claim, indices, spacing)


def conformance(noise: F64, claim: Claim, indices: list[int], spacing: float = 0.0) -> Conformance:
    """``noise``: for two releases, many independent samples of the noise of the first coordinate, the second on a
    lattice of this spacing."""
    tails = [_claimed_tail(claim, index) for index in indices]
    deviations = [math.sqrt(tail.variance) for tail in tails]
    if not all(deviations):
        return Conformance(0.0, 0.0, 0.0) if not noise.any() else Conformance(math.inf, math.inf, math.inf)
    first, last = (samples / deviation for samples, deviation in zip(noise, deviations, strict=True))
    # The fourth moment of a sum of Laplace noises is at most 6, of Gaussian ones 3.
    fourth = 6.0 if claim.share.kind == "pure" else 3.0
    variance = (float((last**2).mean()) - 1) / math.sqrt((fourth - 1) / len(last))
    products = first * last
    error = float(products.std()) / math.sqrt(len(products))
    off = (float(products.mean()) - _claimed_correlation(claim, indices)) / (error + 1e-12)
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


def _claimed_law(claim: Claim, level: int) -> tuple[Law, int]:
    """The law that the guarantee asks for, and how many times finer than the data its lattice is."""
    layout, share, process = claim
    unit = layout.units[0]
    if share.kind == "pure":
        return DiscreteLaplace(unit * layout.norm1 * process.l1 * process.spread(level, 1) / share.amount), 1
    # Gaussian noise is claimed up to its lattice, which is fine beside it.
    variance = unit**2 * layout.norm2_squared * process.l2_squared * process.spread(level, 2) / share.amount
    return DiscreteGaussian(Fraction(math.ceil(variance * 2**30), 2**10)), 1 << 10


def _claimed_tail(claim: Claim, index: int) -> Tail:
    terms = claim.process.at(index)
    parts = []
    fine = 1
    for level in np.unique(terms.levels).tolist():
        law, fine = _claimed_law(claim, level)
        parts.append(Summand.of(law, terms.weights[terms.levels == level], terms.denominator * fine))
    spacing = math.gcd(*terms.weights.tolist()) / (terms.denominator * fine)
    return Tail(parts, spacing)


def _claimed_correlation(claim: Claim, indices: list[int]) -> float:
    """What shared nodes give."""
    process = claim.process
    p = 1 if claim.share.kind == "pure" else 2
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
