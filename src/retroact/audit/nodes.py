"""The worst that one operation can do to a statistic, as far as a search finds it, and the noises that hide it.

A process hides a change of the truth by moving independent noises ("nodes") by whole numbers. So all an attacker who
sees every node can use is: which law each of the moved ones has, and how far it moves. Candidates are short histories
(single records, random neighbouring ones), and at the full horizon one record over long intervals of releases.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from random import Random

import numpy as np

from ..arrays import F64
from ..coins import Coins, DiscreteGaussian, DiscreteLaplace, Law
from ..compilers import sample_in
from ..errors import InputError
from ..ledger.definition import Sequence
from ..noise import AnyRounds, BySize, FewChanges, IndependentCopy, Mechanism, Oblivious, Process, StampedBlocks
from ..noise.process import Shift, combined, difference
from ..noise.rectangle import Rectangle
from ..privacy import Share
from ..statistics import Linear
from ..statistics.grant import View
from ..statistics.restated import Lagged
from ..statistics.wrapper import layers
from ..stream import Specification
from ..testing.conformance import Claim, claimed_size
from ..testing.definitions import Definition
from ..testing.histories import Shape, neighbouring_pairs, values_of
from ..testing.sensitivity import Moved, coordinates, moved_nodes, single_pairs
from .result import Result, idle

ROUNDS = 8
VALUES = 12
# As if there were so many rounds where there is no horizon; and how many windows are looked at.
LAST, WINDOWS = 1 << 20, 4
# Processes that move every node of a block for any change are not searched beyond this.
MOST_NODES = 1 << 14
BY_PATTERN = (AnyRounds, StampedBlocks, BySize)
"""What hides a change by a shift for the whole pattern."""
READABLE = 64


@dataclass(frozen=True)
class Candidate:
    """A pair of neighbouring histories, what hides the difference, and what that costs (an epsilon, or a mu^2)."""

    cost: Fraction
    moved: list[Moved]
    told: Callable[[], list[str]]
    """The pair, for people."""


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


def obstacle(spec: Specification, name: str) -> str | None:
    """Why the noise of a statistic cannot be audited from inside."""
    statistic = spec.statistics[name]
    if isinstance(statistic.noise, Oblivious):
        return "its noise is a law of the user's own with a declared cost, which is taken on trust"
    if sample_in(spec.bounds[name]) is not None:
        return "it hides records by sampling them and not by noise on totals"
    if isinstance(_core(spec.processes[name]), BY_PATTERN) and (spec.releases(name) or 0) > MOST_NODES:
        return f"one change moves a noise for every release, more than {MOST_NODES:,}"
    return None


def worst(spec: Specification, name: str, random: Random, *, pairs: int = 60) -> Candidate:
    """The candidate that costs most; the first of them if several do."""
    return max(candidates(spec, name, random, pairs=pairs), key=lambda candidate: candidate.cost)


def candidates(spec: Specification, name: str, random: Random, *, pairs: int = 60) -> Iterator[Candidate]:
    """
    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count(noise="tree")}, epsilon=1.0, horizon=16)
    >>> worst(spec, "n", Random(1), pairs=5).cost
    Fraction(1, 1)
    """
    mechanism = spec.mechanism(name, Coins(bytes(32)))
    rounds = min(spec.horizon or ROUNDS, ROUNDS)
    values = values_of(spec.schema, random, VALUES)
    shape = Shape(values[:6], rounds=rounds, late=spec.late)
    nothing: Sequence = ((),) * rounds
    empty = coordinates(spec, name, mechanism, nothing)
    for one, other in (*single_pairs(shape), *neighbouring_pairs(shape, random, pairs)):
        moved = moved_nodes(spec, name, mechanism, one, other, before=empty if one == nothing else None)
        yield _candidate(moved, lambda a=one, b=other: _told(a, b))  # type: ignore[misc]
    yield from _long(spec, name, mechanism, values, random)


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


def _candidate(moved: list[Moved], told: Callable[[], list[str]]) -> Candidate:
    return Candidate(sum((one.cost for one in moved), Fraction(0)), moved, told)


def _told(one: Sequence, other: Sequence) -> list[str]:
    lines = []
    for title, history in (("one history", one), ("the other", other)):
        lines.append(f"{title}:")
        lines += [f"  round {r}: {', '.join(map(str, updates))}" for r, updates in enumerate(history, 1) if updates]
    return lines


def _long(
    spec: Specification, name: str, mechanism: Mechanism, values: Iterable[object], random: Random
) -> Iterator[Candidate]:
    """One record that is counted over an interval of releases, against none."""
    grant = spec.grants[name]
    last = spec.releases(name) or LAST
    if grant.live is not None:
        last = min(last, WINDOWS * grant.live + 1)
    if isinstance(_core(mechanism.process), BY_PATTERN) and last > MOST_NODES:
        return
    by_value = [(value, amounts) for value in values if (amounts := _amounts(spec, name, mechanism, value))]
    if not by_value:
        return
    record, amounts = max(by_value, key=lambda pair: _size(mechanism, pair[1]))
    for start, end in _intervals(last, grant.live, random):
        if (parts := _hiding(spec, name, mechanism, start, end)) is not None:
            moved = [
                Moved(coordinate, noise, {node: amount * value for node, value in shift.items()})
                for coordinate, amount in amounts
                for noise, shift in parts
                if shift
            ]
            where = f"releases {start + 1:,} to {end:,}"
            yield _candidate(moved, lambda where=where: [f"one record {record} that is counted in {where}, or none"])  # type: ignore[misc]
    yield from _flipping(mechanism, last, random)


def _hiding(
    spec: Specification, name: str, mechanism: Mechanism, start: int, end: int
) -> list[tuple[Mechanism, Shift]] | None:
    """Which nodes hide that a record is counted in the releases start < r <= end; None where that is not promised."""
    process, statistic = mechanism.process, spec.statistics[name]
    if isinstance(mechanism, Lagged):
        stamp = (start + 1) * statistic.every
        if mechanism.shared and isinstance(mechanism.parts[0].process, Rectangle):
            return [(mechanism, mechanism.parts[0].process.rectangle(start, end, stamp))]
        views = zip(mechanism.parts, spec.bounds[name].views, strict=True)
        seen = [(part, *_seen(view, statistic.every, start, end, stamp)) for part, view in views]
        return [(part, _interval(part.process, s, e)) for part, s, e in seen if s < e]
    if isinstance(_core(process), BY_PATTERN):
        try:
            return [(mechanism, process.shift_hiding([0] * start + [1] * (end - start)))]
        except InputError:
            return None
    return [(mechanism, _interval(process, start, end))]


def _flipping(mechanism: Mechanism, last: int, random: Random) -> Iterator[Candidate]:
    """A value that comes and goes as often as is promised."""
    process = mechanism.process
    if not isinstance(process, FewChanges):
        return
    for attempt in range(8):
        count = min(process.flips // 2 * 2, (last + 1) // 2 * 2)
        even = [round(i * last / (count - 1)) for i in range(count)]
        ends = even if attempt == 0 else sorted(random.sample(range(last + 1), count))
        if len(set(ends)) == count:
            pieces = [
                difference(process.shift(s), process.shift(e)) for s, e in zip(ends[::2], ends[1::2], strict=True)
            ]
            moved = [Moved(0, mechanism, combined(*((1, piece) for piece in pieces)))]
            yield _candidate(moved, lambda ends=ends: [f"a value that changes after the releases {ends}"])  # type: ignore[misc]


def _intervals(last: int, live: int | None, random: Random) -> list[tuple[int, int]]:
    powers = [1 << i for i in range(last.bit_length()) if 1 << i <= last]
    some = {0, 1, *powers, *(p + 1 for p in powers[-2:]), last // 2, last // 2 + 1, last // 3, last}
    some |= {random.randint(0, last) for _ in range(8)}
    ends = sorted(end for end in some if end <= last)
    if live is None:
        return [(s, e) for s in ends for e in ends if s < e]
    lengths = sorted({1, max(1, live // 2), max(1, live - 1), live})
    return [(s, min(s + length, last)) for s in ends if s < last for length in lengths]


def _seen(view: View, every: int, start: int, end: int, stamp: int) -> tuple[int, int]:
    """In which of the releases start < r <= end a view counts the stamp."""
    releases = range(start + 1, end + 1)
    first = bisect_left(releases, stamp, key=lambda r: view.span(r * every)[1])
    until = bisect_left(releases, stamp + 1, key=lambda r: view.span(r * every)[0])
    return start + first, start + until


def _amounts(spec: Specification, name: str, mechanism: Mechanism, value: object) -> list[tuple[int, int]]:
    """How far one record moves each coordinate; those of different keys stand apart."""
    record = dict(zip(spec.schema.fields, value, strict=True))  # type: ignore[call-overload]
    return Definition(spec, name).amounts(record, mechanism.coins)


def _size(mechanism: Mechanism, amounts: list[tuple[int, int]]) -> Fraction:
    """In the norm that the noise goes by."""
    p = 1 if mechanism.share.kind == "pure" else 2
    return sum((Fraction(abs(a), mechanism.units[coordinate]) ** p for coordinate, a in amounts), Fraction(0))


def _interval(process: Process, start: int, end: int) -> Shift:
    return difference(_shift(process, start), _shift(process, end))


@lru_cache(maxsize=256)
def _shift(process: Process, boundary: int) -> Shift:
    """Every end belongs to many intervals."""
    return process.shift(boundary)


def _core(process: Process) -> Process:
    while isinstance(process, IndependentCopy):
        process = process.inner
    return process


def idle_inside(test: str, reason: str) -> Result:
    """A test from inside that cannot look at this target."""
    return idle(
        "privacy", test, "Does the noise hide one record as well as is claimed?", f"It does not apply: {reason}."
    )
