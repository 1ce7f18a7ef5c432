"""From a change of the surviving data to the releases of a round: a function of key, round and surviving data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..coins import Coins
from ..ledger import Change, Ledger
from ..privacy import Guarantee, compose
from ..statistics.bound import Totals
from .release import Release
from .specification import Specification
from .totals import Running


class Engine:
    """The statistics of a stream: their noise, and their totals over the data of a ledger."""

    def __init__(
        self,
        specification: Specification,
        coins: Coins,
        ledger: Ledger,
        origin: int,
        last: int,
        guarantee: Guarantee,
    ) -> None:
        """`last`: the round that the data are of."""
        self._specification, self._coins = specification, coins
        self.ledger, self.origin, self.guarantee = ledger, origin, guarantee
        names = specification.statistics
        self.running = {name: Running(specification, name, coins, ledger, last) for name in names}

    def over(self, ledger: Ledger, last: int) -> Engine:
        """The same statistics under the same coins, over the data that there were after another round."""
        return Engine(self._specification, self._coins, ledger, self.origin, last, self.guarantee)

    @property
    def totals(self) -> dict[str, list[Totals]]:
        return {name: running.totals for name, running in self.running.items()}

    def advance(self, change: Change, round: int) -> dict[str, list[Totals]]:
        """The totals of the round that makes this change, which is planned and not yet written."""
        return {name: running.advanced(self.ledger, change, round) for name, running in self.running.items()}

    def adopt(self, totals: Mapping[str, list[Totals]]) -> None:
        """The change is written: these are the totals from now on."""
        for name, running in self.running.items():
            running.totals = totals[name]

    def releases(self, round: int, totals: Mapping[str, list[Totals]]) -> dict[str, Release]:
        """What is published in a round with these totals."""
        index = round - self.origin
        return {
            name: self._release(name, running, totals[name], index // running.every, round)
            for name, running in self.running.items()
            if index % running.every == 0
        }

    def _release(self, name: str, running: Running, totals: list[Totals], index: int, round: int) -> Release:
        published = running.release(totals, index, round)
        answer = published.answer
        exact = published.numerators, published.denominator
        return Release(name, round, answer.value, answer.standard_error, self.guarantee, *exact, answer.interval)


def composed(own: Guarantee, before: Sequence[Guarantee]) -> Guarantee:
    """What a stream spends together with those that it goes on from."""
    if not before:
        return own
    parts = [*before, own]
    measure = compose(part.measure for part in parts)
    delta = sum(part.delta for part in parts)
    together = "together with the streams before it"
    adaptive = all(part.adaptive for part in parts)
    promises = tuple(dict.fromkeys(promise for part in parts for promise in part.promises))
    return Guarantee(measure, measure.epsilon(delta), delta, f"{own.unit}, {together}", adaptive, promises)
