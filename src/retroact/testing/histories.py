"""Random histories and neighbouring histories from a seeded generator; pairs that unite are in `families`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from random import Random

from ..ledger.definition import Add, Delete, DeleteId, Erase, Sequence, Update
from ..schema import Boolean, Category, Field, Schema, Vector

# How often a value that may be missing is.
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
    """Two histories, and the first round from which their answers must be equal."""

    one: Sequence
    other: Sequence
    unite: int


def values_of(schema: Schema, random: Random, count: int = 6, *, whole: bool = False) -> tuple[Hashable, ...]:
    """Records of a schema, as tuples, often at the ends of their bounds. In every other record, optional fields may be
    None; with ``whole``, in none."""
    return tuple(
        tuple(_value(field, random, may_lack=number % 2 > 0 and not whole) for field in schema.fields.values())
        for number in range(count)
    )


def history(shape: Shape, random: Random) -> Sequence:
    """Additions, some of them late; deletions that hit, miss, or come too often or too early; ids; erasures."""
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
    """The history with many copies of every value added in its first round: enough for any threshold."""
    return (tuple(Add(value) for value in shape.values for _ in range(copies)) + base[0], *base[1:])


def admitted(base: Sequence, shape: Shape) -> Sequence:
    """The history without the updates that a stream of this shape refuses."""
    return tuple(
        tuple(update for update in updates if _admits(shape, round, update)) for round, updates in enumerate(base, 1)
    )


def _admits(shape: Shape, round: int, update: Update) -> bool:
    return shape.late or not isinstance(update, Add) or update.stamp is None or update.stamp >= round


def neighbouring_pairs(shape: Shape, random: Random, count: int) -> Iterator[tuple[Sequence, Sequence]]:
    """Pairs that differ in one addition or deletion (replacing the record of an id would be two)."""
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


def shuffled(updates: tuple[Update, ...], random: Random) -> tuple[Update, ...]:
    """Another order of arrival within a round; events on one id keep their order, which matters."""
    order = random.sample(range(len(updates)), len(updates))
    places: dict[Hashable, list[int]] = {}
    for position in order:
        places.setdefault(_register(updates[position]), []).append(position)
    for register, positions in places.items():
        if register is not None:
            positions.sort()
    queues = {register: iter(positions) for register, positions in places.items()}
    return tuple(updates[next(queues[_register(updates[position])])] for position in order)


def _register(update: Update) -> Hashable:
    return update.id if isinstance(update, Add | DeleteId) else None


def inserted(base: Sequence, round: int, updates: tuple[Update, ...], random: Random, end: bool = False) -> Sequence:
    """The history with more updates in one round, at a random place or at the end."""
    old = base[round - 1]
    at = len(old) if end else random.randint(0, len(old))
    return (*base[: round - 1], (*old[:at], *updates, *old[at:]), *base[round:])


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
