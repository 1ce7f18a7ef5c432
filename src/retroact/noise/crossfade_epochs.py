"""Crossfade noise for an unknown horizon: growing epochs, each with its own noise and one that lasts forever.

Epoch i has 2^h - 1 rounds (h from a guess of the horizon, then 4 more each time, as far as crossfade noise is
certified), its own crossfade noise over them, and one noise from its end on:
  Z_q = sum over epochs j < i of noise(j) + crossfade_i(q), in epoch i.
Later epochs have Schauder trees: 2^h rounds at the positions x 2^h = 0 .. 2^h - 1, and noise(i) has weight x there.

**Privacy.** Let an interval begin in epoch i: crossfade_i hides "from this boundary on", to the end of the epoch, at
the cost one(h) of an interval with one end, and noise(i) hides the rest; the same for its end. In a tree it costs h
(`unbounded.py`). With a share u = 1/8 for the lasting noises, the spreads are
  crossfade 2 one(h) / (1 - u), trees 2h / (1 - u), lasting noise 2 / u:
two ends in different epochs cost (1 - u) + u = 1, and in one epoch (1 - u) S^2 / (2 one), or (1 - u)(1 + 1/h), at most
1 for every h that occurs. So **l2_squared = 1**.
On the lattice (docs/proofs.md, 3c): lasting noise up by a step is hidden from the rounds that follow at a cost of at
most 1, by the next lasting noise and the epoch between, which bounds its Gram-Schmidt length if it comes after the
nodes of epochs, the last one first. In trees the fibres are those of 3a, and the factor of 3b is smaller than that of
the rounding.
**Retroactivity.** Epochs are numbers of rounds, nodes and weights depend on the round alone.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import count, takewhile
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..arrays import I64
from ..errors import InputError
from ..params import Parameters
from .crossfade import LONGEST, Crossfade
from .crossfade_table import ROWS
from .faded import Faded, weights_hash
from .process import Terms, check_horizon
from .schauder import Schauder

LAST = 16
"""The height of the last epoch of crossfade noise, unless the guess leads past it: the worst row is 17, it is odd."""
GROWTH = 4
SHARE = Fraction(1, 8)
# Levels of epoch i start at 64 i; the last of them is its lasting noise.
STRIDE = 64
LONG = STRIDE - 1


class Epoch(NamedTuple):
    """``before``: the last round before it. Round ``before`` + 1 has position ``first`` in it."""

    before: int
    rounds: int
    first: int
    inner: Crossfade | Schauder

    @property
    def spread(self) -> Fraction:
        """The variance of the noise in this epoch alone."""
        if isinstance(self.inner, Schauder):
            return 2 * self.inner.levels / (1 - SHARE)
        return 2 * Fraction(ROWS[self.inner.bits][1]) / (1 - SHARE)


class CrossfadeEpochs(Faded):
    """
    >>> [CrossfadeEpochs().epoch(i).rounds for i in range(4)]
    [1023, 16383, 65535, 1048576]
    """

    kind: ClassVar[str] = "crossfade_epochs"
    horizon = None

    def __init__(self, guess: int = 1023) -> None:
        self.guess = check_horizon(guess, "guess")
        if guess > LONGEST:
            raise InputError(f"expected a guess of at most {LONGEST:,}, for which crossfade noise is certified")
        self.squared = Fraction(1)
        self._epochs: list[Epoch] = []

    def spec(self, *, digest: bool = False) -> dict[str, Any]:
        """The parameters, with all that privacy depends on."""
        sure = takewhile(lambda one: isinstance(one.inner, Crossfade), map(self.epoch, count()))
        made = [[one.rounds, str(one.spread), one.inner.spec()] for one in sure]
        return {**Parameters.spec(self, digest=digest), "epochs": made, "share": str(SHARE), "weights": weights_hash()}

    @property
    def name(self) -> str:
        return "unbounded crossfade"

    def epoch(self, number: int) -> Epoch:
        while len(self._epochs) <= number:
            self._epochs.append(self._next())
        return self._epochs[number]

    def _next(self) -> Epoch:
        if not self._epochs:
            return Epoch(0, (1 << self.guess.bit_length()) - 1, 1, Crossfade(self.guess))
        last = self._epochs[-1]
        height = (last.rounds + last.first - 1).bit_length()
        before, wanted = last.before + last.rounds, height + GROWTH
        if height < LAST < wanted and wanted > max(ROWS):
            wanted = LAST
        length = 1 << wanted
        if wanted in ROWS:
            return Epoch(before, length - 1, 1, Crossfade(length - 1))
        return Epoch(before, length, 0, Schauder(length - 1))

    def epoch_of(self, round: int) -> int:
        number = 0
        while round > self.epoch(number).before + self.epoch(number).rounds:
            number += 1
        return number

    def terms_at(self, rounds: I64) -> Terms:
        """The nodes of the own epoch, the fresh one first, and all earlier lasting noises."""
        last = self.epoch_of(int(rounds.max(initial=1)))
        epochs = [self.epoch(number) for number in range(last + 1)]
        found = [(rounds > one.before) & (rounds <= one.before + one.rounds) for one in epochs]
        places = [rounds[own] - one.before - 1 + one.first for one, own in zip(epochs, found, strict=True)]
        parts = [one.inner.terms_at(place) for one, place in zip(epochs, places, strict=True)]
        denominator = max(part.denominator for part in parts)  # powers of two
        width = max(part.levels.shape[1] for part in parts)
        levels, indices, weights = np.zeros((3, len(rounds), width + len(epochs)), dtype=np.int64)
        for number, (one, own, part) in enumerate(zip(epochs, found, parts, strict=True)):
            used = part.levels.shape[1]
            levels[own, :used] = part.levels + STRIDE * number
            indices[own, :used] = part.indices
            weights[own, :used] = part.weights * (denominator // part.denominator)
            levels[:, width + number] = LONG + STRIDE * number
            weights[rounds > one.before + one.rounds, width + number] = denominator
            if isinstance(one.inner, Schauder):
                weights[own, width + number] = (rounds[own] - one.before - 1) * (denominator // part.denominator)
        return Terms(levels, indices, weights, denominator)

    def spread(self, level: int, p: int) -> Fraction:
        number, inner = divmod(level, STRIDE)
        one = self.epoch(number)
        return 2 / SHARE if inner == LONG else one.spread * one.inner.spread(inner, p)
