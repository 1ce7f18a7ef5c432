"""A stream: additions and deletions in, private and retroactive releases out, round by round.

**Privacy.** Every statistic adds calibrated noise by name; together they spend the budget (Theorem "linear",
composition). **Retroactivity.** A release is a function of key, round and surviving data, and the state is the
surviving data with totals that are sums over it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ..arrays import I64, Mask
from ..coins import Key
from ..errors import InputError
from ..ledger import Entry, Operations, Single, Stamped
from ..ledger.operations import Position
from ..noise.default_process import Law
from ..privacy import Guarantee
from ..schema import Field, Schema
from ..statistics import Statistic
from .columns import Columns
from .core import Core
from .door import Names, Stamps
from .facts import StreamFacts
from .grid import Grid
from .outcome import Accepted, Erasure
from .passes import Pass
from .release import Round
from .rounds import Rounds
from .specification import Specification

if TYPE_CHECKING:
    from pathlib import Path

    from .durable import Durable


class Stream(StreamFacts):
    """
    >>> import retroact as ra
    >>> orders = ra.Stream(
    ...     schema={"amount": ra.Number(0, 500)}, statistics={"revenue": ra.Sum("amount")}, epsilon=1.0, horizon=100)
    >>> orders.add({"amount": 12.5}, id="o-1", subject="u17")
    1
    >>> first = orders.close_round()
    >>> orders.erase(subject="u17").found
    True
    >>> second = orders.close_round()      # as if u17 had never been there
    >>> second["revenue"].round, second.applied.removed
    (2, 1)
    """

    def __init__(
        self,
        schema: Mapping[str, Field] | Schema,
        statistics: Mapping[str, Statistic],
        *,
        epsilon: float,
        delta: float = 0.0,
        horizon: int | None = None,
        window: int | None = None,
        records: int = 10_000,
        weights: Mapping[str, float] | None = None,
        law: Law | None = None,
        late: bool = True,
        columns: Columns | Mapping[str, Any] | None = None,
        rounds: Rounds | Grid | Mapping[str, Any] | int | None = None,
        key: Key | None = None,
    ) -> None:
        spec = Specification(
            schema, statistics, epsilon=epsilon, delta=delta, horizon=horizon, window=window, records=records,
            weights=weights, law=law, late=late, columns=columns, rounds=rounds,
        )  # fmt: skip
        self._core = Core.new(spec, key)

    @classmethod
    def _of(cls, core: Core) -> Stream:
        stream = cls.__new__(cls)
        vars(stream).update(_core=core)
        return stream

    @classmethod
    def from_specification(cls, specification: Specification, *, key: Key | None = None) -> Stream:
        return cls._of(Core.new(specification, key))

    @classmethod
    def open(
        cls,
        where: str | Path,
        schema: Mapping[str, Field] | Schema | None = None,
        statistics: Mapping[str, Statistic] | None = None,
        *,
        specification: Specification | None = None,
        key: Key | None = None,
        key_file: str | Path | None = None,
        fence: str | Path | None = None,
        restored: bool = False,
        after: int | None = None,
        erasures_asked: bool = False,
        **budget: Any,
    ) -> Durable:
        """A durable stream, in a folder or in a database (postgresql://...#name); created if it does not exist.

        Schema, statistics and budget (epsilon and the other arguments of a stream) may be left out for an existing
        stream, and must not differ. The key is in a file next to the folder, unless it is given, in RETROACT_KEY, or
        printed by RETROACT_KEY_COMMAND; so is the fence. ``restored``: the store is an old backup, and rounds published
        since are replayed without releases. ``after``: the fence is lost, nothing was published after this round, and a
        new fence starts there. ``erasures_asked``: every erasure the store lacks (`missing_erasures`) was requested
        again.

        >>> import tempfile, retroact as ra
        >>> place = tempfile.mkdtemp() + "/orders"
        >>> schema, statistics = {"amount": ra.Number(0, 500)}, {"revenue": ra.Sum("amount")}
        >>> with ra.Stream.open(place, schema, statistics, epsilon=1.0, horizon=100) as orders:
        ...     orders.add({"amount": 12.5}, id="o-1", subject="u17")
        ...     first = orders.close_round()
        1
        >>> with ra.Stream.open(place) as orders:
        ...     orders.round
        2
        """
        from .open import open_stream

        if schema is not None and statistics is not None and specification is None:
            specification = Specification(schema, statistics, **budget)
        elif schema is not None or statistics is not None or budget:
            given = next(iter(budget), "schema" if schema is not None else "statistics")
            raise InputError("expected schema, statistics and budget, or a specification, or none of them", place=given)
        return open_stream(
            where, specification, key=key, key_file=key_file, fence=fence,
            restored=restored, after=after, erasures_asked=erasures_asked,
        )  # fmt: skip

    def add(self, data: Any, *, id: Names = None, subject: Names = None, stamp: Stamps = None) -> int | None:
        """Add one record (a dict), several (a list of dicts), columns (a dict of arrays) or any Arrow-capable frame.

        Ids, subjects and stamps are arguments, one for each record, or columns with that role
        (`Specification.columns`). A record with an id replaces what that id held.

        Returns the stamp; None if it is in the future, which makes the addition a no-op, or if each record has its own.
        All or nothing: an error leaves the stream as it was.
        """
        with self._core.lock:
            now = self._core.round
            batch, at = self._core.door.addition(data, id, subject, stamp, now)
            self._core.enter(batch)
            return at if at is not None and at <= now else None

    def upsert(
        self, data: Any, *, id: Names, deleted: Sequence[bool] | Mask, subject: Names = None, stamp: Stamps = None
    ) -> None:
        """Events on ids, in order of arrival: where ``deleted``, the id is emptied; the others get the records of
        ``data`` one after another, with their subjects and stamps.

        >>> import retroact as ra
        >>> stream = ra.Stream({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=10)
        >>> stream.upsert({"age": [31, 44]}, id=["a", "b", "a"], deleted=[False, False, True])
        >>> stream.close_round().applied.added
        1
        """
        with self._core.lock:
            self._core.enter(self._core.door.upsert(data, id, deleted, subject, stamp, self._core.round))

    def delete(self, data: Any = None, *, stamp: Stamps = None, id: Names = None, subject: Names = None) -> None:
        """Delete by id, or one copy of a record by its value, its stamp and its subject (if it has one).

        Deleting what is not there has no effect, now or later; `close_round().applied` counts such deletions.
        """
        with self._core.lock:
            self._core.enter(self._core.door.deletion(data, stamp, id, subject, self._core.round))

    def erase(self, *, subject: Names = None, sha256: Sequence[bytes] | bytes | None = None) -> Erasure:
        """Delete all records of a subject, including those added in this round.

        Subjects may also be named by the SHA-256 of their text. The result says whether they have records now; either
        way the erasure is applied.
        """
        with self._core.lock:
            return self.apply(Entry(self._core.door.erasure(subject, sha256))).erasure

    def stamped(self, data: Any, *, subject: Names = None, stamp: Stamps = None, numbers: I64 | None = None) -> Stamped:
        """Encoded records for the operations of an entry, with subjects and stamps (the open round by default). Errors
        name rows of ``data`` by their ``numbers``, if given."""
        return self._core.door.stamped(data, self._core.round, subject=subject, stamp=stamp, numbers=numbers)

    def apply(self, entry: Entry, *, close: bool = False) -> Accepted:
        """Take a batch of operations, and how far it read its source; with ``close``, close the round too. All or
        nothing: an error leaves the stream as it was.

        >>> import retroact as ra
        >>> from retroact.ledger import Entry, Operations
        >>> stream = ra.Stream({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=10)
        >>> batch = Operations(added=stream.stamped({"age": [31, 44]}, subject=["u1", "u2"]), erased=["u1"])
        >>> accepted = stream.apply(Entry(batch, "people.csv", (2,)), close=True)
        >>> accepted.round.applied.added, accepted.erasure.found, stream.position("people.csv")
        (1, True, (2,))
        """
        with self._core.entering(entry.source, entry.position or (), entry.delivered):
            self._core.append(entry.operations)
            erasure = Erasure() if isinstance(entry.operations, Single) else self._erasure(entry.operations)
            return Accepted(erasure, self.close_round() if close else None)

    def _erasure(self, batch: Operations) -> Erasure:
        return Erasure(self._core.outcomes([*batch.erased, *batch.digests]))

    def receiving(self, source: str, position: Position, delivered: Sequence[int] = ()) -> AbstractContextManager[None]:
        """Operations inside come from a source, read up to this position: both are kept, or neither. If a round is
        closed inside, they all belong to it.

        ``delivered`` lists single positions, for a source that may deliver twice or out of order.
        """
        return self._core.entering(source, position, delivered)

    @property
    def passes(self) -> bool:
        """Whether several rounds may be published in `one_pass` now."""
        return Pass.possible(self._core)

    def one_pass(self) -> AbstractContextManager[Pass]:
        """Inside, rounds end by ``end_round()``, wait for one another, and are computed and published together, which
        takes a fraction of the time. All or nothing: an error leaves the stream as it was. What an erasure found is
        known when its round is settled.

        >>> import retroact as ra
        >>> stream = ra.Stream({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=10)
        >>> with stream.one_pass() as rounds:
        ...     for age in (31, 44):
        ...         _ = stream.add({"age": age})
        ...         rounds.end_round()
        >>> [(closed.number, closed.applied.added) for closed in rounds.closed()], stream.round
        ([(1, 1), (2, 1)], 3)
        """
        return Pass(self._core).going_on()

    def discard(self) -> int:
        """Drop the operations of the open round as if they had never come, and return their number. Erasures stay,
        because they were acknowledged."""
        with self._core.lock:
            return self._core.discard()

    def __repr__(self) -> str:
        names = ", ".join(self.specification.statistics)
        return f"Stream({names}; round {self._core.round} of {self.specification.horizon or 'any'})"

    def close_round(self) -> Round:
        """End the open round and publish: all or nothing."""
        return self._core.close()

    def successor(
        self, *, epsilon: float, delta: float = 0.0, horizon: int | None = None, key: Key | None = None
    ) -> Stream:
        """A stream that continues from the surviving data of this one, with another budget, horizon and key: what to do
        when a horizon is used up.

        Both streams see the same records, so their guarantees compose, and the successor's guarantee states what both
        spend together. Round numbers continue, and the open round moves to the successor. Pending erasures and
        deletions by id are applied first, in both. This stream then publishes nothing more, but can still erase.
        """
        with self._core.lock:
            return Stream._of(self._core.successor(key, epsilon=epsilon, delta=delta, horizon=horizon))

    def state(self) -> bytes:
        """The round, the surviving data, and the choice of law and processes, in canonical bytes: equal for histories
        that unite. The key is not part of it."""
        return self._core.state()

    @classmethod
    def from_state(
        cls, specification: Specification, state: bytes, *, key: Key, before: Sequence[Guarantee] = ()
    ) -> Stream:
        """Continue from a state, under the same key and specification, with the law and processes chosen then. The
        caller vouches that the state is the latest. A successor also needs the guarantees of its predecessors
        (`before`): they compose with its own."""
        return cls._of(Core.from_state(specification, state, key, before))
