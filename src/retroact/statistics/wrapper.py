"""A statistic around another one: everything is the inner one's unless it is said otherwise."""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import I64
from ..coins import Coins
from ..noise.default_process import Candidates, Law
from ..privacy import Kind
from ..schema import Rows, Schema
from .statistic import Layout, Setting, Statistic, Totals


class Wrapper(Statistic):
    """With the options of the inner statistic."""

    def __init__(self, of: Statistic) -> None:
        super().__init__(**of.options())
        self.of = of
        self.interval = of.interval

    def settled(self, setting: Setting) -> Statistic:
        mine = copy(self)
        mine.of = self.of.settled(setting)
        return mine

    def statement(self) -> str:
        return self.of.statement()

    def declared_by(self) -> str:
        return self.of.declared_by()

    def layout(self, schema: Schema) -> Layout:
        return self.of.layout(schema)

    def gather(self, rows: Rows, weights: I64, schema: Schema, coins: Coins) -> Totals:
        return self.of.gather(rows, weights, schema, coins)

    def coordinates(self, totals: Totals, schema: Schema) -> dict[Hashable, int]:
        return self.of.coordinates(totals, schema)

    def error(self, deviations: npt.NDArray[np.float64], schema: Schema, records: int) -> float:
        return self.of.error(deviations, schema, records)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return self.of.reads(schema)

    def validate(self, rows: Rows, schema: Schema) -> None:
        self.of.validate(rows, schema)

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

    def fixed_cost(self, reach: int | None, failure: Fraction, place: str) -> Fraction | None:
        return self.of.fixed_cost(reach, failure, place)

    @property
    def keyed(self) -> bool:
        return self.of.keyed

    def adaptive(self, setting: Setting) -> bool:
        return self.of.adaptive(setting)

    def promises(self, setting: Setting) -> tuple[str, ...]:
        return self.of.promises(setting)

    def bias(self, setting: Setting) -> float:
        return self.of.bias(setting)


def layers(statistic: Statistic) -> list[Statistic]:
    """A statistic, the one in it, and so on."""
    return [statistic, *(layers(statistic.of) if isinstance(statistic, Wrapper) else [])]
