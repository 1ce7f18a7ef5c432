"""Histories for distinct counts, in columns: one update a round, and the flips that follow from it.

A history is the lives of its records: a value, the round of the addition and the round of the deletion (one past the
horizon for a record that stays).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import I64
from ..ledger.definition import Add, Delete, Sequence, Update
from ..stateful.tracker_columns import Flips


@dataclass(frozen=True)
class Lives:
    """
    >>> lives = Lives(3, np.array([7, 7, 8]), np.array([1, 2, 3]), np.array([4, 3, 4]))
    >>> lives.distinct().tolist(), lives.sequence()[2]
    ([1, 1, 2], (Add(value=8, stamp=None, id=None, subject=None), Delete(value=7, stamp=2, subject=None)))
    """

    horizon: int
    values: I64
    births: I64
    deaths: I64

    def flips(self) -> Flips:
        """When the presence of a value changes: it is present while one of its records lives."""
        dying = self.deaths <= self.horizon
        rounds = np.concatenate([self.births, self.deaths[dying]])
        values = np.concatenate([self.values, self.values[dying]])
        changes = np.repeat([1, -1], [len(self.births), int(dying.sum())])
        order = np.lexsort((rounds, values))
        rounds, values = rounds[order], values[order]
        # The records of the values before this one are in the sum too: what is left of each at the end is subtracted.
        sums = np.cumsum(changes[order])
        first = np.flatnonzero(np.diff(values, prepend=values[:1] - 1))
        copies = sums - np.repeat(np.append(0, sums)[first], np.diff(np.append(first, len(values))))
        last = np.flatnonzero((np.diff(rounds, append=0) != 0) | (np.diff(values, append=values[-1:] - 1) != 0))
        rounds, values, present = rounds[last], values[last], copies[last] > 0
        before = np.append(False, present[:-1]) & (np.diff(values, prepend=values[:1] - 1) == 0)
        flipped = np.flatnonzero(present != before)
        by_round = flipped[np.argsort(rounds[flipped], kind="stable")]
        return Flips(rounds[by_round], values[by_round], np.where(present[by_round], 1, -1))

    def distinct(self) -> I64:
        """The number of present values, in every round."""
        flips = self.flips()
        changes = np.bincount(flips.rounds, weights=flips.signs, minlength=self.horizon + 1)[1:]
        return np.cumsum(changes.astype(np.int64))

    def seen_from(self, rounds: I64) -> Lives:
        """The same records, each from a later round on; those that are deleted before are left out."""
        seen = (rounds < self.deaths) & (rounds <= self.horizon)
        return Lives(self.horizon, self.values[seen], rounds[seen], self.deaths[seen])

    def sequence(self) -> Sequence:
        """As the model has it."""
        rounds: list[list[Update]] = [[] for _ in range(self.horizon)]
        for value, birth in zip(self.values.tolist(), self.births.tolist(), strict=True):
            rounds[birth - 1].append(Add(value))
        for value, birth, death in zip(self.values.tolist(), self.births.tolist(), self.deaths.tolist(), strict=True):
            if death <= self.horizon:
                rounds[death - 1].append(Delete(value, birth))
        return tuple(map(tuple, rounds))


def insertion_only(horizon: int, seed: int) -> Lives:
    """Every round adds a record with one of ``horizon`` values: nothing is deleted, so w = 1."""
    values = np.random.default_rng(seed).integers(0, horizon, horizon)
    return Lives(horizon, values, np.arange(1, horizon + 1), np.full(horizon, horizon + 1))


def churning(horizon: int, seed: int) -> Lives:
    """Every round one of horizon / 8 values, at random, comes or goes: each flips about 8 times."""
    return _toggled(np.random.default_rng(seed).integers(0, max(1, horizon // 8), horizon))


def toggling(horizon: int, seed: int) -> Lives:
    """sqrt(horizon) values come and go in turn: each flips about sqrt(horizon) times."""
    few = math.isqrt(horizon)
    return _toggled(np.random.default_rng(seed).permutation(few)[np.arange(horizon) % few])


STREAMS: dict[str, Callable[[int, int], Lives]] = {
    "insertion-only": insertion_only,
    "churning": churning,
    "toggling": toggling,
}


def _toggled(values: I64) -> Lives:
    """Round by round, the value is added if it is absent and deleted if it is present."""
    horizon = len(values)
    rounds = np.arange(1, horizon + 1)
    adds = Flips(rounds, values, np.ones_like(rounds)).ranks() % 2 == 1
    order = np.argsort(values, kind="stable")
    following = np.full(horizon, horizon + 1)
    again = values[order[1:]] == values[order[:-1]]
    following[order[:-1][again]] = rounds[order[1:][again]]
    return Lives(horizon, values[adds], rounds[adds], following[adds])
