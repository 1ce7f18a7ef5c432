"""Smaller counterexamples: of a pair of histories that shows a fault, a pair that still does and holds next to nothing.

Greedy and without randomness. Every step makes the pair smaller (fewer updates, then fewer rounds, then plainer
updates), must leave two different histories that unite, whose uniting round is computed again, and must still fail.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace

from ..ledger.definition import Add, Delete, DeleteId, Erase, Sequence, Update, unite_at
from ..testing.histories import Pair, Shape, admitted

Sides = tuple[Sequence, Sequence]
Unite = Callable[[Sequence, Sequence], int | None]


@dataclass(frozen=True)
class Shrunk:
    """``tries``: how many smaller pairs were run. ``minimal``: no single step makes the pair smaller."""

    pair: Pair
    tries: int
    minimal: bool


def shrink(
    pair: Pair, fails: Callable[[Pair], bool], shape: Shape, *, unite: Unite = unite_at, tries: int = 2000
) -> Shrunk:
    """A pair that still fails, with as little in it as steps of one or two updates, rounds or values can reach.

    >>> pair = Pair(((Add("a"), Add("b")), (Delete("a", 1),), ()), ((Add("b"),), (), ()), 2)
    >>> had_an_a = lambda pair: any(Add("a") in updates for updates in pair.one)
    >>> shrink(pair, had_an_a, Shape(values=("a", "b"))).pair.one
    ((Add(value='a', stamp=None, id=None, subject=None), Delete(value='a', stamp=1, subject=None)),)
    """
    tried = 0
    found = True
    while found:
        found = False
        size = _size((pair.one, pair.other), shape)
        for sides in _smaller((pair.one, pair.other), shape):
            if tried >= tries:
                return Shrunk(pair, tried, minimal=False)
            candidate = _pair(sides, shape, unite) if _size(sides, shape) < size else None
            if candidate is None:
                continue
            tried += 1
            if fails(candidate):
                pair, found = candidate, True
                break
    return Shrunk(pair, tried, minimal=True)


def operations(pair: Pair) -> int:
    """The updates of both histories.

    >>> operations(Pair(((Add("a"),), (Delete("a", 1),)), ((), ()), 2))
    2
    """
    return sum(len(updates) for side in (pair.one, pair.other) for updates in side)


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


def _pair(sides: Sides, shape: Shape, unite: Unite) -> Pair | None:
    one, other = sides
    if one == other or any(admitted(side, shape) != side for side in sides):
        return None
    united = unite(one, other)
    return None if united is None else Pair(one, other, united)


def _size(sides: Sides, shape: Shape) -> tuple[int, int, int, int]:
    """Updates; rounds; how much stands in the updates; how far down the list of values they are."""
    updates = [update for side in sides for round in side for update in round]
    given = sum(
        sum(part is not None for part in (getattr(update, name, None) for name in ("id", "subject", "stamp")))
        for update in updates
    )
    values = [update.value for update in updates if isinstance(update, Add | Delete)]
    ranks = sum(shape.values.index(value) if value in shape.values else len(shape.values) for value in values)
    return len(updates), len(sides[0]), given, ranks


def _smaller(sides: Sides, shape: Shape) -> Iterator[Sides]:
    """Smaller pairs, the boldest steps first."""
    yield from _without_rounds(sides)
    yield from _without_updates(sides)
    yield from _merged(sides)
    yield from _plainer(sides, shape)
    yield from _without_two(sides)


def _without_rounds(sides: Sides) -> Iterator[Sides]:
    """Some rounds in a row are gone, the last ones first; later stamps move up."""
    rounds = len(sides[0])
    for length in range(rounds - 1, 0, -1):
        for first in range(rounds - length + 1, 0, -1):
            yield _each(sides, _without, first, length)


def _merged(sides: Sides) -> Iterator[Sides]:
    """Two rounds in one."""
    for at in range(1, len(sides[0])):
        yield _each(sides, _with_next, at)


def _without(side: Sequence, first: int, length: int) -> Sequence:
    return _moved_up((*side[: first - 1], *side[first - 1 + length :]), first, length)


def _with_next(side: Sequence, at: int) -> Sequence:
    return _moved_up((*side[: at - 1], side[at - 1] + side[at], *side[at + 1 :]), at + 1)


def _moved_up(side: Sequence, first: int, length: int = 1) -> Sequence:
    """Stamps as they are when the rounds from ``first`` on are gone."""

    def moved(update: Update) -> Update:
        if isinstance(update, Add | Delete) and update.stamp is not None and update.stamp >= first:
            return replace(update, stamp=max(1, first - 1, update.stamp - length))
        return update

    return tuple(tuple(moved(update) for update in updates) for updates in side)


def _places(side: Sequence) -> list[tuple[int, int]]:
    return [(round, place) for round, updates in enumerate(side) for place in range(len(updates))]


def _dropped(side: Sequence, gone: set[tuple[int, int]]) -> Sequence:
    return tuple(
        tuple(update for place, update in enumerate(updates) if (round, place) not in gone)
        for round, updates in enumerate(side)
    )


def _shared(sides: Sides) -> list[tuple[set[tuple[int, int]], set[tuple[int, int]]]]:
    """The places of updates that both histories have in one round."""
    out = []
    for round, (left, right) in enumerate(zip(*sides, strict=True)):
        free = list(enumerate(right))
        for place, update in enumerate(left):
            match = next((item for item in free if item[1] == update), None)
            if match is not None:
                free.remove(match)
                out.append(({(round, place)}, {(round, match[0])}))
    return out


def _without_updates(sides: Sides) -> Iterator[Sides]:
    one, other = sides
    shared = _shared(sides)
    for left, right in shared:
        yield _dropped(one, left), _dropped(other, right)
    for place in _places(one):
        yield _dropped(one, {place}), other
    for place in _places(other):
        yield one, _dropped(other, {place})


def _without_two(sides: Sides) -> Iterator[Sides]:
    """An addition together with its deletion, on one side or on both: neither can go alone."""
    one, other = sides
    shared = _shared(sides)
    for number, (left, right) in enumerate(shared):
        for more_left, more_right in shared[number + 1 :]:
            yield _dropped(one, left | more_left), _dropped(other, right | more_right)
    for first, side in enumerate(sides):
        places = _places(side)
        for number, place in enumerate(places):
            for more in places[number + 1 :]:
                less = _dropped(side, {place, more})
                yield (less, other) if first == 0 else (one, less)
    for place in _places(one):
        for more in _places(other):
            yield _dropped(one, {place}), _dropped(other, {more})


def _plainer(sides: Sides, shape: Shape) -> Iterator[Sides]:
    """A value, a subject, an id or a stamp replaced by the plainest, wherever it stands."""
    updates = [update for side in sides for round in side for update in round]
    for rank in range(1, len(shape.values)):
        for plain in shape.values[:rank]:
            yield _each(sides, _revalued, shape.values[rank], plain)
    for subject in dict.fromkeys(getattr(update, "subject", None) for update in updates):
        if subject is not None:
            yield _each(sides, _without_subject, subject)
    for id in dict.fromkeys(getattr(update, "id", None) for update in updates):
        if id is not None:
            yield _each(sides, _without_id, id)
    yield _each(sides, _without_stamps)


def _each(sides: Sides, change: Callable[..., Sequence], *how: Hashable) -> Sides:
    return change(sides[0], *how), change(sides[1], *how)


def _revalued(side: Sequence, old: Hashable, new: Hashable) -> Sequence:
    def changed(update: Update) -> Update:
        return replace(update, value=new) if isinstance(update, Add | Delete) and update.value == old else update

    return tuple(tuple(map(changed, updates)) for updates in side)


def _without_subject(side: Sequence, subject: Hashable) -> Sequence:
    return tuple(
        tuple(
            replace(update, subject=None) if isinstance(update, Add | Delete) and update.subject == subject else update
            for update in updates
        )
        for updates in side
    )


def _without_id(side: Sequence, id: Hashable) -> Sequence:
    """A record known by its id becomes one known by its value, where the id ever held one record only."""
    held = [
        (update.stamp or round, update.value, update.subject)
        for round, updates in enumerate(side, 1)
        for update in updates
        if isinstance(update, Add) and update.id == id
    ]
    if len(held) != 1:
        return side

    def changed(update: Update) -> Update:
        if isinstance(update, Add) and update.id == id:
            return replace(update, id=None)
        return Delete(held[0][1], held[0][0], held[0][2]) if update == DeleteId(id) else update

    return tuple(tuple(map(changed, updates)) for updates in side)


def _without_stamps(side: Sequence) -> Sequence:
    """Additions in the round of their stamp need none."""
    return tuple(
        tuple(
            replace(update, stamp=None) if isinstance(update, Add) and update.stamp == round else update
            for update in updates
        )
        for round, updates in enumerate(side, 1)
    )
