"""Surviving records in canonical order: what is asked of a ledger, and what is stored of it.

The order is by stamp, then by the fields as declared (text by its UTF-8 bytes, a missing value as the field's `blank`),
then by which of them are missing, then id, then subject, None first. It depends on the surviving data alone: not on
arrival order, batches, codes or hash seeds.
"""

from __future__ import annotations

from dataclasses import dataclass

from retroact.arrays import I64
from retroact.schema import Rows


@dataclass(frozen=True, eq=False)
class Surviving:
    """Distinct surviving records, and how many copies there are of each."""

    rows: Rows
    stamps: I64
    ids: list[str | None]
    subjects: list[str | None]
    counts: I64

    def __len__(self) -> int:
        """The number of copies."""
        return int(self.counts.sum())


def label(id: str | None, subject: str | None) -> tuple[bool, str, bool, str]:
    """Sorts by id, then by subject, None first."""
    return id is not None, id or "", subject is not None, subject or ""
