"""Appendix D against retraining, the flippancy tracker and retroactive distinct counts: who keeps the secret bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from distinct_counts import block_mechanism, fresh_mechanism
from distinct_counts import seen as last_counted
from lives import Lives
from retroact.audit.counting_attack import BitAttack, random_bits, random_sets
from retroact.audit.decoding import F64, I64, Bits, checked, decode_lp, fraction_right
from retroact.audit.reconstruction import AttackPlan
from retroact.errors import InputError
from retroact.ledger.definition import Add, Delete, Sequence, Update
from retroact.noise import Mechanism
from retroact.stateful.tracker import coins_of
from retroact.stateful.tracker_design import TrackerDesign
from retroact.testing.seeds import Seeds
from tracker_columns import track


class SeenCounts(NamedTuple):
    """The answers where the attacker looks, and the public length of blocks (0: every record counts at once)."""

    answers: F64
    block: int = 0


@dataclass(frozen=True, eq=False)
class PacedAttack(BitAttack):
    """The attack at any pace within its units, also on counts of the stamps before the current block."""

    @property
    def births(self) -> I64:
        """When the records of each value are added, within a unit."""
        return np.ones(self.n, dtype=np.int64)

    def deaths(self, query: I64, births: I64) -> I64:
        """When records of these queries are deleted again."""
        return self.starts[query] + (2 + self.wait) * self.unit

    def records(self, secret: Bits) -> tuple[I64, I64, I64]:
        """Values, births and deaths of all records: those of the secret stay (until after the last round), those of a
        query go again."""
        held = np.flatnonzero(secret)
        query, value = np.nonzero(self.sets)
        births = self.starts[query] + self.births[value]
        return (
            np.concatenate([held, value]),
            np.concatenate([self.births[held], births]),
            np.concatenate([np.full(len(held), self.rounds + 1), self.deaths(query, births)]),
        )

    def history(self, secret: Bits) -> Sequence:
        rounds: list[list[Update]] = [[] for _ in range(self.rounds + 1)]
        for value, birth, death in zip(*(column.tolist() for column in self.records(secret)), strict=True):
            rounds[birth - 1].append(Add(value))
            rounds[death - 1].append(Delete(value, birth))
        return tuple(map(tuple, rounds[:-1]))

    def seen(self, block: int = 0) -> tuple[Bits, Bits]:
        """For every query the values of the set that count when the attacker looks, and those values of which only the
        secret record can count."""
        known = last_counted(self.looks[1:], block)[:, None]
        sets = self.sets & (self.starts[:, None] + self.births <= known)
        return sets, ~sets & (self.births <= known)

    def queries(self, answers: F64, block: int = 0) -> tuple[I64, F64]:
        sets, others = self.seen(block)
        return 1 - 2 * others.astype(np.int64), answers[0] + 2 * sets.sum(axis=1) - 2 * answers[1:]


def paced(attack: BitAttack) -> PacedAttack:
    return PacedAttack(attack.sets, attack.unit, attack.wait)


# Any distinct count: what it publishes on S(y).
Answering = Callable[[PacedAttack, Bits, Seeds], SeenCounts]


@dataclass(frozen=True, eq=False)
class PaperAttack(PacedAttack):
    """As in the proof: a unit is n rounds with one update in each, T = (2k + 1) n rounds in all.

    >>> attack = PaperAttack.of(3, 2, Seeds(1))
    >>> attack.rounds, attack.looks.tolist()
    (15, [3, 6, 12])
    """

    @classmethod
    def of(cls, n: int, k: int, seeds: Seeds) -> PaperAttack:
        return cls(random_sets(n, k, seeds), unit=n)

    @property
    def births(self) -> I64:
        return np.arange(1, self.n + 1)

    def deaths(self, query: I64, births: I64) -> I64:
        return births + (1 + self.wait) * self.unit


def counts(attack: PacedAttack, secret: Bits, block: int = 0) -> I64:
    """The exact counts where the attacker looks: |Y| and |Y ∪ Q_j|."""
    sets, others = attack.seen(block)
    first = int(secret[attack.births <= last_counted(attack.looks[0], block)].sum())
    return np.append(first, sets.sum(axis=1) + others @ secret.astype(np.int64))


class Recovered(NamedTuple):
    """Fractions of bits that are right, by linear programming and by least squares; the RMS error of the answers."""

    lp: float
    squares: float
    error: float


def reconstruct(answering: Answering, attack: PacedAttack, seeds: Seeds, *, shift: bool = True) -> Recovered:
    """Fair secret bits, published through ``answering``, decoded; without a ``shift`` by the paper's own program.

    >>> reconstruct(Gaussian(0.0), PaperAttack.of(16, 64, Seeds(1)), Seeds(2))
    Recovered(lp=1.0, squares=1.0, error=0.0)
    """
    secret = random_bits(attack.n, seeds.branch("secret"))
    answers, block = answering(attack, secret, seeds.branch("noise"))
    queries, b = attack.queries(answers, block)
    error = math.sqrt(float(np.mean((answers - counts(attack, secret, block)) ** 2)))
    decoded = decode_lp(queries, b, shift=shift), decode_squares(queries, b)
    lp, squares = (fraction_right(found, secret) for found in decoded)
    return Recovered(lp, squares, error)


def decode_squares(queries: npt.ArrayLike, answers: npt.ArrayLike) -> F64:
    """The y and the shift with the smallest sum of squares, with y drawn a little towards 1/2. Fast; junk ruins it.

    >>> queries = np.array([[1, 1, 1], [1, -1, 1], [-1, 1, 1], [1, 1, -1], [-1, -1, 1], [1, -1, -1]])
    >>> (decode_squares(queries, queries @ [1, 0, 1] + 10) > 0.5).tolist()
    [True, False, True]
    """
    matrix, b = checked(queries, answers)
    centred = matrix - matrix.mean(axis=0)
    off = b - matrix.sum(axis=1) / 2
    moved: F64 = np.linalg.solve(centred.T @ centred + np.eye(matrix.shape[1]), centred.T @ (off - off.mean()))
    return moved + 0.5


@dataclass(frozen=True)
class Gaussian:
    """Errors of the given standard deviation, and junk in place of a fraction of the answers."""

    deviation: float
    junk: float = 0.0

    def __call__(self, attack: PacedAttack, secret: Bits, seeds: Seeds) -> SeenCounts:
        random = seeds.numpy()
        answers = counts(attack, secret) + self.deviation * random.standard_normal(attack.k + 1)
        wrong = random.random(attack.k + 1) < self.junk
        wrong[0] = False
        return SeenCounts(np.where(wrong, random.uniform(0, attack.n, attack.k + 1), answers))


def transition(
    n: int, ratios: tuple[float, ...], seeds: Seeds, *, repeats: int = 3, junk: float = 0.0
) -> list[tuple[float, float, float]]:
    """(c, LP, least squares): fractions recovered with k = 4n queries and Gaussian errors of c sqrt(n).

    >>> [round(lp, 2) for _, lp, _ in transition(16, (0.05, 5.0), Seeds(1))]
    [1.0, 0.58]
    """
    rows = []
    for ratio in ratios:
        found = []
        for repeat in range(repeats):
            own = seeds.branch("transition", n, str(ratio), str(junk), repeat)
            attack = PacedAttack(random_sets(n, 4 * n, own))
            found.append(reconstruct(Gaussian(ratio * math.sqrt(n), junk), attack, own)[:2])
        lp, squares = np.mean(found, axis=0).tolist()
        rows.append((ratio, lp, squares))
    return rows


@dataclass(frozen=True)
class Retroactive:
    """The two retroactive forms of `distinct_counts`; noise is drawn only where the attacker looks."""

    form: str
    epsilon: float
    delta: float

    def __call__(self, attack: PacedAttack, secret: Bits, seeds: Seeds) -> SeenCounts:
        make = {"fresh": fresh_mechanism, "blocks": block_mechanism}.get(self.form)
        if make is None:
            raise InputError(f"expected fresh or blocks, got {self.form!r}", place="form")
        mechanism, block = make(attack.rounds, self.epsilon, self.delta, seeds.key())
        # What blocks add for records that are too new to count is public, and left out.
        return SeenCounts(counts(attack, secret, block) + draws(mechanism, attack.looks), block)


@dataclass(frozen=True)
class Tracker:
    """The flippancy tracker: private, not retroactive."""

    epsilon: float
    delta: float

    def __call__(self, attack: PacedAttack, secret: Bits, seeds: Seeds) -> SeenCounts:
        coins = coins_of(seeds.key(), attack.rounds, self.epsilon, self.delta, None)
        design = TrackerDesign(attack.rounds, self.epsilon, self.delta, None, coins)
        found = track(design, Lives(attack.rounds, *attack.records(secret)).flips())
        return SeenCounts(found.numerators[attack.looks - 1] / found.denominator)


def exact(attack: PacedAttack, secret: Bits, seeds: Seeds) -> SeenCounts:
    """Retraining: the count of the surviving data, computed again."""
    return SeenCounts(Lives(attack.rounds, *attack.records(secret)).distinct()[attack.looks - 1].astype(np.float64))


@dataclass(frozen=True)
class FreshLaplace:
    """Retraining, with Laplace noise of its own for every release: each alone is epsilon-private."""

    epsilon: float

    def __call__(self, attack: PacedAttack, secret: Bits, seeds: Seeds) -> SeenCounts:
        noise = seeds.numpy().laplace(scale=1 / self.epsilon, size=attack.k + 1)
        return SeenCounts(counts(attack, secret) + noise)


@dataclass(frozen=True)
class FromNoise:
    """The answers of a stream without running it, from exact counts and the noise at the rounds that are looked at: for
    attacks that are too long to run."""

    plan: AttackPlan

    def __call__(self, attack: BitAttack, secret: Bits, seeds: Seeds) -> SeenCounts:
        plan, attack = self.plan, paced(attack)
        mechanism = plan.specification.mechanism(plan.name, seeds.key().coins("stream"))
        return SeenCounts(counts(attack, secret, plan.block) + draws(mechanism, plan.places(attack)), plan.block)


def draws(mechanism: Mechanism, places: I64) -> F64:
    """The noise of the first coordinate at some places."""
    drawn = [mechanism.draw(place) for place in places.tolist()]
    return np.array([int(numerators[0]) / denominator for numerators, denominator in drawn])
