"""Does the noise of a stream have the law that is claimed? Checked exactly and statistically.

Exactly: what a mechanism draws is, integer by integer, the sum over the nodes of its process (`drawn_noise`); `running`
and `published` check that a stream adds this noise to its totals. Statistically: many independent copies of that noise,
as the stream draws it or publishes it (`residuals`), have the law that the guarantee requires (`judgement`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import F64
from ..coins import Key
from ..stream import Specification
from .check import Check, Finding, require
from .claimed_law import Claim
from .drawn_noise import check_draws, check_lattices, drawn, kind_of, noises
from .judgement import ERROR, FACTORS, Conformance, NoiseKind, judge
from .seeds import Seeds

# Fresh noise is planted where the correlation of two releases is at least this, over the root of the number of draws.
CORRELATED = 15.0
DRAWN = "Does the noise of {self.name!r} have the claimed size, shape and memory between rounds?"


@dataclass(frozen=True)
class NoiseLaw(Check[list[NoiseKind]]):
    """All noise of one statistic, over many draws; ``problem``: what is known to be wrong without statistics."""

    name: str
    draws: int
    tried: str = ""
    question: str = DRAWN
    problem: str = ""

    def run(self, target: list[NoiseKind], seeds: Seeds) -> Finding:
        judged = judge(target)
        if judged.holds and not judged.compared and not self.problem:
            few = f"{self.draws:,} draws say nothing about a noise that is claimed to be 0 so often"
            return Finding(verdict="not applicable", found=f"It does not apply: {few}.", value=judged)
        return Finding(
            tried=f"{self.tried} {judged.tests:,} tests of {judged.coordinates:,} numbers in each release.",
            runs=self.draws,
            verdict="passed" if judged.holds and not self.problem else "violation",
            found=self.problem
            or ("Nothing speaks against it. " if judged.holds else f"Refuted: {judged.worst.asked}. ")
            + "By the claim, what was seen in all tests together has a probability of at most "
            f"{judged.chance:.6g}; the claim is refuted at {ERROR:g}.",
            detectable=f"Noise of at most {judged.smallest or FACTORS[-1]:.6g} of the claimed size with 99 %; "
            "noise that is missing from one number or one round, or that two of them share. A correct statistic is "
            f"refuted with probability {ERROR:g} at most (Bernstein and Chernoff bounds, all tests together).",
            measured={"probability by the claim": f"{judged.chance:.6g}", "tests": str(judged.tests)},
            value=judged,
        )

    def planted(self, target: list[NoiseKind]) -> Iterator[Iterator[tuple[str, list[NoiseKind]]]]:
        yield (_changed(f"noise of {f:.6g} of the size", target, lambda v, f=f: v * f) for f in FACTORS)  # type: ignore[misc]
        yield iter([_changed("noise that is missing in the last of these releases", target, _without_last)])
        if any(len({*kind.looks}) > 1 for kind in target):
            same = "the noise of the first release in all of them"
            yield iter([_changed(same, target, lambda values: values[:, :, :1] + values * 0)])
        if any(len(kind.values) > 1 for kind in target):
            yield iter([_changed("the noise of the first number in all of them", target, lambda v: v[:1] + v * 0)])
        if any(map(_remembers, target)):
            yield iter([_changed("noise drawn again in the last of these releases", target, _renewed)])


def _changed(bug: str, kinds: list[NoiseKind], change: Callable[[F64], F64]) -> tuple[str, list[NoiseKind]]:
    return bug, [kind._replace(values=change(kind.values)) for kind in kinds]


def _without_last(values: F64) -> F64:
    out = values.copy()
    out[:, :, -1] = np.where(np.isnan(out[:, :, -1]), np.nan, 0.0)
    return out


def _renewed(values: F64) -> F64:
    """The last release of another draw."""
    out = values.copy()
    out[:, :, -1] = np.roll(out[:, :, -1], 1, axis=1)
    return out


def _remembers(kind: NoiseKind) -> bool:
    """Whether the noises of the first and the last of these releases are claimed to be clearly correlated."""
    first, last = (kind.nodes.form(kind.looks[at]) for at in (0, -1))
    apart = first.deviation**2 + last.deviation**2 - first.plus(last, -1).deviation ** 2
    clear = CORRELATED / math.sqrt(kind.values[:, :, 0].size)
    return kind.looks[0] != kind.looks[-1] and abs(apart) > 2 * clear * first.deviation * last.deviation


def check_noise_law(
    spec: Specification, *, draws: int = 2000, rounds: tuple[int, int] = (3, 7)
) -> dict[str, Conformance]:
    """Compares the noise of every statistic, for each of its units, with the law it claims; raises if that is
    refuted."""
    out = {}
    for name in spec.statistics:
        check_lattices(spec, name)
        for noise in noises(spec, name, rounds):
            kind = noise.kind(drawn(noise, draws, Key.for_testing(draws).coins(noise.name)))
            found = require(NoiseLaw(name, draws), [kind], Seeds(draws), what=f"noise law of {noise.name}")
            assert found is not None
            out[noise.name] = found.value
        check_draws(spec, name)
    return out


def conformance(
    noise: F64, claim: Claim, indices: Sequence[int], refinement: int = 1, *, unit: int | None = None
) -> Conformance:
    """``noise``: for each of these releases, many independent samples of the noise of a coordinate of this unit (by
    default that of the first coordinate), on a lattice that is ``refinement`` times finer than the data."""
    return judge([kind_of(noise, claim, indices, refinement, claim.layout.units[0] if unit is None else unit)])
