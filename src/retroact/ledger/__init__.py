"""The ledger of surviving data, and the paper's definitions that it must agree with (`retroact.ledger.definition`)."""

from retroact.ledger.ledger import Change, Ledger
from retroact.ledger.operations import Entry, Operations, Single, Stamped
from retroact.ledger.removal import Removal
from retroact.ledger.updates import Updates

__all__ = ["Change", "Entry", "Ledger", "Operations", "Removal", "Single", "Stamped", "Updates"]
