"""What is audited: an algorithm that can be made under any key, the histories it takes, and what it claims."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from random import Random

from ..checks import integer, is_int
from ..errors import InputError
from ..privacy import Guarantee
from ..stream import Specification
from ..testing import Shape, StreamAlgorithm, in_memory, values_of
from ..testing.algorithm import Make

# Rounds of a history: bugs show in small ones. Where releases are rare there are more, for two of them, up to the most.
ROUNDS, MOST_ROUNDS = 8, 256


def make_stream(specification: Specification) -> Make:
    """Makes a stream in memory, where erased subjects may come back though a durable stream would reject them: it keeps
    no list of them. Unlike a local function, it can be sent to another process."""
    return partial(StreamAlgorithm, in_memory(specification))


@dataclass(frozen=True)
class Approximate:
    """A claim of approximate retroactivity: (alpha, beta) for a block of answers in a row."""

    alpha: float
    beta: float
    block: int = 1

    def __post_init__(self) -> None:
        if not self.alpha >= 0:
            raise InputError(f"expected a number from 0 on, got {self.alpha!r}", place="alpha")
        if not 0 <= self.beta < 1:
            raise InputError(f"expected a number from 0 to below 1, got {self.beta!r}", place="beta")
        if not is_int(self.block) or self.block < 1:
            raise InputError(f"expected at least one answer, got {self.block!r}", place="block")


@dataclass(frozen=True)
class Target:
    """``specification``: that of a stream, whose noise is known and can be audited from inside. ``keyed``: equal keys
    give equal answers. ``retroactivity``: None for exact."""

    name: str
    make: Make
    shape: Shape
    claim: Guarantee
    specification: Specification | None = None
    keyed: bool = True
    retroactivity: Approximate | None = None

    def __post_init__(self) -> None:
        if not self.claim.epsilon >= 0:
            raise InputError(f"expected a number from 0 on, got {self.claim.epsilon!r}", place="claim.epsilon")
        if not 0 <= self.claim.delta < 1:
            raise InputError(f"expected a number from 0 to below 1, got {self.claim.delta!r}", place="claim.delta")

    @classmethod
    def stream(cls, specification: Specification, *, name: str = "stream", updates: int = 3) -> Target:
        """Its histories have 8 rounds, or where releases are rare enough for two of them, up to 256; and never more
        than the horizon.

        >>> import retroact as ra
        >>> spec = ra.Specification({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, horizon=100)
        >>> Target.stream(spec).shape.rounds
        8
        """
        rare = max(*(own.every for own in specification.statistics.values()), 1)
        rounds = min(max(ROUNDS, 2 * rare + 2), MOST_ROUNDS)
        rounds = min(rounds, specification.horizon or rounds)
        values = values_of(specification.schema, Random(0))
        shape = Shape(values, rounds=rounds, updates=updates, late=specification.late)
        keyed = all(bound.keyed for bound in specification.bounds.values())
        return cls(name, make_stream(specification), shape, specification.guarantee, specification, keyed)

    def with_rounds(self, rounds: int) -> Target:
        """The same with histories of this many rounds."""
        integer(rounds, "rounds")
        if self.specification is not None and self.specification.horizon is not None:
            rounds = min(rounds, self.specification.horizon)
        if rounds < 1:
            raise InputError(f"expected at least one round, got {rounds}", place="rounds")
        return replace(self, shape=replace(self.shape, rounds=rounds))


def fewer(count: int, least: int, usual: int, rounds: int) -> int:
    """The number of runs; fewer where histories are longer than usual, for as many rounds in all, but no fewer than
    ``least``.

    >>> fewer(240, 10, 8, 8), fewer(240, 10, 8, 80), fewer(240, 10, 8, 800)
    (240, 24, 10)
    """
    return min(count, max(least, count * usual // max(usual, rounds)))
