"""What a running stream publishes, round by round, against independently computed exact totals.

`published` checks single releases by random access; this runs whole histories through a stream, with late records,
deletions and erasures, so that what a stream keeps from round to round is checked too.
"""

from __future__ import annotations

from collections.abc import Callable

from ..coins import Key, integer_cells
from ..compilers import sample_in
from ..errors import VerificationError
from ..ledger.definition import Sequence, trajectory
from ..noise import Mechanism
from ..oneshot import BOTTOM
from ..statistics import Histogram
from ..statistics.bound import At, Bound
from ..stream import Release, Specification
from ..stream.release import plain
from .algorithm import StreamAlgorithm
from .definitions import Definition
from .drawn_noise import noise_again
from .published import Look, below_threshold, first_wrong
from .ranges import ranges_in
from .records import Record, records_of

WRONG = "is not its totals plus the noise of their names"


def check_history(
    spec: Specification,
    sequence: Sequence,
    make: Callable[[Specification, Key], StreamAlgorithm] = StreamAlgorithm,
    key: Key | None = None,
) -> None:
    """Runs a stream; raises if it publishes anything but the exact totals of the surviving data plus noise that does
    not depend on them, a bin below its threshold, or an answer behind a closed gate."""
    key = key or Key.for_testing(1)
    algorithm = make(spec, key)
    noise = {name: spec.mechanism(name, key.coins("stream")) for name in spec.statistics}
    definitions = {name: Definition(spec, name) for name in spec.statistics}
    bounds = {name: bound.drawn(noise[name].coins) for name, bound in spec.bounds.items()}
    for round, (updates, data) in enumerate(zip(sequence, trajectory(sequence), strict=True), 1):
        records = records_of(spec.schema, data)
        for name, release in algorithm.release(updates).items():
            problem = _problem(definitions[name], bounds[name], release, noise[name], records)
            if problem:
                raise VerificationError(f"{name}: round {round} {problem}\n  {sequence}")


def _problem(
    definition: Definition, bound: Bound, release: Release, noise: Mechanism, records: list[Record]
) -> str | None:
    """What is wrong with a release, if anything."""
    at = At(release.round // definition.statistic.every, release.round)
    # What the statistic makes of these records, without a stream. It is not trusted: the noisy totals it reports are
    # compared with exact totals next.
    totals = [bound.named(bound.gather(*seen), noise.coins) for seen in definition.seen(records, at.round)]
    alone = bound.release(totals, noise, at)
    mine = alone.numerators, alone.denominator, plain(alone.answer.value)
    if mine != (release.numerators, release.denominator, plain(release.value)):
        return WRONG
    if ranges_in(definition.bound) is not None:
        return None  # `check_ranges` compares it with its definition
    exact = definition.totals(records, at.round, noise.coins)
    if sample_in(definition.bound) is not None:
        wrong = release.value is not BOTTOM and _is_closed(definition, noise, int(sum(exact.values())), at.index)
        return "answers though its gate is closed" if wrong else None
    look = Look.of(alone, noise)
    if first_wrong(definition, look, exact, at.index) is not None:
        return WRONG
    if isinstance(definition.inner, Histogram) and below_threshold(definition.bound, look, at.index):
        return "shows a bin below its threshold"
    return None


def _is_closed(definition: Definition, noise: Mechanism, live: int, release: int) -> bool:
    """Whether the number of live records, plus the noise of the gate, is below the limit of a sample."""
    sample = sample_in(definition.bound)
    if sample is None or sample.limit is None:
        return False
    denominator = noise.process.at(release).denominator * noise.refinement
    (drawn,) = noise_again(noise, release, 0, integer_cells(1), named=False)
    return live * denominator + drawn < sample.limit.at(release) * denominator
