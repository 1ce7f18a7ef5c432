"""What is audited: an algorithm that can be made under any key, the histories it takes, and what it claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from ..checks import integer, is_int
from ..coins import Key
from ..errors import InputError
from ..ledger.definition import Sequence as History
from ..ledger.definition import Update
from ..privacy import Guarantee
from ..stream import Specification
from ..testing import Algorithm, Shape, StreamAlgorithm, in_memory, values_of

# Histories of an audit have so many rounds: bugs show in small ones. Where releases or deletions are rare they have
# more, so that there are two of each, up to the most.
ROUNDS, MOST_ROUNDS = 8, 256
RAISED = b"no answer, raised "


class Make(Protocol):
    """Makes the algorithm, with a memory of nothing, under a key."""

    def __call__(self, key: Key, /) -> Algorithm: ...


class Guarded:
    """An algorithm whose exceptions are answers: whoever waits for a release sees them. Only their type counts: what
    they say may hold records or paths. After one of them there is no other answer."""

    def __init__(self, make: Make, key: Key) -> None:
        self._failed: bytes | None = None
        try:
            self._inside = make(key)
        except Exception as error:
            self._failed = failure(error)

    def close(self, updates: Sequence[Update]) -> bytes:
        if self._failed is not None:
            return self._failed
        try:
            answer = self._inside.close(updates)
        except Exception as error:
            self._failed = failure(error)
            return self._failed
        if not isinstance(answer, bytes):
            raise InputError(f"expected bytes, got {type(answer).__name__}", place="close")
        return answer


@dataclass(frozen=True)
class Guard:
    """Makes a `Guarded` algorithm."""

    make: Make

    def __call__(self, key: Key, /) -> Guarded:
        return Guarded(self.make, key)


def answers(make: Make, key: Key, history: History) -> list[bytes]:
    """All answers of one history; an exception is one too.

    >>> class Broken:
    ...     def close(self, updates):
    ...         raise ValueError("of a record")
    >>> answers(lambda key: Broken(), Key.for_testing(1), ((), ()))
    [b'no answer, raised ValueError', b'no answer, raised ValueError']
    """
    algorithm = Guarded(make, key)
    return [algorithm.close(updates) for updates in history]


def failure(error: Exception) -> bytes:
    """An exception as an answer."""
    return RAISED + type(error).__name__.encode()


def raised(answers: Sequence[bytes]) -> str | None:
    """The type of the exception among these answers, if there is one.

    >>> raised([b"1", b"no answer, raised ValueError"]), raised([b"1"])
    ('ValueError', None)
    """
    return next((a.removeprefix(RAISED).decode() for a in answers if a.startswith(RAISED)), None)


@dataclass(frozen=True)
class MakeStream:
    """Makes a stream; unlike a function inside another one, it can be handed to another process. Erased subjects are
    taken back where a stream that lasts would reject them: one in memory keeps no list of them."""

    specification: Specification

    def __post_init__(self) -> None:
        object.__setattr__(self, "specification", in_memory(self.specification))

    def __call__(self, key: Key, /) -> StreamAlgorithm:
        return StreamAlgorithm(self.specification, key)


@dataclass(frozen=True)
class Approximate:
    """A claim of approximate retroactivity: (alpha, beta) for a block of so many answers in a row."""

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
    """``specification`` is there for a stream: its noise is known and can be audited from inside. ``keyed``: equal keys
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
        """Its histories have 8 rounds; where releases are rare as many as it takes for two of them, but no more
        than 256; and never more than the horizon.

        >>> import retroact as ra
        >>> spec = ra.Specification({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, horizon=100)
        >>> Target.stream(spec).shape.rounds
        8
        """
        rare = max(*(own.every for own in specification.statistics.values()), 1)
        rounds = min(max(ROUNDS, 2 * rare + 2), MOST_ROUNDS)
        rounds = min(rounds, specification.horizon or rounds)
        values = values_of(specification.schema, Random(0))
        shape = Shape(
            values,
            rounds=rounds,
            updates=updates,
            late=specification.late,
        )
        keyed = all(bound.keyed for bound in specification.bounds.values())
        return cls(name, MakeStream(specification), shape, specification.guarantee, specification, keyed)

    def with_rounds(self, rounds: int) -> Target:
        """The same with histories of so many rounds."""
        integer(rounds, "rounds")
        if self.specification is not None and self.specification.horizon is not None:
            rounds = min(rounds, self.specification.horizon)
        if rounds < 1:
            raise InputError(f"expected at least one round, got {rounds}", place="rounds")
        return replace(self, shape=replace(self.shape, rounds=rounds))


def fewer(count: int, least: int, usual: int, rounds: int) -> int:
    """So many runs, or where histories are longer than usual as many as have no more rounds in all, but at least some.

    >>> fewer(240, 10, 8, 8), fewer(240, 10, 8, 80), fewer(240, 10, 8, 800)
    (240, 24, 10)
    """
    return min(count, max(least, count * usual // max(usual, rounds)))
