"""Adversaries for the game of Appendix B: each picks the updates of a round after seeing all answers before it.

They have no memory: what they do is a function of the round and the answers, so that the challenge of a game can be
computed again from what was published. None of them asks for what a stream of the shape refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from ..checks import is_number
from ..coins import Key
from ..ledger.definition import Add, Delete, Update
from ..ledger.definition import Sequence as History
from ..testing import Adversary, Shape
from ..testing.algorithm import Make, answers
from ..testing.answers import numbers, parts

Move = tuple[Sequence[Update], Add | Delete | None]
# Enough records for what shows nothing of few.
CROWD, FEW, MOST = 60, 10, 64


def window(shape: Shape, round: int, answers: Sequence[bytes]) -> Move:
    value = shape.values[0]
    gone = [Delete(value, 1)] if round == max(2, shape.rounds // 2 + 1) else []
    return gone, Add(value) if round == 1 else None


def toggler(shape: Shape, round: int, answers: Sequence[bytes]) -> Move:
    """A distinct count shows or hides the first record whenever the other one is away."""
    value = shape.values[0]
    if round == 1:
        return [], Add(value)
    return [Add(value) if round % 2 == 0 else Delete(value, round - 1)], None


def reactive(shape: Shape, round: int, answers: Sequence[bytes]) -> Move:
    """Challenges in the round after the first answer that is lower than the one before, or in the last but one."""
    value, last = shape.values[0], max(1, shape.rounds - 1)
    sizes = [sum(numbers(answer)[:1]) for answer in answers[: round - 1]]
    lower = (index + 2 for index in range(1, len(sizes)) if sizes[index] < sizes[index - 1])
    return [Add(value)] if round % 2 else [], Add(value) if round == min(next(lower, last), last) else None


def threshold_pump(shape: Shape, round: int, answers: Sequence[bytes]) -> Move:
    """Challenges with the record that decides whether a threshold is passed: in the round after the first whose answer
    has more places than that of round 1, or in the last but one."""
    value, last = shape.values[0], shape.rounds - 1
    places = [len(parts(answer)) for answer in answers]
    shown = next((index + 2 for index in range(1, len(places)) if places[index] > places[0]), last)
    if round < min(shown, last):
        # More and more, so that a threshold is met within a few rounds.
        return [Add(value)] * min(1 << 2 * (round - 1), MOST), None
    if round == min(shown, last):
        return [Delete(value, round - 1)] if round > 1 else [], Add(value)
    return [], None


def no_op_deletion(shape: Shape, round: int, answers: Sequence[bytes]) -> Move:
    """A correct algorithm answers the same either way."""
    value, other = shape.values[0], shape.values[-1]
    if round == 2:
        # As many deletions as there were copies, so that the challenge is one too many.
        return [Delete(value, 1)], Delete(value, 1)
    return [Add(value), Add(other)] if round == 1 else [], None


def adaptive_deletion(shape: Shape, round: int, answers: Sequence[bytes]) -> Move:
    """Where a sample is drawn, the challenge gets into it sooner than by chance."""
    own, *others = dict.fromkeys(shape.values)
    if round == 1:
        return [Add(value) for value in others], Add(own)
    return [Delete(value, 1) for value in others if _comes_up(value, answers[-1])], None


def _comes_up(value: Hashable, answer: bytes) -> bool:
    """Whether a record shows in an answer: one of its fields as a text, as a number or in the name of a place."""
    found = parts(answer)
    texts = {part for part in found.values() if isinstance(part, str)}
    texts |= {step for place in found for step in place.split(".")}
    sizes = {part for part in found.values() if not isinstance(part, str)}
    fields = value if isinstance(value, tuple) else (value,)
    return any(str(field) in texts or (is_number(field) and field in sizes) for field in fields)


def crowd(shape: Shape) -> tuple[Add, ...]:
    """Many records of the first value, some of every other."""
    first, *others = dict.fromkeys(shape.values)
    return (Add(first),) * CROWD + tuple(Add(value) for value in others) * FEW


@dataclass(frozen=True)
class Player:
    """An adversary: its name, what it does in words, and its move in each round."""

    name: str
    does: str
    move: Callable[[Shape, int, Sequence[bytes]], Move]

    def make(self, shape: Shape) -> Adversary:
        return _Seated(self, shape)


@dataclass(frozen=True)
class _Seated:
    player: Player
    shape: Shape

    def updates(self, round: int, answers: Sequence[bytes]) -> Move:
        return self.player.move(self.shape, round, answers)


PLAYERS = (
    Player("window", "adds one record in the first round, or not, and deletes it half-way", window),
    Player("toggler", "adds one record or not, and keeps adding and deleting another one of the same value", toggler),
    Player("reactive, low", "waits for an answer lower than the one before, then adds one record or not", reactive),
    Player(
        "threshold pump",
        "adds records of one value until it shows, takes one away, then adds one record or not",
        threshold_pump,
    ),
    Player("no-op deletion", "asks for the deletion of a record that is not there, or does not", no_op_deletion),
    Player(
        "adaptive deletion",
        "adds one record or not, and deletes every other record that answers show",
        adaptive_deletion,
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
