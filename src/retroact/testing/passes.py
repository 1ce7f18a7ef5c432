"""Several rounds in one pass publish, count and keep what the same rounds do one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from ..coins import Key
from ..errors import VerificationError
from ..ledger.definition import Sequence
from ..stream import Round, Specification
from .algorithm import StreamAlgorithm
from .histories import Shape, history

Make = Callable[[], StreamAlgorithm]


def check_passes(spec: Specification, shape: Shape, random: Random, *, histories: int = 10) -> None:
    """Checks that it makes no difference which rounds of a history are computed together.

    >>> import retroact as ra
    >>> spec = ra.Specification({"v": ra.Boolean()}, {"n": ra.Count(window=2)}, epsilon=1.0, horizon=8)
    >>> check_passes(spec, Shape(((True,), (False,))), Random(1))
    """
    for _ in range(histories):
        make = partial(StreamAlgorithm, spec, Key.for_testing(1), chunk=random.choice([None, 1, 2]))
        check_same(make, history(shape, random), random)


def check_same(make: Make, sequence: Sequence, random: Random) -> None:
    """Plays a history round by round, and in passes over some of its rounds."""
    alone, passing = make(), make()
    expected = [alone.release(updates) for updates in sequence]
    found, at = list[Round](), 0
    while at < len(sequence):
        until = random.randint(at + 1, len(sequence))
        found += (
            in_one_pass(passing, sequence[at:until])
            if random.random() < 0.8
            else map(passing.release, sequence[at:until])
        )
        at = until
    for one, other in zip(expected, found, strict=True):
        if (one.number, one.encode(), one.applied) != (other.number, other.encode(), other.applied):
            raise VerificationError(f"one pass: round {one.number} differs:\n  {sequence}\n  {one}\n  {other}")
    if passing.state() != alone.state():
        raise VerificationError(f"one pass: the state differs:\n  {sequence}")


def in_one_pass(algorithm: StreamAlgorithm, sequence: Sequence) -> list[Round]:
    with algorithm.stream.one_pass() as rounds:
        for updates in sequence:
            algorithm.feed(updates)
            rounds.end_round()
    return rounds.closed()
