"""A statistic with its schema and with what a stream grants it: made once, before there is a key.

`Statistic.bind` resolves all that a statistic leaves open; what it resolves is part of the digest that names the coins.
So a bound cannot draw: what a decomposition draws at random (planes, shifts, cells of declared bins) is drawn by
`Bound.drawn`, once, and lies in the bound that it returns. Neither keeps coins. Both can be pickled, and gather where
the records are; totals come back to where the key is, and only there their labels are named (`Bound.named`).

**Privacy.** `gather` and `refuse` see records and public choices alone, `release` the totals of one round with their
noise (Lemma "closure"). **Retroactivity.** Totals are an Abelian group with an exact zero, and a bound remembers no
record: what is gathered, added and taken off again leaves nothing, neither in the totals nor here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import F64, I64
from ..coins import Coins
from ..errors import InputError, Place
from ..noise import Mechanism, Oblivious, Process, Threshold
from ..noise.process import Outlook
from ..privacy import Share
from ..schema import Rows
from . import where as conditions
from .answer import Published
from .grant import Grant, Layout, View

if TYPE_CHECKING:
    from .statistic import Statistic

Totals = Any
"""Anything with an exact + and -: arrays of integers, tallies."""


@dataclass(frozen=True)
class At:
    """Which release: its number, and the round of the stream that it is in."""

    index: int
    round: int


class Bound(ABC):
    """``noise`` is calibrated and under no coins; ``process`` is what was chosen for it."""

    views: tuple[View, ...]
    keyed: bool = True
    """Whether answers are a function of the key; otherwise they are retroactive in law and not in bytes."""
    parts: Sequence[Bound] = ()
    """Of a restated statistic: a bound for every lag."""
    refuses: bool = False
    """Whether it looks at records at the door."""

    def __init__(
        self,
        statistic: Statistic,
        grant: Grant,
        *,
        layout: Layout | None = None,
        process: Process | None = None,
        share: Share | None = None,
    ) -> None:
        """Layout, process and share are those of the statistic and the grant, unless they are given."""
        self.statistic, self.grant, self.schema = statistic, grant, grant.schema
        self.views = (View(window=grant.window),)
        self.reads = statistic.reads(grant.schema)
        """The fields without which a record does not count, besides those that it has conditions on."""
        self.layout = statistic.layout(grant.schema) if layout is None else layout
        self.process = statistic.process(grant) if process is None else process
        law = statistic.noise if isinstance(statistic.noise, Oblivious) else None
        self.noise = self.layout.mechanism(self.process, grant.share if share is None else share, law)
        self.resolved: dict[str, Any] = {}
        """Choices that the statistic left open and that its noise decided."""
        self.digest_extras: dict[str, Any] = {}
        """What else the noise must not be shared across: choices of the code, not of the user."""

    # Where the records are -------------------------------------------------------------------------------------------

    def gather(self, rows: Rows, weights: I64) -> Totals:
        """The totals of some records, each so many times: of those that count."""
        where = self.counted(rows)
        return self._gather(rows, weights) if where is None else self._gather(rows.take(where), weights[where])

    @abstractmethod
    def _gather(self, rows: Rows, weights: I64) -> Totals:
        """Of records that count."""

    def gather_by(self, rows: Rows, weights: I64, rounds: I64) -> dict[int, Totals]:
        """The signed totals of the changes of many rounds, by round."""
        order = np.argsort(rounds, kind="stable")
        found, first = np.unique(rounds[order], return_index=True)
        parts = zip(found.tolist(), np.split(order, first[1:]), strict=True)
        return {round: self.gather(rows.take(part), weights[part]) for round, part in parts}

    def refuse(self, rows: Rows) -> None:
        """Raise for records that must not come in: of those that count."""
        if not self.refuses:
            return
        where = self.counted(rows)
        try:
            self._refuse(rows if where is None else rows.take(where))
        except InputError as error:
            if where is None or error.row is None:
                raise
            raise error.moved(Place(error.path or "", int(where[error.row - 1]) + 1)) from None

    def _refuse(self, rows: Rows) -> None:  # noqa: B027 (an empty default, not an abstract method)
        """Of records that count."""

    def counted(self, rows: Rows) -> I64 | None:
        """Where the records are that count: those that have every field it reads, and for which the conditions hold.
        None if all of them do."""
        lacking = rows.lacking(self.reads) if rows.missing else None
        if not rows.count or (not self.statistic.where and lacking is None):
            return None
        holds = conditions.select(self.statistic.where, rows, self.schema)
        return np.flatnonzero(holds if lacking is None else holds & ~lacking)

    def left_out(self, rows: Rows, weights: I64) -> int:
        """How many of these records do not count for want of a value: as far as is known, their conditions hold."""
        where = self.statistic.where
        lacking = rows.lacking((*self.reads, *where))
        if lacking is None:
            return 0
        rows, weights = rows.take(lacking), weights[lacking]
        known = np.ones(rows.count, dtype=np.bool_)
        for name, condition in where.items():
            known &= conditions.select({name: condition}, rows, self.schema) | rows.missing.get(name, np.False_)
        return int(weights[known].sum())

    @abstractmethod
    def coordinates(self, totals: Totals) -> dict[Hashable, int]:
        """All that gets noise in gathered totals, where it is not zero: what the checks hold against the norms.
        Coordinate i of a key is (key, i), or i where there are no keys."""

    # Where the key is ------------------------------------------------------------------------------------------------

    def drawn(self, coins: Coins) -> Bound:
        """With all that is drawn at random once and for all."""
        return self

    def named(self, totals: Totals, coins: Coins) -> Totals:
        """Gathered totals, with their labels named by cells: the name lies beside its label and leaves with it."""
        return totals

    @abstractmethod
    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        """Memoryless post-processing of the totals of every view, with this noise on."""

    # What people are told --------------------------------------------------------------------------------------------

    @abstractmethod
    def error(self, deviations: F64, records: int) -> float:
        """The standard error to expect from noise of these deviations when ``records`` records survive."""

    def expected_error(self, index: int, records: int, level: float | None = None) -> float:
        """A standard deviation, or the half-width at a level: the tail of the noisiest coordinate, in the same unit."""
        deviations = self.noise.deviations(index)
        error = self.error(deviations, records)
        if level is None:
            return error
        last = self.noise.size - 1
        deviation = float(deviations[last])
        reach = error * self.noise.half_width(index, last, level) / deviation if deviation else error
        return reach + self.floor(records)

    def floor(self, records: int) -> float:
        """How far an answer can be off whatever its budget."""
        return 0.0

    @property
    def outlook(self) -> Outlook:
        """The worst and a typical release."""
        found = self.noise.process.outlook(1 if self.noise.share.kind == "pure" else 2, self.grant.judged)
        if found is None:
            raise InputError(
                "its lags reach back beyond the horizon: nothing would ever be released", place=self.grant.place
            )
        return found

    @property
    def method(self) -> str:
        """How it is protected, in a few words."""
        return f"{self.noise.process.name} {'laplace' if self.noise.share.kind == 'pure' else 'gaussian'}"

    def notes(self, records: int) -> tuple[str, ...]:
        """What a plan should say of it beside its error."""
        return ()

    # What its guarantee rests on -------------------------------------------------------------------------------------

    @property
    def adaptive(self) -> bool:
        """Whether the guarantee holds for streams that depend on earlier answers. A law of the user's own is known to
        be private for fixed shifts; with delta > 0 that says nothing of shifts that are chosen after seeing answers
        (docs/proofs.md, 3)."""
        law = self.statistic.noise
        return not isinstance(law, Oblivious) or law.delta == 0

    @property
    def promises(self) -> tuple[str, ...]:
        """What the guarantee rests on and nobody can check."""
        return ()

    @property
    def threshold(self) -> Threshold | None:
        """From which noisy count on a bin is released; None where all are."""
        return None
