"""What is audited: an algorithm that can be made under any key, the histories it takes, and what it claims."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from ..coins import Key
from ..errors import InputError
from ..privacy import Guarantee
from ..stream import Specification
from ..testing import Algorithm, Shape, StreamAlgorithm, values_of

# Histories of an audit have at most so many rounds, unless a test needs more: bugs show in small ones.
ROUNDS = 8


class Make(Protocol):
    """Makes the algorithm, with a memory of nothing, under a key."""

    def __call__(self, key: Key, /) -> Algorithm: ...


@dataclass(frozen=True)
class MakeStream:
    """Makes a stream; unlike a function inside another one, it can be handed to another process. Erased subjects are
    taken back where a stream that lasts would reject them: one in memory keeps no list of them."""

    specification: Specification

    def __post_init__(self) -> None:
        if self.specification.after_erasure == "reject":
            object.__setattr__(self, "specification", self.specification.replace(after_erasure="accept"))

    def __call__(self, key: Key, /) -> StreamAlgorithm:
        return StreamAlgorithm(self.specification, key)


@dataclass(frozen=True)
class Approximate:
    """A claim of approximate retroactivity: (alpha, beta) for a block of so many answers in a row."""

    alpha: float
    beta: float
    block: int = 1


@dataclass(frozen=True)
class Target:
    """``specification`` is there for a stream: its noise is known and can be audited from inside. ``keyed``: equal keys
    give equal answers. ``retroactivity``: None for exact."""

    name: str
    make: Make
    shape: Shape
    claim: Guarantee
    specification: Specification | None = None
    keyed: bool = True
    retroactivity: Approximate | None = None

    @classmethod
    def stream(cls, specification: Specification, *, name: str = "stream", updates: int = 3) -> Target:
        """
        >>> import retroact as ra
        >>> spec = ra.Specification({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, horizon=100)
        >>> Target.stream(spec).shape.rounds
        8
        """
        rounds = min(specification.horizon or ROUNDS, ROUNDS)
        values = values_of(specification.schema, Random(0))
        shape = Shape(
            values,
            rounds=rounds,
            updates=updates,
            late=specification.late,
            deletions_every=specification.deletions_every,
        )
        keyed = all(statistic.keyed for statistic in specification.statistics.values())
        return cls(name, MakeStream(specification), shape, specification.guarantee, specification, keyed)

    def with_rounds(self, rounds: int) -> Target:
        """The same with histories of so many rounds."""
        if self.specification is not None and self.specification.horizon is not None:
            rounds = min(rounds, self.specification.horizon)
        if rounds < 1:
            raise InputError(f"expected at least one round, got {rounds}", place="rounds")
        return replace(self, shape=replace(self.shape, rounds=rounds))
