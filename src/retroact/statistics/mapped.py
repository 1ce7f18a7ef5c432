"""Memoryless post-processing as a combinator: Lemma "closure"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..coins import Coins
from ..errors import InputError
from ..noise import Mechanism, Process
from .around import Around
from .noisy import Answer, Published
from .statistic import Setting, Statistic, Totals, View


class Mapped(Around):
    """**Privacy.** Post-processing of the inner answer. **Retroactivity.** The function sees the current answer, coins
    that are shared by all rounds and coins that are fresh in each, all by name; earlier answers are out of its reach.
    The map's own error is unknown, so there is no standard error and no interval.

    >>> from retroact.statistics import Count
    >>> Count().map(round)
    Mapped(map='round', of={'type': 'count', 'every': 1})
    """

    kind: ClassVar[str] = "mapped"

    def __init__(
        self, of: Statistic, function: Callable[..., Any], *, name: str | None = None, coins: bool = False
    ) -> None:
        if not callable(function):
            raise InputError(f"expected a function, got {function!r}", place="function")
        name = getattr(function, "__name__", type(function).__name__) if name is None else name
        if not isinstance(name, str) or not name:
            raise InputError(f"expected a name for the function, got {name!r}", place="name")
        super().__init__(of)
        self.function, self.name, self.with_coins = function, name, coins

    def arguments(self) -> dict[str, Any]:
        return {"map": self.name, "of": self.of.spec()}

    def release(
        self, totals: Sequence[Totals], noise: Mechanism, index: int, round: int, setting: Setting
    ) -> Published:
        inner = self.of.release(totals, noise, index, round, setting)
        branch = noise.coins.branch("map")
        coins = (branch.branch("shared"), branch.branch("fresh", round)) if self.with_coins else ()
        out = self.function(inner.answer.value, *coins)
        return Published(Answer(out, None, lambda level: None), inner.numerators, inner.denominator)

    def views(self, setting: Setting) -> tuple[View, ...]:
        return self.of.views(setting)

    def process(self, setting: Setting) -> Process:
        return self.of.process(setting)

    def mechanism(self, setting: Setting, process: Process, coins: Coins) -> Mechanism:
        return self.of.mechanism(setting, process, coins)

    def notes(self, setting: Setting, noise: Mechanism, records: int) -> tuple[str, ...]:
        return self.of.notes(setting, noise, records)
