"""In which rounds records begin and cease to count in a view, over several rounds at once.

The stamps that count in round r lie between two bounds, and neither ever decreases. So a record with stamp s, gained or
lost in a round, is so for the view from the first round on whose last stamp reaches s, if that is later; and it leaves
the view in the first round whose first stamp is beyond s. What is gained and lost before it enters cancels, since
totals are sums.
"""

from __future__ import annotations

import msgspec
import numpy as np

from ..arrays import I64
from ..ledger import Ledger, RoundChanges
from ..ledger.lives import by_number
from ..schema import Rows
from ..statistics.grant import View

Timed = tuple[Rows, I64, I64]
"""Records with signed weights, and the round of each."""


class ViewMoves:
    """The changes of some rounds as each view has them; statistics with the same view share them."""

    def __init__(self, ledger: Ledger, changes: RoundChanges, first: int, last: int) -> None:
        """The ledger has the data from before the `first` round."""
        self._ledger, self._changes, self._first, self._last = ledger, changes, first, last
        self._within: dict[View, Timed] = {}

    def within(self, view: View) -> Timed:
        if view not in self._within:
            self._within[view] = self._found(view)
        return self._within[view]

    def _found(self, view: View) -> Timed:
        changes, before = self._changes, self._first - 1
        if view == View():
            return changes.rows, changes.weights, changes.rounds
        old_first, old_last = view.span(before)
        first, last = view.span(self._last)
        # records from before enter as if they came in the first round, and leave
        entering, copies = self._ledger.rows_between(max(old_last + 1, old_first), min(last, before))
        leaving, gone = self._ledger.rows_between(old_first, min(old_last, first - 1))
        rows = _joined(changes.rows, entering)
        weights = np.concatenate([changes.weights, copies])
        begin = np.concatenate([changes.rounds, np.full(len(copies), self._first)])

        spans = np.array([view.span(round) for round in range(self._first, self._last + 1)])
        stamps = _stamps(rows)
        enter = np.maximum(begin, self._first + np.searchsorted(spans[:, 1], stamps))
        leave = self._leaves(spans, stamps)
        counts = (enter < leave) & (enter <= self._last)
        comes, goes = np.flatnonzero(counts), np.flatnonzero(counts & (leave <= self._last))
        when = np.concatenate([enter[comes], leave[goes], self._leaves(spans, _stamps(leaving))])
        order = by_number(when)
        found = _joined(rows.take(np.concatenate([comes, goes])), leaving).take(order)
        return found, np.concatenate([weights[comes], -weights[goes], -gone])[order], when[order]

    def _leaves(self, spans: I64, stamps: I64) -> I64:
        """The first round in which each stamp is too early."""
        left: I64 = self._first + np.searchsorted(spans[:, 0], stamps, side="right")
        return left


def _joined(*parts: Rows) -> Rows:
    stamps = np.concatenate([_stamps(part) for part in parts])
    return msgspec.structs.replace(Rows.concatenate(parts), stamps=stamps)


def _stamps(rows: Rows) -> I64:
    assert rows.stamps is not None
    return rows.stamps
