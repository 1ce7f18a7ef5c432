"""Any linear statistic by the declared categories of one or more fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from ..arrays import F64, I64
from ..errors import InputError
from ..messages import mismatch
from ..params import Parameters
from ..schema import Rows, Schema
from ..schema.field import field_names, one_or_list
from .answer import Answer, Noisy, by_name
from .answer_rows import AnswerRows, by_fields
from .count import Count
from .declared_groups import DeclaredGroups
from .grant import Demand, StreamTerms
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
            groups_itself = isinstance(of, Statistic) and not isinstance(of, GroupBy) and "by" in of.parameters()
            hint = f" ({type(of).__name__} takes by= itself)" if groups_itself else ""
            raise mismatch(f"a count, sum, mean, variance, ratio or query, not grouped itself{hint}", of, "of")
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

    def demand(self, schema: Schema, stream: StreamTerms) -> Demand:
        found = super().demand(schema, stream)
        return replace(found, kind=found.kind or self.of.demand(schema, stream).kind)

    def layout(self, schema: Schema) -> Layout:
        inner = self.of.layout(schema)
        return Layout(
            inner.units * len(DeclaredGroups(self.by, schema)), inner.norm1, inner.norm2_squared, inner.largest
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (*self.by, *self.of.reads(schema))

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        # All numbers are below the size of the layout, which lists every group and coordinate.
        group = DeclaredGroups(self.by, schema).codes(rows.columns)
        inner = self.of.contribute(rows, schema)
        size = self.of.layout(schema).size
        return Contributions(inner.row, group[inner.row] * size + inner.coordinate, inner.amount)

    def sums(self, rows: Rows, weights: I64, schema: Schema, group: I64, count: int) -> I64:
        groups = DeclaredGroups(self.by, schema)
        places = group * len(groups) + groups.codes(rows.columns)
        sums = self.of.sums(rows, weights, schema, places, count * len(groups))
        return sums.reshape(count, len(groups) * self.of.layout(schema).size)

    def refuse(self, rows: Rows, schema: Schema) -> None:
        self.of.refuse(rows, schema)

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return by_fields(self.by, schema, self.of.answer_rows(schema))

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        size = self.of.layout(schema).size
        groups = enumerate(DeclaredGroups(self.by, schema).names)
        return by_name({group: self.of.answer(noisy.slice(i * size, (i + 1) * size), schema) for i, group in groups})

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        return self.of.error(
            deviations[: self.of.layout(schema).size], schema, records // len(DeclaredGroups(self.by, schema))
        )
