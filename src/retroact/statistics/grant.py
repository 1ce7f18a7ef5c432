"""What a statistic demands of a stream and is granted, which stamps count, and how far one record moves its totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from ..noise import Mechanism, Oblivious, Process
from ..privacy import Kind, Share
from ..schema import Schema

# Without a horizon, noise is judged by this many releases.
FIRST = 4096


class Layout(msgspec.Struct, frozen=True):
    """The coordinates of a statistic and how far one record can move them.

    Where coordinates belong to keys (bins, dyadic intervals), ``units`` are those of one key.
    """

    units: tuple[int, ...]
    norm1: Fraction
    norm2_squared: Fraction
    largest: int

    @property
    def size(self) -> int:
        return len(self.units)

    def mechanism(self, process: Process, share: Share, law: Oblivious | None = None) -> Mechanism:
        """Noise that hides one record, under no coins yet."""
        norms = {"norm1": self.norm1, "norm2_squared": self.norm2_squared}
        return Mechanism(process, share, units=self.units, oblivious=law, **norms)


ONE_COUNT = Layout((1,), Fraction(1), Fraction(1), 1)


class View(msgspec.Struct, frozen=True):
    """Which stamps count in a round.

    >>> View().span(9), View(window=3).span(9), View(lag=2).span(9), View(block=4).span(9), View(block=4).span(8)
    ((1, 9), (7, 9), (1, 7), (1, 8), (1, 4))
    """

    window: int | None = None
    lag: int = 0
    """The state of this many rounds ago, as known now."""
    block: int | None = None
    """Rounds come in blocks of this length, and only stamps from before the current block count."""

    def span(self, round: int) -> tuple[int, int]:
        """The first and the last stamp that count; neither ever decreases from round to round."""
        last = round - self.lag if self.block is None else (round - 1) // self.block * self.block
        first = 1 if self.window is None else max(1, round - self.lag - self.window + 1)
        return first, last


class StreamTerms(msgspec.Struct, frozen=True):
    """What a statistic knows of its stream before any budget is divided."""

    horizon: int | None
    every: int
    window: int | None
    late: bool
    """Whether records may come with a past stamp."""
    place: str

    @property
    def releases(self) -> int | None:
        return None if self.horizon is None else -(-self.horizon // self.every)

    @property
    def live(self) -> int | None:
        """The window, in releases."""
        return None if self.window is None else -(-self.window // self.every)

    @property
    def judged(self) -> int:
        """The last release that its noise is judged by: without a horizon, a late one, past all phases of a window."""
        return self.releases or max(FIRST, 4 * (self.live or 0))

    @property
    def reach(self) -> int | None:
        """The most releases that can count one record: those of its window, or all."""
        return min((n for n in (self.live, self.releases) if n is not None), default=None)


class Demand(msgspec.Struct, frozen=True):
    """What a statistic asks for when a budget is divided."""

    largest: int
    """The most that one record adds to a total."""
    kind: Kind | None = None
    """The kind of budget it needs; None where the law of the stream decides."""
    threshold: bool = False
    """Whether it has a threshold, which needs a part of delta."""
    delta: bool = False
    """Whether it can use a part of delta beyond that of its noise."""
    fixed_cost: Callable[[Fraction], tuple[Fraction, Fraction]] | None = None
    """For a statistic with a fixed price: its epsilon and delta, given the part of delta that it is granted."""


class Grant(StreamTerms, frozen=True):
    """What a stream grants a statistic."""

    schema: Schema
    share: Share
    failure: Fraction
    """The part of delta for a threshold."""
    budget: tuple[Fraction, Fraction]
    """Its part of epsilon and delta by weight, which the paper's own forms would get."""
    lag: int | None = None
    """Which series of a restated statistic this is; None for other statistics."""
    noise: str = ""
    """The chosen candidate process; empty until one is chosen."""
    process: Process | None = None
    """Replaces the chosen one: a part of the noise of a restated statistic."""
    spare: Fraction = Fraction(0)
    """Its part of the delta that nobody has asked for, which it may spend."""
    resolved: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Choices that another bound of this statistic has made (`Bound.resolved`) and that are not made again."""
