"""What a feed did, in exact numbers: for the operator alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import Unit
from ..messages import plural

NAMED = 5
"""How many rows a message names; others are counted."""


@dataclass
class Missed:
    """Erasures whose subjects had no record when their line came. They were applied like all others.

    >>> missed = Missed()
    >>> missed.add("orders.csv", "line", [3, 17])
    >>> missed.count, missed.words()
    (2, 'orders.csv: no record was found for 2 erasures (lines 3, 17)')
    """

    count: int = 0
    untold: int = 0
    """How many were not reported yet; and the rows of the first of these."""
    first: list[int] = field(default_factory=list)
    source: str = ""
    unit: Unit = "line"

    def add(self, source: str, unit: Unit, rows: Sequence[int]) -> None:
        self.source, self.unit = source, unit
        self.count += len(rows)
        self.untold += len(rows)
        self.first += rows[: NAMED - len(self.first)]

    def words(self) -> str:
        """A message on those that were not reported yet; now they are."""
        rows = ", ".join(f"{row:,}" for row in self.first)
        more = self.untold - len(self.first)
        where = f"{self.unit}{'s' * (self.untold > 1)} {rows}" + (f" and {more:,} more" if more else "")
        words = f"{self.source}: no record was found for {plural(self.untold, 'erasure')} ({where})"
        self.untold, self.first = 0, []
        return words


@dataclass(frozen=True)
class Waiting:
    """A last line without an end: the rest of it may still come."""

    source: str
    line: int
    adds: bool
    """Whether it can only become an addition."""

    @property
    def message(self) -> str:
        what = "" if self.adds else ", and so does whatever it deletes or ends"
        return f"the last line has no end and may be half of one: it waits for the rest, or for --complete{what}"


@dataclass
class Totals:
    """What was done over all rounds. The numbers are exact, so they are for the operator alone."""

    rounds: int = 0
    given: int | None = 0
    """Additions that were delivered; None if there were updates, which are expected to replace records."""
    added: int = 0
    removed: int = 0
    ignored_deletions: int = 0
    """Deletions, by value or id, that matched nothing."""
    ignored_additions: int = 0
    absorbed: int = 0
    """Events that came before, by their positions."""
    first_absorbed: str | None = None
    """The place of the first."""
    late: int = 0
    """Additions left out because their round was closed."""
    first_late: str | None = None
    rejected: int = 0
    """Additions left out because their subject was erased, and its later records are rejected."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Lines that are no events, by what they are."""
    taken_up: str | None = None
    """Which source is resumed, and where."""
    left_open: bool = False
    """Whether some of the input waits for a round to close."""
    at_once: bool = False
    """Whether deletions were applied at once, after the last round."""
    missed: Missed = field(default_factory=Missed)
    """Erasures that found no record."""
    waiting: Waiting | None = None
    """The last line, if it was left unread because nothing ends it."""

    @property
    def replaced(self) -> int:
        """Additions that had no effect, since a later row of their round replaced or removed the record."""
        if self.given is None or self.left_open:
            return 0
        return max(0, self.given - self.added - self.ignored_additions - self.rejected)
