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

import numpy as np

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

    def history(self, secret: Bits) -> Sequence:
        """As the model has it; every deletion names the stamp of the attacker's own copy.

        >>> BitAttack(np.array([[True, False]])).history(np.array([False, True]))[1]
        (Add(value=0, stamp=None, id=None, subject=None),)
        """
        rounds: list[list[Update]] = [[] for _ in range(self.rounds)]
        rounds[0] += [Add(value) for value in np.flatnonzero(secret).tolist()]
        for start, own in zip(self.starts.tolist(), self.sets, strict=True):
            values = np.flatnonzero(own).tolist()
            rounds[start] += [Add(value) for value in values]
            rounds[start + (2 + self.wait) * self.unit - 1] += [Delete(value, start + 1) for value in values]
        return tuple(map(tuple, rounds))

    def queries(self, answers: F64) -> tuple[I64, F64]:
        """The signs s_j, and b_j = a_n + 2 |Q_j| - 2 a_(m_j)."""
        return 2 * self.sets.astype(np.int64) - 1, answers[0] + 2 * self.sets.sum(axis=1) - 2 * answers[1:]


# Any distinct count: what it publishes on S(y) where the attacker looks.
Answering = Callable[[BitAttack, Bits, Seeds], F64]


def recovered(answering: Answering, attack: BitAttack, seeds: Seeds) -> float:
    """Fair secret bits, published through ``answering`` and decoded: the fraction that is right."""
    secret = random_bits(attack.n, seeds.branch("secret"))
    answers = answering(attack, secret, seeds.branch("noise"))
    return fraction_right(decode_lp(*attack.queries(answers)), secret)


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
