"""The price of retroactivity (paper, section 6), measured: distinct counts on easy and on hard histories.

Theorem "countdistinct": a private and retroactive distinct count whose error is bounded by the flippancy of the history
has an error of order T^(1/4) already on insertion-only histories, where the flippancy tracker, which is private and not
retroactive, has a polylogarithmic one. So with growing T the tracker should win where little flips, and the retroactive
forms should have one and the same error on every history.

All run at the same (epsilon, delta). The tracker protects all updates of a value, the retroactive forms one operation,
as a stream does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from distinct_counts import FORMS, Answers, Form
from lives import FlipColumns, Lives
from retroact.arrays import I64
from retroact.coins import Key
from retroact.stateful.tracker import coins_of
from retroact.stateful.tracker_design import TrackerDesign
from tracker_columns import flip_ranks, flippancy, track

TRACKER, KNOWN = "tracker", "tracker, w known"


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
    adds = flip_ranks(values) % 2 == 1
    order = np.argsort(values, kind="stable")
    following = np.full(horizon, horizon + 1)
    again = values[order[1:]] == values[order[:-1]]
    following[order[:-1][again]] = rounds[order[1:][again]]
    return Lives(horizon, values[adds], rounds[adds], following[adds])


@dataclass(frozen=True)
class Row:
    """One algorithm on one kind of history: errors over all rounds of ``seeds`` histories, each with its own noise."""

    horizon: int
    stream: str
    flips: int
    algorithm: str
    rms: float
    largest: float
    seeds: int


@dataclass(frozen=True)
class Experiment:
    """``largest`` is the largest error over rounds, averaged over seeds; ``flips`` the largest flippancy that occurred.

    >>> small = price_of_retroactivity((64,), seeds=2)
    >>> len(small.rows), small.row(64, "churning", "tracker").seeds
    (12, 2)
    """

    epsilon: float
    delta: float
    rows: tuple[Row, ...]

    def row(self, horizon: int, stream: str, algorithm: str) -> Row:
        return next(r for r in self.rows if (r.horizon, r.stream, r.algorithm) == (horizon, stream, algorithm))

    @property
    def algorithms(self) -> list[str]:
        return list(dict.fromkeys(row.algorithm for row in self.rows))

    def __str__(self) -> str:
        """A line for each kind of history and horizon: RMS error, and the largest in brackets."""
        names = self.algorithms
        lines = [f"{'rounds':>9}  {'history':15}{'w':>6}" + "".join(f"{name:>23}" for name in names)]
        for horizon, stream in dict.fromkeys((row.horizon, row.stream) for row in self.rows):
            found = [self.row(horizon, stream, name) for name in names]
            cells = "".join(f"{f'{row.rms:,.1f} ({row.largest:,.0f})':>23}" for row in found)
            lines.append(f"{horizon:>9,}  {stream:15}{found[0].flips:>6,}{cells}")
        return "\n".join(lines)


def price_of_retroactivity(
    horizons: Iterable[int] = (256, 1024, 4096, 16384, 65536),
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    seeds: int = 5,
    streams: Mapping[str, Callable[[int, int], Lives]] = STREAMS,
    retroactive: Mapping[str, Form] = FORMS,
    progress: Callable[[str], None] | None = None,
) -> Experiment:
    """Runs every algorithm on every kind of history; the defaults take less than a minute."""
    rows: list[Row] = []
    for horizon in horizons:
        for number, (name, make) in enumerate(streams.items()):
            if progress is not None:
                progress(f"{horizon:,} rounds, {name}")
            errors: dict[str, list[tuple[float, float]]] = {}
            most = 0
            for seed in range(seeds):
                lives = make(horizon, seed)
                flips, truth = lives.flips(), lives.distinct()
                most = max(most, flippancy(flips))
                # Every history has noise of its own, so that equal errors are not the same draw.
                key = Key.for_testing(seed * len(streams) + number)
                for algorithm, answers in _answers(lives, flips, epsilon, delta, key, retroactive):
                    off = answers - truth
                    found = float(np.mean(off**2)), float(np.abs(off).max())
                    errors.setdefault(algorithm, []).append(found)
            for algorithm, measured in errors.items():
                square, largest = np.mean(measured, axis=0).tolist()
                rows.append(Row(horizon, name, most, algorithm, math.sqrt(square), largest, seeds))
    return Experiment(epsilon, delta, tuple(rows))


def _answers(
    lives: Lives, flips: FlipColumns, epsilon: float, delta: float, key: Key, retroactive: Mapping[str, Form]
) -> Iterator[tuple[str, Answers]]:
    for name, bound in ((TRACKER, None), (KNOWN, flippancy(flips))):
        coins = coins_of(key, lives.horizon, epsilon, delta, bound)
        found = track(TrackerDesign(lives.horizon, epsilon, delta, bound, coins), flips)
        yield name, found.numerators / found.denominator
    for name, form in retroactive.items():
        yield name, form(lives, epsilon, delta, key)
