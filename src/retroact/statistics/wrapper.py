"""A statistic around another one: what is not overridden is the inner one's."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from typing import Self

from ..arrays import F64, I64
from ..coins import Coins
from ..noise import Mechanism, Threshold
from ..noise.default_process import Candidates
from ..noise.process import Outlook
from ..schema import Rows, Schema
from .answer import Published
from .answer_rows import AnswerRows
from .bound import At, Bound, Totals
from .grant import Demand, Grant, Layout, StreamTerms
from .statistic import Statistic


class Wrapper(Statistic):
    """It has the options of the inner statistic."""

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

    def demand(self, schema: Schema, stream: StreamTerms) -> Demand:
        return self.of.demand(schema, stream)

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return self.of.answer_rows(schema)

    def candidates(self, grant: Grant) -> Candidates:
        return self.of.candidates(grant)

    def preferred(self, grant: Grant) -> str | None:
        return self.of.preferred(grant)


class WrapperBound(Bound):
    """What is not overridden is the inner bound's."""

    def __init__(self, statistic: Statistic, of: Bound, grant: Grant) -> None:
        self.statistic, self.of, self.grant, self.schema = statistic, of, grant, of.schema
        self.layout, self.noise, self.process, self.views = of.layout, of.noise, of.process, of.views
        self.reads, self.keyed, self.refuses, self.parts = of.reads, of.keyed, of.refuses, of.parts
        self.resolved, self.digest_extras = of.resolved, of.digest_extras

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

    def expected_error(self, index: int, records: int, level: float | None = None) -> float:
        return self.of.expected_error(index, records, level)

    def floor(self, records: int) -> float:
        return self.of.floor(records)

    @property
    def outlook(self) -> Outlook:
        return self.of.outlook

    @property
    def method(self) -> str:
        return self.of.method

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
    """A statistic, the one inside it, and so on."""
    return [statistic, *(layers(statistic.of) if isinstance(statistic, Wrapper) else [])]


def core(bound: Bound) -> Bound:
    """The innermost bound."""
    return core(bound.of) if isinstance(bound, WrapperBound) else bound
