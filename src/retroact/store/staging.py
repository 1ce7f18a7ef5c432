"""Releases of several rounds that wait in the journal for the data of the last of them.

They are in the table of releases, above the last round that is committed, and a note names the last of them. Sealing
that round's data decides: they are dropped if a crash came before, and committed if it came after. They are not
computed again, since the data of the rounds between are never stored.
"""

from __future__ import annotations

from collections.abc import Mapping

from .store import Store
from .tables import NOTE, RELEASE

STAGED = "staged"
"""The note: the last round whose releases wait."""


def waiting(store: Store) -> int:
    """The last round whose releases wait for its data; 0 if none do."""
    return store.number(STAGED)


def drop(store: Store) -> None:
    """The data were not sealed. What is deleted here has yet to be overwritten."""
    rounds = {(row[0],) for row in store.select(RELEASE, "where round > ?", [store.committed])}
    notes: Mapping[str, str] = {STAGED: "", "revising": "", "unscrubbed": "1"}
    with store.transaction("journal"):
        store.delete(RELEASE, "where round = ?", sorted(rounds))
        store.replace(NOTE, list(notes.items()))
