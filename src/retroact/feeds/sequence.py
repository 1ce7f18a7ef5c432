"""Changes in the order of their source: rounds close by number, by close lines, or at the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import I64, Mask
from ..errors import InputError
from .batch import CLOSE, NOTHING, Changes, has_record
from .deliver import Delivery, Position
from .options import Options
from .roles import VERSION


class Versions:
    """Versions of a Delta table never decrease: its changes come in no order unless they are sorted."""

    def __init__(self) -> None:
        self._last: int | None = None

    def check(self, changes: Changes) -> None:
        rows = np.flatnonzero(changes.there("version"))
        if not len(rows):
            return
        versions = changes.whole("version")[rows]
        before = np.concatenate([versions[:1] if self._last is None else [self._last], versions[:-1]])
        odd = versions < before
        if odd.any():
            first = int(np.argmax(odd))
            raise InputError(
                f"changes must come oldest first: sort by {VERSION} (got {versions[first]} after {before[first]})",
                place=VERSION,
                row=int(changes.numbers[rows[first]]),
            )
        self._last = int(versions[-1])


class Sequence:
    """Plays one source into one stream, and keeps how far it was read."""

    def __init__(self, delivery: Delivery, options: Options, *, by_line: bool = True) -> None:
        self._delivery, self._rounds, self._stream = delivery, delivery.rounds, delivery.stream
        self._options = options
        self._by_line = by_line
        """Whether row numbers are positions, as in a source that can be read again."""
        self._numbered = options.cut.close_by == "lines"
        self._closes = options.cut.close_by in ("lines", "progress")
        self._by_number: bool | None = None
        """Whether rows have round numbers: all or none, like the first."""
        self._advanced = False
        self._after = self._played = 0
        self._versions = Versions()
        self.clocked = options.cut.close_by in ("progress", "grid")
        """Whether rounds close, or closed while this source was read, by something other than the end of the input."""
        self.clocked |= self._closes and (by_line or options.position is not None) and delivery.settled() is not None

    def begin_after(self) -> int:
        """The row up to which the source was read before; 0 if rows are no positions."""
        reached = self._delivery.reached()
        if not reached or not self._by_line or self._options.position is not None:
            return 0
        if len(reached) != 1:
            raise InputError(
                f"{self._delivery.source} was read on a grid before: expected another source name (--source)"
            )
        unit = self._delivery.unit
        self._rounds.totals.taken_up = f"{self._delivery.source} resumes after {unit} {reached[0]:,}"
        self._after = reached[0]
        return self._after

    def require(self, read: int, there: int | None) -> None:
        """Check that a source still has the rows that were read before."""
        if there is None or there < read:
            got = "fewer" if there is None else f"{there:,}"
            raise InputError(
                f"expected at least {read:,} {self._delivery.unit}s, which were read before, got {got}: is it another "
                "file? give it another name with --source",
                source=self._delivery.name,
            )

    def adopt_numbering(self, changes: Changes) -> None:
        """Rows have round numbers if the first of these has one."""
        events = (changes.codes != CLOSE) & (changes.codes != NOTHING)
        if self._numbered and self._by_number is None and events.any():
            self._by_number = bool(changes.there("round")[int(np.argmax(events))])

    def apply(self, changes: Changes) -> None:
        """Play a batch; changes before one that is refused are delivered."""
        refusals = self._options.refusals
        try:
            if len(changes):
                self._apply(changes)
        except InputError as error:
            if refusals is None:
                raise
            rest = changes.take(changes.numbers > self._played)
            for rows in refusals.left(error, rest.numbers):
                self.apply(rest.take(rows))

    def _apply(self, changes: Changes) -> None:
        self.adopt_numbering(changes)
        with self._delivery.at(changes.numbers):
            self._versions.check(changes)
        if changes.numbers[0] <= self._after:
            changes = changes.take(changes.numbers > self._after)
        numbers = changes.numbers
        wrong = self._other_numbering(changes)
        if wrong is not None:
            changes = changes.take(slice(0, (wrong.row or 1) - 1))
        if "position" in changes.roles and len(changes):
            changes, conflict = self._once(changes)
            wrong = conflict or wrong
        if len(changes):
            self._play(changes)
        if wrong is not None:
            raise wrong.at(numbers, self._delivery.name, self._delivery.unit)

    def finish(self) -> None:
        """The input ends. The number of rounds never depends on the last records: it is ``rounds`` if that is given,
        one if nothing closes rounds, and otherwise what close lines made it."""
        reached = self._delivery.reached()
        # whether the whole input went into rounds that were closed before
        finished = not self._delivery.begun and bool(reached) and self._delivery.settled() == reached
        with self._delivery.at(during="at its end"):
            if self._rounds.limit is not None:
                self._rounds.close_before(self._rounds.limit + 1)
            elif not self.clocked and not finished:
                self._rounds.close_last()

    def _play(self, changes: Changes) -> None:
        """Deliver piece by piece: up to the next round number, or to a row that closes the round."""
        closing = changes.codes == CLOSE
        if not self._closes and closing.any():
            self._rounds.totals.skipped["close lines"] += int(closing.sum())
            changes = replace(changes, codes=np.where(closing, NOTHING, changes.codes).astype(np.int8))
            closing = changes.codes == CLOSE
        known = changes.there("round") if self._numbered else np.zeros(len(changes), np.bool_)
        targets = changes.whole("round")
        cuts = cuts_of(closing, known, targets)
        for begin, end in zip(cuts, [*cuts[1:], len(changes)], strict=True):
            part = changes if end - begin == len(changes) else changes.take(slice(begin, end))
            numbered = np.flatnonzero(known[begin:end])
            if len(numbered):
                left = begin + np.flatnonzero(known[begin:])
                with self._delivery.at(part.numbers[numbered[:1]]):
                    self._advance(targets[left], changes.numbers[left])
            ends = bool(closing[end - 1])
            self._take(part, close=int(part.numbers[-1]) if ends else None)

    def _advance(self, targets: I64, numbers: I64) -> None:
        """Go on to the first of these rounds, which the rows with these numbers have."""
        target, here = int(targets[0]), self._stream.round
        if target != here or not self._advanced:
            self.clocked = self._advanced = True
            try:
                self._rounds.advance(target)
            except InputError as error:
                raise error.for_rows(numbers[targets < here if target < here else targets >= target]) from None

    def _take(self, part: Changes, close: int | None) -> None:
        if close is None and not (part.codes != NOTHING).any():
            return
        self._played = int(part.numbers[-1])
        position: Position = (int(part.numbers[-1]),) if self._by_line else ()
        delivered: list[int] = []
        if "position" in part.roles:
            delivered = part.whole("position")[part.there("position")].tolist()
            position = (max(delivered),) if delivered else ()
        if close is not None:
            self.clocked = True
            part = part.take(slice(0, -1))
        self._delivery.deliver(part, position, delivered=delivered, close=close)

    def _other_numbering(self, changes: Changes) -> InputError | None:
        """The first row that has a round number though the others have none, or has none though they do."""
        known = changes.there("round")
        odd = (changes.codes != CLOSE) & (changes.codes != NOTHING) & (known != bool(self._by_number))
        if not self._numbered or not odd.any():
            return None
        row = int(np.argmax(odd))
        noun = "events" if self._delivery.unit == "line" else "rows"
        wrong = (
            f"expected the number of its round, as the {noun} before it have one, got none"
            if self._by_number
            else f"expected no number of a round, as the {noun} before it have none, got {changes.whole('round')[row]}"
        )
        return InputError(wrong, place="round", row=row + 1)

    # What is delivered twice ----------------------------------------------------------------------------------------

    def _once(self, changes: Changes) -> tuple[Changes, InputError | None]:
        """The changes that were not delivered before, in this batch or another, up to one that differs from an earlier
        one with the same position. Changes of one line share their position."""
        numbers, positions, reached = changes.numbers, changes.whole("position"), self._delivery.reached()
        places = np.flatnonzero(changes.there("position"))
        _, firsts, inverse = np.unique(positions[places], return_index=True, return_inverse=True)
        first = np.arange(len(changes))
        first[places] = places[firsts[inverse]]
        fresh = numbers == numbers[first]
        if reached:
            behind = places[firsts][positions[places[firsts]] <= reached[0]].tolist()
            known = [row for row in behind if self._delivery.was_delivered(int(positions[row]))]
            fresh &= ~np.isin(first, known)
        again = np.flatnonzero(~fresh & fresh[first])
        conflict = self._conflict(changes, again, first) if len(again) else None
        end = len(changes) if conflict is None else (conflict.row or 1) - 1
        absorbed = np.unique(numbers[:end][~fresh[:end]])
        if len(absorbed):
            totals = self._rounds.totals
            totals.absorbed += len(absorbed)
            totals.first_absorbed = totals.first_absorbed or self._delivery.place(absorbed[0])
        return changes if fresh.all() else changes.take(np.flatnonzero(fresh[:end])), conflict

    def _conflict(self, changes: Changes, again: I64, first: I64) -> InputError | None:
        """A row with the position of an earlier one must be the same row again."""
        numbers = changes.numbers
        for row in again.tolist():
            if row and numbers[row - 1] == numbers[row]:
                continue  # not the first of its line
            mine, other = (np.flatnonzero(numbers == numbers[each]).tolist() for each in (row, first[row]))
            if self._content(changes, mine) != self._content(changes, other):
                position, where = changes.whole("position")[row], f"{self._delivery.unit} {numbers[first[row]]}"
                wrong = f"expected a different position for every event, got {position} as in {where}"
                return InputError(wrong, place=self._options.position, row=row + 1)
        return None

    def _content(self, changes: Changes, rows: list[int]) -> list[str]:
        """What the changes of one line say, as texts, since NaN does not equal itself."""
        some = changes.take(rows)
        cells = (*some.fields.values(), *some.roles.values())
        return [repr(some.codes.tolist()), *(repr(each.listed()) for each in cells)]


class AfterTheEnd(Sequence):
    """A source that comes after the last round of its grid: only erasures and deletions by id, whatever their times."""

    def apply(self, changes: Changes) -> None:
        odd = has_record(changes)
        if odd.any():
            wrong = "all rounds are closed: only erasures and deletions by id are taken"
            error = InputError(wrong, place="--end", row=int(np.argmax(odd)) + 1)
            raise error.at(changes.numbers, self._delivery.name, self._delivery.unit)
        super().apply(changes)

    def finish(self) -> None:
        """No round closes."""


def cuts_of(closing: Mask, known: Mask, targets: I64) -> list[int]:
    """Where pieces that are delivered together begin: at each new round number, and after each row that closes.

    >>> cuts_of(np.array([False, False, True, False]), np.array([True, True, False, True]), np.array([1, 2, 0, 3]))
    [0, 1, 3]
    """
    marks = np.zeros(len(closing) + 1, np.bool_)
    marks[0] = True
    marks[1:] |= closing
    places = np.flatnonzero(known)
    closed = np.cumsum(closing)[places]
    changed = np.ones(len(places), np.bool_)
    changed[1:] = (targets[places][1:] != targets[places][:-1]) | (closed[1:] != closed[:-1])
    marks[places[changed]] = True
    return [int(place) for place in np.flatnonzero(marks[:-1])]
