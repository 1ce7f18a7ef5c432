"""The worst that one operation can do to the true totals, as far as a search finds it, and what hides that.

Candidates are short histories (single records, random neighbouring ones), and at the full horizon one record over long
intervals of releases. For each, the exact cost of hiding the difference, in the scales of the noises that move.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from ..coins import Coins
from ..errors import InputError, VerificationError
from ..ledger.definition import Add, Delete, Sequence, trajectory
from ..noise import AnyRounds, BySize, FewChanges, IndependentCopy, Mechanism, StampedBlocks
from ..noise.process import Process, Shift, combined, difference
from ..noise.rectangle import Rectangle
from ..statistics.grant import View
from ..statistics.restated import Lagged
from ..stream import Specification
from .definitions import Definition
from .hiding import cost_of, nodes_hiding
from .histories import Shape, neighbouring_pairs, values_of
from .records import records_of

Coordinates = list[dict[Hashable, Fraction]]

ROUNDS = 8
VALUES = 12
# As if there were so many rounds where there is no horizon; and how many windows are looked at.
LAST, WINDOWS = 1 << 20, 4
# Processes that move every node of a block for any change are not searched beyond this.
MOST_NODES = 1 << 14
BY_PATTERN = (AnyRounds, StampedBlocks, BySize)
"""What hides a change by a shift for the whole pattern."""


class Moved(NamedTuple):
    """A coordinate, the noise that hides its change, and how far the nodes of that move."""

    coordinate: int
    noise: Mechanism
    shift: Shift

    @property
    def cost(self) -> Fraction:
        return cost_of(self.noise, self.coordinate, self.shift)


def moved_nodes(
    spec: Specification,
    name: str,
    mechanism: Mechanism,
    one: Sequence,
    other: Sequence,
    *,
    before: list[Coordinates] | None = None,
) -> list[Moved]:
    """Coordinate by coordinate: how it moves over the releases, and what hides that. ``before``: the coordinates of the
    first history, where they are known."""
    before = coordinates(spec, name, mechanism, one) if before is None else before
    after = coordinates(spec, name, mechanism, other)
    moved: dict[Hashable, list[list[int]]] = {}
    for release, (views, others) in enumerate(zip(before, after, strict=True)):
        for view, (old, new) in enumerate(zip(views, others, strict=True)):
            for key in dict.fromkeys([*old, *new]):
                patterns = moved.setdefault(key, [[0] * len(before) for _ in views])
                patterns[view][release] = int(new.get(key, Fraction(0)) - old.get(key, Fraction(0)))
    out = []
    for key, patterns in moved.items():
        coordinate = coordinate_of(key)
        if any(map(any, patterns)):
            try:
                parts = nodes_hiding(mechanism, coordinate, patterns)
                _check_hidden(mechanism, parts, patterns)
                out += [Moved(coordinate, *part) for part in parts if part[1]]
            except InputError as error:
                raise VerificationError(f"sensitivity of {name}: {error}\n  {one}\n  {other}") from None
    return out


def _check_hidden(mechanism: Mechanism, parts: list[tuple[Mechanism, Shift]], patterns: list[list[int]]) -> None:
    """Moving the nodes so moves the noise of the releases by the patterns, and by nothing else."""
    if isinstance(mechanism, Lagged) and mechanism.shared:
        every = zip((part.process for part in mechanism.parts), [parts[0][1]] * len(patterns), patterns, strict=True)
    else:
        every = zip((part.process for part, _ in parts), (shift for _, shift in parts), patterns, strict=True)
    for process, shift, pattern in every:
        if not _hides(process, tuple(sorted(shift.items())), tuple(pattern)):
            raise InputError(f"expected nodes that move the releases by {pattern}, got {shift}")


@lru_cache(maxsize=1 << 14)
def _hides(process: Process, shift: tuple[tuple[tuple[int, int], int], ...], pattern: tuple[int, ...]) -> bool:
    moved = dict(shift)
    for index, wanted in enumerate(pattern, 1):
        try:
            terms = process.at(index)
        except InputError:
            if wanted:
                return False
            continue  # a lag that reaches back beyond the beginning
        nodes = zip(terms.levels.tolist(), terms.indices.tolist(), terms.weights.tolist(), strict=True)
        if sum(w * moved.get((level, i), 0) for level, i, w in nodes) != wanted * terms.denominator:
            return False
    return True


def coordinate_of(key: Hashable) -> int:
    """Coordinate i of a key is (key, i)."""
    return key[1]  # type: ignore[index, no-any-return]


def coordinates(spec: Specification, name: str, mechanism: Mechanism, sequence: Sequence) -> list[Coordinates]:
    """Of every release and view, by the definition of the statistic."""
    definition, every = Definition(spec, name), spec.statistics[name].every
    out = []
    for round, data in enumerate(trajectory(sequence), 1):
        if round % every == 0:
            views: Coordinates = [{} for _ in definition.lags]
            for where, amount in definition.totals(records_of(spec.schema, data), round, mechanism.coins).items():
                views[where.view][where.name, where.place] = amount
            out.append(views)
    return out


def single_pairs(shape: Shape) -> list[tuple[Sequence, Sequence]]:
    """Nothing at all, against one record of any value over any interval of rounds."""
    horizon = shape.rounds
    return [
        (((),) * horizon, _one(horizon, value, s, e))
        for value in shape.values
        for s in range(1, horizon + 1)
        for e in range(s + 1, horizon + 2)
    ]


def _one(horizon: int, value: Any, start: int, end: int) -> Sequence:
    """One record from round ``start`` until before round ``end``."""
    rounds: list[tuple[Add | Delete, ...]] = [()] * horizon
    rounds[start - 1] = (Add(value),)
    if end <= horizon:
        rounds[end - 1] = (Delete(value, start),)
    return tuple(rounds)


# The search: short histories, and one record over long intervals of releases -------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A pair of neighbouring histories, what hides the difference, and what that costs (an epsilon, or a mu^2)."""

    cost: Fraction
    moved: list[Moved]
    told: Callable[[], list[str]]
    """The pair, for people."""


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
    if isinstance(bare_process(mechanism.process), BY_PATTERN) and last > MOST_NODES:
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
    if isinstance(bare_process(process), BY_PATTERN):
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


def bare_process(process: Process) -> Process:
    """Without what is wrapped around it."""
    while isinstance(process, IndependentCopy):
        process = process.inner
    return process
