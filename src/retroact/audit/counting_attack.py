"""Appendix D of the paper, executed: secret bits from the answers of a distinct count.

Bit i is 1 if a record with value i is added in the beginning. Then, query by query, the attacker adds records of their
own with the values of a random set Q_j, looks at the count, which is |Y ∪ Q_j|, and deletes them again. From
|Y| + 2|Q_j| - 2|Y ∪ Q_j| = <s_j, y> (s_j is 1 on Q_j and -1 elsewhere) follow random linear queries on the bits, and a
decoder finds nearly all bits if the errors are below about sqrt(n) / 5.

Changing a bit changes one operation (an addition), so the bits that privacy allows go by the epsilon of one operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..ledger.definition import Add, Delete, Sequence, Update
from ..testing.seeds import Seeds
from .decoding import F64, I64, Bits, decode_lp, fraction_right


@dataclass(frozen=True, eq=False)
class BitAttack:
    """The history S(y). Times come in units: the secret takes one, and every query one to add and one to delete. All
    additions of a query are in the first round of its unit and all its deletions in the last one. With ``wait`` there
    is one more unit before the attacker looks, for counts that see a record only after a while.

    >>> attack = BitAttack(random_sets(3, 2, Seeds(1)), unit=3)
    >>> attack.rounds, attack.looks.tolist()
    (15, [3, 6, 12])
    """

    sets: Bits
    unit: int = 1
    wait: int = 0

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
        return np.append(0, self.starts) + (1 + self.wait) * self.unit

    @property
    def starts(self) -> I64:
        """The round before each query."""
        return (1 + self.wait) * self.unit + np.arange(self.k) * (2 + self.wait) * self.unit

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
        """As the model has it; every deletion names the stamp of the attacker's own copy.

        >>> BitAttack(np.array([[True, False]])).history(np.array([False, True]))[1]
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
        sets = self.sets & (self.starts[:, None] + self.births <= known)
        return sets, ~sets & (self.births <= known)

    def queries(self, answers: F64, block: int = 0) -> tuple[I64, F64]:
        """The signs s_j, and b_j = a_n + 2 |Q_j| - 2 a_(m_j)."""
        sets, others = self.seen(block)
        return 1 - 2 * others.astype(np.int64), answers[0] + 2 * sets.sum(axis=1) - 2 * answers[1:]


class SeenCounts(NamedTuple):
    """The answers where the attacker looks, and the public length of blocks (0: every record counts at once)."""

    answers: F64
    block: int = 0


# Any distinct count: what it publishes on S(y).
Answering = Callable[[BitAttack, Bits, Seeds], SeenCounts]


def recovered(answering: Answering, attack: BitAttack, seeds: Seeds) -> float:
    """Fair secret bits, published through ``answering`` and decoded: the fraction that is right."""
    secret = random_bits(attack.n, seeds.branch("secret"))
    answers, block = answering(attack, secret, seeds.branch("noise"))
    return fraction_right(decode_lp(*attack.queries(answers, block)), secret)


def seen(round: npt.ArrayLike, length: int) -> I64:
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
