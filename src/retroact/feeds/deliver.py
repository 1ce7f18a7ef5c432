"""Changes into the open round of a stream: one batch of operations at a time, all or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from ..arrays import I64, Mask
from ..errors import InputError, RetroactError, Unit
from ..ledger import Entry, Operations, Stamped
from ..ledger.operations import NO_RECORDS
from ..stream import Stream
from ..stream.door import names_of
from ..stream.outcome import Outcome
from .batch import ADD, DELETE, ERASE, EVERY_RECORD, NOTHING, UPDATE, Changes, has_record
from .held_ids import HeldIds
from .moved import MovedValues
from .refusals import Refusals
from .rounds import RoundCloser

Position = tuple[int, ...]


class Delivery:
    """Gives the changes of a source to a stream, with the position reached, and names the row that is refused."""

    def __init__(self, stream: Stream, rounds: RoundCloser, name: str, unit: Unit, source: str | None) -> None:
        self.stream, self.rounds = stream, rounds
        self.name, self.unit = name, unit
        """What errors call the source and its rows."""
        self.source = source
        """What positions are stored under; None if they are not."""
        self.begun = False
        """Whether something was delivered."""
        self.refusals: Refusals | None = None
        """Where what is refused is noted; if absent, it is raised."""
        self.held = HeldIds()
        """Which ids hold a record, if refusals are noted."""
        self.moved = MovedValues(stream.schema)
        """Which values are clipped or rounded, if refusals are noted."""
        self._constant = EVERY_RECORD in stream.schema.fields

    def reached(self) -> Position | None:
        return None if self.source is None else self.stream.position(self.source)

    def settled(self) -> Position | None:
        return None if self.source is None else self.stream.settled(self.source)

    def was_delivered(self, position: int) -> bool:
        return self.source is not None and self.stream.delivered(self.source, position)

    def place(self, number: int) -> str:
        """A row of the source, as messages name it."""
        return f"{self.name}:{number}" if self.unit == "line" else f"{self.name}: row {number}"

    def deliver(
        self, changes: Changes, position: Position, *, delivered: Sequence[int] = (), close: int | None = None
    ) -> None:
        """Apply changes and the position of their source, both or neither. If the row ``close`` ends the round, that
        closes in the same step, or stays open."""
        if self.refusals is None:
            self._deliver(changes, position, delivered, close)
            return
        self._sift(changes, position, delivered, self.refusals)
        if close is not None:
            try:
                self._deliver(changes.take(slice(0)), position, (), close)
            except InputError as error:
                self.refusals.add(error)

    def _sift(self, changes: Changes, position: Position, delivered: Sequence[int], refusals: Refusals) -> None:
        """Deliver what is accepted, and note what is not."""
        try:
            self._deliver(changes, position, delivered, None)
            self.held.note(changes)
            self.moved.note(changes.take(has_record(changes)))
        except InputError as error:
            good = self._good(changes, refusals)
            parts = refusals.left(error, changes.numbers) if good.all() else [np.flatnonzero(good)]
            for rows in parts:
                self._sift(changes.take(rows), position, delivered, refusals)

    def _good(self, changes: Changes, refusals: Refusals) -> Mask:
        """Which changes have no bad value; bad ones are noted, field by field."""
        good, holds = np.ones(len(changes), np.bool_), has_record(changes)
        good[holds] = refusals.of_values(self.stream.schema, changes.take(holds), self.name, self.unit)
        return good

    def _deliver(self, changes: Changes, position: Position, delivered: Sequence[int], close: int | None) -> None:
        self.begun = True
        if len(changes) and bool((changes.codes == NOTHING).any()):
            changes = changes.take(changes.codes != NOTHING)
        self.rounds.take(waits=close is not None or bool(has_record(changes).any()))
        if changes.copies is not None:
            changes = changes.take(np.repeat(np.arange(len(changes)), changes.copies))
        adds = (changes.codes == ADD) | (changes.codes == UPDATE)
        with self.at(changes.numbers if len(changes) else np.array([close])):
            operations = self._operations(changes, adds)
        with self.at(changes.numbers if close is None else np.array([close])):
            if close is not None:
                self.rounds.require_another()
            entry = Entry(operations, self.source, None if self.source is None else position, delivered)
            at_once = close is not None and not self.rounds.waits
            accepted = self.stream.apply(entry, close=at_once)
            self._count(changes, adds)
            self._name_unfound(changes, adds, accepted.erasure.outcomes)
            if close is not None and not at_once:
                self.rounds.close()
        if accepted.round is not None:
            self.rounds.closed(accepted.round)

    def _count(self, changes: Changes, adds: Mask) -> None:
        totals = self.rounds.totals
        updated = bool((changes.codes == UPDATE).any())
        totals.given = None if totals.given is None or updated else totals.given + int(adds.sum())

    @contextmanager
    def at(self, numbers: I64 | None = None, *, during: str = "") -> Iterator[None]:
        """Errors inside name the source, and the row: the one that the error has, or one of these. Without rows they
        say when it was."""
        try:
            yield
        except RetroactError as error:
            row: int | None = None
            if numbers is not None:
                first, last = int(numbers[0]), int(numbers[-1])
                row = first if first == last else None
                if isinstance(error, InputError) and error.row is not None:
                    row = error.row
                during = "" if row is not None else f"{self.unit}s {first}-{last}"
            if isinstance(error, InputError):
                raise error.of_a_file().found_in(self.name, row=row, unit=self.unit, during=during) from None
            where = self.name if row is None else self.place(row)
            raise type(error)(f"{where}{', ' if during else ''}{during}: {error}") from None

    def _operations(self, changes: Changes, adds: Mask) -> Operations:
        codes, named = changes.codes, changes.there("id")
        events = _chosen(changes, named & (adds | (codes == DELETE)))
        ids, emptied = self._names(events, "id"), events.codes == DELETE
        return Operations(
            added=self._stamped(changes, ~named & adds),
            placed=self._stamped(events, ~emptied),
            deleted=self._stamped(changes, ~named & (codes == DELETE)),
            ids=ids,
            emptied=np.flatnonzero(emptied).tolist(),
            erased=self._erased(_chosen(changes, codes == ERASE)),
        )

    def _stamped(self, changes: Changes, chosen: Mask) -> Stamped:
        if not chosen.any():
            return NO_RECORDS
        some, now = _chosen(changes, chosen), self.stream.round
        data, stamps = some.records(), np.where(some.there("stamp"), some.whole("stamp"), now)
        if self._constant:
            data[EVERY_RECORD] = np.zeros(len(some), np.int64)
        # one stamp for all is faster
        stamp = stamps if bool((stamps != now).any()) else None
        return self.stream.stamped(data, subject=some.names("subject"), stamp=stamp, numbers=some.numbers)

    def _names(self, changes: Changes, role: str) -> Sequence[str]:
        if not len(changes):
            return []
        try:
            names: Any = names_of(changes.roles[role].names(), len(changes), role)
            ids: Sequence[str] = [names] * len(changes) if isinstance(names, str) else names
            return ids
        except InputError as error:
            raise error.at(changes.numbers, self.name, self.unit) from None

    def _erased(self, changes: Changes) -> list[str]:
        if len(changes) and not self.stream.specification.has_subjects:
            with self.at(changes.numbers):
                self.stream.erase(subject=[])  # raises: says why nobody can be erased
        return list(self._names(changes, "subject"))

    def _name_unfound(self, changes: Changes, adds: Mask, outcomes: Sequence[Outcome]) -> None:
        """Count erasures that found nothing, by their rows."""
        if not outcomes:
            return
        if self.rounds.waits:
            # what survived the rounds before is not known yet
            outcomes = [msgspec.structs.replace(outcome, surviving=0) for outcome in outcomes]
        chosen = changes.codes == ERASE
        added = (_chosen(changes, adds).names("subject") or []) if adds.any() else []
        places = unfound(outcomes, added, np.cumsum(adds)[chosen].tolist())
        rows = changes.numbers[chosen][places].tolist()
        if places and self.rounds.waits:
            subjects = [outcomes[place].identifier for place in places]
            self.rounds.when_settled(subjects, lambda found: self._missed(rows, found))
        else:
            self._missed(rows, [0] * len(rows))

    def _missed(self, rows: Sequence[int], surviving: Sequence[int]) -> None:
        missed = [row for row, found in zip(rows, surviving, strict=True) if not found]
        if missed:
            self.rounds.totals.missed.add(self.name, self.unit, missed)


def _chosen(changes: Changes, chosen: Mask) -> Changes:
    return changes if chosen.all() else changes.take(chosen)


def unfound(outcomes: Sequence[Outcome], subjects: Sequence[Any], before: Sequence[int]) -> list[int]:
    """Which erasures found nothing when their rows came, although a batch is applied additions first. ``subjects`` are
    those of the additions, ``before`` says how many of these came before each erasure: later ones do not count.

    >>> outcomes = [Outcome("u1", True, 0, 1), Outcome("u2", True, 0, 1), Outcome("u3", False, 0, 0)]
    >>> unfound(outcomes, ["u1", "u2"], [1, 1, 2])
    [1, 2]
    """
    missed, later, end = [], Counter[str](), len(subjects)
    counts = any(outcome.waiting and not outcome.surviving for outcome in outcomes)
    for place in reversed(range(len(outcomes))):
        outcome = outcomes[place]
        if counts:
            # whole numbers are named by their decimal texts
            later.update(str(each) for each in subjects[before[place] : end] if each is not None)
            end = before[place]
        if not outcome.surviving and (outcome.waiting or 0) <= later[outcome.identifier]:
            missed.append(place)
    return missed[::-1]
