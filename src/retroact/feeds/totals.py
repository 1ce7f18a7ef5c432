"""What a feed did, in exact numbers: for the operator alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from retroact.errors import Unit

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


@dataclass(frozen=True)
class Waiting:
    """A last line without an end, of which more may be on its way."""

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
    """What was done, over all rounds: exact, and so for the operator alone."""

    rounds: int = 0
    added: int = 0
    removed: int = 0
    ignored_deletions: int = 0
    """By value or id."""
    ignored_additions: int = 0
    absorbed: int = 0
    """Events that came before, by their positions."""
    first_absorbed: str | None = None
    """Where the first of them stands."""
    late: int = 0
    """Additions that were left out because their round was closed."""
    first_late: str | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    """Lines that are no updates, by what they are."""
    taken_up: str | None = None
    """Which source was read before, and how far."""
    left_open: bool = False
    """Whether some of the input waits for a round to close."""
    at_once: bool = False
    """Whether deletions were applied at once, after the last round."""
    missed: Missed = field(default_factory=Missed)
    """Erasures that found no record."""
    waiting: Waiting | None = None
    """The last line, where it was left unread because nothing ends it."""
