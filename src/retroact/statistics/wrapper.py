"""A statistic around another one: everything is the inner one's unless it is said otherwise."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from fractions import Fraction
from typing import Any, Self

from ..arrays import F64, I64
from ..coins import Coins
from ..noise import Mechanism, Threshold
from ..noise.default_process import Candidates, Law
from ..privacy import Kind
from ..schema import Rows, Schema
from .answer import Published
from .bound import At, Bound, Totals
from .grant import Layout, Setting
from .statistic import Statistic


class Wrapper(Statistic):
    """With the options of the inner statistic."""

    def __init__(self, of: Statistic) -> None:
        super().__init__(**of.options())
        self.of = of
        self.interval = of.interval

    def statement(self) -> str:
        return self.of.statement()

    def declared_by(self) -> str:
        return self.of.declared_by()

    def layout(self, schema: Schema) -> Layout:
        return self.of.layout(schema)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return self.of.reads(schema)

    def digest_extras(self, schema: Schema) -> dict[str, Any]:
        return self.of.digest_extras(schema)

    def thresholded(self, schema: Schema) -> bool:
        return self.of.thresholded(schema)

    def spends_delta(self, schema: Schema) -> bool:
        return self.of.spends_delta(schema)

    def kind_of_share(self, law: Law) -> Kind:
        return self.of.kind_of_share(law)

    def candidates(self, setting: Setting) -> Candidates:
        return self.of.candidates(setting)

    def preferred(self, setting: Setting) -> str | None:
        return self.of.preferred(setting)

    def fixed_cost(self, reach: int | None, failure: Fraction, place: str) -> Fraction | None:
        return self.of.fixed_cost(reach, failure, place)


class WrapperBound(Bound):
    """Everything is the inner bound's unless it is said otherwise."""

    def __init__(self, statistic: Statistic, of: Bound, grant: Setting) -> None:
        super().__init__(statistic, grant)
        self.of = of
        self.layout, self.noise, self.process, self.views = of.layout, of.noise, of.process, of.views
        self.keyed, self.refuses, self.parts = of.keyed, of.refuses, of.parts

    def gather(self, rows: Rows, weights: I64) -> Totals:
        return self.of.gather(rows, weights)

    _gather = gather

    def gather_by(self, rows: Rows, weights: I64, rounds: I64) -> dict[int, Totals]:
        return self.of.gather_by(rows, weights, rounds)

    def refuse(self, rows: Rows) -> None:
        self.of.refuse(rows)

    def coordinates(self, totals: Totals) -> dict[Hashable, int]:
        return self.of.coordinates(totals)

    def drawn(self, coins: Coins) -> Self:
        mine = copy(self)
        mine.of = self.of.drawn(coins)
        return mine

    def named(self, totals: Totals, coins: Coins) -> Totals:
        return self.of.named(totals, coins)

    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        return self.of.release(totals, noise, at)

    def error(self, deviations: F64, records: int) -> float:
        return self.of.error(deviations, records)

    def floor(self, records: int) -> float:
        return self.of.floor(records)

    def notes(self, records: int) -> tuple[str, ...]:
        return self.of.notes(records)

    @property
    def adaptive(self) -> bool:
        return self.of.adaptive

    @property
    def promises(self) -> tuple[str, ...]:
        return self.of.promises

    @property
    def threshold(self) -> Threshold | None:
        return self.of.threshold


def layers(statistic: Statistic) -> list[Statistic]:
    """A statistic, the one in it, and so on."""
    return [statistic, *(layers(statistic.of) if isinstance(statistic, Wrapper) else [])]


def core(bound: Bound) -> Bound:
    """What a bound wraps at last."""
    return core(bound.of) if isinstance(bound, WrapperBound) else bound
