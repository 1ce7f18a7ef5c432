"""Erasures in a feed that found no record: which they are, and where they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from retroact.errors import Unit
from retroact.stream.outcome import Outcome

# So many are named; of the others it is said how many they are.
NAMED = 5


@dataclass
class Missed:
    """Erasures that had been entered, as all are, and of whose subjects there was no record when their line came.

    >>> missed = Missed()
    >>> missed.add("orders.csv", "line", [3, 17])
    >>> missed.count, missed.words()
    (2, 'orders.csv: no record was found for 2 erasures (lines 3, 17)')
    """

    count: int = 0
    untold: int = 0
    """How many of them nobody was told of yet; with the first of these."""
    first: list[int] = field(default_factory=list)
    source: str = ""
    unit: Unit = "line"

    def add(self, source: str, unit: Unit, rows: Sequence[int]) -> None:
        self.source, self.unit = source, unit
        self.count += len(rows)
        self.untold += len(rows)
        self.first += rows[: NAMED - len(self.first)]

    def words(self) -> str:
        """Those that nobody was told of yet, who now is."""
        rows = ", ".join(f"{row:,}" for row in self.first)
        more = self.untold - len(self.first)
        where = f"{self.unit}{'s' * (self.untold > 1)} {rows}" + (f" and {more:,} more" if more else "")
        words = f"{self.source}: no record was found for {self.untold:,} erasure{'s' * (self.untold > 1)} ({where})"
        self.untold, self.first = 0, []
        return words


def unfound(outcomes: Sequence[Outcome], *added: tuple[Sequence[Any], Sequence[int]]) -> list[int]:
    """Which of some erasures found nothing when they came, though they were handed in together, after the additions of
    their batch. Each of `added` says to whom additions belong, and how many of them came before each erasure: later
    ones do not count.

    >>> outcomes = [Outcome("u1", True, 0, 1), Outcome("u2", True, 0, 1), Outcome("u3", False, 0, 0)]
    >>> unfound(outcomes, (["u1", "u2"], [1, 1, 2]))
    [1, 2]
    """
    missed, later = [], Counter[str]()
    ends = [len(subjects) for subjects, _ in added]
    counts = any(outcome.waiting and not outcome.surviving for outcome in outcomes)
    for place in reversed(range(len(outcomes))):
        outcome = outcomes[place]
        for number, (subjects, before) in enumerate(added) if counts else ():
            # whole numbers are named by their decimal text
            later.update(str(each) for each in subjects[before[place] : ends[number]] if each is not None)
            ends[number] = before[place]
        if not outcome.surviving and (outcome.waiting or 0) <= later[outcome.identifier]:
            missed.append(place)
    return missed[::-1]
