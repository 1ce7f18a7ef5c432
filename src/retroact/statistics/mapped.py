"""Memoryless post-processing as a combinator: Lemma "closure"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..coins import Coins
from ..errors import InputError
from ..noise import Mechanism, Process
from .answer import Answer, Published
from .statistic import Setting, Statistic, Totals, View
from .wrapper import Wrapper, layers


class Mapped(Wrapper):
    """**Privacy.** Post-processing of the inner answer. **Retroactivity.** The function sees the current answer, coins
    that are shared by all rounds and coins that are fresh in each, all by name; earlier answers are out of its reach.
    No other map sees these coins, however maps are nested, and every lag of a restated series has its own.
    The map's own error is unknown, so there is no standard error and no interval.

    >>> from retroact.statistics import Count
    >>> Count().map(round)
    Mapped(Count(), name='round')
    """

    kind: ClassVar[str] = "mapped"
    unwritten: ClassVar[tuple[str, ...]] = ("function",)

    def __init__(
        self, of: Statistic, function: Callable[..., Any], *, name: str | None = None, coins: bool = False
    ) -> None:
        if not callable(function):
            raise InputError(f"expected a function, got {function!r}", place="function")
        name = getattr(function, "__name__", type(function).__name__) if name is None else name
        if not isinstance(name, str) or not name:
            raise InputError(f"expected a name for the function, got {name!r}", place="name")
        super().__init__(of)
        self.interval = False
        self.function, self.name, self.with_coins = function, name, coins

    def argument(self, name: str) -> Any:
        return self.with_coins if name == "coins" else super().argument(name)

    def release(
        self, totals: Sequence[Totals], noise: Mechanism, index: int, round: int, setting: Setting
    ) -> Published:
        inner = self.of.release(totals, noise, index, round, setting)
        coins: tuple[Coins, ...] = ()
        if self.with_coins:
            branch = noise.coins.branch(*self._name(setting))
            coins = branch.branch("shared"), branch.branch("fresh", round)
        out = self.function(inner.answer.value, *coins)
        return Published(Answer(out, None, lambda level: None), inner.numerators, inner.denominator, inner.noisy)

    def _name(self, setting: Setting) -> tuple[str | int, ...]:
        """Of the coins: by how many maps with coins there are up to this one, and by the lag."""
        depth = sum(isinstance(one, Mapped) and one.with_coins for one in layers(self))
        nested: tuple[int, ...] = (depth,) if depth > 1 else ()
        lagged: tuple[str | int, ...] = () if setting.lag is None else ("lag", setting.lag)
        return ("map", *nested, *lagged)

    def views(self, setting: Setting) -> tuple[View, ...]:
        return self.of.views(setting)

    def mechanism(self, setting: Setting, process: Process) -> Mechanism:
        return self.of.mechanism(setting, process)

    def notes(self, setting: Setting, noise: Mechanism, records: int) -> tuple[str, ...]:
        return self.of.notes(setting, noise, records)
