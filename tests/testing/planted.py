"""Dynamic algorithms with a bug each. Correct but for that: additions first, deletions that name something."""

from collections import Counter
from random import Random

from retroact.coins import Key
from retroact.ledger.model import Add, Delete, DeleteId, Erase


def noise_of(key: Key, *name) -> int:
    return int(key.coins(*name).words([0], [0]).block(0)[0][0, 0] % 1000)


class Reference:
    """Keeps the surviving records as the definition has them; answers with the noisy sum of their values."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.round = 0
        self.plain: Counter = Counter()
        self.held: dict = {}

    def close(self, updates) -> bytes:
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

    def points(self) -> Counter:
        return self.plain + Counter(self.held.values())

    def values(self):
        return sorted(value for (_, value, _), c in self.points().items() for _ in range(c))

    def answer(self, gained, lost):
        return sum(int(v) for v in self.values()) + noise_of(self.key, self.round)

    def state(self) -> bytes:
        return repr([self.round, sorted(self.points().items(), key=repr)]).encode()


class FloatSum(Reference):
    """A running float sum: add 1e17, remove it, and what was there before is gone."""

    total = 0.0

    def answer(self, gained, lost):
        for (_, value, _), count in sorted(gained.items(), key=repr):
            self.total += value * count
        for (_, value, _), count in sorted(lost.items(), key=repr):
            self.total -= value * count
        return self.total + noise_of(self.key, self.round)


class SequentialNoise(Reference):
    """A noise for each value, drawn from a generator when the value is first seen."""

    def __init__(self, key):
        super().__init__(key)
        self.generator = Random(noise_of(key, "seed"))
        self.noise = {}

    def answer(self, gained, lost):
        for value in dict.fromkeys(self.values()):
            self.noise.setdefault(value, self.generator.randrange(1000))
        return [(v, self.noise[v]) for v in dict.fromkeys(self.values())], noise_of(self.key, self.round)


class DictOrder(Reference):
    """The answer lists values in the order in which a dict happens to hold them."""

    def answer(self, gained, lost):
        return [point[1] for point in self.points()], noise_of(self.key, self.round)


class StaleCache(Reference):
    """Recomputes only when the number of records has changed."""

    cache = (None, None)

    def answer(self, gained, lost):
        count = sum(self.points().values())
        if self.cache[0] != count:
            self.cache = (count, sum(int(v) for v in self.values()))
        return self.cache[1] + noise_of(self.key, self.round)


class Tombstones(Reference):
    """Answers rightly, but keeps a note of every value that was deleted."""

    def __init__(self, key):
        super().__init__(key)
        self.deleted = set()

    def answer(self, gained, lost):
        self.deleted.update(point[1] for point in lost)
        return super().answer(gained, lost)

    def state(self) -> bytes:
        return super().state() + repr(sorted(self.deleted)).encode()

    def resume(self, state):
        twin = type(self)(self.key)
        twin.round, twin.plain, twin.held, twin.deleted = self.round, +self.plain, dict(self.held), set(self.deleted)
        return twin


class GrowingState(Tombstones):
    """Keeps a line for every round with deletions."""

    def answer(self, gained, lost):
        if lost:
            self.deleted.add((self.round, "something was deleted here"))
        return Reference.answer(self, gained, lost)

    def state(self) -> bytes:
        return Reference.state(self) + repr(sorted(self.deleted)).encode()


class UnkeyedClock(Reference):
    """Noise by the number of updates so far instead of the round."""

    clock = 0

    def close(self, updates):
        self.clock += len(updates)
        return super().close(updates)

    def answer(self, gained, lost):
        return sum(int(v) for v in self.values()) + noise_of(self.key, self.clock)


class FutureDeletions(Reference):
    """Remembers a deletion that found nothing, and lets it cancel a later addition."""

    def __init__(self, key):
        super().__init__(key)
        self.pending = []

    def close(self, updates):
        self.pending += [u for u in updates if isinstance(u, Delete)]
        return super().close([*(u for u in updates if not isinstance(u, Delete)), *self.pending])


class ArrivalOrder(Reference):
    """Processes a round in arrival order, so a deletion before its addition is lost."""

    def close(self, updates):
        for k, u in enumerate(updates):
            if isinstance(u, Delete) and any(
                isinstance(a, Add) and a.id is None and a.value == u.value and (a.stamp or self.round + 1) == u.stamp
                for a in updates[k + 1 :]
            ):
                updates = tuple(x for x in updates if x is not u)
        return super().close(updates)


class NoNoise(Reference):
    def answer(self, gained, lost):
        return sum(int(v) for v in self.values())
