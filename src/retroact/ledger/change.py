"""What a round does to the surviving data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retroact.ledger.sorted_keys import Integers
from retroact.ledger.surviving import Surviving
from retroact.schema import Rows


@dataclass(frozen=True, eq=False)
class Change:
    """Data_i - Data_{i-1} as signed copies, in no particular order, and how many operations had no effect."""

    rows: Rows
    """With their stamps."""
    weights: Integers
    """Copies gained (above zero) or lost (below)."""
    added: int
    """The sum of the weights above zero, and, as a number above zero, of those below."""
    removed: int
    ignored_deletions: int
    """Deletions by value or id that named nothing."""
    ignored_additions: int
    """Additions with a stamp in the future."""
    named: Callable[[], Surviving]
    """The same with ids and subjects, copies as in `weights`; to be asked for before the change is written."""

    @property
    def stamps(self) -> Integers:
        assert self.rows.stamps is not None
        return self.rows.stamps
