"""From a change of the surviving data to the releases of a round, as a function of key, round and surviving data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..arrays import I64
from ..coins import Coins
from ..ledger import Ledger, RoundChanges
from ..outputs.table import TableForm
from ..privacy import Guarantee, compose
from ..schema import Rows
from ..statistics.bound import At, Totals
from ..statistics.by_round import ByRound
from ..statistics.grant import View
from .release import Release
from .specification import Specification
from .view_moves import ViewMoves


class Changed:
    """The change of a round; statistics with the same view share what is in it."""

    def __init__(self, rows: Rows, weights: I64, round: int) -> None:
        self.round, self._rows, self._weights = round, rows, weights
        self._within: dict[tuple[int, int], tuple[Rows, I64] | None] = {}

    def within(self, span: tuple[int, int]) -> tuple[Rows, I64] | None:
        """What it does to the stamps of a view; None if nothing."""
        if span not in self._within:
            self._within[span] = self._found(*span)
        return self._within[span]

    def _found(self, first: int, last: int) -> tuple[Rows, I64] | None:
        stamps = self._rows.stamps
        assert stamps is not None
        where = np.flatnonzero((stamps >= first) & (stamps <= last))
        if len(where) == len(stamps):
            return (self._rows, self._weights) if len(where) else None
        return (self._rows.take(where), self._weights[where]) if len(where) else None


class Running:
    """One statistic with its noise and its totals: sums over the surviving data in each view, kept from round to round
    and never stored."""

    def __init__(self, specification: Specification, name: str, coins: Coins, ledger: Ledger, last: int) -> None:
        self.every = specification.statistics[name].every
        self._ledger, self._coins = ledger, coins.branch(specification.digest(name))
        self.bound = specification.bounds[name].drawn(self._coins)
        self.noise = self.bound.noise.under(self._coins)
        self.totals = [self._gather(*ledger.rows_between(*view.span(last))) for view in self.bound.views]

    def advanced(self, change: Changed) -> list[Totals]:
        """The totals after the change of a round. The ledger still has the data of the round before."""
        return [self._advance(view, totals, change) for view, totals in zip(self.bound.views, self.totals, strict=True)]

    def _advance(self, view: View, totals: Totals, change: Changed) -> Totals:
        """Records that enter or leave the view because of their stamp come from the data of the last round; what this
        round does to stamps in the view is in the change."""
        first, last = view.span(change.round)
        old_first, old_last = view.span(change.round - 1)
        within = change.within((first, last))
        if within is not None:
            totals = totals + self._gather(*within)
        if old_last < last < change.round:
            totals = totals + self._gather(*self._ledger.rows_between(max(old_last + 1, first), last))
        if first > old_first:
            totals = totals - self._gather(*self._ledger.rows_between(old_first, min(first - 1, old_last)))
        return totals

    def gathered(self, moves: ViewMoves) -> list[ByRound]:
        """What several rounds do to the totals of each view, without the names of cells."""
        return [self.bound.gather_by(*moves.within(view)) for view in self.bound.views]

    def named(self, totals: Totals) -> Totals:
        return self.bound.named(totals, self._coins)

    def _gather(self, rows: Rows, weights: I64) -> Totals:
        return self.named(self.bound.gather(rows, weights))


class Engine:
    """The statistics of a stream over the data of a ledger."""

    def __init__(
        self,
        specification: Specification,
        coins: Coins,
        ledger: Ledger,
        origin: int,
        last: int,
        guarantee: Guarantee,
        form: TableForm,
    ) -> None:
        """`last`: the round of the data."""
        self._specification, self._coins, self._ledger = specification, coins, ledger
        self.origin, self.guarantee, self.form = origin, guarantee, form
        self._forms = {name: form.only(name) for name in specification.statistics}
        self.running = {name: Running(specification, name, coins, ledger, last) for name in specification.statistics}

    def at(self, last: int) -> Engine:
        """Return an engine with the totals of another round, from the records stamped up to it."""
        return Engine(self._specification, self._coins, self._ledger, self.origin, last, self.guarantee, self.form)

    @property
    def totals(self) -> dict[str, list[Totals]]:
        return {name: running.totals for name, running in self.running.items()}

    def advance(self, rows: Rows, weights: I64, round: int) -> dict[str, list[Totals]]:
        """The totals after a change that is planned and not yet written."""
        change = Changed(rows, weights, round)
        return {name: running.advanced(change) for name, running in self.running.items()}

    def through(self, changes: RoundChanges, first: int, last: int) -> Iterator[dict[str, list[Totals]]]:
        """The totals after each of several rounds that are planned and not yet written."""
        moves = ViewMoves(self._ledger, changes, first, last)
        gathered = {name: running.gathered(moves) for name, running in self.running.items()}
        totals = self.totals
        for round in range(first, last + 1):
            for name, running in self.running.items():
                found = [by.get(round) for by in gathered[name]]
                pairs = zip(totals[name], found, strict=True)
                totals[name] = [each if more is None else each + running.named(more) for each, more in pairs]
            yield totals.copy()

    def adopt(self, totals: Mapping[str, list[Totals]]) -> None:
        """The change is written, and these are the totals."""
        for name, running in self.running.items():
            running.totals = totals[name]

    def releases(self, round: int, totals: Mapping[str, list[Totals]]) -> dict[str, Release]:
        index, found = round - self.origin, {}
        for name, running in self.running.items():
            if index % running.every == 0:
                at = At(index // running.every, round)
                published = running.bound.release(totals[name], running.noise, at)
                answer, exact = published.answer, (published.numerators, published.denominator)
                found[name] = Release(
                    name, round, answer.value, answer.standard_error, self.guarantee, *exact, answer.interval,
                    self._forms[name],
                )  # fmt: skip
        return found


def composed(own: Guarantee, before: Sequence[Guarantee]) -> Guarantee:
    """What a stream spends together with its predecessors."""
    if not before:
        return own
    parts = [*before, own]
    measure = compose(part.measure for part in parts)
    delta = sum(part.delta for part in parts)
    together = "together with the streams before it"
    adaptive = all(part.adaptive for part in parts)
    promises = tuple(dict.fromkeys(promise for part in parts for promise in part.promises))
    return Guarantee(measure, measure.epsilon(delta), delta, f"{own.unit}, {together}", adaptive, promises)
