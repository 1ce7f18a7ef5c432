"""The one shape of a linear statistic: a data-independent map from a record to integers, sums, and a release.

**Privacy.** A record contributes a vector whose size, in units of the coordinates, is at most ``Layout.norm1`` and
``Layout.norm2_squared``; one operation adds or takes away one such vector during one interval of rounds (paper,
Theorem "linear"). **Retroactivity.** Totals are integer sums over surviving records, an Abelian group with an exact
zero; `answer` sees the noisy totals of the current round and nothing else (Lemma "closure").
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import I64
from ..coins import Coins
from ..noise import Mechanism
from ..schema import Rows, Schema
from ..schema.field import field_name
from .answer import Answer, Noisy, Published
from .statistic import Layout, Setting, Statistic, Totals, field_of

__all__ = ["Contributions", "Layout", "Linear", "OfField", "field_of", "one_each"]


@dataclass(frozen=True)
class Contributions:
    """Sparse: record ``row`` adds ``amount`` to ``coordinate``."""

    row: I64
    coordinate: I64
    amount: I64


class Linear(Statistic):
    """A statistic with a declared list of coordinates."""

    @abstractmethod
    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        """What each record adds; all of them count (`counted`)."""

    @abstractmethod
    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        """Memoryless post-processing of the noisy totals."""

    def contributions(self, rows: Rows, schema: Schema) -> Contributions:
        chosen = self.counted(rows, schema)
        if chosen is None:
            return self.contribute(rows, schema)
        inner = self.contribute(rows.take(chosen), schema)
        return Contributions(chosen[inner.row], inner.coordinate, inner.amount)

    def totals(self, rows: Rows, weights: I64, schema: Schema) -> I64:
        """Sum of weight * contribution: what a set of changes adds to the totals. Modulo 2^64, which is exact: a stream
        takes no more records than leave the totals within 2^62."""
        out = np.zeros(self.layout(schema).size, dtype=np.int64)
        if rows.count:
            parts = self.contributions(rows, schema)
            np.add.at(out, parts.coordinate, parts.amount * weights[parts.row])
        return out

    def gather(self, rows: Rows, weights: I64, schema: Schema, coins: Coins) -> I64:
        return self.totals(rows, weights, schema)

    def release(
        self, totals: Sequence[Totals], noise: Mechanism, index: int, round: int, setting: Setting
    ) -> Published:
        noisy = Noisy.of(totals[0], noise, index, round)
        return Published(self.answer(noisy, setting.schema), tuple(noisy.numerators.tolist()), noisy.denominator)

    def coordinates(self, totals: Totals, schema: Schema) -> dict[Hashable, int]:
        return {i: amount for i, amount in enumerate(totals.tolist()) if amount}


class OfField(Linear):
    """A statistic of one field."""

    def __init__(self, field: str, **options: Any) -> None:
        super().__init__(**options)
        self.field = field_name(field)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (self.field,)


def one_each(rows: Rows, amount: I64, coordinate: int = 0) -> Contributions:
    """Every record adds one amount to one coordinate."""
    return Contributions(np.arange(rows.count), np.full(rows.count, coordinate), amount)
