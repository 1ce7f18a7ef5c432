"""Adversaries for the game of Appendix B: each picks the updates of a round after it has seen all answers before.

Each game makes its own (`AdaptGame`). These keep nothing even from round to round: what they do is a function of the
round and the answers, so that the challenge of a game can be worked out again from what was published. None of them
asks for what a stream of the shape refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ..checks import is_number
from ..coins import Key
from ..ledger.definition import Add, Delete, Update
from ..ledger.definition import Sequence as History
from ..testing import Adversary, Shape
from .answers import numbers, parts
from .target import Make, answers

Move = tuple[Sequence[Update], Add | Delete | None]
# Enough records for what shows nothing of few.
CROWD, FEW, MOST = 60, 10, 64


@dataclass(frozen=True)
class Window:
    """Adds a record in the first round, or not; all delete it in the middle, so that it is there for a while."""

    shape: Shape

    def updates(self, round: int, answers: Sequence[bytes]) -> Move:
        value = self.shape.values[0]
        leaves = max(2, self.shape.rounds // 2 + 1)
        gone = [Delete(value, 1)] if round == leaves else []
        return gone, Add(value) if round == 1 else None


@dataclass(frozen=True)
class Toggler:
    """Adds another record of the same value and takes it away again, round after round: what counts distinct values
    then shows or hides the first record whenever the other one is away."""

    shape: Shape

    def updates(self, round: int, answers: Sequence[bytes]) -> Move:
        value = self.shape.values[0]
        if round == 1:
            return [], Add(value)
        if round % 2 == 0:
            return [Add(value)], None
        return [Delete(value, round - 1)], None


@dataclass(frozen=True)
class Reactive:
    """Waits for an answer that is lower than the one before, and challenges then."""

    shape: Shape

    def updates(self, round: int, answers: Sequence[bytes]) -> Move:
        value = self.shape.values[0]
        regular = [Add(value)] if round % 2 else []
        return regular, Add(value) if round == self.challenge_round(answers, round) else None

    def challenge_round(self, answers: Sequence[bytes], upto: int) -> int:
        """The round after the first such answer, or the last but one."""
        last = max(1, self.shape.rounds - 1)
        sizes = [sum(numbers(answer)[:1]) for answer in answers[: upto - 1]]
        for index in range(1, len(sizes)):
            if sizes[index] < sizes[index - 1]:
                return min(index + 2, last)
        return last


@dataclass(frozen=True)
class ThresholdPump:
    """Adds copies of one value until it shows in an answer, takes one away, and challenges with one more: the record
    that decides whether a threshold is passed."""

    shape: Shape

    def updates(self, round: int, answers: Sequence[bytes]) -> Move:
        value = self.shape.values[0]
        shown = self._shown(answers)
        last = self.shape.rounds - 1
        if round < min(shown or last, last):
            return [Add(value)] * self._copies(round), None
        if round == min(shown or last, last):
            return [Delete(value, round - 1)] if round > 1 else [], Add(value)
        return [], None

    def _copies(self, round: int) -> int:
        """More and more, so that a threshold is met within a few rounds."""
        return min(1 << 2 * (round - 1), MOST)

    def _shown(self, answers: Sequence[bytes]) -> int | None:
        """The round after the first in which an answer has more places than the first one had."""
        places = [len(parts(answer)) for answer in answers]
        return next((index + 2 for index in range(1, len(places)) if places[index] > places[0]), None)


@dataclass(frozen=True)
class NoOpDeletion:
    """Its challenge is a deletion that finds nothing: a copy that is not there. A right algorithm answers the same."""

    shape: Shape

    def updates(self, round: int, answers: Sequence[bytes]) -> Move:
        value, other = self.shape.values[0], self.shape.values[-1]
        if round == 2:
            # As many deletions as there were copies, so that the challenge is one too many.
            return [Delete(value, 1)], Delete(value, 1)
        return [Add(value), Add(other)] if round == 1 else [], None


@dataclass(frozen=True)
class AdaptiveDeletion:
    """Adds all values in the first round, one of them as the challenge, and deletes of the others what it sees come up
    in answers: where a sample is drawn, the challenge gets into it sooner than chance would have it."""

    shape: Shape

    def updates(self, round: int, answers: Sequence[bytes]) -> Move:
        own, *others = dict.fromkeys(self.shape.values)
        if round == 1:
            return [Add(value) for value in others], Add(own)
        return [Delete(value, 1) for value in others if _comes_up(value, answers[-1])], None


def crowd(shape: Shape) -> tuple[Add, ...]:
    """Many records of the first value, some of every other."""
    first, *others = dict.fromkeys(shape.values)
    return (Add(first),) * CROWD + tuple(Add(value) for value in others) * FEW


def _comes_up(value: Hashable, answer: bytes) -> bool:
    """Whether a record shows in an answer: one of its fields as a text, as a number or in the name of a place."""
    fields = value if isinstance(value, tuple) else (value,)
    found = parts(answer)
    texts = {part for part in found.values() if isinstance(part, str)}
    places = {step for place in found for step in place.split(".")}
    sizes = {part for part in found.values() if not isinstance(part, str)}
    for field in fields:
        if str(field) in texts or str(field) in places:
            return True
        if is_number(field) and field in sizes:
            return True
    return False


@dataclass(frozen=True)
class Player:
    """An adversary with a name, and what it does in words."""

    name: str
    does: str
    make: Callable[[Shape], Adversary]


PLAYERS = (
    Player("window", "adds one record in the first round, or not, and deletes it half-way", Window),
    Player("toggler", "adds one record or not, and keeps adding and deleting another one of the same value", Toggler),
    Player("reactive, low", "waits for an answer lower than the one before, then adds one record or not", Reactive),
    Player(
        "threshold pump",
        "adds records of one value until it shows, takes one away, then adds one record or not",
        ThresholdPump,
    ),
    Player("no-op deletion", "asks for the deletion of a record that is not there, or does not", NoOpDeletion),
    Player(
        "adaptive deletion",
        "adds one record or not, and deletes every other record that answers show",
        AdaptiveDeletion,
    ),
)


# Fixed pairs ---------------------------------------------------------------------------------------------------------


def fixed_pairs(shape: Shape) -> list[tuple[str, History, History]]:
    """Neighbouring histories: what they differ in, without it, with it.

    >>> [words for words, *_ in fixed_pairs(Shape(("a", "b"), rounds=4))][0]
    'one record, added in the first round'
    """
    nothing: History = ((),) * shape.rounds
    values = list(dict.fromkeys(shape.values))
    crowded = _with(nothing, 1, *crowd(shape))
    out = [("one record, added in the first round", nothing, _with(nothing, 1, Add(values[0])))]
    out.append(("one record among many, added in the first round", crowded, _with(crowded, 1, Add(values[0]))))
    if shape.rounds > 1:
        base = _with(nothing, 1, Add(values[0]))
        out.append(("the deletion of a record", base, _with(base, 2, Delete(values[0], 1))))
        many = _with(crowded, 1, Add(values[0]))
        out.append(("the deletion of one record among many", many, _with(many, 2, Delete(values[0], 1))))
        base = _with(nothing, max(2, shape.rounds // 2 + 1), Delete(values[0], 1))
        words = "one record, added in the first round and deleted later; without it the deletion finds nothing"
        out.append((words, base, _with(base, 1, Add(values[0]))))
    return out


def telling(shape: Shape, make: Make, key: Key) -> Shape:
    """The shape with the value first that moves what is published most: a sum does not show a record of 0."""
    crowded = _with(((),) * shape.rounds, 1, *crowd(shape))
    values = list(dict.fromkeys(shape.values))
    far = {value: moved(make, key, crowded, _with(crowded, 1, Add(value))) for value in values}
    best = max(values, key=lambda value: far[value])
    return replace(shape, values=(best, *(value for value in values if value != best)))


def moved(make: Make, key: Key, one: History, other: History) -> tuple[int, float]:
    """How many places differ under one key, and by how much together."""
    places, distance = 0, 0.0
    for left, right in zip(*(map(parts, answers(make, key, history)) for history in (one, other)), strict=True):
        for place in sorted(left.keys() | right.keys()):
            a, b = left.get(place), right.get(place)
            places += a != b
            if a is not None and b is not None and not isinstance(a, str) and not isinstance(b, str):
                distance += abs(float(a) - float(b))
    return places, distance


def _with(base: History, round: int, *updates: Update) -> History:
    return (*base[: round - 1], (*base[round - 1], *updates), *base[round:])


def written(history: History) -> str:
    """As code, with equal updates in a row counted.

    >>> written(((Add("a"),) * 3, ()))
    "((Add(value='a', stamp=None, id=None, subject=None),) * 3, ())"
    """
    rounds = []
    for updates in history:
        runs = [(update, len([*equal])) for update, equal in groupby(updates)]
        rounds.append(" + ".join(f"({update!r},)" + f" * {count}" * (count > 1) for update, count in runs) or "()")
    return f"({', '.join(rounds)},)" if len(rounds) == 1 else f"({', '.join(rounds)})"
