"""Lemma "amnesia", executed: a retroactive answer knows the round and the surviving data, and nothing else.

For a history and a round there is an insertion-only history with the same surviving data: exactly the additions of the
survivors, each in the round of its stamp. From that round on a retroactive algorithm must answer both alike, and under
one key it does, byte for byte. The flippancy tracker does not: it has counted flips that the second history never saw.

python benchmarks/amnesia.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from distinct_counts import block_mechanism, fresh_mechanism, seen
from retroact.coins import Key
from retroact.errors import InputError
from retroact.ledger.definition import Add, Delete, Update, surviving
from retroact.ledger.definition import Sequence as History
from retroact.noise import Mechanism
from retroact.stateful import FlippancyTracker
from retroact.testing import CheckFailedError, Pair, check_twin

# A value that comes and goes, beside one that stays: the smallest history with something to forget.
EXAMPLE: History = (
    (Add("stays"),),
    (Add("leaves"),),
    (Delete("leaves", 2),),
    (Add("leaves"),),
    (Delete("leaves", 4),),
    (),
    (Add("new"),),
    (),
)


@dataclass(frozen=True)
class Amnesia:
    """What the twin check said of each algorithm: the number of equal answers, or the first difference."""

    pair: Pair
    equal: dict[str, int]
    differ: dict[str, str]

    def __str__(self) -> str:
        lines = [f"histories unite at round {self.pair.unite}"]
        lines += [f"{name}: {count} answers compared, all equal byte for byte" for name, count in self.equal.items()]
        return "\n".join([*lines, *(f"{name}: {message}" for name, message in self.differ.items())])


def amnesia(
    sequence: History = EXAMPLE,
    round: int = 5,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    keys: Iterable[int] = (1, 2),
) -> Amnesia:
    """Both histories under the same keys, through two retroactive distinct counts and through the tracker.

    >>> found = amnesia()
    >>> found.equal
    {'retroactive, fresh': 8, 'retroactive, blocks': 8}
    >>> print(found.differ["tracker"].split(", after")[0])
    twin check: Pair 1 of 1 has other answers in round 5
    """
    pair = Pair(sequence, insertion_only_twin(sequence, round), round)
    equal: dict[str, int] = {}
    differ: dict[str, str] = {}

    def fresh(key: Key) -> RetroactiveDistinct:
        return RetroactiveDistinct(*fresh_mechanism(len(sequence), epsilon, delta, key))

    def blocks(key: Key) -> RetroactiveDistinct:
        return RetroactiveDistinct(*block_mechanism(len(sequence), epsilon, delta, key))

    def tracker(key: Key) -> Tracked:
        return Tracked(FlippancyTracker(len(sequence), epsilon=epsilon, delta=delta, key=key))

    for name, make in (("retroactive, fresh", fresh), ("retroactive, blocks", blocks), ("tracker", tracker)):
        try:
            equal[name] = check_twin(make, [pair], keys=keys)
        except CheckFailedError as error:
            differ[name] = str(error)
    return Amnesia(pair, equal, differ)


def insertion_only_twin(sequence: History, round: int) -> History:
    """Up to the round: the survivors of that round, each added at its stamp. After it: the same updates.

    >>> insertion_only_twin(((Add("x"),), (Delete("x", 1), Add("y"))), 2)
    ((), (Add(value='y', stamp=None, id=None, subject=None),))
    """
    if not 1 <= round <= len(sequence):
        raise InputError(f"expected a round from 1 to {len(sequence)}, got {round}", place="round")
    rounds: list[list[Update]] = [[] for _ in range(round)]
    for point, copies in surviving(sequence, round).items():
        rounds[point.stamp - 1] += [Add(point.value, id=point.id, subject=point.subject)] * copies
    return (*map(tuple, rounds), *sequence[round:])


class Tracked:
    """The tracker as the checks want it: an answer is bytes."""

    def __init__(self, tracker: FlippancyTracker) -> None:
        self._tracker = tracker

    def close(self, updates: Sequence[Update]) -> bytes:
        return self._tracker.close(updates).encode()


class RetroactiveDistinct:
    """A distinct count of the surviving data as the definition has it, with noise by the round."""

    def __init__(self, mechanism: Mechanism, length: int) -> None:
        self._mechanism, self._length = mechanism, length
        self._rounds: list[tuple[Update, ...]] = []

    def close(self, updates: Sequence[Update]) -> bytes:
        self._rounds.append(tuple(updates))
        round = len(self._rounds)
        known = int(seen(round, self._length))
        values = {point.value for point in surviving(tuple(self._rounds), round) if point.stamp <= known}
        numerators, denominator = self._mechanism.draw(round)
        answer = len(values) + Fraction(round - known, 2) + Fraction(int(numerators[0]), denominator)
        return str(answer).encode()


if __name__ == "__main__":
    print(amnesia())
