"""What is published, number by number: exact totals with the noise of their names added, and nothing else.

The tests that look inside see totals and laws; this one ties them to what is really published (`testing.running`). And
the parts of the budget are added up again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..coins import Key
from ..errors import InputError
from ..ledger.definition import Sequence as History
from ..privacy import ApproximateDP, GaussianDP, Measure, MixedDP, PureDP, epsilon_of
from ..stream import Specification
from ..testing import StreamAlgorithm, history, in_memory
from ..testing.check import Check, Finding
from ..testing.histories import crowded
from ..testing.running import ExactReleases, Publisher
from ..testing.seeds import Seeds
from .result import Result, decimal, idle_inside, report
from .target import Target

COPIES = 300
# Releases that are taken by random access.
LOOKS = 6


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
            tried="The exact part of each statistic, composed again: epsilons and deltas are added, and so are squares "
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
