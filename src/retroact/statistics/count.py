"""How many records survive."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..schema import Rows, Schema
from .answer import Answer, Noisy, scalar
from .answer_rows import NUMBER, AnswerRows
from .grant import ONE_COUNT, Layout
from .linear import Contributions, Linear, one_each
from .statistic import Example


class Count(Linear):
    """**Privacy.** A record contributes 1. **Retroactivity.** Theorem "linear" with F the row of ones.

    >>> Count(where={"country": "DE"})
    Count(where={'country': 'DE'})
    """

    kind: ClassVar[str] = "count"
    theorem: ClassVar[str] = 'Theorem "linear"'

    @classmethod
    def examples(cls) -> list[Example]:
        pure, short, endless = {"delta": 0.0}, {"horizon": 16}, {"horizon": None}
        return [
            Example("count", cls()),
            Example("count, pure", cls(), pure),
            Example("count, tree", cls(noise="tree"), {**pure, **short}),
            Example("count, Gaussian tree", cls(noise="tree"), short),
            Example("count, schauder", cls(noise="schauder")),
            Example("count, bridge", cls(noise="bridge")),
            Example("count, lapped", cls(noise="lapped"), {**pure, "horizon": 64}),
            Example("count, paper's tree", cls(noise="paper"), {**pure, **short}),
            Example("count, doubling", cls(noise="doubling"), endless),
            Example("count, without end", cls(), endless),
            Example("count, one window", cls(window=5), {"horizon": 64}),
            Example("count, every third round", cls(every=3), {"horizon": 64}),
            Example("count, where", cls(where={"city": ["a", ""], "age": {"min": 18}})),
        ]

    def layout(self, schema: Schema) -> Layout:
        return ONE_COUNT

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return ()

    def contribute(self, rows: Rows, schema: Schema) -> Contributions:
        return one_each(rows, np.ones(rows.count, dtype=np.int64))

    def answer_rows(self, schema: Schema) -> AnswerRows:
        return NUMBER

    def answer(self, noisy: Noisy, schema: Schema) -> Answer:
        return scalar(noisy)
