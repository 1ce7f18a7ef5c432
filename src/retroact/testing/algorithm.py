"""What the checks run: any dynamic algorithm, round by round; a stream is one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

from ..coins import Key
from ..errors import InputError, VerificationError
from ..ledger.definition import Add, Delete, DeleteId, Erase, Update
from ..stream import Round, Specification, Stream
from ..stream.rounds import Rounds
from .histories import Pair

MANY = 100
RAISED = b"no answer, raised "


class CheckFailedError(VerificationError):
    """A check failed; the message holds the history that shows it."""


class Algorithm(Protocol):
    """A dynamic algorithm (paper, section 2): takes the updates of a round and answers."""

    def close(self, updates: Sequence[Update]) -> bytes:
        """The answer of the round, as bytes that are equal if and only if the answers are."""


@runtime_checkable
class Persistent(Protocol):
    """An algorithm whose state can be saved and restored between rounds."""

    def state(self) -> bytes: ...

    def resume(self, state: bytes) -> Algorithm: ...


Make = Callable[[Key], Algorithm]
Answering = Callable[[Make, Key, Sequence[Sequence[Update]]], list[bytes]]
"""All answers of one history: `run`, or `answers`, where an exception is one too."""


def without_sources(specification: Specification) -> Specification:
    """The same stream without columns, sources and the length of rounds: histories are generated, and noise depends on
    none of these."""
    if not specification.columns.given and not specification.sources and specification.rounds == Rounds():
        return specification
    return specification.replace(columns=None, sources=None, rounds=None)


def in_memory(specification: Specification) -> Specification:
    """The same stream as it can run in memory, where there is no list of erased subjects to reject."""
    bare = without_sources(specification)
    return bare if bare.after_erasure == "accept" else bare.replace(after_erasure="accept")


class StreamAlgorithm:
    """A stream under a key. The value of an update is a tuple, in the order of the fields.

    ``chunk``: feed the additions of a round in batches of this many records. By default they go in one by one, or all
    at once in rounds of at least `MANY` updates.
    """

    def __init__(
        self, specification: Specification, key: Key, *, chunk: int | None = None, stream: Stream | None = None
    ) -> None:
        self.specification = specification
        self.stream = Stream.from_specification(specification, key=key) if stream is None else stream
        self._key, self._chunk = key, chunk

    def close(self, updates: Sequence[Update]) -> bytes:
        return self.release(updates).encode()

    def release(self, updates: Sequence[Update]) -> Round:
        self.feed(updates)
        return self.stream.close_round()

    def feed(self, updates: Sequence[Update]) -> None:
        """Into the open round."""
        if self._chunk is None and len(updates) < MANY:
            for update in updates:
                self._feed(update)
        else:
            self._feed_batches(list(updates), self._chunk or len(updates))

    def state(self) -> bytes:
        return self.stream.state()

    def resume(self, state: bytes) -> StreamAlgorithm:
        stream = Stream.from_state(self.specification, state, key=self._key)
        return StreamAlgorithm(self.specification, self._key, chunk=self._chunk, stream=stream)

    def _record(self, value: Any) -> dict[str, Any]:
        return dict(zip(self.specification.schema.fields, value, strict=True))

    def _feed(self, update: Update) -> None:
        match update:
            case Add(value, stamp, id, subject):
                self.stream.add(self._record(value), id=id, subject=subject, stamp=stamp)  # type: ignore[arg-type]
            case Delete(value, stamp, subject):
                self.stream.delete(self._record(value), stamp=stamp, subject=subject)  # type: ignore[arg-type]
            case DeleteId(id):
                self.stream.delete(id=id)  # type: ignore[arg-type]
            case Erase(subject):
                self.stream.erase(subject=subject)  # type: ignore[arg-type]

    def _feed_batches(self, updates: list[Update], chunk: int) -> None:
        """Consecutive additions, all with ids or all without, go in together; the order stays."""
        run: list[Add] = []
        for update in [*updates, None]:
            fits = isinstance(update, Add) and (not run or (run[-1].id is None) == (update.id is None))
            if run and (not fits or len(run) == chunk):
                self._feed_run(run)
                run = []
            if isinstance(update, Add):
                run.append(update)
            elif update is not None:
                self._feed(update)

    def _feed_run(self, run: list[Add]) -> None:
        self.stream.add(
            [self._record(add.value) for add in run],
            id=None if run[0].id is None else [add.id for add in run],  # type: ignore[misc]
            subject=[add.subject for add in run],  # type: ignore[misc]
            stamp=[self.stream.round if add.stamp is None else add.stamp for add in run],
        )


def run(make: Make, key: Key, sequence: Sequence[Sequence[Update]]) -> list[bytes]:
    """All answers of one history."""
    algorithm = make(key)
    return [algorithm.close(updates) for updates in sequence]


class Guarded:
    """An algorithm whose exceptions are answers: whoever waits for a release sees them. Only their type counts, since
    their text may hold records or paths. After an exception there is no other answer."""

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


def answers(make: Make, key: Key, sequence: Sequence[Sequence[Update]]) -> list[bytes]:
    """All answers of one history; an exception is one too.

    >>> class Broken:
    ...     def close(self, updates):
    ...         raise ValueError("of a record")
    >>> answers(lambda key: Broken(), Key.for_testing(1), ((), ()))
    [b'no answer, raised ValueError', b'no answer, raised ValueError']
    """
    return run(partial(Guarded, make), key, sequence)


def raises(make: Make, pairs: Iterable[Pair], key: Key, answering: Answering = answers) -> str | None:
    """The type of the first exception on one of these histories, if there is one."""
    found = (raised(answering(make, key, side)[-1:]) for pair in pairs for side in (pair.one, pair.other))
    return next((name for name in found if name is not None), None)


def failure(error: Exception) -> bytes:
    """An exception as an answer."""
    return RAISED + type(error).__name__.encode()


def raised(answers: Sequence[bytes]) -> str | None:
    """The type of the exception among these answers, if there is one.

    >>> raised([b"1", b"no answer, raised ValueError"]), raised([b"1"])
    ('ValueError', None)
    """
    return next((a.removeprefix(RAISED).decode() for a in answers if a.startswith(RAISED)), None)
