"""What a stream grants a statistic, which stamps count in a round, and how far one record can move its totals."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..noise import Process
from ..privacy import Share
from ..schema import Schema

# Releases that noise without a horizon is judged by.
FIRST = 4096


@dataclass(frozen=True)
class Layout:
    """The coordinates of a statistic and how far one record can move them.

    Where there are as many coordinates as keys (bins, dyadic intervals), ``units`` are those of one key.
    """

    units: tuple[int, ...]
    norm1: Fraction
    norm2_squared: Fraction
    largest: int

    @property
    def size(self) -> int:
        return len(self.units)


@dataclass(frozen=True)
class View:
    """Which stamps count in a round.

    >>> View().span(9), View(window=3).span(9), View(lag=2).span(9), View(block=4).span(9), View(block=4).span(8)
    ((1, 9), (7, 9), (1, 7), (1, 8), (1, 4))
    """

    window: int | None = None
    lag: int = 0
    """As it was that many rounds ago, knowing what is known now."""
    block: int | None = None
    """Only what had come before the block of so many rounds that the round lies in."""

    def span(self, round: int) -> tuple[int, int]:
        """The first and the last stamp that count; both never fall as rounds go on."""
        last = round - self.lag if self.block is None else (round - 1) // self.block * self.block
        first = 1 if self.window is None else max(1, round - self.lag - self.window + 1)
        return first, last


@dataclass(frozen=True)
class Setting:
    """What a stream grants a statistic."""

    schema: Schema
    share: Share
    failure: Fraction
    """What of delta goes to a threshold."""
    horizon: int | None
    every: int
    window: int | None
    late: bool
    """Whether records may come with a past stamp."""
    place: str
    budget: tuple[Fraction, Fraction]
    """Its part of epsilon and delta by weight: what the paper's own forms would be given."""
    lag: int | None = None
    """Which series of a restated statistic is being released; None outside of one."""
    noise: str = ""
    """The name of the process that was chosen among its candidates; empty until one is."""
    process: Process | None = None
    """In place of the one that was chosen: a part of the noise of a restated statistic."""

    @property
    def releases(self) -> int | None:
        return None if self.horizon is None else -(-self.horizon // self.every)

    @property
    def live(self) -> int | None:
        """The window, in releases."""
        return None if self.window is None else -(-self.window // self.every)

    @property
    def judged(self) -> int:
        """Up to which release its noise is judged; without a horizon the first ones, and all phases of a window."""
        return self.releases or max(FIRST, 4 * (self.live or 0))

    @property
    def reach(self) -> int | None:
        """In how many releases one record can be counted at most."""
        return reach_of(self.window, self.horizon, self.every)


def reach_of(window: int | None, horizon: int | None, every: int) -> int | None:
    """In how many of the releases one record can be counted: those of its window, or all there are."""
    rounds = min((n for n in (window, horizon) if n is not None), default=None)
    return None if rounds is None else -(-rounds // every)
