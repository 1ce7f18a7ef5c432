"""Smaller counterexamples: from a pair of histories that shows a fault, a pair that still does and holds little else.

Delta debugging (Zeller and Hildebrandt 2002), without randomness: pieces of the pair are left out, the largest first.
What is left must be two different histories that unite, whose uniting round is computed again, and must still fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from ..ledger.definition import Add, Delete, DeleteId, Erase, Sequence, Update, unite_at
from .histories import Pair, Shape, admitted

Sides = tuple[Sequence, Sequence]
Unite = Callable[[Sequence, Sequence], int | None]
Place = tuple[int, int]
"""A side and a round, both counted from 0."""


class Shrunk(NamedTuple):
    """``minimal``: no single step makes the pair smaller."""

    pair: Pair
    minimal: bool


def shrink(
    pair: Pair, fails: Callable[[Pair], bool], shape: Shape, *, unite: Unite = unite_at, tries: int = 2000
) -> Shrunk:
    """A pair that still fails, with as few rounds, updates and details as can be reached with this many tries.

    >>> pair = Pair(((Add("a"), Add("b")), (Delete("a", 1),), ()), ((Add("b"),), (), ()), 2)
    >>> had_an_a = lambda pair: any(Add("a") in updates for updates in pair.one)
    >>> shrink(pair, had_an_a, Shape(values=("a", "b"))).pair.one
    ((Add(value='a', stamp=None, id=None, subject=None), Delete(value='a', stamp=1, subject=None)),)
    """
    while True:
        for sides in _smaller((pair.one, pair.other), shape):
            candidate = _pair(sides, shape, unite)
            if candidate is None or candidate == pair:
                continue
            if not tries:
                return Shrunk(pair, minimal=False)
            tries -= 1
            if fails(candidate):
                pair = candidate
                break
        else:
            return Shrunk(pair, minimal=True)


def _pair(sides: Sides, shape: Shape, unite: Unite) -> Pair | None:
    one, other = sides
    if one == other or any(admitted(side, shape) != side for side in sides):
        return None
    united = unite(one, other)
    return None if united is None else Pair(one, other, united)


def _smaller(sides: Sides, shape: Shape) -> Iterator[Sides]:
    """Fewer rounds, fewer updates, two rounds in one, plainer updates: the boldest steps first."""
    rounds = len(sides[0])
    for size in _sizes(rounds - 1):
        for first in range(rounds - size, -1, -1):
            yield _spliced(sides, first, size)
    items = _items(sides)
    for size in _sizes(len(items)):
        for start in range(0, len(items) - size + 1, max(1, size // 2)):
            yield _without(sides, items[start : start + size])
    for first in range(1, rounds):
        yield _spliced(sides, first, 1, keep=True)
    yield from _plainer(sides, shape)


def _sizes(count: int) -> list[int]:
    """Of the pieces that are left out: all, a half, a quarter, and so on; two, since often only an addition and its
    deletion can go together; one."""
    return sorted({size for size in (*(count >> k for k in range(count.bit_length())), 2, 1) if size <= count})[::-1]


def _items(sides: Sides) -> list[tuple[Update, list[Place]]]:
    """All updates and where they stand, in the order of the records that they name; what both sides have in a round is
    one item."""
    found: list[tuple[Update, list[Place]]] = []
    for round, (left, right) in enumerate(zip(*sides, strict=True)):
        free = list(right)
        for update in left:
            shared = update in free
            if shared:
                free.remove(update)
            found.append((update, [(0, round), (1, round)] if shared else [(0, round)]))
        found += [(update, [(1, round)]) for update in free]
    return sorted(found, key=lambda item: repr(getattr(item[0], "id", None) or getattr(item[0], "value", None)))


def _without(sides: Sides, items: list[tuple[Update, list[Place]]]) -> Sides:
    left = [[list(updates) for updates in side] for side in sides]
    for update, places in items:
        for side, round in places:
            left[side][round].remove(update)
    one, other = (tuple(map(tuple, side)) for side in left)
    return one, other


def _spliced(sides: Sides, first: int, size: int, *, keep: bool = False) -> Sides:
    """Without some rounds, or with their updates in the round before them; later stamps move up."""

    def moved(update: Update) -> Update:
        if not isinstance(update, Add | Delete) or update.stamp is None or update.stamp <= first:
            return update
        return replace(update, stamp=max(1, first, update.stamp - size))

    def changed(side: Sequence) -> Sequence:
        before, gone, after = side[:first], side[first : first + size], side[first + size :]
        if keep:
            before = (*before[:-1], sum(gone, before[-1]))
        return tuple(tuple(map(moved, updates)) for updates in (*before, *after))

    return changed(sides[0]), changed(sides[1])


def _plainer(sides: Sides, shape: Shape) -> Iterator[Sides]:
    """An earlier value, no subject, stamp 1: everywhere at once."""
    known = [update for side in sides for updates in side for update in updates if isinstance(update, Add | Delete)]
    steps = [("value", old, new) for rank, old in enumerate(shape.values) for new in shape.values[:rank]]
    steps += [("subject", old, None) for old in dict.fromkeys(update.subject for update in known)]
    steps += [("stamp", old, 1) for old in dict.fromkeys(update.stamp for update in known) if old is not None]
    for step in steps:
        one, other = (tuple(tuple(_plain(update, *step) for update in updates) for updates in side) for side in sides)
        yield one, other


def _plain(update: Update, name: str, old: object, new: object) -> Update:
    fits = isinstance(update, Add | Delete) and getattr(update, name) == old
    return replace(update, **{name: new}) if fits else update  # type: ignore[arg-type]


def as_code(pair: Pair) -> list[str]:
    """Lines of Python that give ``one``, ``other`` and ``unite``.

    >>> print(*as_code(Pair(((Add("a"),), (Delete("a", 1),)), ((), ()), 2)), sep="\\n")
    from retroact.ledger.definition import Add, Delete, DeleteId, Erase
    one = (
        (Add('a'),),
        (Delete('a', 1),),
    )
    other = (
        (),
        (),
    )
    unite = 2
    """
    body: list[str] = []
    for name, side in (("one", pair.one), ("other", pair.other)):
        body += [f"{name} = (", *(f"    {_tuple([_code(update) for update in updates])}," for updates in side), ")"]
    text = "\n".join(body)
    extra = {"datetime.": "import datetime", "Fraction(": "from fractions import Fraction"}
    extra |= {"Decimal(": "from decimal import Decimal"}
    imports = [line for word, line in extra.items() if word in text]
    return [
        *imports,
        "from retroact.ledger.definition import Add, Delete, DeleteId, Erase",
        *body,
        f"unite = {pair.unite}",
    ]


def written(history: Sequence) -> str:
    """As code, with equal updates in a row counted.

    >>> written(((Add("a"),) * 3, ()))
    "((Add('a'),) * 3, ())"
    """
    rounds = []
    for updates in history:
        runs = [(update, len([*equal])) for update, equal in groupby(updates)]
        rounds.append(" + ".join(f"({_code(update)},)" + f" * {count}" * (count > 1) for update, count in runs) or "()")
    return _tuple(rounds)


def both_written(one: Sequence, other: Sequence) -> list[str]:
    return [f"one = {written(one)}", f"other = {written(other)}"]


def _tuple(parts: list[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _code(update: Update) -> str:
    match update:
        case Add(value, stamp, id, subject):
            named = [("stamp", stamp), ("id", id), ("subject", subject)]
            return f"Add({', '.join([repr(value), *(f'{n}={v!r}' for n, v in named if v is not None)])})"
        case Delete(value, stamp, subject):
            return f"Delete({value!r}, {stamp}{'' if subject is None else f', {subject!r}'})"
        case DeleteId(id):
            return f"DeleteId({id!r})"
        case Erase(subject):
            return f"Erase({subject!r})"
