"""Changes into the open round of a stream: as few calls as there are kinds of operation, and all or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from retroact.arrays import I64, Mask
from retroact.errors import InputError, RetroactError, Unit
from retroact.feeds.batch import ADD, DELETE, ERASE, NOTHING, UPDATE, Changes
from retroact.feeds.events import EVERY_RECORD, located
from retroact.feeds.rounds import RoundCloser
from retroact.stream import Stream
from retroact.stream.outcome import Outcome

Position = tuple[int, ...]


class Delivery:
    """What gives the changes of a source to a stream, with how far it was read, and names the row that is refused."""

    def __init__(self, stream: Stream, rounds: RoundCloser, name: str, unit: Unit, source: str | None) -> None:
        self.stream, self.rounds = stream, rounds
        self.name, self.unit = name, unit
        """What errors call the source, and its rows."""
        self.source = source
        """What positions are kept under; None where nobody keeps them."""
        self.begun = False
        """Whether something was delivered."""
        self._constant = EVERY_RECORD in stream.schema.fields

    def reached(self) -> Position | None:
        return None if self.source is None else self.stream.position(self.source)

    def settled(self) -> Position | None:
        return None if self.source is None else self.stream.settled(self.source)

    def was_delivered(self, position: int) -> bool:
        return self.source is not None and self.stream.delivered(self.source, position)

    @property
    def finished_before(self) -> bool:
        """Whether all of the input went into rounds that were closed before."""
        reached = self.reached()
        return not self.begun and bool(reached) and self.settled() == reached

    def deliver(
        self, changes: Changes, position: Position, *, delivered: Sequence[int] = (), close: int | None = None
    ) -> None:
        """Changes up to a position of their source, both or neither; and with them the end of the round, where the row
        ``close`` asks for that: it closes with all of them, or stays open without."""
        self.begun = True
        if len(changes) and bool((changes.codes == NOTHING).any()):
            changes = changes.take(changes.codes != NOTHING)
        self.rounds.take(waits=close is not None or bool(waits(changes).any()))
        with self._receiving(position, delivered):
            missed = self._hand_over(changes) if len(changes) else []
            if close is not None:
                with self.at(np.array([close])):
                    self.rounds.close_one()
        if missed:
            self.rounds.totals.missed.add(self.name, self.unit, missed)

    @contextmanager
    def at(self, numbers: I64) -> Iterator[None]:
        """What goes wrong inside is told with the name of the source and, where the error tells one of these rows, its
        number there."""
        try:
            yield
        except InputError as error:
            raise error.at(numbers, self.name, self.unit) from None
        except RetroactError as error:
            first, last = int(numbers[0]), int(numbers[-1])
            row, during = (first, "") if first == last else (None, f"{self.unit}s {first}-{last}")
            raise located(error, self.name, row=row, unit=self.unit, during=during) from None

    def refuse(self, changes: Changes, odd: Mask, error: InputError) -> None:
        """Where a row is odd, the first of them."""
        if odd.any():
            raise error.found_in(self.name, row=int(changes.numbers[int(np.argmax(odd))]), unit=self.unit)

    @contextmanager
    def _receiving(self, position: Position, delivered: Sequence[int]) -> Iterator[None]:
        if self.source is None:
            yield
            return
        with self.stream.receiving(self.source, position, delivered):
            yield

    def _hand_over(self, changes: Changes) -> list[int]:
        """The rows of erasures that found nothing."""
        if changes.copies is not None:
            changes = changes.take(np.repeat(np.arange(len(changes)), changes.copies))
        codes, named = changes.codes, changes.there("id")
        adds, deletes = (codes == ADD) | (codes == UPDATE), codes == DELETE
        self._upsert(changes, named & (adds | deletes))
        self._add(changes, ~named & adds)
        self._delete(changes, ~named & deletes)
        return self._erase(changes, codes == ERASE, adds)

    def _upsert(self, changes: Changes, chosen: Mask) -> None:
        if not chosen.any():
            return
        some = changes if chosen.all() else changes.take(chosen)
        deleted = some.codes == DELETE
        placed = some.take(~deleted) if deleted.any() else some
        try:
            self.stream.upsert(
                self._records(placed) if len(placed) else None,
                id=some.roles["id"].names(),
                deleted=deleted,
                subject=placed.names("subject"),
                stamp=self._stamps(placed),
            )
        except InputError as error:
            among = some if error.path == "id" or not len(placed) else placed
            raise error.at(among.numbers, self.name, self.unit) from None

    def _add(self, changes: Changes, chosen: Mask) -> None:
        if chosen.any():
            some = changes if chosen.all() else changes.take(chosen)
            with self.at(some.numbers):
                self.stream.add(self._records(some), subject=some.names("subject"), stamp=self._stamps(some))

    def _delete(self, changes: Changes, chosen: Mask) -> None:
        if chosen.any():
            some = changes if chosen.all() else changes.take(chosen)
            with self.at(some.numbers):
                stamps = self._stamps(some, always=True)
                self.stream.delete(self._records(some), stamp=stamps, subject=some.names("subject"))

    def _erase(self, changes: Changes, chosen: Mask, adds: Mask) -> list[int]:
        if not chosen.any():
            return []
        some = changes.take(chosen)
        with self.at(some.numbers):
            found = self.stream.erase(subject=some.names("subject") or [])
        added = (changes.take(adds).names("subject") or []) if adds.any() else []
        before = np.cumsum(adds)[chosen].tolist()
        return [int(some.numbers[place]) for place in unfound(found.outcomes, added, before)]

    def _records(self, changes: Changes) -> dict[str, Any]:
        return {**changes.records(), **({EVERY_RECORD: np.zeros(len(changes), np.int64)} if self._constant else {})}

    def _stamps(self, changes: Changes, *, always: bool = False) -> I64 | None:
        """None where all are the open round, which is quicker."""
        now = self.stream.round
        stamps = np.where(changes.there("stamp"), changes.whole("stamp"), now)
        return stamps if always or bool((stamps != now).any()) else None


def waits(changes: Changes) -> Mask:
    """Which of them wait for a round to close: all but erasures and deletions by id, which a stream that is over still
    takes."""
    codes = changes.codes
    found: Mask = (codes == ADD) | (codes == UPDATE) | ((codes == DELETE) & ~changes.there("id"))
    return found


def unfound(outcomes: Sequence[Outcome], subjects: Sequence[Any], before: Sequence[int]) -> list[int]:
    """Which of some erasures found nothing when they came, though they were handed in together, after the additions of
    their batch. ``subjects`` says to whom those belong, ``before`` how many of them came before each erasure: later
    ones do not count.

    >>> outcomes = [Outcome("u1", True, 0, 1), Outcome("u2", True, 0, 1), Outcome("u3", False, 0, 0)]
    >>> unfound(outcomes, ["u1", "u2"], [1, 1, 2])
    [1, 2]
    """
    missed, later, end = [], Counter[str](), len(subjects)
    counts = any(outcome.waiting and not outcome.surviving for outcome in outcomes)
    for place in reversed(range(len(outcomes))):
        outcome = outcomes[place]
        if counts:
            # whole numbers are named by their decimal text
            later.update(str(each) for each in subjects[before[place] : end] if each is not None)
            end = before[place]
        if not outcome.surviving and (outcome.waiting or 0) <= later[outcome.identifier]:
            missed.append(place)
    return missed[::-1]
