"""Noisy totals, which are all that a release may look at, and the answers made of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ..arrays import F64, I64, Integers
from ..checks import number, positive_int
from ..errors import InputError
from ..messages import Named
from ..noise import Mechanism, Spread

NoisyTotals = dict[tuple[int, Hashable, int], int]
"""Noisy totals by view number, name of the cell (None where coordinates are a list), and coordinate."""


class Noisy:
    """Noisy integer totals of one round over a denominator, and the law of their noise."""

    def __init__(
        self, numerators: Integers, denominator: int, mechanism: Mechanism, index: int, round: int, first: int = 0
    ) -> None:
        self.numerators = numerators
        self.denominator = denominator
        self.round = round
        self._mechanism, self._index, self._first = mechanism, index, first

    @classmethod
    def of(cls, totals: I64, mechanism: Mechanism, index: int, round: int) -> Noisy:
        noise, denominator = mechanism.draw(index)
        return cls(with_noise(totals, noise, denominator), denominator, mechanism, index, round)

    @cached_property
    def values(self) -> F64:
        return np.array([value / self.denominator for value in self.numerators.tolist()])

    @cached_property
    def deviations(self) -> F64:
        """The deviations of the noise of all coordinates."""
        every = np.sqrt(self._mechanism.variances(self._index))
        return every[self._first : self._first + len(self.numerators)]

    def half_width(self, coordinate: int, level: float) -> float:
        """The absolute value that the noise of a coordinate does not exceed with probability ``level``."""
        return self._mechanism.half_width(self._index, self._first + coordinate, level)

    def reach(self, weights: Sequence[float], level: float) -> float:
        """The half-width for the noise of the sum of weight * total."""
        used = [(weight, i) for i, weight in enumerate(weights) if weight]
        parts = [(weight, self._mechanism.spread(self._index, self._first + i)) for weight, i in used]
        known = [(weight, spread) for weight, spread in parts if spread is not None]
        if len(known) == len(parts):
            return Spread.combined(known).half_width(level)
        # A law of the user's own: the union bound over all coordinates.
        each = 1 - (1 - level) / len(used)
        return sum(abs(weight) * self.half_width(i, each) for weight, i in used)

    def above_zero(self, coordinate: int) -> bool:
        """Whether a total is significantly above zero, at the 95 % level."""
        value, deviation = float(self.values[coordinate]), float(self.deviations[coordinate])
        # By Chebyshev the half-width is below 4.48 deviations, which settles most cases without a tail.
        return value > 4.5 * deviation or value > self.half_width(coordinate, 0.95)

    def slice(self, start: int, stop: int) -> Noisy:
        return Noisy(
            self.numerators[start:stop], self.denominator, self._mechanism, self._index, self.round, self._first + start
        )


def with_noise(totals: I64, noise: Integers, denominator: int) -> Integers:
    """totals * denominator + noise, exactly. Totals are within 2^62, and so is noise that is not made of Python
    integers (`Mechanism`): in 64 bits the sum is below 2^61 + 2^62."""
    if noise.dtype == object or (totals.size and int(np.abs(totals).max()) >= (1 << 61) // denominator):
        exact: Integers = totals.astype(object) * denominator + noise
        return exact
    return totals * denominator + noise


class Answer(msgspec.Struct, frozen=True):
    """What a statistic makes of noisy totals: a value, its standard error, and an interval at any level."""

    value: Any
    standard_error: Any
    interval: Callable[[float], Any]


class Published(msgspec.Struct, frozen=True):
    """An answer, with the exact noisy integers behind it, over a denominator."""

    answer: Answer
    numerators: tuple[int, ...]
    denominator: int
    noisy: Callable[[], NoisyTotals] | None = None
    """For checks: all the noisy totals that the answer is a function of, over the denominator. By default these are
    the numerators, in the order of the coordinates."""


def noisy_totals(published: Published) -> NoisyTotals:
    """What the answer is a function of, by coordinate."""
    if published.noisy is not None:
        return published.noisy()
    return {(0, None, place): total for place, total in enumerate(published.numerators)}


def check_level(level: float) -> float:
    return float(number(level, "level", "a level between 0 and 1", above=0, below=1))


def by_name(answers: Mapping[Any, Answer]) -> Answer:
    """Several answers as one: dictionaries of their values, errors and intervals."""
    return Answer(
        {name: one.value for name, one in answers.items()},
        {name: one.standard_error for name, one in answers.items()},
        lambda level: {name: one.interval(level) for name, one in answers.items()},
    )


def scalar(noisy: Noisy, step: float = 1.0) -> Answer:
    """The first total, times a step."""
    value = float(noisy.values[0]) * step

    def interval(level: float) -> tuple[float, float]:
        reach = noisy.half_width(0, level) * step
        return value - reach, value + reach

    return Answer(value, float(noisy.deviations[0]) * step, interval)


def vector(noisy: Noisy, step: float = 1.0) -> Answer:
    """All totals, times a step; their noise has one law."""
    value = noisy.values * step

    def interval(level: float) -> F64:
        reach = noisy.half_width(0, level) * step
        return np.stack([value - reach, value + reach], axis=1)

    return Answer(value, noisy.deviations * step, interval)


class Bins(Named):
    """What a histogram publishes: a dictionary from bin to number, largest first.

    >>> bins = Bins([("DE", 1403.5), ("FR", 911.0)], threshold=128.5)
    >>> bins.top(1)
    {'DE': 1403.5}
    """

    def __init__(
        self,
        items: Iterable[tuple[Any, float]],
        *,
        threshold: float | None = None,
        absent: Callable[[float], float] | None = None,
    ) -> None:
        super().__init__(items)
        self.threshold = threshold
        """The noisy count from which a bin is published; None where all declared bins are."""
        self._absent = absent

    def top(self, k: int) -> dict[Any, float]:
        largest = sorted(self.items(), key=lambda item: -item[1])
        return dict(largest[: positive_int(k, "k")])

    def absent_below(self, level: float = 0.95) -> float:
        """An unpublished bin has fewer records than this, with probability ``level`` for one bin and round."""
        check_level(level)
        if self._absent is None:
            raise InputError("expected a histogram with a threshold: all declared bins are published")
        if level <= 0.5:
            raise InputError(f"expected a level above 0.5, got {level!r}", place="level")
        return self._absent(level)
