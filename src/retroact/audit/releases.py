"""What is published, number by number: exact totals with the noise of their names added, and nothing else.

The tests from inside look at totals and laws; this one ties them to what is really published. Histories are run through
the stream, and releases are taken by random access, the last one included; each is compared with exact totals that are
computed record by record from the definition of the statistic (`testing.definitions`) and with noise that is drawn
again, node by node. Then other records come with as much other noise: the answer must not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from ..coins import Key
from ..errors import InputError, VerificationError
from ..ledger.definition import Add, Update
from ..ledger.definition import Sequence as History
from ..privacy import ApproximateDP, GaussianDP, Measure, MixedDP, PureDP, epsilon_of
from ..stream import Round, Specification
from ..testing import StreamAlgorithm, check_published, check_sample, history, in_memory
from ..testing.altered import publishing
from ..testing.check import Check, Finding
from ..testing.histories import crowded
from ..testing.running import check_history
from ..testing.seeds import Seeds
from .result import Result, decimal, idle_inside, report
from .target import Target

COPIES = 300
# Releases that are taken by random access.
LOOKS = 6


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


def releases(target: Target, seeds: Seeds, *, histories: int = 12) -> list[Result]:
    """One result on what is published, and one on the sum of what the statistics spend.

    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=8)
    >>> [(result.verdict, result.control.caught) for result in releases(Target.stream(spec), Seeds(1), histories=2)]
    [('passed', True), ('passed', True)]
    """
    if target.specification is None:
        return [idle_inside("releases")]
    spec = in_memory(target.specification)
    random = seeds.random()
    nothing: History = ((),) * target.shape.rounds
    # Last, many copies of every value, so that whatever has a threshold shows something.
    drawn = [*(history(target.shape, random) for _ in range(histories)), crowded(nothing, target.shape, COPIES)]

    def make(spec: Specification, key: Key) -> StreamAlgorithm:
        own = target.make(key)
        return own if isinstance(own, StreamAlgorithm) else StreamAlgorithm(spec, key)

    running = Publisher(spec, make, tuple(drawn), LOOKS + histories // 4)
    parts = [spec.measure_of(name) for name in spec.statistics]
    return [
        report(ExactReleases(seeds), running, seeds, part="privacy", test="releases"),
        report(Budget(float(spec.epsilon), float(spec.delta)), parts, seeds, part="privacy", test="budget"),
    ]


class Publisher(NamedTuple):
    """A stream, the histories that are run through it, and how many releases are taken by random access."""

    specification: Specification
    make: Callable[[Specification, Key], StreamAlgorithm]
    histories: tuple[History, ...]
    looks: int


@dataclass(frozen=True)
class ExactReleases(Check[Publisher]):
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


@dataclass(frozen=True)
class Budget(Check[list[Measure]]):
    """The parts of the budget, composed again without the code that divided it."""

    epsilon: float
    delta: float
    question = "Do the parts of the budget that the statistics spend add up to no more than is claimed?"

    def planted(self, target: list[Measure]) -> list[list[tuple[str, list[Measure]]]]:
        return [[("every part spent twice", [*target, *target])]]

    def run(self, target: list[Measure], seeds: Seeds) -> Finding:
        spent = self._spent(target)
        return Finding(
            tried="The exact part of each statistic, composed anew: epsilons and deltas are added, and so are squares "
            "of μ; the Gaussian part is converted at what is left of δ.",
            runs=len(target),
            verdict="passed" if spent <= self.epsilon * (1 + 1e-9) else "violation",
            found=f"Together they spend ε = {decimal(spent)}; claimed is ε = {decimal(self.epsilon)}, δ = "
            f"{decimal(self.delta)}.",
            detectable="Any excess above one part in a billion.",
            measured={"epsilon spent": decimal(spent), "epsilon claimed": decimal(self.epsilon)},
        )

    def _spent(self, parts: list[Measure]) -> float:
        """The epsilon of all parts together, at the claimed delta."""
        pure = square = failure = 0.0
        for part in parts:
            match part:
                case PureDP(value):
                    pure += value
                case ApproximateDP(value, failed):
                    pure, failure = pure + value, failure + failed
                case GaussianDP(mu):
                    square += mu**2
                case MixedDP(value, mu, failed):
                    pure, square, failure = pure + value, square + mu**2, failure + failed
                case other:
                    raise InputError(f"expected a pure, approximate or Gaussian part, got {other}")
        left = self.delta - failure
        if left < -1e-9 * self.delta:
            return math.inf
        return pure + (epsilon_of(math.sqrt(square), left) if square else 0.0)
