"""A stream: additions and deletions in, private and retroactive releases out, round by round.

**Privacy.** Every statistic adds calibrated noise by name; together they spend the budget (Theorem "linear",
composition). **Retroactivity.** A release is a function of key, round and surviving data, and the state is the
surviving data with totals that are sums over it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..arrays import I64, Mask
from ..coins import Key
from ..errors import InputError
from ..ledger import Entry, Ledger, Operations, Single, Stamped
from ..ledger.operations import Position
from ..noise.default_process import Law
from ..privacy import Guarantee, Measure
from ..schema import Field, Schema
from ..statistics import Statistic
from .columns import Columns
from .core import Core, Keep
from .door import Names, Stamps
from .erasure import Accepted, Erasure
from .grid import Grid
from .plan import Plan, plan
from .release import Round
from .rounds import Rounds
from .specification import Specification
from .state import from_bytes, to_bytes

if TYPE_CHECKING:
    from .durable import Durable


class Stream:
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
        self._begin(Core(spec, key, Ledger(spec.schema), Keep()))

    def _begin(self, core: Core) -> None:
        self._core = core

    @classmethod
    def _of(cls, core: Core) -> Stream:
        stream = cls.__new__(cls)
        cls._begin(stream, core)
        return stream

    @classmethod
    def from_specification(cls, specification: Specification, *, key: Key | None = None) -> Stream:
        return cls._of(Core(specification, key, Ledger(specification.schema), Keep()))

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
        """A stream that lasts, in a folder or in a database (postgresql://...#name): made if it is not there yet.

        Schema, statistics and budget (epsilon and the other arguments of a stream) may be left out when it is there,
        and must not differ. The key lies in a file next to the folder, unless it is given, in RETROACT_KEY, or printed
        by RETROACT_KEY_COMMAND; so does the fence. ``restored``: the store is an old backup; rounds that were published
        are replayed without releases. ``after``: the fence is lost, nothing was published after this round, and a new
        fence begins there. ``erasures_asked``: all erasures that it lacks (`missing_erasures`) were asked for again.

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
        """Add one record (a dict), many (a list of dicts), columns (a dict of arrays) or any Arrow-capable frame.

        Ids, subjects and stamps are arguments, one for each record, or stand in columns that the stream knows
        (`Specification.columns`).

        Returns the stamp; None when it lies in the future, which makes the addition a no-op, and for a batch with a
        stamp for each record. With an id, what that id held is replaced. All or nothing: an error leaves the stream as
        it was.
        """
        with self._core.lock:
            now = self._core.round
            batch, at = self._core.door.addition(data, id, subject, stamp, now)
            self._core.enter(batch)
            return at if at is not None and at <= now else None

    def upsert(
        self, data: Any, *, id: Names, deleted: Sequence[bool] | Mask, subject: Names = None, stamp: Stamps = None
    ) -> None:
        """Many events on ids in arrival order: where ``deleted``, the id is emptied; the others hold the records of
        ``data`` in turn, with their subjects and stamps.

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

        Deleting what is not there changes nothing, now or later; `close_round().applied` tells how many did.
        """
        with self._core.lock:
            self._core.enter(self._core.door.deletion(data, stamp, id, subject, self._core.round))

    def erase(self, *, subject: Names = None, sha256: Sequence[bytes] | bytes | None = None) -> Erasure:
        """Erase all records of a subject: one deletion for each of them, also for those added in this round.

        Subjects may also be named by the SHA-256 of their text. What is returned says whether they have records now;
        the erasure is entered all the same.
        """
        with self._core.lock:
            return self.apply(Entry(self._core.door.erasure(subject, sha256))).erasure

    def stamped(self, data: Any, *, subject: Names = None, stamp: Stamps = None, numbers: I64 | None = None) -> Stamped:
        """Records for the operations of an entry: encoded, with stamps (the open round, if none are given) and
        subjects. Errors name rows of ``data``, or their ``numbers``."""
        return self._core.door.stamped(data, self._core.round, subject=subject, stamp=stamp, numbers=numbers)

    def apply(self, entry: Entry, *, close: bool = False) -> Accepted:
        """A batch of operations, and how far it read its source; with ``close``, the round is closed with it. All or
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
        """What the erasures of a batch find."""
        return Erasure(self._core.outcomes([*batch.erased, *batch.digests]))

    def receiving(self, source: str, position: Position, delivered: Sequence[int] = ()) -> AbstractContextManager[None]:
        """What is handed over inside comes from a source, up to this position: both are kept, or neither is. A round
        that is closed inside holds it all.

        ``delivered`` names single positions where a source may deliver twice or out of order.
        """
        return self._core.entering(source, position, delivered)

    @property
    def sources(self) -> list[str]:
        """What was read from, by the names that positions are kept under."""
        return list(self._core.sources | self._core.open.reading)

    def position(self, source: str) -> Position | None:
        """How far a source was read, so that nothing of it is taken twice."""
        return self._core.position(source)

    def settled(self, source: str) -> Position | None:
        """How far a source was read in rounds that are closed."""
        return self._core.sources.get(source, (None,))[0]

    def delivered(self, source: str, position: int) -> bool:
        """Whether a single position of a source was taken."""
        read = self._core.open.reading, self._core.sources
        return any(position in sources[source][1] for sources in read if source in sources)

    @property
    def waiting(self) -> int:
        """How many updates the open round holds. Exact, so not for publication."""
        return len(self._core.open.updates)

    def discard(self) -> int:
        """Drop the updates of the open round, as if none had come, and say how many there were. Erasures stay:
        they were acknowledged."""
        with self._core.lock:
            return self._core.discard()

    @property
    def specification(self) -> Specification:
        return self._core.specification

    @property
    def schema(self) -> Schema:
        return self._core.schema

    @property
    def lasting(self) -> bool:
        """Whether it is kept in a store."""
        return self._core.keep.lasts

    @property
    def round(self) -> int:
        """The open round, from 1."""
        return self._core.round

    @property
    def over(self) -> bool:
        """Whether nothing more is published: all promised rounds are, or another stream goes on from this one."""
        return self._core.over

    @property
    def guarantee(self) -> Guarantee:
        return self._core.engine.guarantee

    @property
    def before(self) -> tuple[Guarantee, ...]:
        """The guarantees of the streams that this one goes on from."""
        return self._core.before

    @property
    def budget(self) -> dict[str, Measure]:
        """What each statistic spends over the whole horizon."""
        return {name: self.specification.measure_of(name) for name in self.specification.statistics}

    def check_rounds(self, wanted: int | None = None) -> None:
        """That the ``wanted`` rounds, or those of the grid, can be published: asked before anything is read."""
        self.specification.check_rounds(wanted, before=self._core.origin)

    def plan(self) -> Plan:
        """The expected error of every statistic, before anything is released."""
        return plan(self.specification)

    @property
    def records(self) -> int:
        """Surviving records at the last close. Exact, so not for publication."""
        return len(self._core.ledger)

    def left_out(self) -> dict[str, int]:
        """For each statistic, how many of the records that survived at the last close it leaves out for want of a value
        (whatever its window). Worked out anew whenever it is asked for. Exact, so not for publication.

        >>> import retroact as ra
        >>> schema = {"delay": ra.Integer(-60, 600, missing="skip")}
        >>> flights = ra.Stream(schema, {"flights": ra.Count(), "delay": ra.Mean("delay")}, epsilon=1.0, horizon=10)
        >>> flights.add({"delay": [5, None, 12]})
        1
        >>> published = flights.close_round()
        >>> flights.left_out()
        {'flights': 0, 'delay': 1}
        """
        with self._core.lock:
            return self._core.left_out()

    def __repr__(self) -> str:
        names = ", ".join(self.specification.statistics)
        return f"Stream({names}; round {self._core.round} of {self.specification.horizon or 'any'})"

    def close_round(self) -> Round:
        """End the open round and publish: all or nothing."""
        return self._core.close()

    def successor(
        self, *, epsilon: float, delta: float = 0.0, horizon: int | None = None, key: Key | None = None
    ) -> Stream:
        """A stream that goes on from the surviving data of this one, with another budget, horizon and key.

        This is the way on when a horizon is used up. Both streams see the same records, so their guarantees compose:
        the successor's guarantee says what both spend together. Round numbers go on, and what the open round holds goes
        with them. Erasures and deletions by id that wait are applied first, here and there. This stream then publishes
        nothing more; it can still erase.
        """
        with self._core.lock:
            return Stream._of(self._core.successor(key, epsilon=epsilon, delta=delta, horizon=horizon))

    def state(self) -> bytes:
        """Round, surviving data and the choice of law and processes, in canonical bytes: equal for histories that
        unite. The key is not in it."""
        return to_bytes(self._core)

    @classmethod
    def from_state(
        cls, specification: Specification, state: bytes, *, key: Key, before: Sequence[Guarantee] = ()
    ) -> Stream:
        """Go on from a state, under the same key and specification, with the law and the processes that were chosen
        then. The caller answers for its being the latest.

        A stream that follows others (`successor`) also needs their guarantees, its `before`: they compose with its own.
        """
        return cls._of(from_bytes(specification, state, key, before))
