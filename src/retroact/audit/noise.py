"""Does noise have the law that its claim asks for? From the numbers alone, whoever made them.

Under the claim the nodes of a process are independent with known laws. Recovered from the noise of all rounds and sent
through their own distribution function (with a coin where the law has atoms), they are independent standard normals,
exactly, and what is tested is: their mean, their variance node by node and in all, their shape, and the correlation
between nodes. Where nodes do not follow from the rounds, the noise is whitened by the claimed covariance instead.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import F64
from ..errors import VerificationError
from ..stream import Specification
from ..testing.conformance import (
    LIMIT,
    Conformance,
    Noise,
    check_draws,
    check_identity,
    claimed_moments,
    conforms,
    drawn,
    looked_at,
    names_of,
    noises,
    pairs_of,
    twice,
)
from .nodes import idle_inside
from .result import Control, Result, decimal
from .seeds import Seeds
from .target import Target

FACTORS = (1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0)
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
    off = max((_off(real[i]) for i in compared), default=0.0)
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
        + f" The largest deviation is {decimal(off)} standard errors, where {LIMIT:g} would refute the claim.",
        measured={"largest deviation in standard errors": decimal(off), "kinds of noise": str(len(kinds))},
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
    ladder = next((f for f in FACTORS if not smaller(noise, f).holds), None)
    planted = [smaller(one, PLANTED) for one, _ in looks[:kinds]]
    gone = conforms(looks[-1][0], np.array([looks[-1][1][0], np.zeros(draws)]))
    renewed = _renewed(noise, numbers, draws, seeds.branch("renewed"))
    every = [*planted, gone, *([] if renewed is None else [renewed])]
    return {
        "detectable": f"Noise {ladder:g} times too small was refuted by as many draws (factors tried: "
        f"{', '.join(f'{f:g}' for f in FACTORS)})."
        if ladder
        else f"Not even noise {FACTORS[-1]:g} times too small was refuted by so few draws.",
        "control": Control(
            bug=f"noise that is {PLANTED:g} times too small, noise that is missing in release "
            f"{looks[-1][0].indices[1]:,}"
            + ("" if renewed is None else ", and noise that is drawn anew in every round"),
            caught=not any(one.holds for one in every),
            how=f"deviations of {decimal(min(_off(one) for one in planted))} and {decimal(_off(gone))}"
            + ("" if renewed is None else f" and {decimal(_off(renewed))}")
            + " standard errors",
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
    correlation = claimed_moments(noise.claim, noise.indices, noise.unit).correlation
    if abs(correlation) < CORRELATED or noise.indices[0] == noise.indices[1]:
        return None
    return conforms(noise, np.array([drawn(noise, draws, seeds.coins())[0], samples[1]]))


def _off(conformed: Conformance) -> float:
    return max(abs(conformed.variance), abs(conformed.shape), abs(conformed.covariance))
