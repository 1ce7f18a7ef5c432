"""Classification from counts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from ...arrays import F64, I64
from ...errors import InputError
from ...schema import Field, Rows, Schema
from ...schema.field import field_name, field_names, one_or_list
from ..answer import Answer, Noisy
from ..answer_rows import AnswerRows
from ..grant import Layout
from ..linear import Contributions, Linear
from ..statistic import Example
from .class_scores import PRIORS, ClassModel, ClassRows, classes_of, classes_target, probabilities
from .classifier import no_interval
from .levels import Levels, checked_bins, level_name
from .noisy_moments import LEAST, rounded
from .plain_parts import array_of, mapping_of, table_of
from .products import ClassTarget

# The most counts: of all levels in all classes.
MOST_COUNTS = 1 << 18


class CategoricalNB(Linear):
    """The class ``target`` from counts of the levels of ``columns`` within each class, as if columns were independent
    there: categories, true or false, and numbers in that many ``bins`` of equal width (at most one for each value). It
    works with delta = 0.

    **Privacy.** With F columns a record adds 1 to the count of its class, and 1 to that of its level in its class for
    each column: F + 1 ones. More levels and classes cost nothing.
    **Retroactivity.** Theorem "linear"; probabilities are memoryless post-processing of the noisy counts (Lemma
    "closure").

    Each distribution is drawn towards that of all classes together by as many records as three deviations of a count.

    >>> CategoricalNB(["age", "country"], "member", bins=8)
    CategoricalNB(['age', 'country'], 'member', bins=8)
    """

    kind: ClassVar[str] = "categorical_nb"
    theorem: ClassVar[str] = 'Theorem "linear"'

    def __init__(self, columns: str | Sequence[str], target: str, *, bins: int = 10, **options: Any) -> None:
        super().__init__(**options)
        self.columns, self.target = field_names(columns, "columns"), field_name(target)
        self.bins = checked_bins(bins)
        if self.target in self.columns:
            raise InputError(f"expected a target that is not one of the columns, got {target!r}", place="target")
        self._latest: tuple[Schema, Levels, ClassTarget] | None = None

    @classmethod
    def examples(cls) -> list[Example]:
        return [Example("naive Bayes", cls(["age", "country"], "member", bins=2))]

    def argument(self, name: str) -> Any:
        return one_or_list(self.columns) if name == "columns" else super().argument(name)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (*self.columns, self.target)

    def form(self, schema: Schema) -> tuple[Levels, ClassTarget]:
        """The latest is cached in one reference: other threads may ask for other schemas."""
        known = self._latest
        if known is None or known[0] is not schema:
            known = self._latest = schema, Levels.of(schema, self.columns, self.bins), ClassTarget(schema, self.target)
        return known[1:]

    def layout(self, schema: Schema) -> Layout:
        levels, target = self.form(schema)
        size = target.size * (1 + sum(map(len, levels.names.values())))
        if size > MOST_COUNTS:
            raise InputError(f"expected at most {MOST_COUNTS:,} counts, got {size:,}: merge levels", place="columns")
        ones = 1 + len(self.columns)
        return Layout((1,) * size, Fraction(ones), Fraction(ones), 1)

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        levels, target = self.form(schema)
        classes = rows.columns[self.target]
        places, first = [classes], target.size
        for codes, names in zip(levels.codes(rows.columns), levels.names.values(), strict=True):
            places.append(first + classes * len(names) + codes)
            first += target.size * len(names)
        row = np.tile(np.arange(rows.count), len(places))
        return Contributions(row, np.concatenate(places), np.ones(len(row), dtype=np.int64))

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return LevelRows("priors", PRIORS, "probabilities")

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        levels, target = self.form(schema)
        deviation = float(noisy.deviations[0])
        counts = np.maximum(noisy.values[: target.size], 0.0)
        tables, first = {}, target.size
        for name, names in levels.names.items():
            own = noisy.values[first : first + target.size * len(names)].reshape(target.size, len(names))
            tables[name] = _shares(np.maximum(own, 0.0), deviation)
            first += target.size * len(names)
        priors = counts + deviation
        model = CategoricalNBModel(
            levels,
            target.name,
            target.field,
            rounded(priors / priors.sum(), 1e-3),
            tables,
            records=float(rounded(np.array(noisy.values[: target.size].sum()), deviation)),
            notes=tuple(_warnings(noisy, target, deviation)),
        )
        return Answer(model, None, no_interval)

    def error(self, deviations: F64, schema: Schema, records: int) -> float:
        """The error of the probability of a level in a class."""
        _, target = self.form(schema)
        return float(deviations[0]) / max(1.0, records / target.size)

    def notes(self, schema: Schema, records: int) -> tuple[str, ...]:
        return (f"error: of the probability of a level in a class, with {records:,} records evenly in all classes",)


def _shares(counts: F64, deviation: float) -> F64:
    """The distribution of each row of counts, drawn towards that of all rows; six digits."""
    pooled = (counts.sum(axis=0) + 1) / (counts.sum() + counts.shape[1])
    pull = 1 + LEAST * deviation
    shares = (counts + pull * pooled) / (counts.sum(axis=1, keepdims=True) + pull)
    return rounded(shares, shares * 1e-3)


def _warnings(noisy: Noisy, target: ClassTarget, deviation: float) -> list[str]:
    counts = noisy.values[: target.size].tolist()
    few = [str(one) for one, count in zip(target.classes, counts, strict=True) if count < LEAST * deviation]
    return [f"classes with too few records, or none: {', '.join(few)}"] * bool(few)


class CategoricalNBModel(ClassModel):
    """``priors`` of the classes, and by column the ``probabilities`` of its levels in each class."""

    kind: ClassVar[str] = "categorical_nb"
    keys: ClassVar[tuple[str, ...]] = ("target", "classes", "priors", "probabilities")
    inputs: ClassVar[str] = "bins"

    def __init__(
        self, levels: Levels, target: str, field: Field, priors: F64, tables: Mapping[str, F64], **shared: Any
    ) -> None:
        super().__init__(levels, **shared)
        self.target, self.target_field, self.priors, self._tables = target, field, priors, dict(tables)

    @property
    def probabilities(self) -> dict[str, dict[str, list[float]]]:
        """The probabilities by column and level, one for each class."""
        return {
            name: dict(zip(self.features.names[name], table.T.tolist(), strict=True))
            for name, table in self._tables.items()
        }

    def scores(self, data: Any) -> F64:
        """Logarithms of probabilities, up to a constant."""
        codes: list[I64] = self.features.read(data)
        parts = [np.log(table[:, own]).T for table, own in zip(self._tables.values(), codes, strict=True)]
        return np.asarray(np.log(np.maximum(self.priors, math.ulp(1.0))) + sum(parts))

    def predict_proba(self, data: Any) -> F64:
        """(records, classes)."""
        return probabilities(self.scores(data))

    def _parts(self) -> dict[str, Any]:
        return {**self._target_plain(), "priors": self.priors, "probabilities": self.probabilities}

    @classmethod
    def _mapped(cls, schema: Schema, options: Any) -> Levels:
        return Levels.of(schema, (*schema.fields,), checked_bins(options))

    @classmethod
    def _of_parts(cls, parts: Mapping[str, Any], features: Any, shared: Mapping[str, Any]) -> Self:
        target, field = classes_target(parts)
        size = len(classes_of(field))
        given = mapping_of(parts["probabilities"], [*features.names], "probabilities")
        tables = {
            name: table_of(given[name], levels, size, f"probabilities.{name}").T
            for name, levels in features.names.items()
        }
        return cls(features, target, field, array_of(parts["priors"], (size,), "priors"), tables, **shared)


class LevelRows(ClassRows):
    """Rows where features are levels of columns."""

    def rows(self, value: Any, error: Any, interval: Any) -> Any:
        tables = value[self._table].items()
        flat = {level_name(name, level): each for name, levels in tables for level, each in levels.items()}
        return super().rows({**value, self._table: flat}, error, interval)
