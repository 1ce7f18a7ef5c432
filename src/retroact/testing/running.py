"""What a stream publishes, number by number: exact totals with the noise of their names added, and nothing else.

`published` checks single releases by random access; this also runs whole histories through a stream, with late records,
deletions and erasures, so that what a stream keeps from round to round is checked too. Totals are computed record by
record from the definition of the statistic (`definitions`), and noise is drawn again, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import NamedTuple

from ..coins import Key, integer_cells
from ..compilers import sample_in
from ..errors import VerificationError
from ..ledger.definition import Add, Update, trajectory
from ..ledger.definition import Sequence as History
from ..noise import Mechanism
from ..oneshot import BOTTOM
from ..statistics import Histogram
from ..statistics.bound import At, Bound
from ..stream import Release, Round, Specification
from ..stream.release import plain
from .algorithm import StreamAlgorithm
from .altered import publishing
from .check import Check, Finding, require
from .definitions import Definition
from .drawn_noise import noise_again
from .histories import Shape, history, values_of
from .published import Look, below_threshold, check_published, first_wrong
from .ranges import ranges_in
from .records import Record, records_of
from .sampling import check_sample
from .seeds import Seeds

WRONG = "is not its totals plus the noise of their names"


def check_oblivious(spec: Specification, random: Random, *, pairs: int = 10) -> None:
    """Checks that under one key every release is the exact totals plus the noise of their names, whatever the
    history."""
    shape = Shape(values_of(spec.schema, random), rounds=min(spec.horizon or 8, 8), late=spec.late)
    drawn = tuple(history(shape, random) for _ in range(pairs))
    require(ExactReleases(Seeds(1)), Publisher(spec, StreamAlgorithm, drawn, 0), Seeds(1), what="oblivious noise")


class Careless(StreamAlgorithm):
    """A stream that counts every record of a round twice, with the value of the one that ``choose`` picks."""

    def __init__(self, choose: Callable[..., Add], specification: Specification, key: Key) -> None:
        super().__init__(specification, key)
        self._choose = choose

    def release(self, updates: Sequence[Update]) -> Round:
        added = [update for update in updates if isinstance(update, Add)]
        if not added:
            return super().release(updates)
        value = self._choose(added, key=repr).value
        same = [replace(update, value=value) for update in added]
        return super().release([*(update for update in updates if not isinstance(update, Add)), *same, *same])


class Publisher(NamedTuple):
    """A stream, the histories that are run through it, and how many releases are taken by random access."""

    specification: Specification
    make: Callable[[Specification, Key], StreamAlgorithm]
    histories: tuple[History, ...]
    looks: int


@dataclass(frozen=True)
class ExactReleases(Check[Publisher]):
    """``seeds``: of the keys and of the releases, the same for planted bugs."""

    seeds: Seeds
    question = "Is what a running stream publishes exactly its totals with the noise that is accounted for?"

    def planted(self, target: Publisher) -> list[list[tuple[str, Publisher]]]:
        bug = "the same stream, which counts every record of a round twice and takes it for another one"
        short = target._replace(histories=target.histories[-1:], looks=0)
        rows = [[(bug, short._replace(make=partial(Careless, choose))) for choose in (min, max)]]
        spec = target.specification
        noisy = [name for name, bound in spec.bounds.items() if bound.additive]
        if noisy:
            thin = copy(spec)
            few = {name: publishing(spec.bounds[name], lambda drawn: drawn.numbers * 9 // 10) for name in noisy}
            thin.bounds = {**spec.bounds, **few}
            rows.append([("statistics that publish nine tenths of their noise", Publisher(thin, target.make, (), 1))])
        return rows

    def run(self, target: Publisher, seeds: Seeds) -> Finding:
        problem = _first_difference(target, self.seeds.key())
        compared, wrong = _by_access(target.specification, self.seeds, target.looks)
        said = (problem or wrong or "").splitlines()
        rounds = sum(map(len, target.histories))
        return Finding(
            tried=f"{len(target.histories)} histories of {rounds // max(1, len(target.histories))} rounds each, run "
            f"through the stream under one key, and {compared:,} numbers by random access under others, up to the last "
            "round; each was compared with exact totals, added up record by record from the definition of the "
            "statistic, and noise drawn again node by node. With other records and as much other noise, so that the "
            "noisy totals were the same, the answers had to be the same.",
            runs=rounds,
            verdict="violation" if said else "passed",
            found=f"A release is not what it should be: {said[0]}."
            if said
            else "Every number is what it should be, and the noise does not depend on the data.",
            detectable="Any difference in any number of these histories and releases.",
            counterexample=lambda: said,
        )


def _first_difference(running: Publisher, key: Key) -> str | None:
    """In whole histories."""
    try:
        for sequence in running.histories:
            check_history(running.specification, sequence, running.make, key)
    except VerificationError as error:
        return str(error)
    return None


def _by_access(spec: Specification, seeds: Seeds, looks: int) -> tuple[int, str | None]:
    """In releases by random access: how many numbers were compared, and what was wrong."""
    compared = 0
    try:
        for name, bound in spec.bounds.items() if looks else ():
            compared += check_published(spec, name, seeds.branch("access", name).random(), looks=looks)
            if bound.keyed:
                check_sample(spec, name, seeds.branch("samples", name).random())
    except VerificationError as error:
        return compared, str(error)
    return compared, None


# One history ----------------------------------------------------------------------------------------------------------


def check_history(
    spec: Specification,
    sequence: History,
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
