"""A stream: additions and deletions in, private and retroactive releases out, round by round.

**Privacy.** Every statistic adds calibrated noise by name; together they spend the budget (Theorem "linear",
composition). **Retroactivity.** A release is a function of key, round and surviving data, and the state is the
surviving data with totals that are sums over it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ..coins import Key
from ..errors import InputError
from ..ledger import Change, Ledger, Removal, Updates
from ..noise.default_process import LAWS, Law
from ..privacy import Guarantee, Measure, compose
from ..schema import Field, Schema
from ..statistics import Statistic
from ..statistics.statistic import Totals
from .choosing import Choice, check_law
from .columns import Columns
from .door import Door
from .ending import Ending
from .grid import Grid
from .open_round import OpenRound, Sources
from .plan import Plan, plan
from .release import Applied, Release, Round
from .rounds import Rounds
from .specification import Specification
from .totals import Running

if TYPE_CHECKING:
    from .durable import Durable

FORMAT = 3


class Stream(Ending):
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
            schema,
            statistics,
            epsilon=epsilon,
            delta=delta,
            horizon=horizon,
            window=window,
            records=records,
            weights=weights,
            law=law,
            late=late,
            columns=columns,
            rounds=rounds,
        )
        self._begin(spec, key, Ledger(spec.schema), 0, [])

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
        and must not differ. The key lies in a file beside the folder, unless it is given, in RETROACT_KEY, or printed
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

    @classmethod
    def from_specification(cls, specification: Specification, *, key: Key | None = None) -> Stream:
        stream = cls.__new__(cls)
        stream._begin(specification, key, Ledger(specification.schema), 0, [])
        return stream

    def _begin(
        self,
        spec: Specification,
        key: Key | None,
        ledger: Ledger,
        origin: int,
        before: list[Guarantee],
        round: int | None = None,
        *,
        salt: bytes = b"",
        where: str | None = None,
    ) -> None:
        """`salt`: tells stores under one key apart. `where` the stream is kept, if it is."""
        key = Key.generate() if key is None else key
        if not isinstance(key, Key):
            raise InputError("expected a Key, such as Key.generate()", place="key")
        if where is None and spec.after_erasure == "reject":
            raise InputError(
                "rejecting later records of erased subjects needs a stream that lasts: Stream.open",
                place="after_erasure",
            )
        spec.check_rounds(before=origin)
        self.specification = spec
        self._door = Door(spec)
        self._ledger = ledger
        self._origin = origin
        self._round = origin + 1 if round is None else round
        self._before = before
        self._open, self._sources = OpenRound(spec.schema), Sources()
        self._lock = threading.RLock()
        self._room(0)
        # A stream that follows another begins later, and so has names of its own even under the same testing key.
        coins = key.coins("stream", *([origin] if origin else []), *([salt] if salt else []))
        self._running = {name: Running(spec, name, coins, ledger, self._round - 1) for name in spec.statistics}
        self._guarantee = self._composed()
        key.claim(where)  # last, so that a stream that could not be made leaves its key free

    # What people ask for -------------------------------------------------------------------------------------------

    @property
    def round(self) -> int:
        """The open round, from 1."""
        return self._round

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    @property
    def before(self) -> tuple[Guarantee, ...]:
        """The guarantees of the streams that this one goes on from."""
        return tuple(self._before)

    @property
    def budget(self) -> dict[str, Measure]:
        """What each statistic spends over the whole horizon."""
        return {name: self.specification.measure_of(name) for name in self.specification.statistics}

    def check_rounds(self, wanted: int | None = None) -> None:
        """That so many rounds, or those of the grid, can be published at all: to be asked before anything is read."""
        self.specification.check_rounds(wanted, before=self._origin)

    def plan(self) -> Plan:
        """The expected error of every statistic, before anything is released."""
        return plan(self.specification)

    @property
    def records(self) -> int:
        """Surviving records at the last close. Exact, so not for publication."""
        return len(self._ledger)

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
        with self._lock:
            schema, statistics = self.schema, self.specification.statistics
            if not schema.optional:
                return dict.fromkeys(statistics, 0)
            rows, copies = self._ledger.rows_between(1, self._round)
            return {name: statistic.left_out(rows, copies, schema) for name, statistic in statistics.items()}

    def __repr__(self) -> str:
        names = ", ".join(self.specification.statistics)
        return f"Stream({names}; round {self._round} of {self.specification.horizon or 'any'})"

    # What goes out ---------------------------------------------------------------------------------------------------

    def close_round(self) -> Round:
        """End the open round and publish: all or nothing."""
        with self._lock:
            round = self._round
            self._check_open()
            # Everything that can fail runs before the ledger writes the first byte.
            change = self._ledger.plan(round, self._open.updates)
            try:
                totals = {name: own.advanced(self._ledger, change, round) for name, own in self._running.items()}
                releases = self._releases(round, totals)
                self._keep(change, releases)
            except BaseException:
                self._ledger.drop(change)
                raise
            self._ledger.commit(change)
            for name, running in self._running.items():
                running.totals = totals[name]
            closed, self._open = self._open, OpenRound(self.schema)
            applied = Applied(
                change.added, change.removed, change.ignored_deletions, change.ignored_additions, closed.rejected
            )
            self._sources.settle(closed)
            self._round += 1
            self._closed(round)
            return Round(round, releases, applied)

    def successor(
        self, *, epsilon: float, delta: float = 0.0, horizon: int | None = None, key: Key | None = None
    ) -> Stream:
        """A stream that goes on from the surviving data of this one, with a budget, a horizon and a key of its own.

        This is the way on when a horizon is used up. Both streams see the same records, so their guarantees compose:
        the successor's guarantee says what both spend together. Round numbers go on, and what the open round holds goes
        with them. Erasures and deletions by id that wait are applied first, here and there. This stream then publishes
        nothing more; it can still erase.
        """
        with self._lock:
            if self._followed:
                raise InputError("this stream has a successor already: go on from that")
            old, removal = self.specification, Removal.of(self._open.updates, self._round)
            spec = old.following(self._round - 1, epsilon=epsilon, delta=delta, horizon=horizon)
            stream = Stream.__new__(Stream)
            ledger = Ledger.from_state(old.schema, self._ledger.state())
            ledger.apply(self._round, removal.deletions(old.schema))
            stream._begin(spec, key, ledger, self._round - 1, [*self._before, old.guarantee])
            stream._open.updates, self._open.updates = self._without_deletions(removal), Updates(old.schema)
            self._followed = True
            return stream

    # What is kept ----------------------------------------------------------------------------------------------------

    def state(self) -> bytes:
        """Round, surviving data and the choice of law and processes, in canonical bytes: equal for histories that
        unite. The key is not in it."""
        with self._lock:
            if len(self._open.updates):
                raise InputError("expected no updates in the open round: the state is taken between rounds")
            if self._followed:
                raise InputError("this stream has a successor: take the state of that")
            digest, choice = self.specification.whole_digest, self.specification.choice
            chosen = [choice.law, *choice.noise.values()]
            before, ledger = len(self._before), self._ledger.state()
            return msgspec.msgpack.encode([FORMAT, digest, chosen, self._round, self._origin, before, ledger])

    @classmethod
    def from_state(
        cls, specification: Specification, state: bytes, *, key: Key, before: Sequence[Guarantee] = ()
    ) -> Stream:
        """Go on from a state, under the same key and specification, with the law and the processes that were chosen
        then. The caller answers for its being the latest.

        A stream that follows others (`successor`) also needs their guarantees, its `before`: they compose with its own.
        """
        try:
            parts = msgspec.msgpack.decode(state, type=tuple[int, bytes, list[str], int, int, int, bytes])
        except msgspec.MsgspecError as error:
            raise InputError(f"expected the state of a stream, got something else ({error})", place="state") from None
        version, digest, chosen, round, origin, streams, ledger = parts
        if version != FORMAT:
            raise InputError(f"expected state format {FORMAT}, got {version}", place="state")
        names = list(specification.statistics)
        if chosen and chosen[0] in LAWS and len(chosen) == len(names) + 1:
            stored = Choice(check_law(chosen[0]), dict(zip(names, chosen[1:], strict=True)))
            specification = specification.running_under(stored)
        if digest != specification.whole_digest:
            raise InputError("expected the specification that the state was made under, got another", place="state")
        if len(before) != streams:
            raise InputError(
                f"expected the guarantees of {streams} streams before this one, got {len(before)}", place="before"
            )
        stream = cls.__new__(cls)
        stream._begin(specification, key, Ledger.from_state(specification.schema, ledger), origin, list(before), round)
        return stream

    # Inside ----------------------------------------------------------------------------------------------------------

    def _keep(self, change: Change, releases: Mapping[str, Release]) -> None:
        """What must last before anybody sees it; an error stops the round."""

    def _closed(self, round: int) -> None:
        """A round is about to be seen."""

    def _releases(self, round: int, totals: Mapping[str, list[Totals]]) -> dict[str, Release]:
        """What is published in a round with these totals."""
        index = round - self._origin
        return {
            name: self._release(name, totals[name], index // running.statistic.every, round)
            for name, running in self._running.items()
            if index % running.statistic.every == 0
        }

    def _release(self, name: str, totals: list[Totals], index: int, round: int) -> Release:
        published = self._running[name].release(totals, index, round)
        answer = published.answer
        return Release(
            name,
            round,
            answer.value,
            answer.standard_error,
            self._guarantee,
            published.numerators,
            published.denominator,
            answer.interval,
        )

    def _composed(self) -> Guarantee:
        own = self.specification.guarantee
        if not self._before:
            return own
        parts = [*self._before, own]
        measure = compose(part.measure for part in parts)
        delta = sum(part.delta for part in parts)
        together = "together with the streams before it"
        adaptive = all(part.adaptive for part in parts)
        promises = tuple(dict.fromkeys(promise for part in parts for promise in part.promises))
        return Guarantee(measure, measure.epsilon(delta), delta, f"{own.unit}, {together}", adaptive, promises)
