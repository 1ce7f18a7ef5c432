"""Memoryless post-processing as a combinator: Lemma "closure"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..coins import Coins
from ..errors import InputError
from ..noise import Mechanism
from ..schema import Schema
from .answer import Answer, Published
from .answer_rows import AnswerRows, AnyRows
from .bound import At, Totals
from .count import Count
from .grant import Grant
from .statistic import Example, Statistic
from .wrapper import Wrapper, WrapperBound, layers


class Mapped(Wrapper):
    """**Privacy.** Post-processing of the inner answer. **Retroactivity.** The function sees the current answer, coins
    shared by all rounds and coins fresh in each, all by name, and no earlier answer. No other map sees these coins,
    however maps are nested, and every lag of a restated series has its own. The error of the function is unknown, so
    there is no standard error and no interval.

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
        self.function, self.name, self.coins = function, name, coins

    @classmethod
    def examples(cls) -> list[Example]:
        return [
            Example("mapped", cls(Count(), round)),
            Example("mapped with coins", cls(Count(), _jittered, coins=True)),
        ]

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return AnyRows()

    def bind(self, grant: Grant) -> MappedBound:
        return MappedBound(self, self.of.bind(grant), grant)


class MappedBound(WrapperBound):
    """A function on every answer."""

    statistic: Mapped

    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        inner = self.of.release(totals, noise, at)
        coins: tuple[Coins, ...] = ()
        if self.statistic.coins:
            branch = noise.coins.branch(*self._name())
            coins = branch.branch("shared"), branch.branch("fresh", at.round)
        out = self.statistic.function(inner.answer.value, *coins)
        return Published(Answer(out, None, lambda level: None), inner.numerators, inner.denominator, inner.noisy)

    def _name(self) -> tuple[str | int, ...]:
        """The name of its coins: the number of maps with coins up to this one, and the lag."""
        depth = sum(isinstance(one, Mapped) and one.coins for one in layers(self.statistic))
        nested: tuple[int, ...] = (depth,) if depth > 1 else ()
        lagged: tuple[str | int, ...] = () if self.grant.lag is None else ("lag", self.grant.lag)
        return ("map", *nested, *lagged)


def _jittered(value: float, shared: Coins, fresh: Coins) -> float:
    """Add jitter, for the example."""
    return value + int(fresh.words([0], [0]).block(0)[0][0, 0] % 7)
