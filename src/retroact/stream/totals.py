"""One statistic of a stream: its noise, and its totals as rounds go by."""

from __future__ import annotations

import numpy as np

from ..arrays import I64
from ..coins import Coins
from ..ledger import Change, Ledger
from ..schema import Rows
from ..statistics import Published
from ..statistics.bound import At, Totals
from ..statistics.grant import View
from .specification import Specification


class Running:
    """Totals are sums over the surviving data that each view counts, kept from round to round and never stored."""

    def __init__(self, specification: Specification, name: str, coins: Coins, ledger: Ledger, last: int) -> None:
        self.every = specification.statistics[name].every
        self._coins = coins.branch(specification.digest(name))
        self.bound = specification.bounds[name].drawn(self._coins)
        self.noise = self.bound.noise.under(self._coins)
        self.totals = [self._gather(*ledger.rows_between(*view.span(last))) for view in self.bound.views]

    def advanced(self, ledger: Ledger, change: Change, round: int) -> list[Totals]:
        """The totals after a change of the round. The ledger still holds the data of the round before."""
        return [
            self._advance(view, totals, ledger, change, round)
            for view, totals in zip(self.bound.views, self.totals, strict=True)
        ]

    def release(self, totals: list[Totals], index: int, round: int) -> Published:
        return self.bound.release(totals, self.noise, At(index, round))

    def _advance(self, view: View, totals: Totals, ledger: Ledger, change: Change, round: int) -> Totals:
        """What comes into the view or leaves it by its stamp is taken from the last round's data; what the round does
        to stamps that count comes with the change."""
        first, last = view.span(round)
        old_first, old_last = view.span(round - 1)
        counted = (change.stamps >= first) & (change.stamps <= last)
        if counted.all():
            totals = totals + self._gather(change.rows, change.weights)
        elif counted.any():
            where = np.flatnonzero(counted)
            totals = totals + self._gather(change.rows.take(where), change.weights[where])
        if old_last < last < round:
            totals = totals + self._gather(*ledger.rows_between(max(old_last + 1, first), last))
        if first > old_first:
            totals = totals - self._gather(*ledger.rows_between(old_first, min(first - 1, old_last)))
        return totals

    def _gather(self, rows: Rows, weights: I64) -> Totals:
        return self.bound.named(self.bound.gather(rows, weights), self._coins)
