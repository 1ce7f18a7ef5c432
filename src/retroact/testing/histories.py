"""Histories that unite, and histories that are neighbours, from a seeded generator.

A uniting pair is a base history and one or more changes that leave no trace in the surviving data; the round from
which they unite is then computed from the definition, and pairs that do not unite are dropped.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from random import Random

from ..ledger.definition import Add, Delete, DeleteId, Erase, Point, Sequence, Update, trajectory, unite_at
from ..schema import Boolean, Category, Field, Schema, Vector

# Where a value may be missing, so often it is.
ABSENT = 0.5


@dataclass(frozen=True)
class Shape:
    """What generated histories look like."""

    values: tuple[Hashable, ...]
    rounds: int = 8
    updates: int = 3
    ids: int = 3
    subjects: int = 3
    late: bool = True


@dataclass(frozen=True)
class Pair:
    """Two histories, and the first round from which they must not differ."""

    one: Sequence
    other: Sequence
    unite: int


def values_of(schema: Schema, random: Random, count: int = 6, *, whole: bool = False) -> tuple[Hashable, ...]:
    """Records of a schema, as tuples: the corners of the bounds among them. Every other one is whole, or all are; the
    rest may lack what a record of this schema may lack, and have None there."""
    return tuple(
        tuple(_value(field, random, may_lack=number % 2 > 0 and not whole) for field in schema.fields.values())
        for number in range(count)
    )


def history(shape: Shape, random: Random) -> Sequence:
    """Additions, late ones too, deletions that hit, miss, come too often or too early, events on ids, erasures."""
    rounds: list[tuple[Update, ...]] = []
    known: list[Add] = []
    for round in range(1, shape.rounds + 1):
        updates: list[Update] = []
        for _ in range(random.randrange(shape.updates + 1)):
            update = _update(shape, round, known, random)
            if isinstance(update, Add):
                known.append(replace(update, stamp=update.stamp or round))
            updates.append(update)
        rounds.append(tuple(updates))
    return admitted(tuple(rounds), shape)


def crowded(base: Sequence, shape: Shape, copies: int = 300) -> Sequence:
    """The history with many copies of every value from its first round on: enough for any threshold."""
    return (tuple(Add(value) for value in shape.values for _ in range(copies)) + base[0], *base[1:])


def admitted(base: Sequence, shape: Shape) -> Sequence:
    """The history without what a stream of this shape refuses at its door."""
    return tuple(
        tuple(update for update in updates if _admits(shape, round, update)) for round, updates in enumerate(base, 1)
    )


def _admits(shape: Shape, round: int, update: Update) -> bool:
    return shape.late or not isinstance(update, Add) or update.stamp is None or update.stamp >= round


def uniting_pairs(shape: Shape, random: Random, count: int) -> Iterator[Pair]:
    """``count`` pairs that unite within the horizon."""
    while count:
        base = history(shape, random)
        other = base
        for change in random.sample(CHANGES, random.randint(1, 3)):
            other = change(other, shape, random)
        other = admitted(other, shape)
        unite = unite_at(base, other)
        if unite is not None and base != other:
            count -= 1
            yield Pair(base, other, unite)


def neighbouring_pairs(shape: Shape, random: Random, count: int) -> Iterator[tuple[Sequence, Sequence]]:
    """Pairs that differ in one addition or deletion (an addition over a surviving id, which is two, is left out)."""
    while count:
        base = history(shape, random)
        round = random.randint(1, shape.rounds)
        known = [replace(u, stamp=u.stamp or r) for r, us in enumerate(base, 1) for u in us if isinstance(u, Add)]
        update = _update(shape, round, known, random)
        replaces = isinstance(update, Add) and update.id is not None
        if isinstance(update, Erase) or replaces or not _admits(shape, round, update):
            continue
        count -= 1
        yield base, inserted(base, round, (update,), random)


def amnesia(base: Sequence, shape: Shape, random: Random) -> Sequence:
    """The strongest twin: up to some round, exactly the survivors of that round, each at its stamp, nothing else."""
    round = random.randint(1, len(base))
    survivors = trajectory(base)[round - 1]
    rounds: list[list[Update]] = [[] for _ in range(round)]
    for point, copies in survivors.items():
        rounds[point.stamp - 1] += [addition(point)] * copies
    return (*(tuple(random.sample(updates, len(updates))) for updates in rounds), *base[round:])


def _lifecycle(base: Sequence, shape: Shape, random: Random) -> Sequence:
    """A record, maybe several copies of it, that comes and goes."""
    first = random.randint(1, len(base))
    last = random.randint(first, len(base))
    value = random.choice(shape.values)
    copies = random.randint(1, 3)
    if random.random() < 0.5:
        id = f"dead{random.randrange(10)}"
        return inserted(inserted(base, first, (Add(value, id=id),), random), last, (DeleteId(id),), random, end=True)
    subject = random.choice([None, "dead"])
    gone = (Delete(value, first, subject),) * (copies + random.randint(0, 1))
    return inserted(inserted(base, first, (Add(value, subject=subject),) * copies, random), last, gone, random)


def nothing(base: Sequence, shape: Shape, random: Random) -> Sequence:
    """Deletions that name nothing: never added, a wrong stamp, an addition still to come, an unknown id or subject."""
    coming = [(r, u) for r, us in enumerate(base, 1) for u in us if isinstance(u, Add) and u.id is None and not u.stamp]
    for arrival, add in random.sample(coming, min(2, len(coming))):
        if arrival > 1:
            early = Delete(add.value, arrival, add.subject)
            base = inserted(base, random.randint(1, arrival - 1), (early,), random)
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
        base = inserted(base, round, (random.choice(idle),), random)
    return base


def _erasure(base: Sequence, shape: Shape, random: Random) -> Sequence:
    """Where a subject is erased: the history in which he never was, up to that round."""
    erased = [(r, u.subject) for r, updates in enumerate(base, 1) for u in updates if isinstance(u, Erase)]
    if not erased:
        return base
    last, subject = random.choice(erased)
    return tuple(
        tuple(u for u in updates if not (round <= last and isinstance(u, Add) and u.subject == subject))
        for round, updates in enumerate(base, 1)
    )


def _shuffle(base: Sequence, shape: Shape, random: Random) -> Sequence:
    return tuple(shuffled(updates, random) for updates in base)


CHANGES = [amnesia, amnesia, _lifecycle, _lifecycle, nothing, _erasure, _shuffle]


def shuffled(updates: tuple[Update, ...], random: Random) -> tuple[Update, ...]:
    """Another arrival order within a round; events on one id keep theirs, which decides."""
    order = random.sample(range(len(updates)), len(updates))
    places: dict[Hashable, list[int]] = {}
    for position in order:
        places.setdefault(_register(updates[position]), []).append(position)
    for register, positions in places.items():
        if register is not None:
            positions.sort()
    queues = {register: iter(positions) for register, positions in places.items()}
    return tuple(updates[next(queues[_register(updates[position])])] for position in order)


def without_effect(base: Sequence, shape: Shape, random: Random) -> Sequence:
    """The same history with deletions that name nothing."""
    return admitted(nothing(base, shape, random), shape)


def _register(update: Update) -> Hashable:
    return update.id if isinstance(update, Add | DeleteId) else None


def inserted(base: Sequence, round: int, updates: tuple[Update, ...], random: Random, end: bool = False) -> Sequence:
    """The history with more updates in one round, somewhere among the others or at the end."""
    old = base[round - 1]
    at = len(old) if end else random.randint(0, len(old))
    return (*base[: round - 1], (*old[:at], *updates, *old[at:]), *base[round:])


def addition(point: Point) -> Add:
    """Brings the point when it comes in the round of its stamp."""
    return Add(point.value, id=point.id, subject=point.subject)


def _update(shape: Shape, round: int, known: list[Add], random: Random) -> Update:
    draw = random.random()
    if draw < 0.45 or not known:
        stamp = random.randint(1, round) if shape.late and random.random() < 0.2 else None
        id = f"id{random.randrange(shape.ids)}" if shape.ids and random.random() < 0.3 else None
        subject = f"s{random.randrange(shape.subjects)}" if shape.subjects and random.random() < 0.5 else None
        return Add(random.choice(shape.values), stamp, id, subject)
    if draw < 0.85:
        target = random.choice(known)
        if target.id is not None:
            return DeleteId(target.id)
        stamp = target.stamp if random.random() < 0.85 else random.randint(1, shape.rounds)
        return Delete(target.value, stamp or round, target.subject)
    if draw < 0.92 or not shape.subjects:
        return Delete(random.choice(shape.values), random.randint(1, shape.rounds))
    return Erase(f"s{random.randrange(shape.subjects)}")


def _value(field: Field, random: Random, *, may_lack: bool) -> Hashable:
    if may_lack and field.missing == "skip" and random.random() < ABSENT:
        return None
    if isinstance(field, Category):
        return random.choice(field.values)
    if isinstance(field, Boolean):
        return random.random() < 0.5
    if field.interned:
        return field.decode(random.choice(["", "a", "ab", "é", "\0", "DE", "long " * 9]))
    if isinstance(field, Vector):
        axis = random.randrange(field.width)
        reach = float(field.step) * int(field.radius / field.step)
        return tuple(reach * random.choice([-1, 0, 0.5, 1]) if i == axis else 0.0 for i in range(field.width))
    lattice = random.choice([field.lower, field.upper, random.randint(field.lower, field.upper)])
    return field.decode(lattice)
