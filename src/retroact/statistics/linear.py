"""The one shape of a linear statistic: a data-independent map from a record to integers, sums, and a release.

**Privacy.** A record contributes a vector whose size, in units of the coordinates, is at most ``Layout.norm1`` and
``Layout.norm2_squared``; one operation adds or takes away one such vector during one interval of rounds (paper,
Theorem "linear"). **Retroactivity.** Totals are integer sums over surviving records, an Abelian group with an exact
zero; `answer` sees the noisy totals of the current round and nothing else (Lemma "closure").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..noise import Oblivious
from ..noise.choice import Choice, named
from ..schema import Field, Rows, Schema
from . import where as conditions
from .noisy import Answer, Noisy

if TYPE_CHECKING:
    from .mapped import Mapped

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """The coordinates of a statistic and how far one record can move them."""

    units: tuple[int, ...]
    norm1: Fraction
    norm2_squared: Fraction
    largest: int

    @property
    def size(self) -> int:
        return len(self.units)


@dataclass(frozen=True)
class Contributions:
    """Sparse: record ``row`` adds ``amount`` to ``coordinate``."""

    row: I64
    coordinate: I64
    amount: I64


class Linear(ABC):
    """Options that every statistic takes:

    - ``where``: only records for which a declared condition holds,
    - ``window``: only records stamped within the last so many rounds,
    - ``every``: released in rounds every, 2 * every, ... and absent in between,
    - ``noise``: the process, where the default is not wanted,
    - ``weight``: its share of the budget, relative to the others.
    """

    kind: ClassVar[str]

    def __init__(
        self,
        *,
        where: conditions.Where | None = None,
        window: int | None = None,
        every: int = 1,
        noise: Choice = None,
        weight: float = 1,
    ) -> None:
        self.where = conditions.plain(where or {})
        self.window = _count(window, "window") if window is not None else None
        self.every = _count(every, "every")
        self.noise = named(noise, "noise")
        self.weight = weight

    @abstractmethod
    def layout(self, schema: Schema) -> Layout:
        """Coordinates, units and norms; raises where the schema does not fit."""

    @abstractmethod
    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        """What each record adds, before ``where``."""

    @abstractmethod
    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        """Memoryless post-processing of the noisy totals."""

    @abstractmethod
    def error(self, deviations: npt.NDArray[np.float64], schema: Schema, records: int) -> float:
        """The standard error to expect from noise of these deviations when ``records`` records survive."""

    def arguments(self) -> dict[str, Any]:
        """What is particular to this statistic, for its specification."""
        return {}

    def validate(self, rows: Rows, schema: Schema) -> None:  # noqa: B027 (an empty default, not an abstract method)
        """Refuse records at the door. Built-in statistics have nothing to refuse that the schema let in."""

    def contributions(self, rows: Rows, schema: Schema) -> Contributions:
        if not self.where:
            return self.contribute(rows, schema)
        chosen = np.flatnonzero(conditions.select(self.where, rows, schema))
        inner = self.contribute(rows.take(chosen), schema)
        return Contributions(chosen[inner.row], inner.coordinate, inner.amount)

    def totals(self, rows: Rows, weights: I64, schema: Schema) -> I64:
        """Sum of weight * contribution: what a set of changes adds to the totals."""
        out = np.zeros(self.layout(schema).size, dtype=np.int64)
        if rows.count:
            parts = self.contributions(rows, schema)
            np.add.at(out, parts.coordinate, parts.amount * weights[parts.row])
        return out

    def check(self, schema: Schema, place: str) -> None:
        """Everything that can be wrong with it in this schema, before a stream is made."""
        conditions.check(self.where, schema, f"{place}.where")
        try:
            self.layout(schema)
        except InputError as error:
            raise InputError(error.message, place=f"{place}.{error.place}" if error.place else place) from None

    def map(self, function: Callable[..., Any], *, name: str | None = None, coins: bool = False) -> Mapped:
        """The statistic with ``function`` applied to every answer: f(value), or f(value, shared, fresh) with coins.

        Lemma "closure": the function is memoryless, ``shared`` coins are the same in all rounds, ``fresh`` ones are
        new in each. ``name`` stands for the function in the specification; its own name is the default.
        """
        from .mapped import Mapped

        return Mapped(self, function, name=name, coins=coins)

    def spec(self) -> dict[str, Any]:
        """A canonical description: what the names of its coins begin with."""
        noise = (
            {"law": self.noise.name, "epsilon": self.noise.epsilon, "delta": self.noise.delta}
            if isinstance(self.noise, Oblivious)
            else self.noise
        )
        options = {"where": self.where or None, "window": self.window, "every": self.every, "noise": noise}
        return {"type": self.kind, **self.arguments(), **{k: v for k, v in options.items() if v is not None}}

    def options(self) -> dict[str, Any]:
        return {
            "where": self.where,
            "window": self.window,
            "every": self.every,
            "noise": self.noise,
            "weight": self.weight,
        }

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self.spec().items() if k != "type" and (k, v) != ("every", 1))
        return f"{type(self).__name__}({inside})"


class OfField(Linear):
    """A statistic of one field."""

    def __init__(self, field: str, **options: Any) -> None:
        super().__init__(**options)
        self.field = field

    def arguments(self) -> dict[str, Any]:
        return {"field": self.field}


def field_of(schema: Schema, name: str, *kinds: type[Field]) -> Field:
    """The field, if it is there and of a kind that the statistic can take."""
    if name not in schema.fields:
        raise InputError(f"expected one of the fields {', '.join(schema.fields)}, got {name!r}", place="field")
    field = schema.fields[name]
    if not isinstance(field, kinds):
        expected = " or ".join(k.__name__ for k in kinds)
        raise InputError(f"expected a field of type {expected}, got {type(field).__name__} ({name!r})", place="field")
    return field


def one_each(rows: Rows, amount: I64, coordinate: int = 0) -> Contributions:
    """Every record adds one amount to one coordinate."""
    return Contributions(np.arange(rows.count), np.full(rows.count, coordinate), amount)


def _count(value: int, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"expected a whole number from 1 on, got {value!r}", place=place)
    return value
