"""Families of histories that unite: pairs that an algorithm must answer alike from some round on.

Each family takes a random history and makes a second one that differs in one way: records that came and went, deletions
that matched nothing, another order, and so on. The round in which the two unite is never assumed: it is computed from
the definition of the surviving data, and pairs that do not unite are dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from random import Random

from ..ledger.definition import Add, Delete, DeleteId, Erase, Sequence, Update, trajectory, unite_at
from ..stream import Specification
from .histories import Pair, Shape, admitted, history, inserted, shuffled

# Makes two histories that should unite, from a base history and its shape.
Change = Callable[[Sequence, Shape, Random], tuple[Sequence, Sequence]]
# A family without a pair after this many draws in a row is taken to have no more of this shape.
DRAWS = 40


def draw(family: str, shape: Shape, random: Random, count: int, *, window: int | None = None) -> list[Pair]:
    """Up to ``count`` pairs of a family; none if the shape does not allow any.

    >>> pairs = draw("erased lifecycles", Shape(values=("a", "b"), rounds=4), Random(1), 10)
    >>> len(pairs), all(unite_at(pair.one, pair.other) == pair.unite for pair in pairs)
    (10, True)
    >>> draw("late data", Shape(values=("a", "b"), late=False), Random(1), 10)
    []
    """
    pairs: list[Pair] = []
    misses = 0
    while len(pairs) < count and misses < DRAWS:
        pair = FAMILIES[family](shape, random, window)
        if pair is None:
            misses += 1
        else:
            misses = 0
            pairs.append(pair)
    return pairs


def uniting_pairs(shape: Shape, random: Random, count: int) -> Iterator[Pair]:
    """``count`` pairs of random families that unite within the horizon."""
    drawn = [family for family in FAMILIES.values() if not family.live]
    while count:
        pair = random.choice(drawn)(shape, random)
        if pair is not None:
            count -= 1
            yield pair


def without_effect(base: Sequence, shape: Shape, random: Random) -> Sequence:
    """The same history with additional deletions that match nothing."""
    return admitted(_no_ops(base, shape, random)[1], shape)


def live_window(specification: Specification | None) -> int | None:
    """The number of rounds after which no statistic counts a record any more; None if one of them always does.

    >>> import retroact as ra
    >>> schema, windowed = {"age": ra.Integer(0, 120)}, {"n": ra.Count(window=3), "s": ra.Sum("age", window=2)}
    >>> live_window(ra.Specification(schema, windowed, epsilon=1.0, horizon=9))
    3
    >>> live_window(ra.Specification(schema, {"n": ra.Count()}, epsilon=1.0, horizon=9)) is None
    True
    """
    if specification is None:
        return None
    reaches = []
    for bound in specification.bounds.values():
        for view in bound.views:
            if view.window is None:
                return None
            reaches.append(view.window + view.lag)
    return max(reaches)


def unite_live(one: Sequence, other: Sequence, window: int) -> int | None:
    """The first round from which the records of the last ``window`` rounds are equal.

    >>> unite_live(((Add("x"),), (), ()), ((), (), ()), 2)
    3
    """
    united = None
    datas = zip(trajectory(one), trajectory(other), strict=True)
    for round, sides in reversed(list(enumerate(datas, 1))):
        mine, theirs = (Counter({p: c for p, c in data.items() if round - p.stamp < window}) for data in sides)
        if mine != theirs:
            break
        united = round
    return united


def _plain_subject(shape: Shape, random: Random) -> Hashable:
    return random.choice([None, "s0", "gone"]) if shape.subjects else None


def _life(base: Sequence, shape: Shape, random: Random, name: str, *, within: int | None = None) -> Sequence:
    """A record that comes and goes: deleted by value, by id, or by erasing its subject."""
    first = random.randint(1, within or shape.rounds)
    rounds = range(first, (within or shape.rounds) + 1)
    last = random.choice([first, *rounds])
    value = random.choice(shape.values)
    ways = ["value", *(["id"] if shape.ids else []), *(["subject"] if shape.subjects else [])]
    way = random.choice(ways)
    if way == "id":
        with_it = inserted(base, first, (Add(value, id=name),), random)
        return inserted(with_it, last, (DeleteId(name),), random, end=True)
    subject = name if way == "subject" else _plain_subject(shape, random)
    gone: Update = Erase(name) if way == "subject" else Delete(value, first, subject)
    return inserted(inserted(base, first, (Add(value, subject=subject),), random), last, (gone,), random)


def _erased(base: Sequence, shape: Shape, random: Random) -> tuple[Sequence, Sequence]:
    other = base
    for number in range(random.randint(1, 3)):
        other = _life(other, shape, random, f"gone{number}")
    return base, other


def _no_ops(base: Sequence, shape: Shape, random: Random) -> tuple[Sequence, Sequence]:
    """Deletions that match nothing: never added, wrong stamp, not yet added, unknown id or subject."""
    other = base
    coming = [(r, u) for r, us in enumerate(base, 1) for u in us if isinstance(u, Add) and u.id is None and not u.stamp]
    for arrival, add in random.sample(coming, min(2, len(coming))):
        if arrival > 1:
            early = Delete(add.value, arrival, add.subject)
            other = inserted(other, random.randint(1, arrival - 1), (early,), random)
    for _ in range(random.randint(1, 4)):
        round = random.randint(1, len(base))
        value = random.choice(shape.values)
        idle: list[Update] = [
            Delete(value, len(base) + random.randint(1, 5)),
            Delete(value, random.randint(1, len(base)), subject="nobody"),
            DeleteId("nothing"),
            Erase("nobody"),
            Add(value, stamp=round + random.randint(1, 3)),
        ]
        other = inserted(other, round, (random.choice(idle),), random)
    return base, other


def _exhausted(base: Sequence, shape: Shape, random: Random) -> tuple[Sequence, Sequence]:
    """Copies of one record and as many deletions, or one more; sometimes a few copies survive."""
    value, subject = random.choice(shape.values), _plain_subject(shape, random)
    first = random.randint(1, shape.rounds)
    copies, stay = random.randint(1, 3), random.choice([0, 0, 1, 2])
    kept = inserted(base, first, (Add(value, subject=subject),) * stay, random) if stay else base
    other = inserted(base, first, (Add(value, subject=subject),) * (copies + stay), random)
    for _ in range(copies + (0 if stay else random.randint(0, 1))):
        last = random.randint(first, shape.rounds)
        other = inserted(other, last, (Delete(value, first, subject),), random)
    return kept, other


def _shuffled(base: Sequence, shape: Shape, random: Random) -> tuple[Sequence, Sequence]:
    """Longer rounds, so that there is more to shuffle."""
    base = history(replace(shape, updates=3 * shape.updates), random)
    return base, tuple(shuffled(updates, random) for updates in base)


def _late(base: Sequence, shape: Shape, random: Random) -> tuple[Sequence, Sequence]:
    """A late record against one on time; or a late record that is deleted, against none."""
    if not shape.late or shape.rounds < 2:
        return base, base
    stamp = random.randint(1, shape.rounds - 1)
    arrival = random.randint(stamp + 1, shape.rounds)
    value, subject = random.choice(shape.values), _plain_subject(shape, random)
    late = inserted(base, arrival, (Add(value, stamp, None, subject),), random)
    if random.random() < 0.5:
        return base, inserted(late, random.randint(arrival, shape.rounds), (Delete(value, stamp, subject),), random)
    return inserted(base, stamp, (Add(value, subject=subject),), random), late


def _flips(base: Sequence, shape: Shape, random: Random) -> tuple[Sequence, Sequence]:
    """One value that comes and goes repeatedly up to some round."""
    value, subject = random.choice(shape.values), _plain_subject(shape, random)
    rounds = range(2, shape.rounds + 1, 2) if shape.rounds > 1 else range(1, 2)
    other = base
    for first, last in zip([0, *rounds], rounds[: random.randint(1, max(1, len(rounds)))], strict=False):
        start = random.randint(first + 1, last)
        other = inserted(other, start, (Add(value, subject=subject),), random)
        other = inserted(other, last, (Delete(value, start, subject),), random)
    return base, other


def _forgotten(base: Sequence, shape: Shape, random: Random) -> tuple[Sequence, Sequence]:
    """The strongest twin: up to some round, only the survivors of that round, each added at its stamp."""
    round = random.randint(1, len(base))
    survivors = trajectory(base)[round - 1]
    rounds: list[list[Update]] = [[] for _ in range(round)]
    for point, copies in survivors.items():
        rounds[point.stamp - 1] += [Add(point.value, id=point.id, subject=point.subject)] * copies
    return base, (*(tuple(random.sample(updates, len(updates))) for updates in rounds), *base[round:])


def _moved(base: Sequence, shape: Shape, random: Random) -> tuple[Sequence, Sequence]:
    """Records that are deleted by some round, against other ones that are deleted by then."""
    within = random.randint(1, shape.rounds)
    one = other = base
    for number in range(random.randint(1, 2)):
        one = _life(one, shape, random, f"gone{number}", within=within)
        other = _life(other, shape, random, f"gone{number}", within=within)
    return one, other


def _replaced(base: Sequence, shape: Shape, random: Random) -> tuple[Sequence, Sequence]:
    """An id that held another record before, against one that did not; sometimes it is deleted in the end."""
    if not shape.ids:
        return base, base
    id = "again"
    first, then = sorted((random.randint(1, shape.rounds), random.randint(1, shape.rounds)))
    subject = _plain_subject(shape, random)
    last = Add(random.choice(shape.values), id=id, subject=subject)
    one = inserted(base, then, (last,), random, end=True)
    before: tuple[Update, ...] = (Add(random.choice(shape.values), id=id, subject=_plain_subject(shape, random)),)
    other = inserted(inserted(base, first, before, random, end=True), then, (last,), random, end=True)
    if random.random() < 0.3:
        end = random.randint(then, shape.rounds)
        one, other = (inserted(side, end, (DeleteId(id),), random, end=True) for side in (one, other))
    return one, other


def _expired(base: Sequence, shape: Shape, random: Random) -> tuple[Sequence, Sequence]:
    """A record that stays or is deleted late: it has left every window in either case."""
    value, subject = random.choice(shape.values), _plain_subject(shape, random)
    first = random.randint(1, shape.rounds)
    other = inserted(base, first, (Add(value, subject=subject),), random)
    if random.random() < 0.5:
        other = inserted(other, shape.rounds, (Delete(value, first, subject),), random)
    return base, other


class Family:
    """Draws pairs. ``live``: they unite in what is still in a window, not in all surviving data."""

    def __init__(self, change: Change, *, live: bool = False) -> None:
        self.change, self.live = change, live

    def __call__(self, shape: Shape, random: Random, window: int | None = None) -> Pair | None:
        """A pair, or None if the two do not unite or are equal."""
        if self.live and window is None:
            return None
        one, other = (admitted(side, shape) for side in self.change(history(shape, random), shape, random))
        unite = self.unite(one, other, window)
        return None if unite is None or one == other else Pair(one, other, unite)

    def unite(self, one: Sequence, other: Sequence, window: int | None = None) -> int | None:
        """The first round from which the two must be answered alike."""
        if not self.live:
            return unite_at(one, other)
        return None if window is None else unite_live(one, other, window)


FAMILIES = {
    "erased lifecycles": Family(_erased),
    "no-op deletions": Family(_no_ops),
    "exhausted multiplicities": Family(_exhausted),
    "shuffled rounds": Family(_shuffled),
    "expiry": Family(_expired, live=True),
    "late data": Family(_late),
    "flips": Family(_flips),
    "amnesia": Family(_forgotten),
    "moved": Family(_moved),
    "replaced ids": Family(_replaced),
}
