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
from functools import lru_cache
from random import Random
from typing import NamedTuple

import numpy as np

from ..arrays import F64
from ..coins import Coins, DiscreteGaussian, DiscreteLaplace, Key, Law, integer_cells
from ..compilers import sample_in
from ..errors import VerificationError
from ..noise import Mechanism, Oblivious, Process, Summand, Tail
from ..noise.mechanism import BLOCK
from ..privacy import Share
from ..statistics import Distinct, Layout, Linear, Restated
from ..statistics.restated import Lagged
from ..statistics.wrapper import layers
from ..stream import Specification, Stream
from .algorithm import in_memory

# A correct mechanism fails one comparison with probability about 1e-7 (5.3 standard errors).
LIMIT = 5.3
CELLS = 10
# A cell of a distribution counts where so many samples of the claimed law are expected in it.
FEWEST = 10
# Noise that is almost always 0 is compared from about so many samples on that are not.
OTHER = 60
# Rounds that are looked at where a stream has no end, and pairs of them.
ENDLESS = 1 << 20
PAIRS = 4
# Coordinates whose noise is computed again.
SOME = 16
# For the coins of a statistic themselves: a level that no process has.
NO_LEVEL = (1 << 32) - 1


@dataclass(frozen=True)
class Conformance:
    """How far off, in standard errors: beyond `LIMIT` the claim is refuted. ``compared``: False where the claimed noise
    is so often 0 that as many draws say nothing about it."""

    variance: float
    shape: float
    covariance: float
    compared: bool = True

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

    def at(self, pair: tuple[int, int]) -> Noise:
        """The same in two other releases."""
        return self._replace(indices=list(pair))


class Moments(NamedTuple):
    """Of the noise of two releases, as claimed: both variances, their correlation, and of the noises divided by their
    deviations the fourth moment of the second and the variance of the product."""

    variances: tuple[float, float]
    correlation: float
    fourth: float
    product: float


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
        check_draws(spec, name)
    return out


def noises(spec: Specification, name: str, rounds: tuple[int, int] = (3, 7)) -> Iterator[Noise]:
    """All that a statistic has: for each lag one, which begins as many releases later, and for each unit one."""
    statistic = spec.statistics[name]
    if isinstance(statistic.noise, Oblivious):
        return  # the law is the user's own
    dense = _dense(spec, name)
    for which, later, claim, mechanism in claims(spec, name):
        indices = [max(1, round // statistic.every) + later for round in rounds]
        if claim.process.horizon is not None and max(indices) > claim.process.horizon:
            continue
        by_unit: dict[int, int] = {}
        for coordinate in range(mechanism.size):
            by_unit.setdefault(mechanism.units[coordinate], coordinate)
        for unit, coordinate in by_unit.items():
            named = f"{which}, unit {unit}" if len(by_unit) > 1 else which
            yield Noise(named, claim, mechanism, coordinate, unit, indices, dense)


def _dense(spec: Specification, name: str) -> bool:
    """Whether all coordinates are drawn, or cells by their names."""
    statistic = spec.statistics[name]
    return isinstance(layers(statistic)[-1], Linear | Distinct) or sample_in(spec.bounds[name]) is not None


def claims(spec: Specification, name: str, coins: Coins | None = None) -> Iterator[tuple[str, int, Claim, Mechanism]]:
    statistic, share = spec.statistics[name], spec.shares[name]
    layout = spec.bounds[name].layout
    noise = spec.mechanism(name, coins or Coins(bytes(32)))
    sample = sample_in(spec.bounds[name])
    if sample is not None:
        if sample.limit is not None:  # the rest of it has no noise
            yield f"{name}, gate", 0, Claim(layout, noise.share, spec.processes[name]), noise
        return
    if not isinstance(noise, Lagged) or not isinstance(statistic, Restated):
        yield name, 0, Claim(layout, share, spec.processes[name]), noise
        return
    part = share if noise.shared else Share(share.kind, share.amount / len(statistic.lags))
    for lag, mechanism in zip(statistic.lags, noise.parts, strict=True):
        yield f"{name}, lag {lag}", -(-lag // statistic.every), Claim(layout, part, mechanism.process), mechanism


def looked_at(spec: Specification, name: str, mechanism: Mechanism, random: Random) -> list[int]:
    """Releases at which something could change: the first and the last, powers of two, edges of the blocks in which
    noise is computed, and some at random."""
    ends = [end for end in (mechanism.process.horizon, spec.releases(name)) if end is not None]
    last, length = min(ends, default=ENDLESS), max(1, BLOCK // mechanism.size)
    powers = [1 << i for i in range(last.bit_length())]
    edges = [length - 1, length, 2 * length - 1, 2 * length, last // length * length - 1, last // length * length]
    some = [random.randint(1, last) for _ in range(4)]
    return sorted({i for i in (1, 3, 7, *powers, *edges, last - 1, last, *some) if 1 <= i <= last})


def pairs_of(indices: list[int], random: Random) -> list[tuple[int, int]]:
    """At most `PAIRS` pairs of them, the last one always among them."""
    chosen = sorted(random.sample(indices[:-1], min(2 * PAIRS - 1, len(indices) - 1)) + indices[-1:])
    if len(chosen) % 2:
        chosen.insert(0, chosen[0])
    return list(zip(chosen[::2], chosen[1::2], strict=True))


def check_draws(spec: Specification, name: str, seed: int = 0) -> int:
    """What a mechanism draws is, integer by integer, the sum over the nodes of its process, each drawn by itself.
    Returns how many releases were looked at; raises where they differ."""
    count = 0
    if isinstance(spec.statistics[name].noise, Oblivious):
        return count
    dense = _dense(spec, name)
    for which, _, _, mechanism in claims(spec, name, Key.for_testing(seed).coins("draws")):
        units = {mechanism.units[i]: i for i in range(min(mechanism.size, SOME))}
        for index in looked_at(spec, name, mechanism, Random(seed)):
            places = sorted({*range(min(SOME, mechanism.size)), *units.values(), mechanism.size - 1})
            numerators, denominator = again(mechanism, index, places, dense=dense)
            got, over = mechanism.draw(index) if dense else mechanism.sample(index, integer_cells(1), places)
            row = [got[place] for place in places] if dense else got[0]
            if ([int(number) for number in row], over) != (numerators, denominator):
                raise VerificationError(f"noise law of {which}: release {index} is not the sum of its nodes")
            count += 1
    return count


def again(mechanism: Mechanism, index: int, places: list[int], *, dense: bool) -> tuple[list[int], int]:
    """The noise of some coordinates (of the first cell, where cells have names) in one release, node by node."""
    terms = mechanism.process.at(index)
    cells = integer_cells(mechanism.size)
    out = []
    for place in places:
        coins, cell = (
            (mechanism.coins, cells[place]) if dense else (mechanism.coins.branch("coordinate", place), cells[0])
        )
        laws = {level: mechanism.law(level, mechanism.units[place]) for level in np.unique(terms.levels).tolist()}
        total = 0
        for level, law in laws.items():
            own = terms.levels == level
            samples = law.sample(coins.words(terms.levels[own], terms.indices[own], cell[None]))[:, 0]
            total += sum(w * x for w, x in zip(terms.weights[own].tolist(), samples.tolist(), strict=True))
        out.append(total)
    return out, terms.denominator * mechanism.refinement


def names_of(spec: Specification, name: str, coins: Coins) -> list[tuple[str, bytes]]:
    """The coins of a statistic, and of some of its nodes for some coordinates: what each is called, and the first bits
    behind it."""
    noise = spec.mechanism(name, coins)
    out = [(name, _bits(noise.coins, NO_LEVEL, 0, 0))]
    parts = {name: noise}
    if isinstance(noise, Lagged) and not noise.shared:  # where they share their noise it is one for all
        parts = {f"{name}, lag part {number}": part for number, part in enumerate(noise.parts)}
    elif (sample := sample_in(spec.bounds[name])) is not None and sample.limit is None:
        return out
    for who, part in parts.items():
        terms = part.process.at(1)
        for coordinate in range(min(SOME, part.size)):
            own, cell = (
                (part.coins, coordinate) if _dense(spec, name) else (part.coins.branch("coordinate", coordinate), 0)
            )
            for level, index in zip(terms.levels.tolist(), terms.indices.tolist(), strict=True):
                named = f"{who}, coordinate {coordinate}, node ({level}, {index})"
                out.append((named, _bits(own, level, index, cell)))
    return out


def twice(named: list[tuple[str, bytes]]) -> list[tuple[str, str]]:
    """Those with the same bits as one before them."""
    seen: dict[bytes, str] = {}
    return [(seen[bits], name) for name, bits in named if seen.setdefault(bits, name) != name]


def _bits(coins: Coins, level: int, index: int, cell: int) -> bytes:
    high, low = coins.words([level], [index], integer_cells(cell + 1)[cell:]).block(0)
    return high.tobytes() + low.tobytes()


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
    unit = claim.layout.units[0] if unit is None else unit
    claimed, draws = claimed_moments(claim, indices, unit), noise.shape[1]
    if not all(claimed.variances):
        return Conformance(0.0, 0.0, 0.0) if not noise.any() else Conformance(math.inf, math.inf, math.inf)
    if draws < OTHER * (claimed.fourth - 1):
        return Conformance(0.0, 0.0, 0.0, compared=False)
    first, last = (samples / math.sqrt(v) for samples, v in zip(noise, claimed.variances, strict=True))
    mean, spread = float((last**2).mean()), (claimed.fourth - 1) / draws
    variance = (mean - 1) / math.sqrt(spread)
    if mean > 1:
        # A sum of squares is skewed to the right: taken for a gamma variable (Wilson and Hilferty).
        variance = (mean ** (1 / 3) - (1 - spread / 9)) / math.sqrt(spread / 9)
    products = first * last
    error = math.sqrt(max(claimed.product, float(products.var())) / draws)
    off = (float(products.mean()) - claimed.correlation) / error
    if draws < OTHER * claimed.product:
        off = 0.0
    return Conformance(variance, shape_deviate(noise[-1], claimed_tail(claim, indices[-1], unit), spacing), off)


def check_identity(spec: Specification, rounds: int) -> None:
    """What an empty stream releases is its noise, integer by integer, where all of it is released."""
    spec = in_memory(spec)
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
    """The scale (pure) or the variance (Gaussian) that the guarantee asks of a node, in units of the data, by the
    sensitivity that its process declares (which `check_sensitivity` tries to refute)."""
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


@lru_cache(maxsize=256)
def claimed_tail(claim: Claim, index: int, unit: int) -> Tail:
    terms = claim.process.at(index)
    parts = []
    fine = 1
    for level in np.unique(terms.levels).tolist():
        law, fine = _claimed_law(claim, level, unit)
        parts.append(Summand.of(law, terms.weights[terms.levels == level], terms.denominator * fine))
    spacing = math.gcd(*terms.weights.tolist()) / (terms.denominator * fine)
    return Tail(parts, spacing)


def cumulants(law: Law) -> tuple[float, float]:
    """The second and the fourth, of a law that is claimed.

    >>> variance, fourth = cumulants(DiscreteLaplace(1000))
    >>> round(fourth / variance**2, 3)
    3.0
    """
    if not isinstance(law, DiscreteLaplace):
        return law.variance, 0.0  # many lattice steps wide
    q = math.exp(-1 / law.scale)
    return 2 * q / (1 - q) ** 2, 2 * q * (1 + 4 * q + q * q) / (1 - q) ** 4


def claimed_moments(claim: Claim, indices: list[int], unit: int) -> Moments:
    """What the nodes that two releases have, and those that they share, give."""
    by_level: dict[int, tuple[float, float]] = {}
    rows: list[dict[tuple[int, int], float]] = []
    for terms in (claim.process.at(index) for index in indices):
        for level in np.unique(terms.levels).tolist():
            law, fine = _claimed_law(claim, level, unit)
            second, fourth = cumulants(law)
            by_level[level] = second / fine**2, fourth / fine**4
        nodes = zip(terms.levels.tolist(), terms.indices.tolist(), strict=True)
        rows.append(dict(zip(nodes, (terms.weights / terms.denominator).tolist(), strict=True)))
    first, last = rows
    before, after = (sum(w * w * by_level[level][0] for (level, _), w in row.items()) for row in rows)
    if not before or not after:
        return Moments((before, after), 0.0, 3.0, 1.0)
    shared = [(w, first[node], *by_level[node[0]]) for node, w in last.items() if node in first]
    correlation = sum(w * v * second for w, v, second, _ in shared) / math.sqrt(before * after)
    excess = sum(w**4 * by_level[level][1] for (level, _), w in last.items()) / after**2
    product = 1 + correlation**2 + sum(w * w * v * v * k for w, v, _, k in shared) / (before * after)
    return Moments((before, after), correlation, 3 + excess, product)


@lru_cache(maxsize=4096)
def _upper(tail: Tail, edge: float) -> float:
    return tail.upper(edge)


def shape_deviate(samples: F64, tail: Tail, spacing: float) -> float:
    """Chi-square over cells of the claimed distribution of |noise|, as a normal deviate (Wilson and Hilferty)."""
    edges = [tail.half_width(i / CELLS) * (1 + 1e-6) for i in range(1, CELLS)]
    if tail.gaussian and spacing:
        # The claim is a fine lattice: between two points of the coarser one it says what both together have.
        edges = [(math.floor(edge / spacing) + 0.5) * spacing for edge in edges]
    kept: list[float] = []
    beyond = [1.0]
    for edge in edges:
        after = 2 * _upper(tail, edge) if edge not in kept else 0.0
        if min(beyond[-1] - after, after) * len(samples) >= FEWEST:
            kept.append(edge)
            beyond.append(after)
    freedom = len(kept)
    if not freedom:
        return 0.0
    expected = -np.diff([*beyond, 0.0]) * len(samples)
    observed = np.bincount(np.searchsorted(kept, np.abs(samples)), minlength=freedom + 1)
    chi = float(((observed - expected) ** 2 / expected).sum())
    return float((chi / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
