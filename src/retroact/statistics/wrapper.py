"""A statistic around another one: what is not overridden is the inner one's."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, Self

from ..coins import Coins
from .bound import Bound
from .grant import Grant
from .statistic import Statistic


class Inner:
    """A method or property that is that of the inner object, `of`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, outer: Any, owner: type) -> Any:
        return self if outer is None else getattr(outer.of, self.name)


class Wrapper(Statistic):
    """It has the options of the inner statistic."""

    statement: Any = Inner()
    declared_by: Any = Inner()
    layout: Any = Inner()
    reads: Any = Inner()
    demand: Any = Inner()
    answer_rows: Any = Inner()
    candidates: Any = Inner()
    preferred: Any = Inner()
    own_noise: ClassVar[Any] = Inner()

    def __init__(self, of: Statistic) -> None:
        self.of = of
        super().__init__(**of.options())
        self.interval = of.interval


class WrapperBound(Bound):
    """What is not overridden is the inner bound's."""

    gather: Any = Inner()
    _gather: Any = Inner()
    gather_by: Any = Inner()
    refuse: Any = Inner()
    coordinates: Any = Inner()
    named: Any = Inner()
    release: Any = Inner()
    error: Any = Inner()
    expected_error: Any = Inner()
    floor: Any = Inner()
    outlook: Any = Inner()
    method: Any = Inner()
    notes: Any = Inner()
    adaptive: Any = Inner()
    promises: Any = Inner()
    threshold: Any = Inner()
    additive: Any = Inner()
    spends: Any = Inner()

    def __init__(self, statistic: Statistic, of: Bound, grant: Grant) -> None:
        self.statistic, self.of, self.grant, self.schema = statistic, of, grant, of.schema
        self.layout, self.noise, self.process, self.views = of.layout, of.noise, of.process, of.views
        self.reads, self.keyed, self.refuses, self.parts = of.reads, of.keyed, of.refuses, of.parts
        self.resolved, self.digest_extras = of.resolved, of.digest_extras

    def drawn(self, coins: Coins) -> Self:
        mine = copy(self)
        mine.of = self.of.drawn(coins)
        return mine


def layers(statistic: Statistic) -> list[Statistic]:
    """A statistic, the one inside it, and so on."""
    return [statistic, *(layers(statistic.of) if isinstance(statistic, Wrapper) else [])]


def core(bound: Bound) -> Bound:
    """The innermost bound."""
    return core(bound.of) if isinstance(bound, WrapperBound) else bound
