"""Memoryless post-processing as a combinator: Lemma "closure"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..schema import Rows, Schema
from .linear import Contributions, Layout, Linear
from .noisy import Answer, Noisy


class Mapped(Linear):
    """**Privacy.** Post-processing of the inner answer. **Retroactivity.** The function sees the current answer, coins
    that are shared by all rounds and coins that are fresh in each, all by name; earlier answers are out of its reach.
    The map's own error is unknown, so there is no standard error and no interval.

    >>> from retroact.statistics import Count
    >>> Count().map(round)
    Mapped(map='round', of={'type': 'count', 'every': 1})
    """

    kind: ClassVar[str] = "mapped"

    def __init__(
        self, of: Linear, function: Callable[..., Any], *, name: str | None = None, coins: bool = False
    ) -> None:
        if not callable(function):
            raise InputError(f"expected a function, got {function!r}", place="function")
        name = getattr(function, "__name__", type(function).__name__) if name is None else name
        if not isinstance(name, str) or not name:
            raise InputError(f"expected a name for the function, got {name!r}", place="name")
        super().__init__(**of.options())
        self.of, self.function, self.name, self.with_coins = of, function, name, coins

    def arguments(self) -> dict[str, Any]:
        return {"map": self.name, "of": self.of.spec()}

    def layout(self, schema: Schema) -> Layout:
        return self.of.layout(schema)

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        return self.of.contribute(rows, schema)

    def validate(self, rows: Rows, schema: Schema) -> None:
        self.of.validate(rows, schema)

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        value = self.of.answer(noisy, schema).value
        out = self.function(value, *noisy.coins()) if self.with_coins else self.function(value)
        return Answer(out, None, lambda level: None)

    def error(self, deviations: npt.NDArray[np.float64], schema: Schema, records: int) -> float:
        return self.of.error(deviations, schema, records)
