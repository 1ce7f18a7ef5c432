"""The ledger of surviving data, and the paper's definitions that it must agree with (`retroact.ledger.definition`)."""

from .ledger import Change, Ledger
from .many_rounds import RoundChanges, RoundCounts
from .operations import Entry, Operations, Single, Stamped
from .removal import Removal
from .updates import Updates

__all__ = [
    "Change",
    "Entry",
    "Ledger",
    "Operations",
    "Removal",
    "RoundChanges",
    "RoundCounts",
    "Single",
    "Stamped",
    "Updates",
]
