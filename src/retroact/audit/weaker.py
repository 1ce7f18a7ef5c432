"""What is planted for attacks from outside: the target with too little noise, or a counter in its place."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..coins import Key
from ..coins.laplace import DiscreteLaplace
from ..errors import InputError
from ..ledger.definition import Add, Delete, Update
from ..privacy import Guarantee
from ..stream import Specification
from ..testing import Algorithm
from ..testing.algorithm import Make
from .target import Target, make_stream

# The noise of a control is for this many times the epsilon, and the last one for an epsilon of at least this.
FACTORS, LOUD = (4, 16, 64), 64


@dataclass(frozen=True)
class Weaker:
    """The target with noise that is too small by a factor: a stream itself, else a counter in its place."""

    target: Target
    blind: bool = False
    counter: bool = False

    @classmethod
    def of(cls, target: Target, *, blind: bool = False) -> Weaker:
        try:
            if target.specification is not None:
                _raised(target.specification, factors(target)[-1])
        except InputError:
            return cls(target, blind, counter=True)
        return cls(target, blind, counter=blind or target.specification is None)

    def make(self, factor: int) -> Make:
        spec = self.target.specification
        if spec is None or self.counter:
            return MakeCount(base(self.target.claim) * factor, self.target.shape.rounds, self.blind)
        return make_stream(_raised(spec, factor))

    def loudest(self) -> Make:
        """With the least noise, or the target itself: to see under one key what moves its answers."""
        return self.target.make if self.counter else self.make(factors(self.target)[-1])

    def words(self, factor: int) -> str:
        much = f"{factor} times the epsilon" if self.target.claim.epsilon else f"epsilon = {factor}"
        if self.blind:
            return f"a counter that counts a deletion of what is not there, with noise for {much}"
        what = "a counter with the same claim" if self.counter else "the same stream"
        return f"{what}, with noise for {much} that is claimed" if self.target.claim.epsilon else f"{what}, for {much}"


def base(claim: Guarantee) -> float:
    """The epsilon of a counter for this claim; 1 if the claim is 0."""
    return claim.epsilon or 1.0


def factors(target: Target) -> tuple[int, ...]:
    """The last one is large enough for the noise to be small, however small the epsilon."""
    last = math.ceil(LOUD / max(base(target.claim), 1e-300))
    return FACTORS if last <= FACTORS[-1] else (*FACTORS, last)


def _raised(spec: Specification, factor: int) -> Specification:
    return spec.replace(epsilon=float(spec.epsilon) * factor)


class NoisyCount:
    """The number of surviving records (without ids), with fresh noise in every round. ``blind``: a deletion counts even
    if what it names is not there."""

    def __init__(self, noise: Sequence[int], *, blind: bool) -> None:
        self._noise, self._blind = noise, blind
        self._there: Counter[tuple[int, Any]] = Counter()
        self._round, self._count = 0, 0

    def close(self, updates: Sequence[Update]) -> bytes:
        self._round += 1
        for update in updates:
            if isinstance(update, Add):
                self._there[update.stamp or self._round, update.value] += 1
                self._count += 1
        for update in updates:
            if isinstance(update, Delete) and (self._blind or self._there[update.stamp, update.value] > 0):
                self._there[update.stamp, update.value] -= 1
                self._count -= 1
        return str(self._count + self._noise[self._round - 1]).encode()


@dataclass(frozen=True)
class MakeCount:
    """Private for ``epsilon`` over all rounds, unless it is blind."""

    epsilon: float
    rounds: int
    blind: bool = False

    def __call__(self, key: Key, /) -> Algorithm:
        words = key.coins("count").words([0] * self.rounds, range(self.rounds))
        noise = DiscreteLaplace(self.rounds / Fraction(self.epsilon)).sample(words)
        return NoisyCount(noise[:, 0].tolist(), blind=self.blind)
