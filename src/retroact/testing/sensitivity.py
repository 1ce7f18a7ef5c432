"""Brute force: what one operation can do to the true totals, against the noise that is there to hide it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from ..coins import Coins
from ..compilers import sample_in
from ..errors import InputError, VerificationError
from ..ledger.definition import Add, Delete, Sequence, trajectory
from ..noise import Mechanism, Oblivious
from ..noise.process import Process, Shift
from ..statistics.restated import Lagged
from ..stream import Specification
from .definitions import Definition, records_of
from .hiding import nodes_hiding
from .histories import Shape, neighbouring_pairs, values_of

Coordinates = list[dict[Hashable, Fraction]]
Pairs = Iterable[tuple[Sequence, Sequence]]


def check_sensitivity(spec: Specification, random: Random, *, pairs: int = 60) -> None:
    """For neighbouring histories, hiding the difference of the totals by shifting the noise costs at most the share of
    the statistic (in the exact scales of its laws)."""
    for name, statistic in spec.statistics.items():
        if isinstance(statistic.noise, Oblivious):
            continue  # its cost is declared, not computed
        horizon = min(spec.horizon or 8, 8)
        shape = Shape(values_of(spec.schema, random), rounds=horizon, late=spec.late)
        singles = single_pairs(shape)
        mechanism = spec.mechanism(name, Coins(bytes(32)))
        if sample_in(spec.bounds[name]) is not None:
            _check_sampled(spec, name, mechanism, [*singles, *neighbouring_pairs(shape, random, pairs)])
            continue
        for one, other in [*singles, *neighbouring_pairs(shape, random, pairs)]:
            cost = sum((moved.cost for moved in moved_nodes(spec, name, mechanism, one, other)), Fraction(0))
            if cost > spec.shares[name].amount:
                raise VerificationError(
                    f"sensitivity of {name}: hiding one operation costs {float(cost):.6g}, the share is "
                    f"{float(spec.shares[name].amount):.6g}\n  {one}\n  {other}"
                )


def _check_sampled(spec: Specification, name: str, noise: Mechanism, pairs: Pairs) -> None:
    reach = spec.grants[name].reach
    for one, other in pairs:
        differing = sum(map(abs, moved_samples(spec, name, noise, one, other)))
        if reach is None or differing > reach:
            raise VerificationError(
                f"sensitivity of {name}: {differing} releases differ, paid for {reach}\n  {one}\n  {other}"
            )


def moved_samples(spec: Specification, name: str, noise: Mechanism, one: Sequence, other: Sequence) -> list[int]:
    """By how much each release differs that looks at a sample: one operation moves one live record by one, and a gate
    hides that."""
    before, after = (coordinates(spec, name, noise, sequence) for sequence in (one, other))
    moved = []
    for (old,), (new,) in zip(before, after, strict=True):
        differences = [int(new.get(key, Fraction(0)) - old.get(key, Fraction(0))) for key in old.keys() | new.keys()]
        if sum(map(abs, differences)) > 1:
            raise VerificationError(f"sensitivity of {name}: more than one live record moves\n  {one}\n  {other}")
        moved.append(sum(differences))
    sample = sample_in(spec.bounds[name])
    gated = sample is not None and sample.limit is not None
    if gated and any(moved) and noise.cost(0, [moved]) > noise.share.amount:
        raise VerificationError(f"sensitivity of {name}: the gate does not hide one record\n  {one}\n  {other}")
    return moved


class Moved(NamedTuple):
    """A coordinate, the noise that hides its change, and how far the nodes of that move."""

    coordinate: int
    noise: Mechanism
    shift: Shift

    @property
    def cost(self) -> Fraction:
        return self.noise.cost_of(self.coordinate, self.shift)


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
