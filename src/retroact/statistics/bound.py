"""A statistic bound to its schema and to what a stream grants it: made once, before there is a key.

`Statistic.bind` settles every choice that the statistic leaves open; these choices are part of the digest that names
the coins, so a bound cannot draw. Random geometry (planes, shifts, cells of declared bins) is drawn once by
`Bound.drawn`, which returns a bound that holds it. Neither bound keeps coins. Both can be pickled and gather where the
records are; totals travel back to where the key is, and only there their labels are named (`Bound.named`).

**Privacy.** `gather` and `refuse` see records and public choices alone, `release` the totals of one round with their
noise (Lemma "closure"). **Retroactivity.** Totals are an Abelian group with an exact zero, and a bound remembers no
record: what is gathered, added and subtracted again leaves nothing, neither in the totals nor here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
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
from .by_round import ByRound, Pick, groups_of, places_of
from .grant import Grant, Layout, View

if TYPE_CHECKING:
    from .statistic import Statistic

Totals = Any
"""Anything with an exact + and -: arrays of integers, tallies."""


class At(msgspec.Struct, frozen=True):
    """Which release: its number, and the round of the stream."""

    index: int
    round: int


class Bound(ABC):
    """``noise`` is calibrated but has no coins yet; ``process`` is the one that was chosen for it."""

    views: tuple[View, ...]
    keyed: bool = True
    """Whether answers are a function of the key. Otherwise they are retroactive in law, not in bytes."""
    parts: Sequence[Bound] = ()
    """The bounds of a restated statistic, one for every lag."""
    refuses: bool = False
    """Whether it can refuse records on arrival."""
    additive: bool = True
    """Whether its answers are made of totals plus noise, which checks can take apart."""
    spends: Fraction = Fraction(0)
    """What it spends of the spare part of delta."""

    def __init__(
        self,
        statistic: Statistic,
        grant: Grant,
        *,
        layout: Layout | None = None,
        process: Process | None = None,
        share: Share | None = None,
    ) -> None:
        self.statistic, self.grant, self.schema = statistic, grant, grant.schema
        self.views = (View(window=grant.window),)
        self.reads = statistic.reads(grant.schema)
        """A record counts only if it has these fields, and those of the conditions."""
        self.layout = statistic.layout(grant.schema) if layout is None else layout
        self.process = statistic.process(grant) if process is None else process
        law = statistic.noise if isinstance(statistic.noise, Oblivious) else None
        self.noise = self.layout.mechanism(self.process, grant.share if share is None else share, law)
        self.resolved: dict[str, Any] = {}
        """Choices that the statistic left open and its noise decided."""
        self.digest_extras: dict[str, Any] = {}
        """What else must give different noise: choices of the code, not of the user."""

    # Where the records are: gather, refuse, coordinates. Where the key is: drawn, named, release.

    def gather(self, rows: Rows, weights: I64) -> Totals:
        """The totals of those records that count, times their weights."""
        where = self.counted(rows)
        return self._gather(rows, weights) if where is None else self._gather(rows.take(where), weights[where])

    @abstractmethod
    def _gather(self, rows: Rows, weights: I64) -> Totals:
        """Gather records, all of which count."""

    def gather_by(self, rows: Rows, weights: I64, rounds: I64) -> ByRound:
        """The totals of the changes of many rounds, by round."""
        where = self.counted(rows)
        found, group = groups_of(rounds)
        if where is not None:
            rows, weights, group = rows.take(where), weights[where], group[where]
        return ByRound(found, self._gather_by(rows, weights, group, len(found)))

    def _gather_by(self, rows: Rows, weights: I64, group: I64, count: int) -> Pick:
        """The totals of the groups 0, 1, ... below ``count``; here all records count. Statistics with totals in columns
        gather all of them at once."""
        order = np.argsort(group, kind="stable")
        members = [order[where] for where in map(places_of(group[order], count), range(count))]
        return [self._gather(rows.take(part), weights[part]) for part in members].__getitem__

    def refuse(self, rows: Rows) -> None:
        """Raises for records that must not come in, among those that count."""
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
        """Refuse records, all of which count."""

    def counted(self, rows: Rows) -> I64 | None:
        """The positions of the records that count: they have every field it reads, and the conditions hold. None if
        all of them count."""
        lacking = rows.lacking(self.reads) if rows.missing else None
        if not rows.count or (not self.statistic.where and lacking is None):
            return None
        holds = conditions.select(self.statistic.where, rows, self.schema)
        return np.flatnonzero(holds if lacking is None else holds & ~lacking)

    def left_out(self, rows: Rows, weights: I64) -> int:
        """How many of these records do not count because a value is missing. Conditions on missing values are taken to
        hold."""
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
        """The nonzero coordinates of gathered totals, which checks hold against the norms. Coordinate i of a key is
        (key, i), or i where there are no keys."""

    def drawn(self, coins: Coins) -> Bound:
        """Draw everything that is drawn at random once and for all."""
        return self

    def named(self, totals: Totals, coins: Coins) -> Totals:
        """Gathered totals with the cell of each label. A cell is stored with its label and goes with it."""
        return totals

    @abstractmethod
    def release(self, totals: Sequence[Totals], noise: Mechanism, at: At) -> Published:
        """Memoryless post-processing of the totals of every view plus this noise."""

    def error(self, deviations: F64, records: int) -> float:
        """The standard error to expect from noise of these deviations when ``records`` records survive."""
        return float(deviations[0])

    def expected_error(self, index: int, records: int, level: float | None = None) -> float:
        """A standard deviation, or the half-width at a level, by the tail of the last coordinate."""
        deviations = self.noise.deviations(index)
        error = self.error(deviations, records)
        if level is None:
            return error
        last = self.noise.size - 1
        deviation = float(deviations[last])
        reach = error * self.noise.half_width(index, last, level) / deviation if deviation else error
        return reach + self.floor(records)

    def floor(self, records: int) -> float:
        """How far off an answer can be at any budget."""
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
        """The noise process and its law, as a plan shows them."""
        return f"{self.noise.process.name} {'laplace' if self.noise.share.kind == 'pure' else 'gaussian'}"

    def notes(self, records: int) -> tuple[str, ...]:
        """What a plan should say in addition to its error."""
        return ()

    @property
    def adaptive(self) -> bool:
        """Whether the guarantee holds for streams that depend on earlier answers. A law of the user's own is private
        for fixed shifts; with delta > 0 that says nothing about shifts chosen after seeing answers (docs/proofs.md,
        3)."""
        law = self.statistic.noise
        return not isinstance(law, Oblivious) or law.delta == 0

    @property
    def promises(self) -> tuple[str, ...]:
        """What the guarantee relies on and nobody can check."""
        return ()

    @property
    def threshold(self) -> Threshold | None:
        """The noisy count from which a bin is released; None where all bins are."""
        return None
