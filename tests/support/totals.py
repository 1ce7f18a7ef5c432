"""Totals of any statistic, to be compared."""

from __future__ import annotations

from typing import Any

from retroact.statistics.clusters.regions import Sums
from retroact.statistics.tally import Labelled, Tally


def arrays(totals: Any) -> list[Any]:
    """Every array of some totals."""
    if isinstance(totals, Sums):
        return [array for part in totals for array in arrays(part)]
    if isinstance(totals, Tally):
        return [*totals.words, totals.amounts, *totals.labels]
    return [*totals.labels, totals.amounts] if isinstance(totals, Labelled) else [totals]
