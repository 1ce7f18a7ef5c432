"""Does noise have the law that its claim asks for? As the stream draws it, and as it publishes it.

`conformance` draws many independent copies of the noise by the code of the stream, in releases early and late;
`published_law` takes what is published under many keys, less exact totals. Both are held against the law that budget,
norms and declared sensitivity ask for, by tests whose error is bounded without a limit theorem (`testing.judgement`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import F64
from ..compilers import sample_in
from ..errors import VerificationError
from ..noise import Oblivious
from ..stream import Specification
from ..testing import Conformance, in_memory
from ..testing.characteristic import Nodes
from ..testing.judgement import ERROR, FACTORS, Kind, judge
from ..testing.noise_law import (
    Noise,
    check_draws,
    check_identity,
    conforms,
    drawn,
    looked_at,
    names_of,
    noises,
    pairs_of,
    twice,
)
from ..testing.published import Scene
from ..testing.residuals import enough_keys, residuals
from ..testing.seeds import Seeds
from .nodes import idle_inside
from .result import Control, Result, decimal
from .target import Target

TIMES = (1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0)
PLANTED = 1.5
# A claimed correlation below this cannot be missed by noise that is renewed.
CORRELATED = 0.1


def conformance(target: Target, seeds: Seeds, *, draws: int = 4000) -> list[Result]:
    """One result for each statistic: every noise it has, as the stream draws it, in some releases. And one for all of
    them together: that none shares its noise with another.

    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=8)
    >>> [(result.verdict, result.control.caught) for result in conformance(Target.stream(spec), Seeds(1), draws=500)]
    [('passed', True), ('passed', True)]
    """
    spec = target.specification
    if spec is None:
        return [idle_inside("noise", "an algorithm that is not a stream does not say what its noise is")]
    last = spec.horizon or 7
    rounds = max(1, min(3, last - 1)), min(7, last)
    differs = ""
    try:
        check_identity(spec, rounds[1])
    except VerificationError as error:
        differs = str(error)
    results = [_one(spec, name, seeds.branch(name), draws, rounds, differs) for name in spec.statistics]
    return [*results, shared_names(spec, seeds.branch("shared names"))]


def _one(spec: Specification, name: str, seeds: Seeds, draws: int, rounds: tuple[int, int], differs: str) -> Result:
    kinds = list(noises(spec, name, rounds))
    if not kinds:
        return idle_inside(f"noise: {name}", "it has no noise of a known law in these rounds")
    mine, again = differs if f" of {name}:" in differs else "", 0
    try:
        again = check_draws(spec, name, seeds.branch("again").number())
    except VerificationError as error:
        mine = mine or str(error)
    looks = _looks(spec, name, kinds, seeds.branch("pairs"))
    samples = [drawn(noise, draws, seeds.branch("draws", number).coins()) for number, noise in enumerate(looks)]
    real = [conforms(noise, numbers) for noise, numbers in zip(looks, samples, strict=True)]
    compared = [i for i, one in enumerate(real) if one.compared]
    if not compared and not mine:
        few = f"its noise is claimed to be 0 so often that {draws:,} draws say nothing about its law "
        few += f"(in {again:,} releases it is, number by number, the sum of the noises of its nodes)"
        return idle_inside(f"noise: {name}", few)
    broken = list(dict.fromkeys(looks[i].name for i in compared if not real[i].holds))
    chance = min((real[i].chance for i in compared), default=1.0)
    left = len(looks) - len(compared)
    pairs = sorted({tuple(noise.indices) for noise in looks})
    return Result(
        part="privacy",
        test=f"noise: {name}",
        question=f"Does the noise of {name!r} have the size, the shape and the memory between rounds that is claimed?",
        tried=f"{draws:,} independent copies of the noise in pairs of releases "
        f"({', '.join(f'{one:,} and {two:,}' for one, two in pairs)}), {len(kinds)} kind{'s' * (len(kinds) != 1)} of "
        "it, against the law that the budget asks for by the declared sensitivity of its process (whether that is "
        "right is what the search for sensitivity asks); whether what is drawn in one release is, number by number, "
        f"the sum of the noises of its nodes ({again:,} releases); and, where all of it is published, whether an empty "
        f"stream publishes just that noise in rounds 1 to {rounds[1]}."
        + (
            f" {left} of {len(looks)} comparisons were left out: the noise is claimed to be 0 too often."
            if left
            else ""
        ),
        runs=draws,
        verdict="violation" if broken or mine else "passed",
        found=mine
        or (f"Refuted: {', '.join(broken)}." if broken else "Nothing that speaks against it.")
        + f" By the claim, the least likely of {len(compared)} comparisons has a probability of at most "
        f"{decimal(chance)}, where {ERROR:g} would refute the claim.",
        measured={"least probability by the claim": decimal(chance), "kinds of noise": str(len(kinds))},
        **_controlled([(looks[i], samples[i]) for i in compared], len(kinds), draws, seeds),
    )


def _looks(spec: Specification, name: str, kinds: list[Noise], seeds: Seeds) -> list[Noise]:
    """Every kind in the first rounds and at the end, one kind of each noise in further pairs."""
    out, seen = list(kinds), set()
    for noise in kinds:
        indices = looked_at(spec, name, noise.mechanism, seeds.random())
        pairs = pairs_of(indices, seeds.random())
        # With many kinds, fewer pairs of each: the time is the same.
        most = 1 if id(noise.mechanism) in seen else max(1, 2 * len(pairs) // (1 + len(kinds)))
        seen.add(id(noise.mechanism))
        out += [noise.at(pair) for pair in pairs[-most:]]
    return out


def _controlled(looks: list[tuple[Noise, F64]], kinds: int, draws: int, seeds: Seeds) -> dict[str, Any]:
    """What would have been seen, and what was planted."""
    if not looks:
        return {"detectable": "Only noise that is not the sum of the noises of its nodes."}

    def smaller(noise: Noise, factor: float) -> Conformance:
        wrong = noise._replace(mechanism=noise.mechanism.understated(1 / Fraction(factor)))
        return conforms(noise, drawn(wrong, draws, seeds.branch("smaller", noise.name, str(factor)).coins()))

    noise, numbers = looks[0]
    ladder = next((f for f in TIMES if not smaller(noise, f).holds), None)
    planted = [smaller(one, PLANTED) for one, _ in looks[:kinds]]
    gone = conforms(looks[-1][0], np.array([looks[-1][1][0], np.zeros(draws)]))
    renewed = _renewed(noise, numbers, draws, seeds.branch("renewed"))
    every = [max(planted, key=lambda one: one.chance), gone, *([] if renewed is None else [renewed])]
    return {
        "detectable": f"Noise {ladder:g} times too small was refuted by as many draws (factors tried: "
        f"{', '.join(f'{f:g}' for f in TIMES)})."
        if ladder
        else f"Not even noise {TIMES[-1]:g} times too small was refuted by so few draws.",
        "control": Control(
            bug=f"noise that is {PLANTED:g} times too small, noise that is missing in release "
            f"{looks[-1][0].indices[1]:,}"
            + ("" if renewed is None else ", and noise that is drawn anew in every round"),
            caught=not any(one.holds for one in every),
            how="by the claim these have probabilities of at most " + ", ".join(decimal(one.chance) for one in every),
        ),
    }


def shared_names(spec: Specification, seeds: Seeds) -> Result:
    """Noise is a function of key and name: equal names would make equal noise, which cancels out."""
    coins = seeds.coins()
    every = [named for name in spec.statistics for named in names_of(spec, name, coins)]
    equal = twice(every)
    (first, *_) = spec.statistics
    planted = twice(
        [*names_of(spec, first, coins), *((f"a copy of {who}", w) for who, w in names_of(spec, first, coins))]
    )
    return Result(
        part="privacy",
        test="noise: shared names",
        question="Does every noise have coins of its own, or do two share theirs, so that their difference has none?",
        tried=f"The first 128 bits behind {len(every):,} noises under one key, each with each: of all statistics, "
        "lags, some coordinates and nodes.",
        runs=len(every),
        verdict="violation" if equal else "passed",
        found=f"The same bits: {equal[0][0]} and {equal[0][1]}; {len(equal):,} such pairs in all."
        if equal
        else "No two are equal.",
        detectable="Any two of these that have the same name: bits that are equal by chance have probability below "
        f"{decimal(len(every) ** 2 / 2**129)}.",
        control=Control(
            bug="a second statistic under the name of the first",
            caught=bool(planted),
            how=f"{len(planted):,} pairs with the same bits",
        ),
        counterexample=[f"{one} = {other}" for one, other in equal[:20]],
    )


def _renewed(noise: Noise, samples: F64, draws: int, seeds: Seeds) -> Conformance | None:
    """The right law in each round, with none of the memory between them; None where there should be none."""
    one, other = noise.indices
    nodes = Nodes(noise.claim, noise.unit, dict.fromkeys(noise.indices, 1))
    first, last = nodes.form(one), nodes.form(other)
    apart = first.deviation**2 + last.deviation**2 - first.plus(last, -1).deviation ** 2
    if one == other or abs(apart) < 2 * CORRELATED * first.deviation * last.deviation:
        return None
    return conforms(noise, np.array([drawn(noise, draws, seeds.coins())[0], samples[1]]))


# What is published ----------------------------------------------------------------------------------------------------


def published_law(target: Target, seeds: Seeds, *, draws: int = 600) -> list[Result]:
    """One result for each statistic.

    >>> import retroact as ra
    >>> spec = ra.Specification({"x": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=8)
    >>> [(result.verdict, result.control.caught) for result in published_law(Target.stream(spec), Seeds(1))]
    [('passed', True)]
    """
    if target.specification is None:
        return [idle_inside("published noise", "an algorithm that is not a stream does not say what its noise is")]
    spec = in_memory(target.specification)
    return [_published(spec, name, seeds.branch(name), draws) for name in spec.statistics]


def _published(spec: Specification, name: str, seeds: Seeds, draws: int) -> Result:
    test = f"published noise: {name}"
    if sample_in(spec.bounds[name]) is not None:
        return idle_inside(test, "a sample has no noise of its own; what is drawn is looked at with the releases")
    if isinstance(spec.statistics[name].noise, Oblivious):
        return idle_inside(test, "its noise is a law of the user's own")
    scene = Scene(spec, name, seeds.random())
    keys, first = enough_keys(scene, draws), seeds.number() % (1 << 40)
    kinds = residuals(scene, keys=keys, first=first)
    judged = judge(kinds)
    if judged.holds and judged.smallest is None:
        return idle_inside(test, f"{keys:,} keys say nothing about the law of its noise: it takes more of them")
    looks = sorted({look for kind in kinds for look in kind.looks})
    factor = judged.smallest or FACTORS[-1]
    return Result(
        part="privacy",
        test=test,
        question=f"Is what {name!r} publishes off from the truth by the noise that is claimed: in size, in its tails, "
        "in its memory between rounds, and independently from number to number?",
        tried=f"{keys:,} keys, releases {', '.join(f'{look:,}' for look in looks)}, {judged.coordinates:,} numbers in "
        "each: the published noisy totals less exact totals that were added up record by record, against the law that "
        "budget, norms and declared sensitivity ask for, worked out from its characteristic function; "
        f"{judged.tests:,} tests.",
        runs=keys,
        verdict="passed" if judged.holds else "violation",
        found=("Nothing that speaks against it. " if judged.holds else f"Refuted: {judged.worst.asked}. ")
        + f"By the claim, what was seen in all tests together has a probability of at most {decimal(judged.chance)}; "
        f"the claim is refuted at {ERROR:g}.",
        detectable=f"Noise of at most {decimal(factor)} of the claimed size with 99 %; noise that is missing from one "
        f"number or one round, or that two of them share. A right statistic is refuted with probability {ERROR:g} at "
        "most (Bernstein and Chernoff bounds, all tests together).",
        control=_altered(kinds, factor),
        measured={"probability by the claim": decimal(judged.chance), "tests": str(judged.tests)},
    )


def _altered(kinds: list[Kind], factor: float) -> Control:
    """What the same statistic would publish with smaller noise, with noise that is missing, and with shared noise."""
    planted = {
        f"noise of {decimal(factor)} of the size": _changed(kinds, lambda values: values * factor),
        "noise that is missing in the last of these releases": _changed(kinds, _without_last),
    }
    if any(len(kind.looks) > 1 for kind in kinds):
        planted["the noise of the first release in all of them"] = _changed(
            kinds, lambda values: values[:, :, :1] + values * 0
        )
    if any(len(kind.values) > 1 for kind in kinds):
        planted["the noise of the first number in all of them"] = _changed(
            kinds, lambda values: values[:1] + values * 0
        )
    return Control(
        bug=", ".join(planted),
        caught=not any(judged.holds for judged in planted.values()),
        how="by the claim these have probabilities of at most "
        + ", ".join(decimal(judged.chance) for judged in planted.values()),
    )


def _changed(kinds: list[Kind], change: Callable[[F64], F64]) -> Conformance:
    return judge([kind._replace(values=change(kind.values)) for kind in kinds])


def _without_last(values: F64) -> F64:
    out = values.copy()
    out[:, :, -1] = np.where(np.isnan(out[:, :, -1]), np.nan, 0.0)
    return out
