"""One-shot algorithms that see records only through a few noisy sums in turn, and how a window pays for them.

Each run asks ``queries`` questions one after another; a question may depend on the answers before it. An answer is a
sum over the live records of vectors that are at most 1 long (`Layout`), plus Gaussian noise.

**Privacy.** One operation changes the live records of at most W releases, by one record each. Given all earlier answers
an answer moves by at most 1, so all W * queries of them together move as the coordinates of `Fresh` noise do that hides
W * queries changes of size 1, chosen adaptively: the same calibration holds. Runs are not priced one by one, which
would compose worse. **Retroactivity.** Noise is drawn by the number of the release and of the question; the rest is a
function of the live records (Lemma "closure").
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from ..arrays import F64, Integers
from ..coins import Coins
from ..noise import Fresh, Mechanism
from ..oneshot import Contract, OneShot
from ..privacy import Share, largest_mu
from ..schema import Rows, Schema
from ..statistics.grant import Grant, Layout
from .sample_bound import SampleBound

Ask = Callable[[int], tuple[Integers, int]]
"""The noise of question 0, 1, ... of a run: one number for each coordinate, over a denominator."""


class NoisySums(OneShot):
    """``delta`` belongs to one run with its own ``epsilon``; without one, a window pays for all runs together."""

    delta: Fraction

    @property
    @abstractmethod
    def queries(self) -> int:
        """Questions of one run."""

    @abstractmethod
    def layout(self, schema: Schema) -> Layout:
        """The coordinates of every question, and how far one record moves them."""

    @abstractmethod
    def answer(self, rows: Rows, schema: Schema, ask: Ask, deviations: Any) -> Any:
        """The answer of one run; ``deviations`` are those of the noise of a question."""

    @abstractmethod
    def outlook(self, grant: Grant, noise: Mechanism, records: int) -> Iterator[str]:
        """The lines of a plan."""

    def promised(self, epsilon: Fraction) -> Contract:
        return Contract(epsilon, self.delta)

    def mechanism(self, schema: Schema, share: Share, runs: int) -> Mechanism:
        """The noise of this many runs."""
        return self.layout(schema).mechanism(Fresh(runs * self.queries), share)

    def run(self, rows: Rows, schema: Schema, coins: Coins) -> Any:
        share = Share("gaussian", largest_mu(self.spent, self.delta) ** 2)
        return self._asked(rows, schema, self.mechanism(schema, share, 1).under(coins), 1)

    def in_release(self, rows: Rows, schema: Schema, noise: Mechanism, index: int, round: int) -> Any:
        if self.epsilon is not None:
            return super().in_release(rows, schema, noise, index, round)
        return self._asked(rows, schema, noise, (index - 1) * self.queries + 1)

    def _asked(self, rows: Rows, schema: Schema, noise: Mechanism, first: int) -> Any:
        return self.answer(rows, schema, lambda question: noise.draw(first + question), noise.deviations(first))


class NoisySumsBound(SampleBound):
    """All live records go to the algorithm."""

    def __init__(self, statistic: Any, grant: Grant) -> None:
        super().__init__(statistic, grant, grant.share)
        self.digest_extras = {"queries": statistic.of.queries}

    @property
    def noisy(self) -> str:
        return "sums"

    @property
    def price(self) -> str:
        return f"all runs together are one mechanism, {self.noise.share.measure}"

    def error(self, deviations: F64, records: int) -> float:
        return math.nan

    @property
    def adaptive(self) -> bool:
        return True

    @property
    def promises(self) -> tuple[str, ...]:
        return ()

    def notes(self, records: int) -> tuple[str, ...]:
        own: Any = self.statistic.of
        return tuple(own.outlook(self.grant, self.noise, records))
