"""Small algorithms with one bug each that breaks retroactivity, and some that are right: what the audit is tried on.

All of them take additions first and then deletions, each of which removes one record if it names one, as the
definition of the surviving data has it; their answers are the text of numbers, lists and pairs. Each is wrong in
exactly one way, and each of these ways has been seen in programs that were meant to be right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from random import Random
from typing import Any

from retroact.coins import Key
from retroact.ledger.definition import Add, Delete, DeleteId, Erase, Update
from retroact.testing.histories import Shape

Record = tuple[int, Any, Hashable]
"""Stamp, value, subject."""

# Numbers that show what floating point forgets (1e16 and tenths), and that meet in one place of a small hash table.
NASTY = Shape(values=(1.0, 0.1, 1e16, -0.3, 0.7, 8.0, 16.0, 7), rounds=8, updates=5)


def noise_of(key: Key, *name: int | str) -> int:
    """Below 1000, by name: the same whatever happened before.

    >>> noise_of(Key.for_testing(1), 3) == noise_of(Key.for_testing(1), 3)
    True
    """
    return int(key.coins(*name).words([0], [0]).block(0)[0][0, 0] % 1000)


class Reference:
    """Right: keeps the surviving records as the definition has them; answers with the noisy sum of their values."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.round = 0
        self.plain: Counter[Record] = Counter()
        self.held: dict[Hashable, Record] = {}

    def close(self, updates: Sequence[Update]) -> bytes:
        self.round += 1
        before = self.points()
        for u in updates:
            if isinstance(u, Add) and u.id is None and (u.stamp or self.round) <= self.round:
                self.plain[u.stamp or self.round, u.value, u.subject] += 1
        for u in updates:
            if isinstance(u, Delete) and self.plain[u.stamp, u.value, u.subject] > 0:
                self.plain[u.stamp, u.value, u.subject] -= 1
        for u in updates:
            if isinstance(u, Add) and u.id is not None and (u.stamp or self.round) <= self.round:
                self.held[u.id] = (u.stamp or self.round, u.value, u.subject)
            elif isinstance(u, DeleteId):
                self.held.pop(u.id, None)
        for u in updates:
            if isinstance(u, Erase):
                self.plain = Counter({k: c for k, c in self.plain.items() if k[2] != u.subject})
                self.held = {i: p for i, p in self.held.items() if p[2] != u.subject}
        self.plain = +self.plain
        after = self.points()
        return repr(self.answer(after - before, before - after)).encode()

    def points(self) -> Counter[Record]:
        return self.plain + Counter(self.held.values())

    def values(self) -> list[Any]:
        return sorted(value for (_, value, _), count in self.points().items() for _ in range(count))

    def total(self) -> Fraction:
        return sum((Fraction(value) for value in self.values()), Fraction(0))

    def noise(self) -> int:
        return noise_of(self.key, self.round)

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        """What is published once a round has gained and lost these records."""
        return sum(int(v) for v in self.values()) + self.noise()

    def state(self) -> bytes:
        return repr([self.round, sorted(self.points().items(), key=repr)]).encode()


# Right in other ways ------------------------------------------------------------------------------------------------


class ExactSum(Reference):
    """Right: the sum in fractions, rounded once at the end."""

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        return float(self.total()) + self.noise()


class NamedNoise(Reference):
    """Right: a count for every value that survives, with noise named by the round and the value."""

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        return [(v, c + noise_of(self.key, self.round, repr(v))) for v, c in sorted(Counter(self.values()).items())]


class Bottom(Reference):
    """Right: answers in every third round, and says nothing between."""

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        return super().answer(gained, lost) if self.round % 3 == 0 else None


class StampedBlocks(Reference):
    """Right: counts different values among the records stamped before the block of three rounds."""

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        start = (self.round - 1) // 3 * 3
        return len({value for stamp, value, _ in self.points() if stamp <= start}) + self.noise()


class RankedSample(Reference):
    """Right: the three records whose named random ranks are least, whatever order they came in."""

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        copies = [(record, copy) for record, count in self.points().items() for copy in range(count)]
        ranked = sorted((noise_of(self.key, "rank", repr(record), copy), repr(record)) for record, copy in copies)
        return ranked[:3]


# Seventeen ways to remember -----------------------------------------------------------------------------------------


def _each(records: Counter[Record]) -> Iterable[tuple[Any, int]]:
    for (_, value, _), count in sorted(records.items(), key=repr):
        yield value, count


class FloatSum(Reference):
    """A running float sum: add 1e17, remove it, and what was there before is gone."""

    running = 0.0

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        for value, count in _each(gained):
            self.running += value * count
        for value, count in _each(lost):
            self.running -= value * count
        return self.running + self.noise()


class DictOrderSum(Reference):
    """Adds up floats in the order in which a dict holds them, which is the order of arrival."""

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        return float(sum(value * count for (_, value, _), count in self.points().items())), self.noise()


class SequentialNoise(Reference):
    """A noise for each value, drawn from a generator when the value is first seen."""

    def __init__(self, key: Key) -> None:
        super().__init__(key)
        self.generator = Random(noise_of(key, "seed"))
        self.drawn: dict[Any, int] = {}

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        for value in dict.fromkeys(self.values()):
            self.drawn.setdefault(value, self.generator.randrange(1000))
        return [(v, self.drawn[v]) for v in dict.fromkeys(self.values())], self.noise()


class StaleCache(Reference):
    """Recomputes only when the number of records has changed."""

    cache: tuple[int | None, int] = (None, 0)

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        count = sum(self.points().values())
        if self.cache[0] != count:
            self.cache = (count, sum(int(v) for v in self.values()))
        return self.cache[1] + self.noise()


class CountedTombstones(Reference):
    """Marks deleted values as dead instead of removing them, and counts the marks among the different values."""

    def __init__(self, key: Key) -> None:
        super().__init__(key)
        self.known: set[Any] = set()

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        self.known |= {value for _, value, _ in gained + lost}
        return len(self.known) + self.noise()


class AdaptiveScale(Reference):
    """Widens its noise with every four records that have ever been lost."""

    gone = 0

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        self.gone += lost.total()
        return len(self.values()) + self.noise() * 2 ** (self.gone // 4)


class RunningMax(Reference):
    """Never shows less than the largest number of records it has ever had."""

    most = 0

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        self.most = max(self.most, len(self.values()))
        return self.most + self.noise()


class Smoothing(Reference):
    """Shows the average of the count and of what it would have shown before."""

    level = Fraction(0)

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        self.level = (self.level + len(self.values())) / 2
        return float(self.level) + self.noise()


class ActiveBins(Reference):
    """A value that was once common enough to be shown stays in the answer."""

    def __init__(self, key: Key) -> None:
        super().__init__(key)
        self.active: set[Any] = set()

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        counts = Counter(self.values())
        self.active |= {value for value, count in counts.items() if count >= 2}
        return [(v, counts[v] + noise_of(self.key, self.round, repr(v))) for v in sorted(self.active)]


class RankDeletion(Reference):
    """Samples every other record by its place in a list; a deletion moves the last one into the gap."""

    def __init__(self, key: Key) -> None:
        super().__init__(key)
        self.places: list[Any] = []

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        for value, count in _each(gained):
            self.places += [value] * count
        for value, count in _each(lost):
            for _ in range(count):
                place = self.places.index(value)
                self.places[place] = self.places[-1]
                self.places.pop()
        return float(sum(Fraction(v) for v in self.places[::2])) + self.noise()


class UnkeyedClock(Reference):
    """Names its noise by the number of updates so far instead of the round."""

    clock = 0

    def close(self, updates: Sequence[Update]) -> bytes:
        self.clock += len(updates)
        return super().close(updates)

    def noise(self) -> int:
        return noise_of(self.key, self.clock)


class StaleBlock(Reference):
    """Answers anew in every third round and repeats itself between."""

    kept = 0

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        if (self.round - 1) % 3 == 0:
            self.kept = len(self.values()) + self.noise()
        return self.kept


class SetOrder(Reference):
    """Lists different values as a set happens to hold them: by where they met others when they came."""

    def __init__(self, key: Key) -> None:
        super().__init__(key)
        self.different: set[Any] = set()

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        for value in dict.fromkeys(value for _, value, _ in gained):
            self.different.add(value)
        self.different -= {value for _, value, _ in lost} - set(self.values())
        return list(self.different), self.noise()


class FutureDeletions(Reference):
    """Remembers a deletion that found nothing, and lets it cancel a later addition."""

    def __init__(self, key: Key) -> None:
        super().__init__(key)
        self.pending: list[Update] = []

    def close(self, updates: Sequence[Update]) -> bytes:
        self.pending += [u for u in updates if isinstance(u, Delete)]
        return super().close([*(u for u in updates if not isinstance(u, Delete)), *self.pending])


class AllCopies(Reference):
    """One deletion removes all copies of what it names."""

    def close(self, updates: Sequence[Update]) -> bytes:
        more = [u for u in updates if isinstance(u, Delete) for _ in range(100)]
        return super().close([*(u for u in updates if not isinstance(u, Delete)), *more])


class Exhausted(Reference):
    """Stops after ten updates."""

    spent = 0

    def close(self, updates: Sequence[Update]) -> bytes:
        self.spent += len(updates)
        answer = super().close(updates)
        return answer if self.spent <= 10 else b"None"


class Reservoir(Reference):
    """A sample of three by the textbook: deleted records leave gaps in it, and its coins are drawn in order."""

    def __init__(self, key: Key) -> None:
        super().__init__(key)
        self.generator = Random(noise_of(key, "seed"))
        self.sample: list[Any] = []
        self.seen = 0

    def answer(self, gained: Counter[Record], lost: Counter[Record]) -> Any:
        for value, count in _each(gained):
            for _ in range(count):
                self.seen += 1
                if len(self.sample) < 3:
                    self.sample.append(value)
                elif (place := self.generator.randrange(self.seen)) < 3:
                    self.sample[place] = value
        for value, count in _each(lost):
            for _ in range(count):
                if value in self.sample:
                    self.sample.remove(value)
        return sorted(self.sample), self.noise()


PLANTED: dict[str, type[Reference]] = {
    "float residue": FloatSum,
    "float sum in the order of a dict": DictOrderSum,
    "noise drawn at first touch": SequentialNoise,
    "stale cache": StaleCache,
    "tombstones": CountedTombstones,
    "adaptive scale": AdaptiveScale,
    "running maximum": RunningMax,
    "exponential smoothing": Smoothing,
    "bins stay active": ActiveBins,
    "deletion by rank": RankDeletion,
    "noise by the number of updates": UnkeyedClock,
    "stale answer of a block": StaleBlock,
    "order of a set": SetOrder,
    "pending deletion": FutureDeletions,
    "deletion removes all copies": AllCopies,
    "stops after a budget of updates": Exhausted,
    "naive reservoir": Reservoir,
}
CORRECT: dict[str, type[Reference]] = {
    "sum": Reference,
    "exact sum of floats": ExactSum,
    "noise by name": NamedNoise,
    "nothing between releases": Bottom,
    "stamped blocks": StampedBlocks,
    "sample by named ranks": RankedSample,
}
