"""Linear statistics: a data-independent map from a record to integers, their sums, and a release.

**Privacy.** A record contributes a vector whose size, in units of the coordinates, is at most ``Layout.norm1`` and
``Layout.norm2_squared``; one operation adds or takes away one such vector during one interval of rounds (paper,
Theorem "linear"). **Retroactivity.** Totals are integer sums over surviving records, an Abelian group with an exact
zero; `answer` sees the noisy totals of the current round and nothing else (Lemma "closure").
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import msgspec
import numpy as np

from ..arrays import F64, I64
from ..noise import Mechanism
from ..schema import Rows, Schema
from ..schema.field import field_name
from .answer import Answer, Noisy, Published
from .bound import At, Bound, Totals
from .by_round import Pick
from .grant import Grant, Layout
from .statistic import Statistic

# With more coordinates, the totals of many rounds are gathered one by one, when they are asked for.
WIDE = 256

__all__ = ["Contributions", "Layout", "Linear", "OfField", "one_each"]


class Contributions(msgspec.Struct, frozen=True):
    """Sparse: record ``row`` adds ``amount`` to ``coordinate``."""

    row: I64
    coordinate: I64
    amount: I64


class Linear(Statistic):
    """A statistic with a declared list of coordinates."""

    @abstractmethod
    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        """What each record adds; here all records count."""

    @abstractmethod
    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        """Memoryless post-processing of the noisy totals."""

    def sums(self, rows: Rows, weights: I64, schema: Schema, group: I64, count: int) -> I64:
        """The sums of weight * contribution in each of ``count`` groups (groups by coordinates), modulo 2^64. That is
        exact: streams keep totals within 2^62."""
        size = self.layout(schema).size
        out = np.zeros(count * size, dtype=np.int64)
        if rows.count:
            parts = self.contribute(rows, schema)
            np.add.at(out, group[parts.row] * size + parts.coordinate, parts.amount * weights[parts.row])
        return out.reshape(count, size)

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        """The standard error to expect from noise of these deviations when ``records`` records survive."""
        return float(deviations[0])

    def notes(self, schema: Schema, records: int) -> tuple[str, ...]:
        """What a plan should say in addition to its error."""
        return ()

    refuses: bool = False
    """Whether `refuse` can raise."""

    def refuse(self, rows: Rows, schema: Schema) -> None:
        """Raises for a record that fits the schema but must not come in; all of them count."""

    def bind(self, grant: Grant) -> LinearBound:
        return LinearBound(self, grant)


class LinearBound(Bound):
    """Totals are an array of integers."""

    statistic: Linear

    def __init__(self, statistic: Linear, grant: Grant) -> None:
        super().__init__(statistic, grant)
        self.refuses = statistic.refuses

    def _gather(self, rows: Rows, weights: I64) -> I64:
        group = np.zeros(rows.count, dtype=np.int64)
        return np.asarray(self.statistic.sums(rows, weights, self.schema, group, 1)[0])

    def _gather_by(self, rows: Rows, weights: I64, group: I64, count: int) -> Pick:
        if self.layout.size > WIDE:
            return super()._gather_by(rows, weights, group, count)
        sums = self.statistic.sums(rows, weights, self.schema, group, count)
        return lambda place: sums[place].copy()

    def _refuse(self, rows: Rows) -> None:
        self.statistic.refuse(rows, self.schema)

    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        noisy = Noisy.of(totals[0], noise, at.index, at.round)
        answer = self.statistic.answer(noisy, self.schema)
        return Published(answer, tuple(noisy.numerators.tolist()), noisy.denominator)

    def coordinates(self, totals: Totals) -> dict[Hashable, int]:
        return {i: amount for i, amount in enumerate(totals.tolist()) if amount}

    def notes(self, records: int) -> tuple[str, ...]:
        return self.statistic.notes(self.schema, records)

    def error(self, deviations: F64, records: int) -> float:
        return self.statistic.error(deviations, self.schema, records)


class OfField(Linear):
    """A statistic of one field."""

    def __init__(self, field: str, **options: Any) -> None:
        super().__init__(**options)
        self.field = field_name(field)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (self.field,)


def one_each(rows: Rows, amount: I64) -> Contributions:
    """Every record adds its amount to the only coordinate."""
    return Contributions(np.arange(rows.count), np.zeros(rows.count, dtype=np.int64), amount)
