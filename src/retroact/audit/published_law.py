"""The law of what is published, over many keys: `testing.residuals` as a test of an audit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import F64
from ..compilers import sample_in
from ..noise import Oblivious
from ..stream import Specification
from ..testing import in_memory
from ..testing.published import Scene
from ..testing.residuals import ERROR, FACTORS, Judgement, Kind, enough_keys, judge, residuals
from .nodes import idle_inside
from .result import Control, Result, decimal
from .seeds import Seeds
from .target import Target


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
    return [_one(spec, name, seeds.branch(name), draws) for name in spec.statistics]


def _one(spec: Specification, name: str, seeds: Seeds, draws: int) -> Result:
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
        control=_controlled(kinds, factor),
        measured={"probability by the claim": decimal(judged.chance), "tests": str(judged.tests)},
    )


def _controlled(kinds: list[Kind], factor: float) -> Control:
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


def _changed(kinds: list[Kind], change: Callable[[F64], F64]) -> Judgement:
    return judge([kind._replace(values=change(kind.values)) for kind in kinds])


def _without_last(values: F64) -> F64:
    out = values.copy()
    out[:, :, -1] = np.where(np.isnan(out[:, :, -1]), np.nan, 0.0)
    return out
