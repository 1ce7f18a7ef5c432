"""What a round does to the surviving data."""

from __future__ import annotations

from dataclasses import dataclass

from retroact.arrays import I64, Words
from retroact.ledger.multiset import MultisetEdit
from retroact.ledger.registers import RegisterEdit
from retroact.schema import Rows


@dataclass(frozen=True, eq=False)
class Change:
    """Data_i - Data_{i-1} as signed copies, in no particular order, and how many operations had no effect."""

    rows: Rows
    """With their stamps."""
    weights: I64
    """Copies gained (above zero) or lost (below)."""
    added: int
    """The sum of the weights above zero, and, as a number above zero, of those below."""
    removed: int
    ignored_deletions: int
    """Deletions by value or id that named nothing."""
    ignored_additions: int
    """Additions with a stamp in the future."""
    plain: MultisetEdit
    """What it writes."""
    held: RegisterEdit
    parts: tuple[Words, ...]
    """The keys of the rows."""

    @property
    def stamps(self) -> I64:
        assert self.rows.stamps is not None
        return self.rows.stamps
