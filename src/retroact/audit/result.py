"""What one test of an audit says: what it asked, tried and found, and the smallest effect it could have detected.

Numbers are decimal text, so that a report reads the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeVar

import msgspec

from ..testing.check import Check, caught
from ..testing.check import Curve as Curve
from ..testing.check import Verdict as Verdict
from ..testing.seeds import Seeds

Part = Literal["retroactivity", "privacy", "reconstruction"]
T = TypeVar("T")
INSIDE = "Does the noise hide one record as well as is claimed?"
NOT_A_STREAM = "an algorithm that is not a stream does not say what its noise is"


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A bug that was planted on purpose and put through the same test."""

    bug: str
    caught: bool
    how: str


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One test. It is void if it misses its own control, whatever its verdict."""

    part: Part
    test: str
    question: str
    """For people who do not read code."""
    tried: str
    runs: int
    verdict: Verdict
    found: str
    detectable: str
    """The smallest effect that this many runs can detect."""
    control: Control | None = None
    measured: dict[str, str] = {}
    counterexample: list[str] = []
    curves: dict[str, Curve] = {}
    """For pictures: points (x, y)."""

    @property
    def void(self) -> bool:
        return self.control is not None and not self.control.caught


def decimal(value: float | int) -> str:
    """A number as a report writes it, with six digits at most.

    >>> decimal(0.12345678), decimal(3), decimal(1e-6), decimal(float("inf"))
    ('0.123457', '3', '1e-06', 'inf')
    """
    return "0" if value == 0 else f"{value:.6g}"


def curve(points: Iterable[tuple[float, float]]) -> Curve:
    """Points as text.

    >>> curve([(0, 1.0), (0.5, 0.25)])
    [('0', '1'), ('0.5', '0.25')]
    """
    return [(decimal(x), decimal(y)) for x, y in points]


def idle(part: Part, test: str, question: str, reason: str) -> Result:
    """A test that says nothing about this target, and why."""
    return Result(
        part=part,
        test=test,
        question=question,
        tried="Nothing.",
        runs=0,
        verdict="not applicable",
        found=reason,
        detectable="Nothing.",
    )


def report(check: Check[T], target: T, seeds: Seeds, *, part: Part, test: str) -> Result:
    """What a check says about a target, and about the same target with the bugs that it plants."""
    reason = check.not_applicable(target)
    if reason is not None:
        return idle(part, test, check.asked(), reason)
    own = check.run(target, seeds)
    if own.verdict == "not applicable":
        return idle(part, test, check.asked(), own.found)
    # What plants nothing has shown nothing.
    bug, seen, how = caught(check, target, seeds.branch("control"))
    measured = f"{bug}: measured, with as many runs" if seen else "nothing: the control was not caught"
    return Result(
        part=part,
        test=test,
        question=check.asked(),
        tried=own.tried,
        runs=own.runs,
        verdict=own.verdict,
        found=own.found,
        detectable=own.detectable or measured,
        control=Control(bug=bug, caught=seen and bool(bug), how=how),
        measured=own.measured,
        counterexample=own.counterexample() if own.verdict == "violation" else [],
        curves=own.curves,
    )


def idle_inside(test: str, reason: str = NOT_A_STREAM) -> Result:
    """A test from inside that cannot look at this target."""
    return idle("privacy", test, INSIDE, f"It does not apply: {reason}.")
