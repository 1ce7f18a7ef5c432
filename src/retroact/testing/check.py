"""One engine for checks and audits: a question about a target, a run that answers it, and the same run on a target in
which a bug was planted.

A check raises where it finds a violation (`require`), for authors of statistics. An audit reports what was asked, tried
and found, for privacy officers, and what the same run says of the planted target: a check that misses its own bug says
nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from .algorithm import CheckFailedError
from .seeds import Seeds

Verdict = Literal["passed", "violation", "inconclusive", "not applicable"]
Curve = list[tuple[str, str]]
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one run says of its target. ``counterexample`` is worked out only where it is asked for."""

    verdict: Verdict
    found: str
    tried: str = "Nothing."
    runs: int = 0
    detectable: str = "Nothing."
    measured: dict[str, str] = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)
    counterexample: Callable[[], list[str]] = list


class Check(ABC, Generic[T]):
    """
    >>> class Even(Check[int]):
    ...     question = "Is it even?"
    ...     def run(self, target, seeds):
    ...         return Finding(verdict="violation" if target % 2 else "passed", found=f"{target % 2} is left.")
    ...     def planted(self, target):
    ...         return [("one more", target + 1)]
    >>> Even().run(4, Seeds(1)).verdict, caught(Even(), 4, Seeds(1))
    ('passed', ('one more', True, '1 is left.'))
    """

    question: str

    def not_applicable(self, target: T) -> str | None:
        """Why it says nothing about this target, if so."""
        return None

    @abstractmethod
    def run(self, target: T, seeds: Seeds) -> Finding:
        """One run; all of its randomness is that of the seeds."""

    @abstractmethod
    def planted(self, target: T) -> Iterable[tuple[str, T]]:
        """A bug in words and the target with it; of several, the first that is caught counts."""


def caught(check: Check[T], target: T, seeds: Seeds) -> tuple[str, bool, str]:
    """Of the bugs that are planted, the first that is caught, or the last: in words, whether it is, and how."""
    bug = how = ""
    for number, (bug, bad) in enumerate(check.planted(target)):
        seen = check.run(bad, seeds.branch(number))
        how = seen.found
        if seen.verdict == "violation":
            return bug, True, how
    return bug, False, how


def require(check: Check[T], target: T, seeds: Seeds, *, what: str) -> Finding | None:
    """Raises where the target is found to be wrong, and names what that is; None where the check does not apply."""
    if check.not_applicable(target) is not None:
        return None
    finding = check.run(target, seeds)
    if finding.verdict == "violation":
        raise CheckFailedError("\n".join([f"{what}: {finding.found}", *finding.counterexample()]))
    return finding
