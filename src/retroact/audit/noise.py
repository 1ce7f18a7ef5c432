"""Does noise have the law that its claim asks for: as the stream draws it, and as it publishes it?

`conformance` draws many independent copies of the noise with the stream's own code, in early and late releases;
`published_law` takes what is published under many keys, less exact totals. Both are compared with the law that budget,
norms and declared sensitivity ask for, by tests whose error is bounded without a limit theorem (`testing.judgement`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..arrays import F64
from ..compilers import sample_in
from ..errors import VerificationError
from ..noise import Oblivious
from ..stream import Specification
from ..testing import in_memory
from ..testing.check import Check, Finding
from ..testing.judgement import ERROR, FACTORS, NoiseKind, judge
from ..testing.noise_law import Noise, check_draws, drawn, looked_at, names_of, noises, pairs_of, twice
from ..testing.published import Scene
from ..testing.ranges import ranges_in
from ..testing.residuals import enough_keys, residuals
from ..testing.seeds import Seeds
from .result import Result, decimal, idle_inside, report
from .target import Target

# Fresh noise is planted where the correlation of two releases is at least this, over the root of the number of draws.
CORRELATED = 15.0
DRAWN = "Does the noise of {self.name!r} have the claimed size, shape and memory between rounds?"
PUBLISHED = (
    "Is what {self.name!r} publishes off from the truth by the noise that is claimed: in size, in its tails, in its "
    "memory between rounds, and independently from number to number?"
)


@dataclass(frozen=True)
class NoiseLaw(Check[list[NoiseKind]]):
    """All noise of one statistic, over many draws; ``problem``: what is known to be wrong without statistics."""

    name: str
    question: str
    tried: str
    draws: int
    problem: str = ""

    def run(self, target: list[NoiseKind], seeds: Seeds) -> Finding:
        judged = judge(target)
        if judged.holds and not judged.compared and not self.problem:
            few = f"{self.draws:,} draws say nothing about a noise that is claimed to be 0 so often"
            return Finding(verdict="not applicable", found=f"It does not apply: {few}.")
        return Finding(
            tried=f"{self.tried} {judged.tests:,} tests of {judged.coordinates:,} numbers in each release.",
            runs=self.draws,
            verdict="passed" if judged.holds and not self.problem else "violation",
            found=self.problem
            or ("Nothing speaks against it. " if judged.holds else f"Refuted: {judged.worst.asked}. ")
            + "By the claim, what was seen in all tests together has a probability of at most "
            f"{decimal(judged.chance)}; the claim is refuted at {ERROR:g}.",
            detectable=f"Noise of at most {decimal(judged.smallest or FACTORS[-1])} of the claimed size with 99 %; "
            "noise that is missing from one number or one round, or that two of them share. A correct statistic is "
            f"refuted with probability {ERROR:g} at most (Bernstein and Chernoff bounds, all tests together).",
            measured={"probability by the claim": decimal(judged.chance), "tests": str(judged.tests)},
        )

    def planted(self, target: list[NoiseKind]) -> Iterator[Iterator[tuple[str, list[NoiseKind]]]]:
        yield (_changed(f"noise of {decimal(f)} of the size", target, lambda v, f=f: v * f) for f in FACTORS)  # type: ignore[misc]
        yield iter([_changed("noise that is missing in the last of these releases", target, _without_last)])
        if any(len({*kind.looks}) > 1 for kind in target):
            same = "the noise of the first release in all of them"
            yield iter([_changed(same, target, lambda values: values[:, :, :1] + values * 0)])
        if any(len(kind.values) > 1 for kind in target):
            yield iter([_changed("the noise of the first number in all of them", target, lambda v: v[:1] + v * 0)])
        if any(map(_remembers, target)):
            yield iter([_changed("noise drawn anew in the last of these releases", target, _renewed)])


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


# What is drawn --------------------------------------------------------------------------------------------------------


def conformance(target: Target, seeds: Seeds, *, draws: int = 4000) -> list[Result]:
    """One result for each statistic: all of its noise, as the stream draws it, in some releases. And one for all
    statistics together: no two share their noise.

    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=8)
    >>> [(result.verdict, result.control.caught) for result in conformance(Target.stream(spec), Seeds(1), draws=500)]
    [('passed', True), ('passed', True)]
    """
    spec = target.specification
    if spec is None:
        return [idle_inside("noise")]
    last = spec.horizon or 7
    rounds = max(1, min(3, last - 1)), min(7, last)
    results = [_drawn_law(spec, name, seeds.branch(name), draws, rounds) for name in spec.statistics]
    own = seeds.branch("shared names")
    every = [named for name in spec.statistics for named in names_of(spec, name, own.coins())]
    return [*results, report(SharedNames(), every, own, part="privacy", test="noise: shared names")]


def _drawn_law(spec: Specification, name: str, seeds: Seeds, draws: int, rounds: tuple[int, int]) -> Result:
    test, kinds = f"noise: {name}", list(noises(spec, name, rounds))
    if not kinds:
        return idle_inside(test, "it has no noise of a known law in these rounds")
    problem, again = "", 0
    try:
        again = check_draws(spec, name, seeds.branch("again").number())
    except VerificationError as error:
        problem = str(error)
    looks = _looks(spec, name, kinds, seeds.branch("pairs"))
    copies = [noise.kind(drawn(noise, draws, seeds.branch("draws", i).coins())) for i, noise in enumerate(looks)]
    pairs = ", ".join(f"{one:,} and {two:,}" for one, two in sorted({tuple(noise.indices) for noise in looks}))
    tried = (
        f"{draws:,} independent copies of the noise in pairs of releases ({pairs}), {len(kinds)} "
        f"kind{'s' * (len(kinds) != 1)} of it, against the law that the budget asks for by the declared sensitivity of "
        "its process (which is checked by the search for sensitivity); and whether what is drawn in one release is, "
        f"number by number, the sum of the noises of its nodes ({again:,} releases)."
    )
    return report(NoiseLaw(name, DRAWN, tried, draws, problem), copies, seeds, part="privacy", test=test)


def _looks(spec: Specification, name: str, kinds: list[Noise], seeds: Seeds) -> list[Noise]:
    """Every kind in the first rounds and at the end; one kind of each noise in more pairs of releases."""
    out, seen = list(kinds), set()
    for noise in kinds:
        indices = looked_at(spec, name, noise.mechanism, seeds.random())
        pairs = pairs_of(indices, seeds.random())
        # With many kinds, fewer pairs of each: the time is the same.
        most = 1 if id(noise.mechanism) in seen else max(1, 2 * len(pairs) // (1 + len(kinds)))
        seen.add(id(noise.mechanism))
        out += [noise.at(pair) for pair in pairs[-most:]]
    return out


class SharedNames(Check[list[tuple[str, bytes]]]):
    """Noise is a function of key and name: two noises of one name are equal, and cancel each other."""

    question = "Does every noise have its own coins, or do two share theirs, so that their difference has none?"

    def run(self, target: list[tuple[str, bytes]], seeds: Seeds) -> Finding:
        equal = twice(target)
        return Finding(
            tried=f"The first 128 bits behind {len(target):,} noises under one key, all compared: of all statistics, "
            "lags, some coordinates and nodes.",
            runs=len(target),
            verdict="violation" if equal else "passed",
            found=f"The same bits: {equal[0][0]} and {equal[0][1]}; {len(equal):,} such pairs in all."
            if equal
            else "No two are equal.",
            detectable="Any two of these that have the same name: bits that are equal by chance have probability below "
            f"{decimal(len(target) ** 2 / 2**129)}.",
            counterexample=lambda: [f"{one} = {other}" for one, other in equal[:20]],
        )

    def planted(self, target: list[tuple[str, bytes]]) -> list[list[tuple[str, list[tuple[str, bytes]]]]]:
        copies = [(f"a copy of {name}", bits) for name, bits in target]
        return [[("every statistic a second time under its own name", [*target, *copies])]]


# What is published ----------------------------------------------------------------------------------------------------


def published_law(target: Target, seeds: Seeds, *, draws: int = 600) -> list[Result]:
    """One result for each statistic.

    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=8)
    >>> [(result.verdict, result.control.caught) for result in published_law(Target.stream(spec), Seeds(1))]
    [('passed', True)]
    """
    if target.specification is None:
        return [idle_inside("published noise")]
    spec = in_memory(target.specification)
    return [_published(spec, name, seeds.branch(name), draws) for name in spec.statistics]


def _published(spec: Specification, name: str, seeds: Seeds, draws: int) -> Result:
    test = f"published noise: {name}"
    if ranges_in(spec.bounds[name]) is not None:
        return idle_inside(test, "its answers are drawn from the counts; the test of releases checks what is drawn")
    if sample_in(spec.bounds[name]) is not None:
        return idle_inside(test, "a sample adds no noise to totals; the test of releases checks what is drawn")
    if isinstance(spec.statistics[name].noise, Oblivious):
        return idle_inside(test, "its noise is a law of the user's own")
    scene = Scene(spec, name, seeds.random())
    keys = enough_keys(scene, draws)
    kinds = residuals(scene, keys=keys, first=seeds.number() % (1 << 40))
    looks = sorted({look for kind in kinds for look in kind.looks})
    tried = (
        f"{keys:,} keys, releases {', '.join(f'{look:,}' for look in looks)}: the published noisy totals less exact "
        "totals that were added up record by record, against the law that budget, norms and declared sensitivity ask "
        "for, computed from its characteristic function."
    )
    return report(NoiseLaw(name, PUBLISHED, tried, keys), kinds, seeds, part="privacy", test=test)
