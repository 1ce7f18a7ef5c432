"""Histories for distinct counts, in columns, and the flips that follow from them.

A history is the lives of its records: a value, the round of the addition and the round of the deletion (one past the
horizon for a record that stays).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from retroact.arrays import I64
from retroact.ledger.definition import Add, Delete, Sequence, Update


class FlipColumns(NamedTuple):
    """When values appear (+1) and disappear (-1), sorted by round."""

    rounds: I64
    values: I64
    signs: I64


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

    def flips(self) -> FlipColumns:
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
        return FlipColumns(rounds[by_round], values[by_round], np.where(present[by_round], 1, -1))

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
