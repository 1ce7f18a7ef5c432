"""Tells two worlds apart by what they publish: many distinguishers, one of them chosen and judged on other runs.

The runs are shuffled and cut in three. Every distinguisher learns a score from the first part; the second part chooses
one of them, with two thresholds (up to one it guesses world 0, from the other on world 1, in between it abstains); only
the last part counts. So the reported bound is for a rule that was fixed before these runs were looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import F64, Mask
from ..errors import InputError
from ..privacy import GaussianDP, Guarantee
from ..testing.features import Features, telling_most
from ..testing.seeds import Seeds
from .bounds import game_bound, measured_tradeoff, mu_bound
from .result import decimal
from .scores import SCORES

# Learning and choosing take a quarter of the runs each, and this many at most.
SHARE, MOST = 0.25, 40_000
FEWEST = 32
NOTHING = "nothing varies"
# A safety margin for choosing among some thousand rules, in standard deviations.
CAUTION = 4.0
# Thresholds are tried where these parts of the runs (of all, and of either world) lie beyond them.
TAILS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


@dataclass(frozen=True)
class Attack:
    """What the chosen distinguisher reached on the runs that it was judged by, against a claim."""

    claim: Guarantee
    confidence: float
    """Of each bound: a Gaussian claim has two, which must hold together."""
    distinguisher: str
    correct: int
    guesses: int
    runs: int
    expected: float
    """What the choosing part promised: to compare pairs of worlds, never to report."""
    forced_correct: int
    """Right guesses of the distinguisher that was chosen for guessing in every run, for Gaussian claims."""
    points: list[tuple[float, float]]
    """False alarms and misses of the chosen score, for a picture."""

    @property
    def epsilon(self) -> float:
        """The lower bound."""
        return game_bound(self.correct, self.guesses, self.runs, self.claim.delta, self.confidence)

    @property
    def mu(self) -> float | None:
        """The lower bound on mu, for a Gaussian claim."""
        if not isinstance(self.claim.measure, GaussianDP):
            return None
        return mu_bound(self.forced_correct, self.runs, self.confidence)

    @property
    def violated(self) -> bool:
        measure = self.claim.measure
        too_large = self.mu is not None and isinstance(measure, GaussianDP) and self.mu > measure.mu
        return self.epsilon > self.claim.epsilon or too_large

    @property
    def perfect(self) -> Attack:
        """That of a guesser who is always right: the most that this many runs can prove."""
        return replace(self, correct=self.runs, guesses=self.runs, forced_correct=self.runs)

    def measured(self) -> dict[str, str]:
        out = {"epsilon at least": decimal(self.epsilon), "epsilon claimed": decimal(self.claim.epsilon)}
        if self.claim.delta:
            out["delta claimed"] = decimal(self.claim.delta)
        if self.mu is not None and isinstance(self.claim.measure, GaussianDP):
            out |= {"mu at least": decimal(self.mu), "mu claimed": decimal(self.claim.measure.mu)}
        return out | {
            "distinguisher": self.distinguisher,
            "right guesses": decimal(self.correct),
            "guesses": decimal(self.guesses),
            "runs judged": decimal(self.runs),
        }


def attack(
    views: Features, worlds: Mask, claim: Guarantee, *, confidence: float = 0.999, seeds: Seeds, learned: bool = True
) -> Attack:
    """A lower bound on epsilon (and on mu) from what was seen in many runs. It is exact if a fair coin decided on the
    world of each run. Equal numbers fixed beforehand are less spread than a coin makes them (sampling without
    replacement: Hoeffding 1963, theorem 4), but the exact bounds are not proven for them.

    >>> from retroact.testing.features import columns
    >>> from retroact.privacy import PureDP
    >>> random = Seeds(3).numpy()
    >>> truth, lies = random.random(8000) < 0.5, random.random(8000) < 0.25
    >>> views = columns([[b"%d" % bit] for bit in truth ^ lies])  # randomised response: epsilon is log(3), about 1.1
    >>> found = attack(views, truth, Guarantee(PureDP(1.1), 1.1), seeds=Seeds(4), learned=False)
    >>> 0.8 < found.epsilon < 1.1
    True
    """
    runs = len(worlds)
    if runs < FEWEST:
        raise InputError(f"expected at least {FEWEST} runs, got {runs}", place="runs")
    each = (1 + confidence) / 2 if isinstance(claim.measure, GaussianDP) else confidence
    order = seeds.branch("order").numpy().permutation(runs)
    size = min(int(runs * SHARE), MOST)
    train, choose, judge = order[:size], order[size : 2 * size], order[2 * size :]
    blind = Attack(claim, each, "too few runs of one world", 0, 0, len(judge), 0.0, 0, [(0, 1), (1, 0)])
    if not all(2 <= worlds[part].sum() <= size - 2 for part in (train, choose)):
        return blind
    views = telling_most(views, train, worlds[train])
    learning, choosing = views.take(train), views.take(choose)
    fits = {name: fit for name, fit in SCORES.items() if learned or name != "learned"}
    fitted = {name: fit(learning, worlds[train], seeds.branch(name)) for name, fit in fits.items()}
    scores = {name: score for name, score in fitted.items() if score is not None}
    if not scores:
        return replace(blind, distinguisher=NOTHING)
    ranked = [(_rule(score(choosing), worlds[choose], claim.delta), name) for name, score in scores.items()]
    best, name = max(ranked, key=lambda pair: (pair[0].expected, pair[0].accuracy))
    sign, forced = max(ranked, key=lambda pair: pair[0].accuracy)
    last, truth = views.take(judge), worlds[judge]
    values = scores[name](last)
    zero, one = values <= best.low, values >= best.high
    return Attack(
        claim,
        each,
        name,
        correct=int((zero & ~truth).sum() + (one & truth).sum()),
        guesses=int(zero.sum() + one.sum()),
        runs=len(truth),
        expected=best.expected,
        forced_correct=int(((scores[forced](last) >= sign.middle) == truth).sum()),
        points=measured_tradeoff(values[~truth], values[truth]) if 0 < truth.sum() < len(truth) else [],
    )


@dataclass(frozen=True)
class _Rule:
    """Guesses world 0 up to ``low``, world 1 from ``high`` on; ``middle`` is the threshold without abstaining."""

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
