"""What can be asked of a stream; nothing here changes it."""

from __future__ import annotations

from ..errors import InputError
from ..ledger.operations import Position
from ..ledger.text_codes import whose
from ..privacy import Guarantee
from ..schema import Schema
from .door import Names, required
from .grid import Grid
from .plan import Plan, plan
from .releases import Publishing
from .specification import Specification


class StreamFacts(Publishing):
    @property
    def sources(self) -> list[str]:
        """The names of all sources that were read."""
        return list(self._core.sources | self._core.open.reading)

    def position(self, source: str) -> Position | None:
        """How far a source was read, so that nothing is taken twice."""
        return self._core.position(source)

    def settled(self, source: str) -> Position | None:
        """How far a source was read in closed rounds."""
        return self._core.sources.get(source, (None,))[0]

    def delivered(self, source: str, position: int) -> bool:
        """Whether a single position of a source was taken."""
        read = self._core.open.reading, self._core.sources
        return any(position in sources[source][1] for sources in read if source in sources)

    @property
    def waiting(self) -> int:
        """The number of operations in the open round. Exact, so not for publication."""
        return len(self._core.open.updates)

    @property
    def specification(self) -> Specification:
        return self._core.specification

    @property
    def schema(self) -> Schema:
        return self._core.schema

    @property
    def durable(self) -> bool:
        """Whether it is kept in a store."""
        return self._core.persistence.durable

    @property
    def round(self) -> int:
        """The open round, from 1."""
        return self._core.round

    @property
    def over(self) -> bool:
        """Whether nothing more is published: all promised rounds are, or the stream has a successor."""
        return self._core.over

    @property
    def grid(self) -> Grid | None:
        """The grid of rounds, if there is one; ``grid.span(3)`` is when round 3 begins and ends."""
        return self._core.grid

    @property
    def guarantee(self) -> Guarantee:
        return self._core.engine.guarantee

    @property
    def before(self) -> tuple[Guarantee, ...]:
        """The guarantees of the streams that this one succeeds."""
        return self._core.before

    def check_rounds(self, wanted: int | None = None) -> None:
        """Refuse if the horizon is too short for the ``wanted`` rounds, or for those of the grid."""
        self.specification.check_rounds(wanted, before=self._core.origin)

    def plan(self, *, records: int | None = None) -> Plan:
        """The expected error of every statistic, before anything is released; for another number of ``records`` if
        one is given, which chooses nothing."""
        return plan(self.specification, records=records)

    @property
    def records(self) -> int:
        """Surviving records at the last close. Exact, so not for publication."""
        return len(self._core.ledger)

    def holds(self, id: Names = None, *, subject: Names = None) -> list[bool]:
        """Whether each of these ids would hold a record if the round closed now; or whether each of these subjects has
        records and no erasure that waits. Exact, so not for publication.

        >>> import retroact as ra
        >>> stream = ra.Stream({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=10)
        >>> stream.add({"age": [31, 44]}, id=["a", "b"], subject=["u1", "u2"])
        1
        >>> stream.delete(id="b")
        >>> stream.holds(["a", "b", "c"]), stream.holds(subject="u1")
        ([True, False, False], [True])
        """
        if (id is None) == (subject is None):
            raise InputError("expected either ids or subjects", place="id")
        with self._core.lock:
            updates, ledger = self._core.open.updates, self._core.ledger
            if id is None:
                names = required(subject, "subject")
                gone = whose(updates.erases(), names)
                counts = zip(names, ledger.of_subjects(names), updates.of_subjects(names), strict=True)
                return [name not in gone and bool(there or comes) for name, there, comes in counts]
            ids = required(id, "id")
            left, survives = updates.leaves(ids, self._core.round), ledger.holds(ids, updates.erases())
            return [left.get(name, there) for name, there in zip(ids, survives.tolist(), strict=True)]

    def left_out(self) -> dict[str, int]:
        """How many of the records that survived the last close each statistic leaves out because a value is missing,
        whatever its window. Recomputed on each call. Exact, so not for publication.

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
            if not self.schema.optional:
                return dict.fromkeys(self.specification.statistics, 0)
            rows, copies = self._core.ledger.rows_between(1, self.round)
            return {name: bound.left_out(rows, copies) for name, bound in self.specification.bounds.items()}
