"""What a number of right guesses proves: lower bounds on epsilon and mu, and trade-off curves.

Every bound is one-sided: it is above the truth with probability at most 1 - confidence, if the guessing rule was fixed
before these runs were made. `game_bound` and `mu_bound` hold for any algorithm; the coupled and the pooled bounds need
to know something about the noise, which they state.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..privacy import Measure

Points = list[tuple[float, float]]

# The part of the probability of error for the share of guesses, where there is a delta.
SHARE_OF_GUESSES = 0.02
GRID = 400
LARGEST = 700.0


def binomial_lower(successes: int, trials: int, confidence: float) -> float:
    """The exact lower bound on a probability (Clopper and Pearson).

    >>> round(binomial_lower(90, 100, 0.95), 4)
    0.8363
    """
    from scipy.special import betaincinv

    return float(betaincinv(successes, trials - successes + 1, 1 - confidence)) if successes else 0.0


def game_bound(correct: int, guesses: int, runs: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Every run is of world 0 or 1 by a fair coin; the guesser names one of them or abstains.

    Let C and W be the probabilities of a right and a wrong guess in a run. Each is half a sum over both worlds, and
    privacy says P0[guess 0] <= e^epsilon P1[guess 0] + delta and the same with 0 and 1 exchanged; the sum of both is
    C <= e^epsilon W + delta. Given the number of guesses, the right ones are binomial with c = C / (C + W), and the
    guesses are binomial with r = C + W. Dividing by r, e^epsilon >= (c - delta / r) / (1 - c), which grows with c and
    with r: exact lower bounds for both, whose errors add up, give one for epsilon.

    >>> round(game_bound(7311, 10_000, 10_000), 3)
    0.963
    """
    _check(correct, guesses, confidence)
    _check(guesses, runs, confidence)
    error = 1 - confidence
    if not delta:
        c, r = binomial_lower(correct, guesses, confidence), 1.0
    else:
        c = binomial_lower(correct, guesses, 1 - (1 - SHARE_OF_GUESSES) * error)
        r = binomial_lower(guesses, runs, 1 - SHARE_OF_GUESSES * error)
    return _log_ratio(c - (delta / r if r else math.inf) * bool(delta), 1 - c)


def mu_bound(correct: int, runs: int, confidence: float = 0.95) -> float:
    """Every run is of world 0 or 1 by a fair coin; the guesser names one of them.

    Under mu-Gaussian privacy telling the worlds apart is no easier than telling N(0, 1) from N(mu, 1), where the best
    guess (on which side of mu / 2) is right with probability Phi(mu / 2). So mu >= 2 Phi^-1(P[right]), which grows with
    P[right], for which there is an exact lower bound.

    >>> round(mu_bound(5500, 10_000), 3)
    0.21
    """
    _check(correct, runs, confidence)
    lower = binomial_lower(correct, runs, confidence)
    return 2 * NormalDist().inv_cdf(lower) if lower > 0.5 else 0.0


def coupled_bound(between: int, runs: int, confidence: float = 0.95) -> float:
    """mu, where the noise is known not to depend on the data: the same noise is then looked at in both worlds.

    A score is compared with a threshold. In world 0 the guess is right if it is at most the threshold, in world 1 if it
    is above. With scores a and a + d, d >= 0, of the same noise, the two probabilities sum to 1 + P, P the probability
    that the threshold lies between: a <= threshold < a + d. So P[right] = (1 + P) / 2, and `mu_bound` holds with an
    exact lower bound for P, which is far closer to P than one for P[right] from as many coins.

    >>> round(coupled_bound(1000, 10_000), 3)
    0.239
    """
    _check(between, runs, confidence)
    return 2 * NormalDist().inv_cdf((1 + binomial_lower(between, runs, confidence)) / 2)


def pooled_bound(correct: int, votes_total: int, votes_per_run: int, confidence: float = 0.95) -> float:
    """k = ``votes_per_run`` independent noises hide a change together, and every one votes for itself, equally often.

    Needed: all votes are independent (a separate fair coin for each, or as many runs of one world as of the other),
    there is no delta, and the noises are symmetric about the data, or all vote in one direction only. Else the outcomes
    at which two noises reveal most may lie on opposite sides; what they reveal then does not add up, and with votes
    that abstain the bound could exceed epsilon.

    Noise j alone is epsilon_j-private, and the epsilon_j of such noises add up to epsilon. A vote is right with
    probability at most s(epsilon_j), s(x) = 1 / (1 + e^-x) (as in `game_bound`). s is concave from 0 on, so the mean
    over all votes is at most s(epsilon / k). The number of right votes is a sum of independent, unequal trials; beyond
    one more than its mean its tail is at most that of the binomial with the same mean (Hoeffding 1956, theorem 4), and
    for a probability of error of at most 1/4 an exact lower bound errs only there. So with it in place of the mean,
    epsilon >= k s^-1(mean).

    >>> round(pooled_bound(375_000, 700_000, 7), 3)
    0.974
    """
    _check(correct, votes_total, confidence)
    _check_votes(votes_total, votes_per_run, confidence)
    lower = binomial_lower(correct, votes_total, confidence)
    return votes_per_run * _log_ratio(lower, 1 - lower)


def coupled_pooled_bound(between: int, votes_total: int, votes_per_run: int, confidence: float = 0.95) -> float:
    """epsilon, by independent noises that each vote for themselves in both worlds (`coupled_bound`, `pooled_bound`).

    A threshold on noise j lies between its value and the value moved with probability P_j, which is at most the total
    variation, and that is at most tanh(epsilon_j / 2). tanh is concave from 0 on, so the mean of all P_j is at most
    tanh(epsilon / 2k). The rest is as in `pooled_bound`, and so is what is needed of the noises, for an epsilon at
    which at least one vote is expected to be counted. Better than other votes where every noise alone hides nearly
    everything.

    >>> round(coupled_pooled_bound(50_000, 700_000, 7), 3)
    0.995
    """
    _check(between, votes_total, confidence)
    _check_votes(votes_total, votes_per_run, confidence)
    lower = binomial_lower(between, votes_total, confidence)
    return votes_per_run * _log_ratio(1 + lower, 1 - lower)


def claimed_tradeoff(measure: Measure, points: int = 60) -> Points:
    """What a claim leaves to an attacker: for each rate of false alarms, the smallest rate of missed records.

    Each (epsilon, delta) that the measure implies rules out missed < max(0, 1 - delta - e^epsilon x,
    e^-epsilon (1 - delta - x)) for x false alarms; the curve is the largest of these over a grid of epsilons, so it
    never lies above what is claimed.

    >>> from retroact.privacy import PureDP
    >>> [(x, round(y, 3)) for x, y in claimed_tradeoff(PureDP(1.0), 3)]
    [(0.0, 1.0), (0.5, 0.184), (1.0, 0.0)]
    """
    known = [measure.epsilon(d) for d in (0.0, *np.logspace(-15, -0.001, 60).tolist())]
    finite = sorted({min(e, LARGEST) for e in known if math.isfinite(e)})
    grid = np.unique([*np.linspace(0.0, max(finite, default=1.0), GRID).tolist(), *finite])
    left = 1 - np.array([measure.delta(e) for e in grid.tolist()])
    x = np.linspace(0.0, 1.0, points)[:, None]
    missed = np.maximum(left - np.exp(grid) * x, np.exp(-grid) * (left - x)).max(axis=1)
    return list(zip(x[:, 0].tolist(), np.clip(missed, 0.0, 1.0).tolist(), strict=True))


def measured_tradeoff(scores0: npt.ArrayLike, scores1: npt.ArrayLike, points: int = 60) -> Points:
    """What thresholds on a score reach: world 1 is named where the score is at least the threshold.

    >>> measured_tradeoff([0, 1, 2, 3], [1, 2, 3, 4], 3)
    [(0.0, 1.0), (0.5, 0.25), (1.0, 0.0)]
    """
    zero, one = np.sort(np.asarray(scores0, dtype=float)), np.sort(np.asarray(scores1, dtype=float))
    if not len(zero) or not len(one):
        raise InputError("expected scores of both worlds, got none", place="scores")
    both = np.sort(np.concatenate([zero, one]))
    inner = both[np.linspace(0, len(both) - 1, points).astype(int)[1:-1]]
    thresholds = np.concatenate([[math.inf], np.unique(inner)[::-1], [-math.inf]])
    alarms = 1 - np.searchsorted(zero, thresholds, side="left") / len(zero)
    missed = np.searchsorted(one, thresholds, side="left") / len(one)
    return list(dict.fromkeys(zip(alarms.tolist(), missed.tolist(), strict=True)))


def _log_ratio(above: float, below: float) -> float:
    """Never below 0: that epsilon is at least 0 is known anyway."""
    if above <= 0:
        return 0.0
    return max(0.0, math.log(above) - math.log(below)) if below > 0 else math.inf


def _check(successes: int, trials: int, confidence: float) -> None:
    if not 0 <= successes <= trials:
        raise InputError(f"expected a number from 0 to {trials}, got {successes}", place="counts")
    if not 0 < confidence < 1:
        raise InputError(f"expected a number between 0 and 1, got {confidence}", place="confidence")


def _check_votes(total: int, per_run: int, confidence: float) -> None:
    if per_run < 1 or total % per_run:
        raise InputError(f"expected a multiple of {per_run} votes, got {total}", place="votes_total")
    if confidence < 0.75:
        raise InputError(f"expected a confidence from 0.75 on, got {confidence}", place="confidence")
