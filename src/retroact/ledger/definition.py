"""The definitions of section 2 and Appendix A of the paper in plain Python, with which every faster ledger must agree.

A sequence is a tuple of rounds, a round is a tuple of updates. The paper's updates are `Add` without an id and
`Delete`; `Add` with an id, `DeleteId` and `Erase` are ours. Within one round, whatever the arrival order:

1. additions without id are added (ignored if the stamp is beyond the round of arrival);
2. each deletion by value removes one copy of exactly (stamp, value, subject), if there is one;
3. events on ids, in arrival order: an addition replaces what its id held, `DeleteId` empties it;
4. erasures remove every record of their subject that survives so far.

An update that finds nothing to do has no effect, now or later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..errors import InputError


class Point(NamedTuple):
    """A stamped point: an element of the surviving data."""

    stamp: int
    value: Hashable
    id: Hashable = None
    subject: Hashable = None


@dataclass(frozen=True, slots=True)
class Add:
    """(add, t, x); without a stamp, t is the round of arrival."""

    value: Hashable
    stamp: int | None = None
    id: Hashable = None
    subject: Hashable = None

    def __post_init__(self) -> None:
        if self.stamp is not None and self.stamp < 1:
            raise InputError(f"expected a round number from 1, got {self.stamp}", place="stamp")

    def point(self, round: int) -> Point | None:
        """What it adds when it arrives in a round: nothing if its stamp is in the future."""
        stamp = round if self.stamp is None else self.stamp
        return Point(stamp, self.value, self.id, self.subject) if stamp <= round else None


@dataclass(frozen=True, slots=True)
class Delete:
    """(del, t, x): one copy of a record without id."""

    value: Hashable
    stamp: int
    subject: Hashable = None


@dataclass(frozen=True, slots=True)
class DeleteId:
    """Deletes what the id holds."""

    id: Hashable

    def __post_init__(self) -> None:
        if self.id is None:
            raise InputError("expected an id, got None", place="id")


@dataclass(frozen=True, slots=True)
class Erase:
    """Deletes every surviving record of a subject."""

    subject: Hashable

    def __post_init__(self) -> None:
        if self.subject is None:
            raise InputError("expected a subject, got None", place="subject")


Update = Add | Delete | DeleteId | Erase
Sequence = tuple[tuple[Update, ...], ...]


def trajectory(sequence: Sequence) -> list[Counter[Point]]:
    """Data_1(S), ..., Data_T(S)."""
    data: list[Counter[Point]] = []
    plain: Counter[Point] = Counter()
    held: dict[Hashable, Point] = {}
    for round, updates in enumerate(sequence, start=1):
        for u in updates:
            if isinstance(u, Add) and u.id is None and (point := u.point(round)) is not None:
                plain[point] += 1
        for u in updates:
            if isinstance(u, Delete) and plain[Point(u.stamp, u.value, None, u.subject)] > 0:
                plain[Point(u.stamp, u.value, None, u.subject)] -= 1
        for u in updates:
            if isinstance(u, Add) and u.id is not None and (point := u.point(round)) is not None:
                held[u.id] = point
            if isinstance(u, DeleteId):
                held.pop(u.id, None)
        for u in updates:
            if isinstance(u, Erase):
                plain = Counter({p: count for p, count in plain.items() if p.subject != u.subject})
                held = {id: p for id, p in held.items() if p.subject != u.subject}
        data.append(+plain + Counter(held.values()))
    return data


def surviving(sequence: Sequence, round: int) -> Counter[Point]:
    """Data_i(S), empty for i = 0."""
    if not 0 <= round <= len(sequence):
        raise InputError(f"expected a round from 0 to {len(sequence)}, got {round}", place="round")
    return trajectory(sequence[:round])[-1] if round else Counter()


def revised(sequence: Sequence, round: int, past: int) -> Counter[Point]:
    """RevData_{i,l}(S): what round i knows about round l <= i."""
    if not 0 <= past <= round:
        raise InputError(f"expected a past round from 0 to {round}, got {past}", place="past")
    return Counter({p: count for p, count in surviving(sequence, round).items() if p.stamp <= past})


def live(sequence: Sequence, round: int, window: int) -> Counter[Point]:
    """Live_l(S): surviving at round l, and fewer than `window` rounds old."""
    return Counter({p: count for p, count in surviving(sequence, round).items() if round - p.stamp < window})


def unite_at(one: Sequence, other: Sequence) -> int | None:
    """The first round from which on the surviving data are equal; None if they differ in the last round."""
    if len(one) != len(other):
        raise InputError(f"expected two sequences of one horizon, got {len(one)} and {len(other)} rounds")
    united = None
    for round, (mine, theirs) in reversed(list(enumerate(zip(trajectory(one), trajectory(other), strict=True), 1))):
        if mine != theirs:
            break
        united = round
    return united


def neighbouring(one: Sequence, other: Sequence) -> bool:
    """Whether one sequence is the other with a single update inserted into one round.

    A round is a multiset of updates without id, and a sequence of events for each id, since their order decides what
    the id holds. Additions with a future stamp may be inserted too, though the paper leaves them out: they change
    nothing, so no guarantee gets stronger or weaker.
    """
    if len(one) != len(other):
        return False
    pairs = [(_parts(a, round), _parts(b, round)) for round, (a, b) in enumerate(zip(one, other, strict=True), 1)]
    different = [pair for pair in pairs if pair[0] != pair[1]]
    if len(different) != 1:
        return False
    a, b = different[0]
    return _one_more(a, b) or _one_more(b, a)


_Parts = tuple[Counter[Update], dict[Hashable, tuple[Update, ...]]]


def _parts(updates: tuple[Update, ...], round: int) -> _Parts:
    """One round up to irrelevant differences in arrival order."""
    plain: Counter[Update] = Counter()
    events: dict[Hashable, tuple[Update, ...]] = {}
    for update in updates:
        if isinstance(update, Add) and update.stamp is None:
            update = replace(update, stamp=round)
        if isinstance(update, (Add, DeleteId)) and update.id is not None:
            events[update.id] = (*events.get(update.id, ()), update)
        else:
            plain[update] += 1
    return plain, events


def _one_more(small: _Parts, large: _Parts) -> bool:
    """Whether `large` is `small` with one update inserted."""
    if small[0] - large[0]:
        return False
    events = [(small[1].get(id, ()), large[1].get(id, ())) for id in small[1].keys() | large[1].keys()]
    changed = [(few, many) for few, many in events if few != many]
    inserted = all(any(many[:k] + many[k + 1 :] == few for k in range(len(many))) for few, many in changed)
    return inserted and (large[0] - small[0]).total() + len(changed) == 1
