"""Brute force: what one operation can do to the true totals, against the noise that is there to hide it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from copy import copy
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import numpy as np

from ..coins import Coins, Key
from ..compilers import sample_in
from ..compilers.gate import Gated
from ..errors import InputError, VerificationError
from ..ledger.model import Add, Delete, Point, Sequence, trajectory
from ..noise import Mechanism, Oblivious
from ..noise.process import Shift
from ..schema import Rows
from ..statistics import Linear
from ..statistics.histogram import BinNoise
from ..statistics.restated import Lagged
from ..statistics.statistic import Totals
from ..stream import Release, Specification
from ..stream.release import plain
from .algorithm import StreamAlgorithm
from .histories import Shape, crowded, history, neighbouring_pairs, values_of

Coordinates = list[dict[Hashable, int]]
Pairs = Iterable[tuple[Sequence, Sequence]]


def true_totals(spec: Specification, name: str, sequence: Sequence, coins: Coins) -> list[list[Totals]]:
    """The exact totals of every release and view, from the definitions alone. The coins name the keys."""
    statistic = spec.statistics[name]
    shown = statistic.views(spec.settings[name])
    encoded: dict[Point, tuple[Any, ...]] = {}
    out = []
    for round, data in enumerate(trajectory(sequence), 1):
        if round % statistic.every:
            continue
        views = []
        for view in shown:
            first, last = view.span(round)
            seen: dict[Point, int] = {p: c for p, c in data.items() if first <= p.stamp <= last}
            for point in seen.keys() - encoded.keys():
                record = dict(zip(spec.schema.fields, point.value, strict=True))  # type: ignore[call-overload]
                encoded[point] = spec.schema.encode_record(record)
            bare = Rows.from_tuples(spec.schema, [encoded[point] for point in seen])
            rows = replace(bare, stamps=np.array([p.stamp for p in seen], dtype=np.int64))
            views.append(statistic.gather(rows, np.array(list(seen.values()), dtype=np.int64), spec.schema, coins))
        out.append(views)
    return out


def check_oblivious(spec: Specification, random: Random, *, pairs: int = 10) -> None:
    """Under one key a release is the exact totals with the noise of its names on, whatever the history; where every
    coordinate is released, the noise is taken off and compared with that of the empty history."""
    horizon = min(spec.horizon or 8, 8)
    shape = Shape(values_of(spec.schema, random), rounds=horizon, late=spec.late)
    nothing: Sequence = ((),) * horizon
    expected = published_noise(spec, nothing)
    for _ in range(pairs):
        sequence = history(shape, random)
        if published_noise(spec, sequence) != expected:
            raise VerificationError(f"oblivious noise: it depends on the data\n  {sequence}")
    _check_shown(spec, crowded(nothing, shape))


def _check_shown(spec: Specification, sequence: Sequence) -> None:
    """Where not every coordinate is released, releases still differ from those of the same totals without noise."""
    for name, statistic in spec.statistics.items():
        if isinstance(statistic, Linear) or sample_in(statistic) is not None:
            continue  # a sample has no noise: its coins are checked by what other keys give
        noise = spec.mechanism(name, Key.for_testing(1).coins("stream"))
        quiet, setting = _silenced(noise), spec.settings[name]
        for index, exact in enumerate(true_totals(spec, name, sequence, noise.coins), 1):
            one, other = (statistic.release(exact, n, index, index * statistic.every, setting) for n in (noise, quiet))
            if (one.numerators, one.denominator) != (other.numerators, other.denominator):
                break
        else:
            raise VerificationError(f"oblivious noise: the releases of {name} are the same without any")


def _silenced(noise: Mechanism) -> Mechanism:
    """The same mechanism, with zeros for its samples."""
    quiet = copy(noise)

    def without(sample: Callable[..., tuple[Any, int]]) -> Callable[..., tuple[Any, int]]:
        def silent(*arguments: Any) -> tuple[Any, int]:
            drawn, denominator = sample(*arguments)
            return drawn * 0, denominator

        return silent

    for name in ("sample", "draw"):
        setattr(quiet, name, without(getattr(noise, name)))
    if isinstance(quiet, Lagged):
        quiet.parts = [_silenced(part) for part in quiet.parts]
    return quiet


def published_noise(
    spec: Specification,
    sequence: Sequence,
    make: Callable[[Specification, Key], StreamAlgorithm] = StreamAlgorithm,
    key: Key | None = None,
) -> dict[str, list[list[int]]]:
    """What a running stream publishes is its exact totals, worked out from the definitions, with the noise of its names
    on; no bin is shown below its threshold. Returns the noise where every coordinate is released."""
    key = key or Key.for_testing(1)
    algorithm = make(spec, key)
    noise = {name: spec.mechanism(name, key.coins("stream")) for name in spec.statistics}
    truth = {name: true_totals(spec, name, sequence, noise[name].coins) for name in spec.statistics}
    out: dict[str, list[list[int]]] = {name: [] for name in spec.statistics}
    seen = dict.fromkeys(spec.statistics, 0)
    for round, updates in enumerate(sequence, 1):
        for name, release in algorithm.release(updates).items():
            statistic = spec.statistics[name]
            exact = truth[name][seen[name]]
            seen[name] += 1
            alone = statistic.release(exact, noise[name], seen[name], round, spec.settings[name])
            mine = alone.numerators, alone.denominator, plain(alone.answer.value)
            if mine != (release.numerators, release.denominator, plain(release.value)):
                raise VerificationError(f"{name}: round {round} is not its totals with its noise on\n  {sequence}")
            if isinstance(noise[name], BinNoise):
                _check_threshold(name, noise[name], release, seen[name], sequence)
            if isinstance(statistic, Linear):
                numerators = zip(release.numerators, exact[0].tolist(), strict=True)
                out[name].append([n - t * release.denominator for n, t in numerators])
    return out


def _check_threshold(name: str, noise: Mechanism, release: Release, index: int, sequence: Sequence) -> None:
    if not isinstance(noise, BinNoise) or noise.threshold is None:
        return
    counts, least = release.numerators[:: noise.size], noise.threshold.at(index)
    if any(Fraction(count, release.denominator) < least for count in counts):
        raise VerificationError(f"{name}: round {release.round} shows a bin below its threshold\n  {sequence}")


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
        if sample_in(statistic) is not None:
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
    reach = spec.settings[name].reach
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
        differences = [new.get(key, 0) - old.get(key, 0) for key in old.keys() | new.keys()]
        if sum(map(abs, differences)) > 1:
            raise VerificationError(f"sensitivity of {name}: more than one live record moves\n  {one}\n  {other}")
        moved.append(sum(differences))
    if isinstance(noise, Gated) and any(moved) and noise.cost(0, [moved]) > noise.share.amount:
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
                patterns[view][release] = new.get(key, 0) - old.get(key, 0)
    out = []
    for key, patterns in moved.items():
        coordinate = coordinate_of(key)
        if any(map(any, patterns)):
            try:
                out += [Moved(coordinate, *part) for part in mechanism.moved(coordinate, patterns) if part[1]]
            except InputError as error:
                raise VerificationError(f"sensitivity of {name}: {error}\n  {one}\n  {other}") from None
    return out


def coordinate_of(key: Hashable) -> int:
    """Coordinate i of a key is (key, i), or i where there are no keys."""
    return key[1] if isinstance(key, tuple) else key  # type: ignore[return-value]


def coordinates(spec: Specification, name: str, mechanism: Mechanism, sequence: Sequence) -> list[Coordinates]:
    """Of every release and view."""
    totals = true_totals(spec, name, sequence, mechanism.coins)
    return [[spec.statistics[name].coordinates(view, spec.schema) for view in views] for views in totals]


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
