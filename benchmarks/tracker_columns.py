"""The flippancy tracker over a whole history at once: the same answers, under the same key, bit for bit.

A history is given by its flips, in the order of rounds: the round, the value (any integers) and +1 or -1. Everything
the tracker does is then a running sum, or a search for the first round above a threshold.

**Privacy.** **Retroactivity.** Those of `FlippancyTracker`; this form is for experiments, where the history is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lives import FlipColumns
from retroact.arrays import I64
from retroact.stateful.tracker_design import TrackerDesign
from retroact.stateful.tracker_noise import AboveThreshold, Continual, Lazy

# Rounds whose noise is computed at once.
COLUMN = 1 << 15


def flip_ranks(values: I64) -> I64:
    """Of the values of flips in the order of rounds: 1 for the first flip of a value, 2 for its second, and so on.

    >>> flip_ranks(np.array([7, 8, 7, 7])).tolist()
    [1, 1, 2, 3]
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    begins = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(order) else np.zeros(0, dtype=bool)
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, len(order)))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, lengths) + 1
    return ranks


def flippancy(flips: FlipColumns) -> int:
    """w(S), the largest number of flips of any value."""
    return int(flip_ranks(flips.values).max(initial=0))


@dataclass(frozen=True)
class Track:
    """The answers of all rounds over one denominator, and the level of each (one past the last: lazy)."""

    numerators: I64
    denominator: int
    levels: I64


def track(design: TrackerDesign, flips: FlipColumns) -> Track:
    """What a tracker of this design answers, in every round of the horizon."""
    horizon, denominator = design.horizon, design.denominator
    ranks = flip_ranks(flips.values)
    numerators = np.zeros(horizon, dtype=np.int64)
    levels = np.full(horizon, len(design.limits), dtype=np.int64)
    start = 1
    for level, (limit, base) in enumerate(zip(design.limits, design.bases, strict=True)):
        leave = None
        if design.gates:
            frozen = _running(flips.rounds, ranks == limit + 1, horizon)
            leave = first_exceeded(design.gates[level], frozen, start)
        last = horizon if leave is None else leave - 1
        if start <= last:
            counts = _running(flips.rounds, np.where(ranks <= limit, flips.signs, 0), horizon)[start - 1 : last]
            numerators[start - 1 : last] = counts * denominator + _numerators(base, start, last)
            levels[start - 1 : last] = level
        if leave is None:
            return Track(numerators, denominator, levels)
        start = leave
    assert design.lazy is not None
    held = _held(design.lazy, _running(flips.rounds, flips.signs, horizon), start)
    numerators[start - 1 :] = held * denominator
    return Track(numerators, denominator, levels)


def first_exceeded(gate: AboveThreshold, counts: I64, start: int) -> int | None:
    """The first round from ``start`` on that exceeds; ``counts`` holds rounds 1, 2, ... to the last."""
    listed = counts.tolist()
    return next((round for round in range(start, len(listed) + 1) if gate.exceeded(listed[round - 1], round)), None)


def _numerators(noise: Continual, first: int, last: int) -> I64:
    parts = [noise.numerators(f, min(f + COLUMN - 1, last)) for f in range(first, last + 1, COLUMN)]
    return np.concatenate(parts)


def _running(rounds: I64, changes: npt.NDArray[np.generic], horizon: int) -> I64:
    """The sum of all changes up to each of rounds 1 .. horizon."""
    total = np.zeros(horizon, dtype=np.int64)
    np.add.at(total, rounds - 1, changes.astype(np.int64))
    return np.cumsum(total)


def _held(lazy: Lazy, present: I64, start: int) -> I64:
    releases = np.arange(start - 1, len(present)) // lazy.every
    first = int(releases[0])
    noises = [lazy.noise(release * lazy.every + 1) for release in range(first, int(releases[-1]) + 1)]
    held: I64 = present[releases * lazy.every] + np.array(noises)[releases - first]
    return held
