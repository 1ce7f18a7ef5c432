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


class Noise(NamedTuple):
    """One noise of a stream: of the coordinates with one unit, in two releases."""

    name: str
    claim: Claim
    mechanism: Mechanism
    coordinate: int
    unit: int
    indices: list[int]
    dense: bool


def check_noise_law(
    spec: Specification, *, draws: int = 2000, rounds: tuple[int, int] = (3, 7)
) -> dict[str, Conformance]:
    """Compare the noise of every statistic, and of every unit in it, with the law it claims; raises where that is
    refuted."""
    check_identity(spec, max(rounds))
    out = {}
    for name in spec.statistics:
        for noise in noises(spec, name, rounds):
            out[noise.name] = conforms(noise, drawn(noise, draws, Key.for_testing(draws).coins(noise.name)))
            if not out[noise.name].holds:
                raise VerificationError(f"noise law of {noise.name}: refuted by {draws} draws: {out[noise.name]}")
    return out


def noises(spec: Specification, name: str, rounds: tuple[int, int] = (3, 7)) -> Iterator[Noise]:
    """All that a statistic has: for each lag one, which begins as many releases later, and for each unit one."""
    statistic = spec.statistics[name]
    if isinstance(statistic.noise, Oblivious):
        return  # the law is the user's own
    dense = isinstance(layers(statistic)[-1], Linear) or sample_in(statistic) is not None
    for which, later, claim, mechanism in _claims(spec, name):
        indices = [max(1, round // statistic.every) + later for round in rounds]
        if claim.process.horizon is not None and max(indices) > claim.process.horizon:
            continue
        by_unit: dict[int, int] = {}
        for coordinate in range(mechanism.size):
            by_unit.setdefault(mechanism.unit_of(coordinate), coordinate)
        for unit, coordinate in by_unit.items():
            named = f"{which}, unit {unit}" if len(by_unit) > 1 else which
            yield Noise(named, claim, mechanism, coordinate, unit, indices, dense)


def _claims(spec: Specification, name: str) -> Iterator[tuple[str, int, Claim, Mechanism]]:
    statistic, share = spec.statistics[name], spec.shares[name]
    layout = statistic.layout(spec.schema)
    noise = spec.mechanism(name, Coins(bytes(32)))
    if sample_in(statistic) is not None:
        if isinstance(noise, Gated):  # the rest of it has no noise
            yield f"{name}, gate", 0, Claim(layout, noise.share, spec.processes[name]), noise
        return
    if not isinstance(noise, Lagged) or not isinstance(statistic, Restated):
        yield name, 0, Claim(layout, share, spec.processes[name]), noise
        return
    part = share if noise.shared else Share(share.kind, share.amount / len(statistic.lags))
    for lag, mechanism in zip(statistic.lags, noise.parts, strict=True):
        yield f"{name}, lag {lag}", -(-lag // statistic.every), Claim(layout, part, mechanism.process), mechanism


def drawn(noise: Noise, draws: int, coins: Coins) -> F64:
    """Independent copies of the noise of both releases, as the stream draws it."""
    many = noise.mechanism.copies(noise.coordinate, draws if noise.dense else 1, coins)
    out = []
    for index in noise.indices:
        numerators, denominator = many.draw(index) if noise.dense else many.sample(index, integer_cells(draws))
        out.append(np.array([n / denominator for n in numerators.ravel().tolist()]))
    return np.array(out)


def conforms(noise: Noise, samples: F64) -> Conformance:
    terms = noise.claim.process.at(noise.indices[-1])
    spacing = math.gcd(*terms.weights.tolist()) / (terms.denominator * noise.mechanism.refinement)
    return conformance(samples, noise.claim, noise.indices, spacing, unit=noise.unit)


def conformance(
    noise: F64, claim: Claim, indices: list[int], spacing: float = 0.0, *, unit: int | None = None
) -> Conformance:
    """``noise``: for two releases, many independent samples of the noise of a coordinate of this unit (the first one's,
    unless said otherwise), the second on a lattice of this spacing."""
    tails = [claimed_tail(claim, index, claim.layout.units[0] if unit is None else unit) for index in indices]
    deviations = [math.sqrt(tail.variance) for tail in tails]
    if not all(deviations):
        return Conformance(0.0, 0.0, 0.0) if not noise.any() else Conformance(math.inf, math.inf, math.inf)
    first, last = (samples / deviation for samples, deviation in zip(noise, deviations, strict=True))
    # The fourth moment of a sum of Laplace noises is at most 6, of Gaussian ones 3.
    fourth = 6.0 if claim.share.kind == "pure" else 3.0
    variance = (float((last**2).mean()) - 1) / math.sqrt((fourth - 1) / len(last))
    products = first * last
    error = float(products.std()) / math.sqrt(len(products))
    off = (float(products.mean()) - claimed_correlation(claim, indices)) / (error + 1e-12)
    return Conformance(variance, shape_deviate(noise[-1], tails[-1], spacing), off)


def check_identity(spec: Specification, rounds: int) -> None:
    """What an empty stream releases is its noise, integer by integer, where all of it is released."""
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


def claimed_size(claim: Claim, level: int, unit: int) -> Fraction:
    """The scale (pure) or the variance (Gaussian) that the guarantee asks of a node, in units of the data."""
    layout, share, process = claim
    if share.kind == "pure":
        return unit * layout.norm1 * process.l1 * process.spread(level, 1) / share.amount
    return unit**2 * layout.norm2_squared * process.l2_squared * process.spread(level, 2) / share.amount


def _claimed_law(claim: Claim, level: int, unit: int) -> tuple[Law, int]:
    """The law that the guarantee asks for, and how many times finer than the data its lattice is."""
    size = claimed_size(claim, level, unit)
    if claim.share.kind == "pure":
        return DiscreteLaplace(size), 1
    # Gaussian noise is claimed up to its lattice, which is fine beside it.
    return DiscreteGaussian(Fraction(math.ceil(size * 2**30), 2**10)), 1 << 10


def claimed_tail(claim: Claim, index: int, unit: int) -> Tail:
    terms = claim.process.at(index)
    parts = []
    fine = 1
    for level in np.unique(terms.levels).tolist():
        law, fine = _claimed_law(claim, level, unit)
        parts.append(Summand.of(law, terms.weights[terms.levels == level], terms.denominator * fine))
    spacing = math.gcd(*terms.weights.tolist()) / (terms.denominator * fine)
    return Tail(parts, spacing)


def claimed_correlation(claim: Claim, indices: list[int]) -> float:
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


def shape_deviate(samples: F64, tail: Tail, spacing: float) -> float:
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
