"""The noise of a stream, drawn as the stream draws it: integer by integer the sum over the nodes of its process
(`check_draws`), and in many independent copies, to be compared with the law that is claimed (`noise_law`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

import numpy as np

from ..arrays import F64, U64
from ..coins import Coins, Key, integer_cells
from ..compilers import sample_in
from ..errors import VerificationError
from ..noise import Mechanism, Oblivious
from ..noise.mechanism import BLOCK
from ..statistics import Distinct, Linear
from ..statistics.wrapper import layers
from ..stream import Specification
from .claimed_law import ENDLESS, Claim, Nodes, claims
from .judgement import NoiseKind
from .lattice import check_lattice

# The most pairs of releases to check.
PAIRS = 4
# The most coordinates whose noise is recomputed.
SOME = 16


class Noise(NamedTuple):
    """One noise of a stream: that of all coordinates with one unit, in two releases."""

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

    def kind(self, samples: F64) -> NoiseKind:
        """Samples of each release, to be judged."""
        return kind_of(samples, self.claim, self.indices, self.mechanism.refinement, self.unit)


def noises(spec: Specification, name: str, rounds: tuple[int, int] = (3, 7)) -> Iterator[Noise]:
    """Every noise of a statistic: one for each lag (which starts as many releases later) and unit."""
    statistic = spec.statistics[name]
    if isinstance(statistic.noise, Oblivious):
        return  # the law is defined by the user
    dense = is_dense(spec, name)
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


def is_dense(spec: Specification, name: str) -> bool:
    """Whether noise is drawn for all coordinates, rather than for cells by name."""
    statistic = spec.statistics[name]
    return isinstance(layers(statistic)[-1], Linear | Distinct) or sample_in(spec.bounds[name]) is not None


def looked_at(spec: Specification, name: str, mechanism: Mechanism, random: Random) -> list[int]:
    """Releases where something could change: the first and the last, powers of two, edges of the blocks in which
    noise is computed, and a few random ones."""
    ends = [end for end in (mechanism.process.horizon, spec.releases(name)) if end is not None]
    last, length = min(ends, default=ENDLESS), max(1, BLOCK // mechanism.size)
    powers = [1 << i for i in range(last.bit_length())]
    edges = [length - 1, length, 2 * length - 1, 2 * length, last // length * length - 1, last // length * length]
    some = [random.randint(1, last) for _ in range(4)]
    return sorted({i for i in (1, 3, 7, *powers, *edges, last - 1, last, *some) if 1 <= i <= last})


def pairs_of(indices: list[int], random: Random) -> list[tuple[int, int]]:
    """At most `PAIRS` pairs of releases; the last release is always included."""
    chosen = sorted(random.sample(indices[:-1], min(2 * PAIRS - 1, len(indices) - 1)) + indices[-1:])
    if len(chosen) % 2:
        chosen.insert(0, chosen[0])
    return list(zip(chosen[::2], chosen[1::2], strict=True))


def check_lattices(spec: Specification, name: str) -> None:
    """Checks that Gaussian noise is coarse on its lattice; raises where it is not."""
    if not isinstance(spec.statistics[name].noise, Oblivious):
        for which, _, _, mechanism in claims(spec, name):
            check_lattice(which, mechanism)


def check_draws(spec: Specification, name: str, seed: int = 0) -> int:
    """Checks that what a mechanism draws is, integer by integer, the sum over the nodes of its process, each drawn
    separately. Returns the number of releases checked; raises where they differ."""
    count = 0
    if isinstance(spec.statistics[name].noise, Oblivious):
        return count
    dense = is_dense(spec, name)
    for which, _, _, mechanism in claims(spec, name, Key.for_testing(seed).coins("draws")):
        units = {mechanism.units[i]: i for i in range(min(mechanism.size, SOME))}
        for index in looked_at(spec, name, mechanism, Random(seed)):
            places = sorted({*range(min(SOME, mechanism.size)), *units.values(), mechanism.size - 1})
            cells = [integer_cells(place + 1)[place:] if dense else integer_cells(1) for place in places]
            expected = [
                number
                for place, cell in zip(places, cells, strict=True)
                for number in noise_again(mechanism, index, place, cell, named=not dense)
            ]
            denominator = mechanism.process.at(index).denominator * mechanism.refinement
            got, over = mechanism.draw(index) if dense else mechanism.sample(index, integer_cells(1), places)
            row = [got[place] for place in places] if dense else got[0]
            if ([int(number) for number in row], over) != (expected, denominator):
                raise VerificationError(f"noise law of {which}: release {index} is not the sum of its nodes")
            count += 1
    return count


def noise_again(mechanism: Mechanism, index: int, place: int, cells: U64, *, named: bool) -> list[int]:
    """The noise of one coordinate in some cells, drawn and summed node by node."""
    terms, totals = mechanism.process.at(index), [0] * len(cells)
    coins = mechanism.coins.branch("coordinate", place) if named else mechanism.coins
    for level in np.unique(terms.levels).tolist():
        own = terms.levels == level
        law = mechanism.law(level, mechanism.units[place])
        samples = law.sample(coins.words(terms.levels[own], terms.indices[own], cells)).tolist()
        for weight, row in zip(terms.weights[own].tolist(), samples, strict=True):
            totals = [total + weight * sample for total, sample in zip(totals, row, strict=True)]
    return totals


def drawn(noise: Noise, draws: int, coins: Coins) -> F64:
    """Independent copies of the noise in both releases, drawn as the stream draws it."""
    many = noise.mechanism.copies(noise.coordinate, draws if noise.dense else 1, coins)
    out = []
    for index in noise.indices:
        numerators, denominator = many.draw(index) if noise.dense else many.sample(index, integer_cells(draws))
        out.append(np.array([n / denominator for n in numerators.ravel().tolist()]))
    return np.array(out)


def kind_of(samples: F64, claim: Claim, indices: Sequence[int], refinement: int, unit: int) -> NoiseKind:
    fineness = {index: claim.process.at(index).denominator * refinement for index in indices}
    return NoiseKind(f"unit {unit}", Nodes(claim, unit, fineness), list(indices), np.asarray(samples).T[None])
