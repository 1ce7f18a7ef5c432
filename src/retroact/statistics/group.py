"""Any linear statistic by the declared categories of one or more fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np

from ..arrays import F64
from ..errors import InputError
from ..messages import mismatch
from ..params import Parameters
from ..schema import Boolean, Category, Rows, Schema, field_of
from ..schema.field import field_names, one_or_list
from .answer import Answer, Noisy, by_name
from .count import Count
from .linear import Contributions, Layout, Linear
from .moments import Mean
from .statistic import Example, Statistic
from .wrapper import Inner


class GroupBy(Linear):
    """**Privacy.** A record falls in one group, so the norms are those of the inner statistic: groups cost nothing.
    **Retroactivity.** That of the inner statistic, coordinate by coordinate; every declared group is released in every
    round, empty or not.

    >>> GroupBy("country", Count())
    GroupBy('country', Count())
    """

    kind: ClassVar[str] = "group"
    outer: ClassVar[tuple[str, ...]] = ("by",)
    tables: ClassVar[Mapping[str, type[Parameters]]] = {"of": Statistic}
    statement: Any = Inner()
    declared_by: Any = Inner()

    def __init__(self, by: str | Sequence[str], of: Linear, **options: Any) -> None:
        if not isinstance(of, Linear) or isinstance(of, GroupBy):
            raise mismatch("a count, sum, mean, variance or query, not grouped itself", of, "of")
        # Options may be given on either statistic; the conditions of both must hold.
        conditions = dict(options.get("where") or {})
        twice = conditions.keys() & of.where.keys()
        if twice:
            raise InputError(f"expected one condition on {sorted(twice)[0]!r}, got two", place="where")
        super().__init__(**{**of.options(), **options, "where": {**of.where, **conditions}})
        self.by = field_names(by, "by")
        self.of = of.replace(**{name: one.default for name, one in Statistic.parameters().items()})
        self.refuses = of.refuses

    @classmethod
    def examples(cls) -> list[Example]:
        return [
            Example("count by country", cls("country", Count())),
            Example("count by two fields", cls(["country", "member"], Count())),
            Example("mean by member", cls("member", Mean("age", window=4))),
        ]

    def argument(self, name: str) -> Any:
        return one_or_list(self.by) if name == "by" else super().argument(name)

    def _groups(self, schema: Schema) -> list[Any]:
        lists = []
        for name in self.by:
            field = field_of(schema, name, Category, Boolean)
            lists.append(field.values if isinstance(field, Category) else (False, True))
        return [group[0] if len(group) == 1 else group for group in product(*lists)]

    def layout(self, schema: Schema) -> Layout:
        inner = self.of.layout(schema)
        return Layout(inner.units * len(self._groups(schema)), inner.norm1, inner.norm2_squared, inner.largest)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (*self.by, *self.of.reads(schema))

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        # All numbers are below the size of the layout, which lists every group and coordinate.
        group = np.zeros(rows.count, dtype=np.int64)
        for name in self.by:
            group = group * (schema.fields[name].upper + 1) + rows.columns[name]
        inner = self.of.contribute(rows, schema)
        size = self.of.layout(schema).size
        return Contributions(inner.row, group[inner.row] * size + inner.coordinate, inner.amount)

    def refuse(self, rows: Rows, schema: Schema) -> None:
        self.of.refuse(rows, schema)

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        size = self.of.layout(schema).size
        groups = enumerate(self._groups(schema))
        return by_name({group: self.of.answer(noisy.slice(i * size, (i + 1) * size), schema) for i, group in groups})

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        return self.of.error(deviations[: self.of.layout(schema).size], schema, records // len(self._groups(schema)))
