"""Tells two worlds apart by what they publish: many ways of looking, one of them chosen, judged on runs of its own.

The runs are shuffled and cut in three. Every distinguisher learns a score from the first part; the second part chooses
one of them, with two thresholds (below the one it guesses world 0, above the other world 1, in between it abstains);
only the last part counts. So what is reported is a bound for a rule that was fixed before these runs were looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import F64, Mask
from ..errors import InputError
from ..testing.seeds import Seeds
from .bounds import game_bound, measured_tradeoff, mu_bound
from .features import Columns, telling_most
from .scores import SCORES

World = Columns | npt.ArrayLike

# Learning and choosing take a quarter of the runs each, and no more than this many.
SHARE, MOST = 0.25, 40_000
FEWEST = 32
NOTHING = "nothing varies"
# The numbers of heads and tails of a fair coin differ by more square roots of all with probability 6e-7.
UNEVEN = 5
# Standard deviations to stay on the safe side by when choosing: some thousand rules are compared.
CAUTION = 4.0
# Thresholds are tried where these parts of the runs (of all, and of either world) lie beyond them.
TAILS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


@dataclass(frozen=True)
class Attack:
    """What the chosen distinguisher reached on the runs that it was judged by."""

    distinguisher: str
    low: float
    high: float
    """It guesses world 0 up to ``low``, world 1 from ``high`` on, and abstains in between."""
    correct: int
    guesses: int
    runs: int
    epsilon: float
    """The lower bound, at the confidence asked for."""
    expected: float
    """What the choosing part made believe: to compare pairs of worlds by, never to report."""
    forced: str
    """The distinguisher chosen for guessing in every run, and what it reached: Gaussian claims are judged by it."""
    forced_correct: int
    points: list[tuple[float, float]]
    """False alarms and misses of the chosen score, for a picture."""

    def mu(self, confidence: float) -> float:
        """The lower bound on mu (Gaussian privacy)."""
        return mu_bound(self.forced_correct, self.runs, confidence)

    def most(self, delta: float, confidence: float) -> float:
        """The largest epsilon that so many runs can prove at all: that of a guesser who is always right."""
        return game_bound(self.runs, self.runs, self.runs, delta, confidence)


def attack(
    world0: World, world1: World, *, delta: float = 0.0, confidence: float = 0.999, seeds: Seeds, learned: bool = True
) -> Attack:
    """A lower bound on epsilon from the runs of two worlds. It is exact if a fair coin decided on the world of each
    run. Equal numbers fixed beforehand are less spread than a coin makes them (sampling without replacement: Hoeffding
    1963, theorem 4), but the exact bounds are not proven for them. Of numbers too far apart for a coin, the larger one
    is cut down to the smaller one at random.

    >>> lies = Seeds(3).numpy().random((2, 4000)) < 0.25  # randomised response: epsilon is log(3), about 1.1
    >>> found = attack(lies[0] ^ False, lies[1] ^ True, seeds=Seeds(4), learned=False)
    >>> 0.8 < found.epsilon < 1.1
    True
    """
    both, worlds = _fair(*_pooled(world0, world1), seeds.branch("fair"))
    runs = len(worlds)
    order = seeds.branch("order").numpy().permutation(runs)
    size = min(int(runs * SHARE), MOST)
    train, choose, judge = order[:size], order[size : 2 * size], order[2 * size :]
    if not all(2 <= worlds[part].sum() <= size - 2 for part in (train, choose)):
        return _blind("too few runs of one world", len(judge))
    both = telling_most(both, train, worlds[train])
    learning, choosing = both.take(train), both.take(choose)
    fits = {name: fit for name, fit in SCORES.items() if learned or name != "learned"}
    fitted = {name: fit(learning, worlds[train], seeds.branch(name)) for name, fit in fits.items()}
    scores = {name: score for name, score in fitted.items() if score is not None}
    if not scores:
        return _blind(NOTHING, len(judge))
    ranked = [(_rule(score(choosing), worlds[choose], delta), name) for name, score in scores.items()]
    best, name = max(ranked, key=lambda pair: (pair[0].expected, pair[0].accuracy))
    sign, forced = max(ranked, key=lambda pair: pair[0].accuracy)
    last, truth = both.take(judge), worlds[judge]
    values = scores[name](last)
    zero, one = values <= best.low, values >= best.high
    correct = int((zero & ~truth).sum() + (one & truth).sum())
    guesses = int(zero.sum() + one.sum())
    named = (scores[forced](last) >= sign.middle) == truth
    return Attack(
        name,
        best.low,
        best.high,
        correct,
        guesses,
        len(truth),
        game_bound(correct, guesses, len(truth), delta, confidence),
        best.expected,
        forced,
        int(named.sum()),
        measured_tradeoff(values[~truth], values[truth]) if 0 < truth.sum() < len(truth) else [],
    )


def _pooled(world0: World, world1: World) -> tuple[Columns, Mask]:
    zero, one = (world if isinstance(world, Columns) else np.asarray(world) for world in (world0, world1))
    if len(zero) + len(one) < FEWEST:
        raise InputError(f"expected at least {FEWEST} runs, got {len(zero)} and {len(one)}", place="runs")
    worlds = np.repeat([False, True], [len(zero), len(one)])
    if isinstance(zero, Columns) and isinstance(one, Columns):
        return zero.join(one), worlds
    if isinstance(zero, Columns) or isinstance(one, Columns) or zero.shape[1:] != one.shape[1:]:
        raise InputError("expected two worlds with the same columns")
    return Columns.of(np.concatenate([zero, one])), worlds


def _fair(both: Columns, worlds: Mask, seeds: Seeds) -> tuple[Columns, Mask]:
    """As many runs of one world as of the other, where a coin would not have made so many more of one."""
    sides = [np.flatnonzero(~worlds), np.flatnonzero(worlds)]
    least = min(map(len, sides))
    if len(worlds) - 2 * least <= UNEVEN * math.sqrt(len(worlds)):
        return both, worlds
    kept = np.sort(np.concatenate([seeds.numpy().permutation(side)[:least] for side in sides]))
    return both.take(kept), worlds[kept]


def _blind(why: str, runs: int) -> Attack:
    """No guess is better than a coin."""
    return Attack(why, -math.inf, math.inf, 0, 0, runs, 0.0, 0.0, why, 0, [(0, 1), (1, 0)])


@dataclass(frozen=True)
class _Rule:
    low: float
    high: float
    expected: float
    middle: float
    accuracy: float


def _rule(scores: F64, worlds: Mask, delta: float) -> _Rule:
    """The thresholds that promise the largest bound, by Wilson's approximation, and the best one without abstaining."""
    zero, one = np.sort(scores[~worlds]), np.sort(scores[worlds])
    both = np.sort(scores)
    samples = (both, zero, one)
    ends = [np.quantile(s, TAILS, method="lower") for s in samples]
    clean = both[both < one[0]][-1:], both[both > zero[-1]][:1]  # where only one world is found
    lows = np.unique(np.concatenate([[-math.inf], *ends, clean[0]]))
    ends = [np.quantile(s, 1 - np.array(TAILS), method="higher") for s in samples]
    highs = np.unique(np.concatenate([[math.inf], *ends, clean[1]]))
    below = [np.searchsorted(s, lows, side="right") for s in (zero, one)]
    above = [len(s) - np.searchsorted(s, highs, side="left") for s in (zero, one)]
    correct = below[0][:, None] + above[1][None, :]
    guesses = correct + below[1][:, None] + above[0][None, :]
    bound = _wilson(correct, guesses, len(scores), delta)
    bound[lows[:, None] >= highs[None, :]] = -math.inf
    at = np.unravel_index(int(bound.argmax()), bound.shape)
    edges = np.unique(np.concatenate([lows[1:], highs[:-1]]))
    right = np.searchsorted(zero, edges, side="left") + len(one) - np.searchsorted(one, edges, side="left")
    best = int(right.argmax())
    low, high = _apart(float(lows[at[0]]), float(highs[at[1]]), both)
    middle = _apart(-math.inf, float(edges[best]), both)[1]
    return _Rule(low, high, max(0.0, float(bound[at])), middle, float(right[best]) / len(scores))


def _apart(low: float, high: float, scores: F64) -> tuple[float, float]:
    """The same rule for these scores, with each threshold in the middle of the gap that it stands at."""
    above = scores[np.searchsorted(scores, low, side="right") :]
    below = scores[: np.searchsorted(scores, high, side="left")]
    after = min(float(above[0]), high) if len(above) else math.inf
    before = max(float(below[-1]), low) if len(below) else -math.inf
    low = (low + after) / 2 if math.isfinite(low) and math.isfinite(after) else low
    high = (high + before) / 2 if math.isfinite(high) and math.isfinite(before) else high
    return low, max(high, math.nextafter(low, math.inf))


def _wilson(correct: npt.NDArray[Any], guesses: npt.NDArray[Any], runs: int, delta: float) -> F64:
    z = CAUTION
    n = np.maximum(guesses, 1)
    p = correct / n
    c = (p + z * z / (2 * n) - z * np.sqrt(p * (1 - p) / n + (z / n) ** 2 / 4)) / (1 + z * z / n)
    left = c - delta * runs / n
    with np.errstate(divide="ignore", invalid="ignore"):
        out: F64 = np.where((guesses > 0) & (left > 0), np.log(left / (1 - c)), -math.inf)
    return out
