"""How approximate is approximately retroactive? An attack on blocks of smoothed answers, with the real noise.

The worst base there is: its error is +E if a record was ever erased and -E otherwise, so it is within E of the truth
and its answers tell the two apart for sure. Smoothed, the attacker adds up the answers of a block, less the truth, and
looks at the sign: for Gaussian noise that is the likelihood ratio. With probability p of a right guess the block is no
mu-Gaussian mechanism with mu below 2 Phi^-1(p) (Dong, Roth and Su 2022), and p is bounded from below exactly
(Clopper and Pearson). So alpha(mu; beta) is a lower bound on what can be claimed, with the given confidence, if claims
are made in terms of mu; it must not exceed the claim, and it comes close to it where the claim is tight.

The second attack is on the flippancy tracker: much churn, all of it erased, leaves it with wider noise than a clean
history does. The law is not known here, so the attacker learns a threshold on half of the runs, for the sum of squares
of the errors of a block, and is judged on the other half: what is above it with probability p here and q there must
satisfy p <= e^alpha q + beta, and both are bounded exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from grudge import Grudge, united
from lives import FlipColumns
from retroact.arrays import I64
from retroact.audit.bounds import binomial_lower
from retroact.coins import Coins, Key, integer_cells
from retroact.compilers.maps import Calibration, GaussianMap
from retroact.compilers.smooth import smooth
from retroact.paper import PaperRetroactivity
from retroact.privacy import epsilon_of
from retroact.stateful.tracker import coins_of
from retroact.stateful.tracker_design import TrackerDesign
from tracker_columns import track

F64 = npt.NDArray[np.float64]

BLOCKS = (1, 4, 16, 64, 256)
SIGMAS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
# Runs that are computed at once.
CHUNK = 1 << 12


@dataclass(frozen=True)
class BlockRow:
    """For a block of answers at beta = block * beta_K: what the theorem claims, what is claimed here, what an attacker
    shows with the given confidence."""

    block: int
    beta: float
    paper: float
    exact: float
    audited: float
    runs: int
    confidence: float

    def __str__(self) -> str:
        return f"{self.block:>6}{self.beta:>10.1e}{self.paper:>10.3g}{self.exact:>10.3f}{self.audited:>10.3f}"


def audit_blocks(
    blocks: Iterable[int] = BLOCKS,
    *,
    alpha: float = 1.0,
    beta: float = 1e-6,
    runs: int = 100_000,
    confidence: float = 0.99,
    calibration: Calibration = "paper",
    understated: Fraction = Fraction(1),
    seed: int = 1,
) -> list[BlockRow]:
    """``runs`` runs on each of two histories that unite in the round before the block.

    ``understated``: the base errs by so many times what it is said to.

    >>> [row.audited <= row.exact <= row.paper for row in audit_blocks((1, 4), runs=500)]
    [True, True]
    """
    wanted = sorted(set(blocks))
    error = Fraction(1)
    key = Key.for_testing(seed)
    answers, maps, promises = [], [], []
    for history in united(wanted[-1]):
        base = Grudge(understated * error)
        smoothed = smooth(base, error=error, failure=0, alpha=alpha, beta=beta, calibration=calibration, key=key)
        answers.append([base.close(updates) for updates in history][2:])
        maps.append(smoothed.map)
        promises.append(smoothed.retroactivity)
    assert isinstance(maps[0], GaussianMap)
    right = np.zeros(len(wanted), dtype=np.int64)
    for side, own in enumerate(answers):
        coins = key.coins("audit", side)
        for first in range(0, runs, CHUNK):
            sums = _sums(maps[0], own, wanted, coins, first, min(CHUNK, runs - first))
            right += (sums > 0 if side == 0 else sums < 0).sum(axis=1)
    reference = PaperRetroactivity(1.0, alpha, beta)
    rows = []
    for block, guessed in zip(wanted, right.tolist(), strict=True):
        share = binomial_lower(guessed, 2 * runs, confidence)
        mu = max(0.0, 2 * NormalDist().inv_cdf(share)) if share > 0 else 0.0
        audited = epsilon_of(mu, block * beta)
        claim = promises[0].alpha(block * beta, block)
        rows.append(
            BlockRow(block, block * beta, reference.alpha_of(block, beta), claim, audited, 2 * runs, confidence)
        )
    return rows


def _sums(map: GaussianMap, answers: Sequence[Fraction], blocks: list[int], coins: Coins, first: int, runs: int) -> I64:
    """For every block and every run the sum of the smoothed answers, in lattice steps (the truth is 0)."""
    cells = integer_cells(runs)
    cells[:, 0] += np.uint64(first)
    # Runs in place of coordinates: round by round, one name for each.
    rounds = np.arange(1, blocks[-1] + 1)
    noise = map.law.sample(coins.words(np.zeros(len(rounds)), rounds, cells))
    steps = np.array([round(answer / map.spacing) for answer in answers], dtype=np.int64)
    sums: I64 = np.cumsum(noise + steps[:, None], axis=0)[np.array(blocks) - 1]
    return sums


@dataclass(frozen=True)
class TrackerRow:
    """Noise of ``ratio`` times the largest error that was seen, and for every block the alpha that an attacker shows
    (with confidence 19/20; nothing below 0 is shown), beside what the compiler claims for that noise."""

    ratio: float
    blocks: tuple[int, ...]
    audited: tuple[float, ...]
    claimed: tuple[float, ...]

    def __str__(self) -> str:
        pairs = (
            f"{a:8.2f} {'-' if math.isinf(c) else f'({c:.3g})':9}"
            for a, c in zip(self.audited, self.claimed, strict=True)
        )
        return f"{self.ratio:>8g} E" + "".join(pairs)


def audit_tracker(
    ratios: Iterable[float] = SIGMAS,
    *,
    blocks: Sequence[int] = (1, 8, 64),
    horizon: int = 4096,
    epsilon: float = 8.0,
    beta: float = 1e-3,
    runs: int = 400,
    seed: int = 1,
) -> tuple[float, list[TrackerRow]]:
    """E, which is measured and not proved, and a row for every ratio sigma / E, after ``runs`` runs on each side.

    >>> error, rows = audit_tracker((0.0, 4.0), blocks=(1, 8), horizon=96, runs=4)
    >>> rows[0].claimed, rows[1].claimed[0] < rows[1].claimed[1]
    ((inf, inf), True)
    """
    churned, clean = churn(horizon)
    first, longest = horizon * 3 // 4, max(blocks)
    sides = [
        np.array(
            [
                _errors(flips, horizon, epsilon, Key.for_testing(seed + run))[first : first + longest]
                for run in range(runs)
            ]
        )
        for flips in (churned, clean)
    ]
    error = float(max(np.abs(side).max() for side in sides))
    rows = []
    for number, ratio in enumerate(ratios):
        noisy, claims = sides, [math.inf] * len(blocks)
        if ratio:
            map = GaussianMap(sigma=ratio * error)
            claims = [map.closeness(2 * Fraction(error), block).epsilon(beta) for block in blocks]
            noisy = [side + _noise(map, side.shape, seed, number, which) for which, side in enumerate(sides)]
        audited = [_shown(_energy(noisy[0], block), _energy(noisy[1], block), beta) for block in blocks]
        rows.append(TrackerRow(ratio, tuple(blocks), tuple(audited), tuple(claims)))
    return error, rows


def churn(horizon: int) -> tuple[FlipColumns, FlipColumns]:
    """Values that come and go twelve times each up to the middle, or none; then a new one in every round."""
    half = horizon // 2 // 12 * 12
    early = np.arange(1, half + 1)
    values = (early - 1) % (half // 12)
    signs = np.where((early - 1) // (half // 12) % 2 == 0, 1, -1)
    late = np.arange(half + 1, horizon + 1)
    both = FlipColumns(
        np.concatenate([early, late]), np.concatenate([values, late]), np.concatenate([signs, np.ones_like(late)])
    )
    return both, FlipColumns(late, late, np.ones_like(late))


def _errors(flips: FlipColumns, horizon: int, epsilon: float, key: Key) -> F64:
    design = TrackerDesign(horizon, epsilon, 1e-6, None, coins_of(key, horizon, epsilon, 1e-6, None))
    found = track(design, flips)
    truth = np.cumsum(np.bincount(flips.rounds, weights=flips.signs, minlength=horizon + 1)[1:])
    off: F64 = found.numerators / found.denominator - truth
    return off


def _noise(map: GaussianMap, shape: tuple[int, ...], seed: int, number: int, side: int) -> F64:
    coins = Key.for_testing(seed).coins("audit tracker", number, side)
    words = coins.words(np.zeros(shape[0]), np.arange(shape[0]), integer_cells(shape[1]))
    return map.law.sample(words).astype(np.float64) * float(map.spacing)


def _energy(errors: F64, block: int) -> F64:
    total: F64 = np.square(errors[:, :block]).sum(axis=1)
    return total


def _shown(one: F64, other: F64, beta: float, confidence: float = 0.95) -> float:
    """The alpha shown by saying "one" above a threshold, which is learnt on half of the runs; 0 where it is none."""
    half = len(one) // 2
    best, threshold = -math.inf, 0.0
    for candidate in np.quantile(one[:half], np.linspace(0.05, 0.95, 19)).tolist():
        hits, misses = int((one[:half] > candidate).sum()), int((other[:half] > candidate).sum())
        gain = math.log(hits + 1) - math.log(misses + 2)
        if gain > best:
            best, threshold = gain, candidate
    trials, each = len(one) - half, (1 + confidence) / 2
    right = binomial_lower(int((one[half:] > threshold).sum()), trials, each)
    wrong = 1 - binomial_lower(int((other[half:] <= threshold).sum()), trials, each)
    return math.log((right - beta) / wrong) if right - beta > wrong else 0.0
