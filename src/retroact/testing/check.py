"""One engine for checks and audits: a question about a target, a run that answers it, and the same run on a target
with a planted bug.

For authors of statistics, a violation raises (`require`). For privacy officers, an audit reports what was asked, tried
and found, and whether the same run catches the planted bug: a check that misses it proves nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, Literal, TypeVar

from .algorithm import CheckFailedError
from .seeds import Seeds

Verdict = Literal["passed", "violation", "inconclusive", "not applicable"]
Curve = list[tuple[str, str]]
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one run says about its target. ``counterexample`` is computed only when asked for."""

    verdict: Verdict
    found: str
    tried: str = "Nothing."
    runs: int = 0
    detectable: str = ""
    """The smallest detectable effect; if empty, the bugs that were planted and caught."""
    measured: dict[str, str] = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)
    counterexample: Callable[[], list[str]] = list
    seen: bool = False
    """It saw what it looks for, though that refutes no claim."""
    value: Any = None
    """For programs: what was compared or computed."""

    @property
    def caught(self) -> bool:
        return self.seen or self.verdict == "violation"


class Check(ABC, Generic[T]):
    """
    >>> class Even(Check[int]):
    ...     question = "Is it even?"
    ...     def run(self, target, seeds):
    ...         return Finding(verdict="violation" if target % 2 else "passed", found=f"{target % 2} is left.")
    ...     def planted(self, target):
    ...         return [[("one more", target + 1)]]
    >>> Even().run(4, Seeds(1)).verdict, caught(Even(), 4, Seeds(1))
    ('passed', ('one more', True, '1 is left.'))
    """

    question: str
    """For people who do not read code; may name the check's own fields: "Is {self.name!r} large enough?"."""

    def asked(self) -> str:
        """The question about this target."""
        return self.question.format(self=self)

    def not_applicable(self, target: T) -> str | None:
        """Why the check cannot judge this target, or None if it can."""
        return None

    @abstractmethod
    def run(self, target: T, seeds: Seeds) -> Finding:
        """One run; all of its randomness comes from the seeds."""

    @abstractmethod
    def planted(self, target: T) -> Iterable[Iterable[tuple[str, T]]]:
        """Rows of bugs, smaller ones first: a description and the target with that bug. One of each row must be
        caught."""


def caught(check: Check[T], target: T, seeds: Seeds) -> tuple[str, bool, str]:
    """The first bug of each row that is caught, or else its last: descriptions, whether one of every row was caught,
    and what the runs found."""
    number, rows = count(), list[tuple[str, Finding]]()
    for row in check.planted(target):
        tried: list[tuple[str, Finding]] = []
        for bug, bad in row:
            tried.append((bug, check.run(bad, seeds.branch(next(number)))))
            if tried[-1][1].caught:
                break
        rows += tried[-1:]
    bugs, how = dict.fromkeys(bug for bug, _ in rows), dict.fromkeys(seen.found for _, seen in rows)
    return "; ".join(bugs), all(seen.caught for _, seen in rows), " ".join(how)


def require(check: Check[T], target: T, seeds: Seeds, *, what: str) -> Finding | None:
    """Raises if the check finds a violation or cannot tell; returns None where it does not apply."""
    if check.not_applicable(target) is not None:
        return None
    finding = check.run(target, seeds)
    if finding.verdict in ("violation", "inconclusive"):
        raise CheckFailedError("\n".join([f"{what}: {finding.found}", *finding.counterexample()]))
    return finding
