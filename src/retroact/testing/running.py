"""What a running stream publishes, round by round, against exact totals that are worked out apart.

`published` asks the same of releases by random access; this runs whole histories through a stream, with late records,
deletions and erasures, so that what a stream keeps from round to round is judged too.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from ..coins import Key
from ..compilers import sample_in
from ..errors import VerificationError
from ..ledger.definition import Sequence, trajectory
from ..noise import Mechanism
from ..oneshot import BOTTOM
from ..statistics import Histogram
from ..statistics.answer import Published, noisy_totals
from ..statistics.bound import At, Bound
from ..stream import Release, Specification
from ..stream.release import plain
from .algorithm import StreamAlgorithm
from .definitions import Coordinate, Definition
from .histories import Shape, history, values_of
from .published import Look, below_threshold, drawn_again
from .records import Record, records_of, rows_of

Residuals = dict[Coordinate, int]


def check_oblivious(spec: Specification, random: Random, *, pairs: int = 10) -> None:
    """Under one key a release is the exact totals with the noise of its names on, whatever the history; where every
    coordinate is released, the noise is also that of the empty history."""
    horizon = min(spec.horizon or 8, 8)
    shape = Shape(values_of(spec.schema, random), rounds=horizon, late=spec.late)
    nothing: Sequence = ((),) * horizon
    expected = published_noise(spec, nothing)
    for _ in range(pairs):
        sequence = history(shape, random)
        problem = differs(expected, published_noise(spec, sequence))
        if problem:
            raise VerificationError(f"oblivious noise: {problem}\n  {sequence}")


class Seen:
    """The releases of one statistic: what is left of each when the exact totals are taken off, and what should be."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rounds: list[int] = []
        self.left: list[Residuals] = []
        self.drawn: list[Residuals] = []


def differs(empty: dict[str, Seen], seen: dict[str, Seen]) -> str | None:
    """Why what is left is not the noise of its names: in the words of the first difference."""
    for name, mine in seen.items():
        for round, left, before, drawn in zip(mine.rounds, mine.left, empty[name].left, mine.drawn, strict=True):
            if any(left[where] != noise for where, noise in before.items() if where in left):
                return f"the noise of {name} in round {round} depends on the data"
            if left != drawn:
                return f"{name}: round {round} is not its totals with its noise on"
    return None


def published_noise(
    spec: Specification,
    sequence: Sequence,
    make: Callable[[Specification, Key], StreamAlgorithm] = StreamAlgorithm,
    key: Key | None = None,
) -> dict[str, Seen]:
    """Run a stream; raises where it publishes something else than its statistics make of the surviving data, or a bin
    below its threshold, or passes a gate that it should not."""
    key = key or Key.for_testing(1)
    algorithm = make(spec, key)
    noise = {name: spec.mechanism(name, key.coins("stream")) for name in spec.statistics}
    definitions = {name: Definition(spec, name) for name in spec.statistics}
    drawn = {name: bound.drawn(noise[name].coins) for name, bound in spec.bounds.items()}
    out = {name: Seen(name) for name in spec.statistics}
    for round, (updates, data) in enumerate(zip(sequence, trajectory(sequence), strict=True), 1):
        records = records_of(spec.schema, data)
        for name, release in algorithm.release(updates).items():
            definition, index = definitions[name], round // spec.statistics[name].every
            alone = _alone(definition, drawn[name], records, noise[name], At(index, round))
            mine = alone.numerators, alone.denominator, plain(alone.answer.value)
            if mine != (release.numerators, release.denominator, plain(release.value)):
                raise VerificationError(f"{name}: round {round} is not its totals with its noise on\n  {sequence}")
            if sample_in(definition.bound) is not None:
                _check_gate(definition, release, noise[name], records, index, sequence)
                continue
            told = {Coordinate(*where): total for where, total in noisy_totals(alone).items()}
            exact, below = definition.totals(records, round, noise[name].coins), alone.denominator
            out[name].rounds.append(round)
            out[name].left.append({where: int(total - exact.get(where, 0) * below) for where, total in told.items()})
            look = Look(alone, noise[name], told)
            out[name].drawn.append(drawn_again(definition, look, index))
            if isinstance(definition.inner, Histogram) and below_threshold(definition.bound, look, index):
                raise VerificationError(f"{name}: round {round} shows a bin below its threshold\n  {sequence}")
    return out


def _alone(definition: Definition, bound: Bound, records: list[Record], noise: Mechanism, at: At) -> Published:
    """What the statistic makes of these records, without a stream. That is no reference: what it says that its answer
    is made of is compared with the exact totals next."""
    rows, copies = rows_of(definition.schema, records)
    assert rows.stamps is not None
    totals = []
    for lag in definition.lags:
        first, last = definition.span(at.round, lag)
        seen = np.flatnonzero((rows.stamps >= first) & (rows.stamps <= last))
        totals.append(bound.named(bound.gather(rows.take(seen), copies[seen]), noise.coins))
    return bound.release(totals, noise, at)


def _check_gate(
    definition: Definition, release: Release, noise: Mechanism, records: list[Record], index: int, sequence: Sequence
) -> None:
    """Closed exactly where the number of live records, with the noise of the gate on, is below what it must reach."""
    sample = sample_in(definition.bound)
    if sample is None or sample.limit is None:
        return
    live = sum(definition.totals(records, release.round, noise.coins).values())
    where = Coordinate(0, None, 0)
    told = Published(None, (), noise.process.at(index).denominator * noise.refinement)  # type: ignore[arg-type]
    drawn = drawn_again(definition, Look(told, noise, {where: 0}), index)[where]
    if release.value is not BOTTOM and live * told.denominator + drawn < sample.limit.at(index) * told.denominator:
        raise VerificationError(
            f"{definition.grant.place}: round {release.round} passes a gate that is closed\n  {sequence}"
        )
