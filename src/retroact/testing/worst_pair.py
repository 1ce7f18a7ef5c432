"""Search for the pair of neighbouring histories that costs most to hide.

Candidates are short histories (single records, random neighbours) and, at the full horizon, one record over long
intervals of releases. The cost of hiding the difference is exact: a sum over the nodes that move, in their scales.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

from ..coins import Coins
from ..errors import InputError, VerificationError
from ..ledger.definition import Add, Delete, Point, trajectory
from ..ledger.definition import Sequence as History
from ..noise import AnyRounds, BySize, FewChanges, IndependentCopy, Mechanism, StampedBlocks
from ..noise.faded import Faded
from ..noise.least_move import least_squares
from ..noise.process import Process, Shift, combined, difference
from ..noise.rectangle import Rectangle
from ..statistics.grant import View
from ..statistics.restated import Lagged
from ..stream import Specification
from .definitions import Definition
from .hiding import Pattern, cost_of, cost_of_squares, nodes_hiding
from .histories import Shape, neighbouring_pairs, values_of
from .records import Record, records_of, rows_of
from .shrink import both_written

Coordinates = list[dict[tuple[Hashable, int], Fraction]]
"""For each view: totals by (key, coordinate)."""
Amounts = list[tuple[int, int]]
"""By how much one record moves each coordinate: (coordinate, amount)."""

ROUNDS = 8
VALUES = 12
# Without a horizon the search ends at this release; with a window it covers this many windows.
LAST, WINDOWS = 1 << 20, 4
# Processes in which any change moves every node of a block are not searched beyond this many releases.
MOST_NODES = 1 << 14
# Of crossfade noise, in which any change moves all nodes, the first releases are searched: what it hides, they show.
# What intervals cost over the whole horizon, without a list of what moves, is in `crossfade_costs`.
PREFIX = 1 << 10
BY_PATTERN = (AnyRounds, StampedBlocks, BySize)
"""Processes whose shift depends on the whole pattern, not on each end of an interval."""


class Moved(NamedTuple):
    """A coordinate, the noise that hides its change, and how far the nodes of that noise move."""

    coordinate: int
    noise: Mechanism
    shift: Shift

    @property
    def cost(self) -> Fraction:
        return cost_of(self.noise, self.coordinate, self.shift)


class HidingNoise(NamedTuple):
    """A noise, how far its nodes move, and what that costs at a coordinate."""

    noise: Mechanism
    find_shift: Callable[[], Shift]
    cost: Callable[[int], Fraction]


@dataclass(frozen=True)
class Candidate:
    """A pair of neighbouring histories: the cost of hiding the difference (an epsilon, or mu^2), and what hides it."""

    cost: Fraction
    find_moved: Callable[[], list[Moved]]
    describe: Callable[[], list[str]]

    @property
    def moved(self) -> list[Moved]:
        return self.find_moved()


def worst(spec: Specification, name: str, random: Random, *, pairs: int = 60) -> Candidate:
    """The first of the candidates with the highest cost."""
    return max(candidates(spec, name, random, pairs=pairs), key=lambda candidate: candidate.cost)


def candidates(spec: Specification, name: str, random: Random, *, pairs: int = 60) -> Iterator[Candidate]:
    """
    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count(noise="tree")}, epsilon=1.0, horizon=16)
    >>> worst(spec, "n", Random(1), pairs=5).cost
    Fraction(1, 1)
    """
    values = _tried(spec, random)
    shape = Shape(values[:6], rounds=min(spec.horizon or ROUNDS, ROUNDS), late=spec.late)
    search = Search(spec, name)
    for one, other in (*single_pairs(shape), *neighbouring_pairs(shape, random, pairs)):
        yield search.candidate(one, other)
    yield from search.long_intervals(values, random)


def moves_nothing(spec: Specification, name: str, random: Random) -> bool:
    """Whether none of the records that `candidates` tries with this randomness is gathered into anything that is ever
    published."""
    bound, fields = spec.bounds[name].drawn(Coins(bytes(32))), spec.schema.fields
    if spec.horizon is not None and all(view.lag >= spec.horizon for view in bound.views):
        return True
    records = (Record(dict(zip(fields, value, strict=True)), 1, 1) for value in _tried(spec, random))  # type: ignore[call-overload]
    return not any(bound.coordinates(bound.gather(*rows_of(spec.schema, [record]))) for record in records)


def _tried(spec: Specification, random: Random) -> tuple[Hashable, ...]:
    return values_of(spec.schema, random, VALUES)


def single_pairs(shape: Shape) -> list[tuple[History, History]]:
    """The empty history against one record, of every value and over every interval of rounds."""
    horizon, out = shape.rounds, list[tuple[History, History]]()
    for value in shape.values:
        for start in range(1, horizon + 1):
            for end in range(start + 1, horizon + 2):
                rounds: list[tuple[Add | Delete, ...]] = [()] * horizon
                rounds[start - 1] = (Add(value),)
                if end <= horizon:
                    rounds[end - 1] = (Delete(value, start),)
                out.append((((),) * horizon, tuple(rounds)))
    return out


class Search:
    """The search for one statistic. Totals and shifts recur from pair to pair, so they are cached."""

    def __init__(self, spec: Specification, name: str) -> None:
        self.spec, self.name = spec, name
        self.mechanism = spec.mechanism(name, Coins(bytes(32)))
        self._p = 1 if self.mechanism.share.kind == "pure" else 2
        self._definition, self._every = Definition(spec, name), spec.statistics[name].every
        self._totals: dict[tuple[int, frozenset[tuple[Point, int]]], Coordinates] = {}
        self._hidden: dict[tuple[int, tuple[Pattern, ...]], tuple[list[Moved], Fraction]] = {}
        self._last = 0
        self._shifts: dict[tuple[int, int], Shift] = {}
        self._empty: list[Coordinates] = []

    def coordinates(self, history: History) -> list[Coordinates]:
        """The totals of every release and view, by the definition of the statistic."""
        if not any(history) and len(history) // self._every == len(self._empty):
            return self._empty
        data = enumerate(trajectory(history), 1)
        found = [self._coordinates(round, points) for round, points in data if round % self._every == 0]
        if not any(history):
            self._empty = found
        return found

    def _coordinates(self, round: int, points: dict[Point, int]) -> Coordinates:
        key = round, frozenset(points.items())
        if key not in self._totals:
            views: Coordinates = [{} for _ in self._definition.lags]
            records = records_of(self.spec.schema, points)
            for where, amount in self._definition.totals(records, round, self.mechanism.coins).items():
                views[where.view][where.name, where.place] = amount
            self._totals[key] = views
        return self._totals[key]

    # Short histories --------------------------------------------------------------------------------------------------

    def candidate(self, one: History, other: History) -> Candidate:
        """For each coordinate: how it moves over the releases, and which nodes hide that."""
        before, after = self.coordinates(one), self.coordinates(other)
        patterns: dict[tuple[Hashable, int], list[list[int]]] = {}
        for release, (views, others) in enumerate(zip(before, after, strict=True)):
            if views is others:
                continue  # the same data
            for view, (old, new) in enumerate(zip(views, others, strict=True)):
                for key in dict.fromkeys([*old, *new]):
                    own = patterns.setdefault(key, [[0] * len(before) for _ in views])
                    own[view][release] = int(new.get(key, Fraction(0)) - old.get(key, Fraction(0)))
        moved, cost = list[Moved](), Fraction(0)
        try:
            for (_, coordinate), by_view in patterns.items():
                if any(map(any, by_view)):
                    nodes, price = self._hiding(coordinate, tuple(map(tuple, by_view)))
                    moved, cost = moved + nodes, cost + price
        except InputError as error:
            raise VerificationError(f"sensitivity of {self.name}: {error}\n  {one}\n  {other}") from None
        return Candidate(cost, lambda: moved, lambda: both_written(one, other))

    def _hiding(self, coordinate: int, patterns: tuple[Pattern, ...]) -> tuple[list[Moved], Fraction]:
        """The nodes that hide one pattern for each view, and their cost."""
        if (coordinate, patterns) not in self._hidden:
            parts = nodes_hiding(self.mechanism, coordinate, patterns)
            moved = [Moved(coordinate, *part) for part in parts if part[1]]
            self._hidden[coordinate, patterns] = moved, sum((one.cost for one in moved), Fraction(0))
        return self._hidden[coordinate, patterns]

    # One record over long intervals of releases -----------------------------------------------------------------------

    def long_intervals(self, values: Sequence[Any], random: Random) -> Iterator[Candidate]:
        """One record that is counted over an interval of releases, against none."""
        live = self.spec.grants[self.name].live
        last = self.spec.releases(self.name) or LAST
        if live is not None:
            last = min(last, WINDOWS * live + 1)
        process = bare_process(self.mechanism.process)
        if isinstance(process, BY_PATTERN) and last > MOST_NODES:
            return
        self._last = last = min(last, PREFIX) if isinstance(process, Faded) else last
        if (found := self.largest(values)) is None:
            return
        record, amounts = found
        for start, end in _intervals(last, live, random):
            if (parts := self._interval_nodes(start, end)) is not None:
                yield self._counted_record(record, amounts, parts, start, end)
        yield from self._flipping(last, random)

    def largest(self, values: Sequence[Any]) -> tuple[Any, Amounts] | None:
        """The record that moves the coordinates most, if any moves them."""
        by_value = [(value, amounts) for value in values if (amounts := self._amounts(value))]
        return max(by_value, key=lambda pair: self._size(pair[1]), default=None)

    def by_unit(self, amounts: Amounts) -> list[tuple[int, int]]:
        """A coordinate of each unit, and the norm, to its power, of what moves those of this unit."""
        found: dict[int, tuple[int, int]] = {}
        for coordinate, amount in amounts:
            unit = self.mechanism.units[coordinate]
            found[unit] = coordinate, found.get(unit, (0, 0))[1] + abs(amount) ** self._p
        return list(found.values())

    def _counted_record(
        self, record: Any, amounts: Amounts, parts: list[HidingNoise], start: int, end: int
    ) -> Candidate:
        """The cost is that of the norm of the amounts, and is the same for all coordinates of one unit."""
        by_unit = self.by_unit(amounts)
        costs = (size * part.cost(at) for at, size in by_unit for part in parts)

        def moved() -> list[Moved]:
            return [
                Moved(coordinate, part.noise, {node: amount * value for node, value in shift.items()})
                for coordinate, amount in amounts
                for part in parts
                if (shift := part.find_shift())
            ]

        return Candidate(sum(costs, Fraction(0)), moved, lambda: [counted_pair(record, start, end)])

    def _amounts(self, value: Any) -> Amounts:
        """How far one record moves each coordinate."""
        record = dict(zip(self.spec.schema.fields, value, strict=True))
        return self._definition.amounts(record, self.mechanism.coins)

    def _size(self, amounts: Amounts) -> Fraction:
        """The amounts in the norm of the noise."""
        units = self.mechanism.units
        return sum((Fraction(abs(amount), units[coordinate]) ** self._p for coordinate, amount in amounts), Fraction(0))

    def _interval_nodes(self, start: int, end: int) -> list[HidingNoise] | None:
        """The nodes that hide a record counted in the releases start < r <= end; None where that is not promised."""
        mechanism, process = self.mechanism, self.mechanism.process
        if isinstance(mechanism, Lagged):
            stamp = (start + 1) * self._every
            if mechanism.shared and isinstance(mechanism.parts[0].process, Rectangle):
                return [_hiding_noise(mechanism, mechanism.parts[0].process.rectangle(start, end, stamp))]
            views = zip(mechanism.parts, self.spec.bounds[self.name].views, strict=True)
            seen = [(part, *_counted(view, self._every, start, end, stamp)) for part, view in views]
            return [self._interval_noise(part, s, e) for part, s, e in seen if s < e]
        if isinstance(bare_process(process), BY_PATTERN):
            try:
                return [_hiding_noise(mechanism, process.shift_hiding([0] * start + [1] * (end - start)))]
            except InputError:
                return None
        return [self._interval_noise(mechanism, start, end)]

    def _interval_noise(self, noise: Mechanism, start: int, end: int) -> HidingNoise:
        process, last = noise.process, self._last
        if isinstance(process, Faded):  # any change moves all of its nodes
            pattern = [0] * start + [1] * (end - start) + [0] * (last - end)
            squares = least_squares(process, last, start, end)
            return HidingNoise(
                noise, lambda: process.shift_hiding(pattern), lambda at: cost_of_squares(noise, at, squares)
            )
        return _hiding_noise(noise, self._interval(process, start, end))

    def _interval(self, process: Process, start: int, end: int) -> Shift:
        """Shifts are kept, since every end belongs to many intervals: by the object, which costs less to look up than
        what it is made of, and lives as long as the noise."""
        if isinstance(bare_process(process), Faded):
            return process.shift_hiding([0] * start + [1] * (end - start) + [0] * (self._last - end))
        for boundary in (start, end):
            if (id(process), boundary) not in self._shifts:
                self._shifts[id(process), boundary] = process.shift(boundary)
        return difference(self._shifts[id(process), start], self._shifts[id(process), end])

    def _flipping(self, last: int, random: Random) -> Iterator[Candidate]:
        """A value that comes and goes as often as the promise allows."""
        process = self.mechanism.process
        if not isinstance(process, FewChanges):
            return
        count = min(process.flips // 2 * 2, (last + 1) // 2 * 2)
        for attempt in range(8):
            even = [round(i * last / (count - 1)) for i in range(count)]
            ends = even if attempt == 0 else sorted(random.sample(range(last + 1), count))
            if len(set(ends)) == count:
                pieces = [self._interval(process, s, e) for s, e in zip(ends[::2], ends[1::2], strict=True)]
                moved = Moved(0, self.mechanism, combined(*((1, piece) for piece in pieces)))
                pair = f"a value that changes after the releases {ends}"
                yield Candidate(moved.cost, lambda moved=moved: [moved], lambda pair=pair: [pair])  # type: ignore[misc]


def counted_pair(record: Any, start: int, end: int) -> str:
    return f"one record {record} that is counted in releases {start + 1:,} to {end:,}, or none"


def _hiding_noise(noise: Mechanism, shift: Shift) -> HidingNoise:
    return HidingNoise(noise, lambda: shift, lambda at: cost_of(noise, at, shift))


def _intervals(last: int, live: int | None, random: Random) -> list[tuple[int, int]]:
    powers = [1 << i for i in range(last.bit_length()) if 1 << i <= last]
    some = {0, 1, *powers, *(p + 1 for p in powers[-2:]), last // 2, last // 2 + 1, last // 3, last}
    some |= {random.randint(0, last) for _ in range(8)}
    ends = sorted(end for end in some if end <= last)
    if live is None:
        return [(s, e) for s in ends for e in ends if s < e]
    lengths = sorted({1, max(1, live // 2), max(1, live - 1), live})
    return [(s, min(s + length, last)) for s in ends if s < last for length in lengths]


def _counted(view: View, every: int, start: int, end: int, stamp: int) -> tuple[int, int]:
    """The releases start < r <= end in which a view counts the stamp, as an interval."""
    releases = range(start + 1, end + 1)
    first = bisect_left(releases, stamp, key=lambda r: view.span(r * every)[1])
    until = bisect_left(releases, stamp + 1, key=lambda r: view.span(r * every)[0])
    return start + first, start + until


def bare_process(process: Process) -> Process:
    """The process inside any independent copies of it."""
    while isinstance(process, IndependentCopy):
        process = process.inner
    return process
