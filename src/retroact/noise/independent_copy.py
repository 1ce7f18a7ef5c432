"""Independent copies of a process under the same coins."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from ..arrays import I64
from .process import Outlook, Process, Shift, Terms

# Levels of copy i start at i times this; no process has as many.
COPY = 1 << 12


class IndependentCopy(Process):
    """**Privacy.** Copy i moves as the process does, in nodes that no other copy has. **Retroactivity.** That of the
    process.

    >>> from retroact.noise import Schauder
    >>> IndependentCopy(Schauder(7), 2).at(4).levels.tolist()
    [8194]
    """

    kind: ClassVar[str] = "independent_copy"

    def __init__(self, inner: Process, copy: int) -> None:
        self.inner, self.copy = inner, copy
        self.horizon = inner.horizon

    @property
    def name(self) -> str:
        return self.inner.name

    def terms_at(self, rounds: I64) -> Terms:
        terms = self.inner.weights_of(rounds)
        return Terms(terms.levels + COPY * self.copy, terms.indices, terms.weights, terms.denominator)

    def shift(self, boundary: int) -> Shift:
        return self._moved(self.inner.shift(boundary))

    def shift_hiding(self, pattern: Sequence[int]) -> Shift:
        return self._moved(self.inner.shift_hiding(pattern))

    def _moved(self, shift: Shift) -> Shift:
        return {(level + COPY * self.copy, index): value for (level, index), value in shift.items()}

    def outlook(self, p: int, last: int) -> Outlook | None:
        return self.inner.outlook(p, last)

    def spread(self, level: int, p: int) -> Fraction:
        return self.inner.spread(level - COPY * self.copy, p)

    def charge(self, p: int) -> Fraction:
        return self.inner.charge(p)

    @property
    def kernel_squared(self) -> Fraction:
        return self.inner.kernel_squared

    def discreteness(self, variance: Fraction) -> Fraction:
        return self.inner.discreteness(variance)
