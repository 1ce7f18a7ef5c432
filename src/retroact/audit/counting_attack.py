"""Appendix D of the paper, executed: secret bits from the answers of a distinct count.

Bit i is 1 if a record with value i is added in the beginning. Then, query by query, the attacker adds records of their
own with the values of a random set Q_j, looks at the count, which is |Y ∪ Q_j|, and deletes them again. From
|Y| + 2|Q_j| - 2|Y ∪ Q_j| = <s_j, y> (s_j is 1 on Q_j and -1 elsewhere) follow random linear queries on the bits, and a
decoder finds nearly all bits if the errors are below about sqrt(n) / 5.

Changing a bit changes one operation (an addition), so the bits that privacy allows go by the epsilon of one operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..ledger.definition import Add, Delete, Sequence, Update
from ..testing.seeds import Seeds
from .decoding import F64, I64, Bits, decode_lp, decode_squares, fraction_right


@dataclass(frozen=True, eq=False)
class Attack:
    """The history S(y). Times come in units: the secret takes one, and every query one to add and one to delete.

    In the paper a unit is n rounds with one update in each (``spread``). Otherwise all additions of a query are in the
    first round of its unit and all its deletions in the last one. With ``wait`` there is one more unit before the
    attacker looks, for counts that see a record only after a while.

    >>> attack = Attack.paper(3, 2, Seeds(1))
    >>> attack.rounds, attack.looks.tolist()
    (15, [3, 6, 12])
    """

    sets: Bits
    unit: int = 1
    wait: int = 0
    spread: bool = False

    @classmethod
    def paper(cls, n: int, k: int, seeds: Seeds) -> Attack:
        """As in the proof: T = (2k + 1) n rounds."""
        return cls(random_sets(n, k, seeds), unit=n, spread=True)

    @property
    def n(self) -> int:
        return int(self.sets.shape[1])

    @property
    def k(self) -> int:
        return int(self.sets.shape[0])

    @property
    def rounds(self) -> int:
        return rounds_of(self.k, self.unit, self.wait)

    @property
    def looks(self) -> I64:
        """The rounds whose answers are needed: once the secret is there, and once for every query."""
        return np.append(0, self._starts) + (1 + self.wait) * self.unit

    @property
    def _starts(self) -> I64:
        return (1 + self.wait) * self.unit + np.arange(self.k) * (2 + self.wait) * self.unit

    @property
    def _births(self) -> I64:
        """Within a unit."""
        return np.arange(1, self.n + 1) if self.spread else np.ones(self.n, dtype=np.int64)

    def records(self, secret: Bits) -> tuple[I64, I64, I64]:
        """Values, births and deaths of all records: those of the secret stay (until after the last round), those of a
        query go again."""
        held = np.flatnonzero(secret)
        query, value = np.nonzero(self.sets)
        births = self._starts[query] + self._births[value]
        end = (2 + self.wait) * self.unit
        deaths = births + (1 + self.wait) * self.unit if self.spread else self._starts[query] + end
        return (
            np.concatenate([held, value]),
            np.concatenate([self._births[held], births]),
            np.concatenate([np.full(len(held), self.rounds + 1), deaths]),
        )

    def history(self, secret: Bits) -> Sequence:
        """As the model has it; every deletion names the stamp of the attacker's own copy.

        >>> Attack(np.array([[True, False]])).history(np.array([False, True]))[1]
        (Add(value=0, stamp=None, id=None, subject=None),)
        """
        rounds: list[list[Update]] = [[] for _ in range(self.rounds + 1)]
        for value, birth, death in zip(*(column.tolist() for column in self.records(secret)), strict=True):
            rounds[birth - 1].append(Add(value))
            rounds[death - 1].append(Delete(value, birth))
        return tuple(map(tuple, rounds[:-1]))

    def seen(self, block: int = 0) -> tuple[Bits, Bits]:
        """For every query the values of the set that count when the attacker looks, and those values of which only the
        secret record can count; ``block`` is that of a count of stamps before the block."""
        known = seen(self.looks[1:], block)[:, None]
        sets = self.sets & (self._starts[:, None] + self._births <= known)
        return sets, ~sets & (self._births <= known)

    def counts(self, secret: Bits, block: int = 0) -> I64:
        """The exact counts where the attacker looks: |Y| and |Y ∪ Q_j|."""
        sets, others = self.seen(block)
        first = int(secret[self._births <= seen(self.looks[0], block)].sum())
        return np.append(first, sets.sum(axis=1) + others @ secret.astype(np.int64))

    def queries(self, answers: F64, block: int = 0) -> tuple[I64, F64]:
        """The signs s_j, and b_j = a_n + 2 |Q_j| - 2 a_(m_j)."""
        sets, others = self.seen(block)
        return 1 - 2 * others.astype(np.int64), answers[0] + 2 * sets.sum(axis=1) - 2 * answers[1:]


class Published(NamedTuple):
    """The answers where the attacker looks, and the public length of blocks (0: every record counts at once)."""

    answers: F64
    block: int = 0


# Any distinct count: what it publishes on S(y).
Answering = Callable[[Attack, Bits, Seeds], Published]


class Recovered(NamedTuple):
    """Fractions of bits that are right, by linear programming and by least squares; the RMS error of the answers."""

    lp: float
    squares: float
    error: float


def reconstruct(answering: Answering, attack: Attack, seeds: Seeds, *, shift: bool = True) -> Recovered:
    """Fair secret bits, published through ``answering``, decoded; without a ``shift`` by the paper's own program.

    >>> reconstruct(Gaussian(0.0), Attack.paper(16, 64, Seeds(1)), Seeds(2))
    Recovered(lp=1.0, squares=1.0, error=0.0)
    """
    secret = random_bits(attack.n, seeds.branch("secret"))
    answers, block = answering(attack, secret, seeds.branch("noise"))
    queries, b = attack.queries(answers, block)
    error = math.sqrt(float(np.mean((answers - attack.counts(secret, block)) ** 2)))
    decoders = partial(decode_lp, shift=shift), decode_squares
    lp, squares = (fraction_right(decode(queries, b), secret) for decode in decoders)
    return Recovered(lp, squares, error)


@dataclass(frozen=True)
class Gaussian:
    """Errors of the given standard deviation, and junk in place of a fraction of the answers."""

    deviation: float
    junk: float = 0.0

    def __call__(self, attack: Attack, secret: Bits, seeds: Seeds) -> Published:
        random = seeds.numpy()
        answers = attack.counts(secret) + self.deviation * random.standard_normal(attack.k + 1)
        wrong = random.random(attack.k + 1) < self.junk
        wrong[0] = False
        return Published(np.where(wrong, random.uniform(0, attack.n, attack.k + 1), answers))


def seen(round: npt.ArrayLike, length: int) -> npt.NDArray[np.int64]:
    """The last stamp that counts in a round.

    >>> seen([1, 4, 5, 8], 4).tolist(), seen([1, 4, 5, 8], 0).tolist()
    ([0, 0, 4, 4], [1, 4, 5, 8])
    """
    rounds = np.asarray(round, dtype=np.int64)
    return length * ((rounds - 1) // length) if length else rounds


def rounds_of(k: int, unit: int, wait: int = 0) -> int:
    """How long an attack of k queries takes."""
    return (1 + wait + k * (2 + wait)) * unit


def random_bits(n: int, seeds: Seeds) -> Bits:
    return seeds.numpy().integers(0, 2, n).astype(bool)


def random_sets(n: int, k: int, seeds: Seeds) -> Bits:
    """Every value is in every set with probability 1/2."""
    if n < 1 or k < 1:
        raise InputError(f"expected at least one bit and one query, got {n} and {k}")
    return seeds.branch("sets").numpy().integers(0, 2, (k, n)).astype(bool)


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
            attack = Attack(random_sets(n, 4 * n, own))
            found.append(reconstruct(Gaussian(ratio * math.sqrt(n), junk), attack, own)[:2])
        lp, squares = np.mean(found, axis=0).tolist()
        rows.append((ratio, lp, squares))
    return rows
