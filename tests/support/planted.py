"""Dynamic algorithms with a bug each. Correct but for that: additions first, deletions that name something."""

from retroact.ledger.definition import Add, Delete
from support.planted_algorithms import (
    FloatSum,
    FutureDeletions,
    Reference,
    SequentialNoise,
    StaleCache,
    UnkeyedClock,
    noise_of,
)

__all__ = [
    "ArrivalOrder",
    "DictOrder",
    "FloatSum",
    "FutureDeletions",
    "GrowingState",
    "NoNoise",
    "Reference",
    "SequentialNoise",
    "StaleCache",
    "Tombstones",
    "UnkeyedClock",
]


class DictOrder(Reference):
    """The answer lists values in the order in which a dict happens to hold them."""

    def answer(self, gained, lost):
        return [point[1] for point in self.points()], noise_of(self.key, self.round)


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
