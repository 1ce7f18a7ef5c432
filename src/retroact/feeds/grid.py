"""Changes on a grid of time: the round of a row depends on its own time or on the clock, and on nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from time import time as now
from typing import Any

import numpy as np

from ..arrays import I64, Mask
from ..errors import InputError, Place, Unit
from ..messages import plural
from ..schema.hints import ISO, NO_VALUE, Rule, hint_for, rule
from ..stream import Durable, moments
from ..stream.grid import Grid, last_rows
from .batch import ADD, CLOSE, DELETE, NOTHING, UPDATE, Changes
from .deliver import Delivery
from .options import Options
from .sequence import Sequence, Versions

_NO_TIME, _REFUSED = -1, -2
NEXT_FILE = "such rows belong to the next file"
REACH = "leave such rows out, or let the grid (start, end) reach further before anything is published"
NO_TIME = (
    "leave rows without a time out of the file, or publish without a grid: without --time, --start, --length and --end"
)
OF_TIMES: tuple[Rule, ...] = (
    rule("an offset from UTC", "", "local times need their zone: --time-zone Europe/Berlin (time_zone in [rounds])"),
    rule("", f"{NO_VALUE.pattern}$", NO_TIME),
    ISO,
)
_UNITS: dict[str, moments.Unit] = {"_ms": "ms", "_us": "us", "_ns": "ns"}


class _OnGrid:
    """Times of changes, for both ways of playing on a grid."""

    def __init__(self, delivery: Delivery, options: Options) -> None:
        if options.cut.grid is None:
            raise InputError("expected a grid", place="grid")
        self._delivery, self._rounds, self._stream = delivery, delivery.rounds, delivery.stream
        self._options = options
        # that of the stream has the boundaries that were used
        self._grid: Grid = delivery.stream.grid or options.cut.grid
        self._last = options.last

    def cells(self, times: Any, numbers: Any) -> I64:
        """The rounds of the times of rows with these numbers."""
        try:
            return self._rounds_of(times, numbers)
        except InputError:
            if self._delivery.refusals is None:
                raise
        # times are often the same
        known: dict[str, int] = {}
        cells = np.full(len(numbers), _REFUSED, np.int64)
        for row, time in enumerate(times):
            try:
                if repr(time) not in known:
                    known[repr(time)] = int(self._rounds_of([time], numbers[row : row + 1])[0])
                cells[row] = known[repr(time)]
            except InputError as error:
                self._delivery.refusals.add(error)
        return cells

    def _rounds_of(self, times: Any, numbers: Any) -> I64:
        delivery = self._delivery
        return cells_of(self._grid, times, self._options.time or "", numbers, delivery.name, delivery.unit)

    def inside(self, cells: I64, numbers: I64) -> Mask:
        """Which times are on the grid; one that is not is refused."""
        odd = (cells < 1) | (False if self._last is None else cells > self._last)
        on_grid, odd = ~odd, odd & (cells != _REFUSED)
        while odd.any():
            row = int(np.argmax(odd))
            where, hint, until = "before the start", REACH, self._options.until
            if cells[row] > 0:
                where = "after the end" if until is None else f"from {until} on (--until)"
                hint = REACH if until is None else NEXT_FILE
            wrong = (
                "expected a time, got none: on a grid every event says when it happened, deletions too"
                if cells[row] == _NO_TIME
                else f"expected a time on the grid, got one {where}"
            )
            same = odd & (cells == cells[row])
            error = InputError(wrong, place=self._options.time, hint=NO_TIME if cells[row] == _NO_TIME else hint)
            error = error.for_rows(np.flatnonzero(same) + 1)
            error = error.at(numbers, self._delivery.name, self._delivery.unit)
            if self._delivery.refusals is None:
                raise error
            self._delivery.refusals.add(error)
            odd &= ~same
        return on_grid

    def stamped(self, changes: Changes, cells: I64, closed: int) -> Changes:
        """Changes with stamps; without additions of closed rounds, if these are refused."""
        codes = changes.codes
        cells = self._born(changes, cells)
        late = ((codes == ADD) | (codes == UPDATE)) & (cells <= closed) & ~changes.there("stamp")
        changes = changes.within(cells)
        if self._options.cut.late_events != "refuse" or not late.any():
            return changes
        totals = self._rounds.totals
        totals.late += int(late.sum())
        totals.first_late = totals.first_late or self._delivery.place(changes.numbers[int(np.argmax(late))])
        return changes.take(~late)

    def _born(self, changes: Changes, cells: I64) -> I64:
        """Add the rounds of deleted records that have their own times."""
        if "born" not in changes.roles:
            return cells
        rows = np.flatnonzero(changes.there("born"))
        own = np.full(len(rows), _NO_TIME, np.int64)
        times = changes.roles["born"].take(rows).listed()
        given = [place for place, time in enumerate(times) if time[0] is not None]
        if given:
            own[given] = self.cells([times[place][0] for place in given], changes.numbers[rows][given])
        self.inside(own, changes.numbers[rows])
        cells = cells.copy()
        cells[rows] = own
        return cells


class Complete(_OnGrid):
    """A complete source. Changes of later rounds than the open one wait; a round closes once every change of it, and of
    the rounds before it, was read. All rounds up to the last one of which it has everything close, empty ones too.

    Late changes belong to rounds that closed before the input began. They are played in the first open round, stamped
    with their own. Positions are (first round, round, row, number of rows), in the order of play.
    """

    _last: int

    def __init__(self, delivery: Delivery, options: Options) -> None:
        super().__init__(delivery, options)
        if options.last is None:
            raise InputError(
                "a complete file on a grid needs its end (--end): how many rounds are published is a public choice, "
                "and must not be read off the last record",
                place="end",
                hint="--until TIME publishes the rounds up to a time",
            )
        self._last = options.last
        reached, name = delivery.reached(), delivery.name
        if reached and len(reached) != 4:
            raise InputError(
                f"{delivery.source} was read without a grid before: expected another source name (--source)"
            )
        if not reached and self._stream.round > self._last:
            which = "all" if self._last == self._grid.rounds else "the first"
            closed = f"{which} {plural(self._last, 'round')} of the grid {'is' if self._last == 1 else 'are'} closed"
            raise InputError(closed, place="--end" if options.until is None else "--until", source=name)
        self._reached = reached
        self._first = reached[0] if reached else self._stream.round
        self._versions = Versions()
        self._held: dict[int, list[Changes]] = {}
        if isinstance(self._stream, Durable):
            self._stream.keep_boundaries(self._last)

    def read_times(self, times: Iterable[tuple[Any, Any]], source: Any) -> int:
        """Read the round of every row before any is played; return the row up to which all were played before.
        The ``source`` has counted its rows once all were read."""
        parts = []
        for numbers, found in times:
            cells = self.cells(found, numbers)
            parts.append((numbers, np.where(self.inside(cells, numbers), cells, self._first)))
        self._count = source.count
        reached = self._reached
        if reached and reached[3] != self._count:
            raise InputError(
                f"this file has changed since it was begun ({reached[3]:,} {self._delivery.unit}s then, "
                f"{self._count:,} now): put new events into another file",
                source=self._delivery.name,
            )
        self._cells = np.full(self._count + 1, _NO_TIME, np.int64)
        for numbers, cells in parts:
            self._cells[numbers] = cells
        parts.clear()
        self._ends = last_rows(self._cells, self._first, self._last) - 1
        if not reached:
            return 0
        unit = self._delivery.unit
        where = f"in round {reached[1]:,}, after {unit} {reached[2]:,}"
        self._rounds.totals.taken_up = f"{self._delivery.source} resumes {where}"
        left = ~self._done(np.arange(1, self._count + 1))
        return int(np.argmax(left)) if left.any() else self._count

    def apply(self, changes: Changes) -> None:
        if not len(changes):
            return
        last = int(changes.numbers[-1])
        closing = changes.codes == CLOSE
        if closing.any():
            self._rounds.totals.skipped["close lines"] += int(closing.sum())
        kept = ~closing & (changes.codes != NOTHING)
        changes = changes if kept.all() else changes.take(kept)
        if len(changes):
            self._hold(changes)
        self._catch_up(last)

    def finish(self) -> None:
        self._catch_up(self._count)

    def require_all(self, read: int) -> None:
        """Check that as many rows were played as there were times."""
        if read != self._count:
            wrong = "expected the same rows in both readings (the first is for the times), got others"
            raise InputError(wrong, source=self._delivery.name)

    def _done(self, numbers: I64) -> Mask:
        """Which rows were played before."""
        assert self._reached is not None
        plays, round, row = np.maximum(self._cells[numbers], self._first), *self._reached[1:3]
        done: Mask = (plays < round) | ((plays == round) & (numbers <= row))
        return done

    def _hold(self, changes: Changes) -> None:
        """Sort changes by the round in which they are played."""
        if int(changes.numbers[-1]) > self._count:
            self.require_all(int(changes.numbers[-1]))
        cells = self._cells[changes.numbers]
        on_grid = self.inside(cells, changes.numbers)
        if not on_grid.all():
            # a check looks at the rest of such a row, too
            cells = np.where(on_grid, cells, self._first)
        if self._reached is not None:
            left = ~self._done(changes.numbers)
            if not left.all():
                changes, cells = changes.take(left), cells[left]
        changes = self.stamped(changes, cells, self._first - 1)
        if not len(changes):
            return
        plays = np.maximum(self._cells[changes.numbers], self._first)
        order = np.argsort(plays, kind="stable")
        ordered = plays[order]
        cuts = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(changes)]
        for begin, end in pairwise(cuts):
            part = changes if end - begin == len(changes) else changes.take(order[begin:end])
            self._held.setdefault(int(ordered[begin]), []).append(part)

    def _catch_up(self, read: int) -> None:
        """Deliver the changes of the open round, and close all rounds of which every row was read."""
        while (round := self._stream.round) <= self._last:
            parts = self._held.pop(round, None)
            if parts is not None:
                changes = Changes.concatenate(parts)
                with self._delivery.at(changes.numbers):
                    self._versions.check(changes)
                position = (self._first, round, int(changes.numbers[-1]), self._count)
                self._delivery.deliver(changes, position)
            if read < self._ends[round - self._first]:
                return
            with self._delivery.at(during=f"at the end of round {round:,}"):
                self._rounds.close()
            # the order of the source counts only within a round
            self._versions = Versions()


class Followed(_OnGrid):
    """A growing file. Rounds close when their time is over by this machine's clock, whatever the records say. A record
    goes to the round that takes records when it comes, stamped with its own round if that is earlier. If rounds are
    published some time after they took their last record, what comes meanwhile waits for its own round."""

    def __init__(self, delivery: Delivery, options: Options, sequence: Sequence) -> None:
        super().__init__(delivery, options)
        self.sequence = sequence
        self._later: dict[int, list[Changes]] = {}

    def apply(self, changes: Changes) -> None:
        self.tick()
        if not len(changes):
            return
        taking = self._taking()
        if self._grid.rounds is not None and taking > self._grid.rounds:
            wrong = InputError("the last round of the grid is closed", place="--end", row=1)
            raise wrong.at(changes.numbers, self._delivery.name, self._delivery.unit)
        if taking > self._stream.round:
            self._later.setdefault(taking, []).append(changes)
        else:
            self._take(changes)

    def _taking(self) -> int:
        """The round that takes records now: the first whose time, with the grace, is not over."""
        round, last, grace = self._stream.round, self._grid.rounds, self._options.cut.grace
        while (last is None or round <= last) and now() >= (self._grid.closes(round) + grace).timestamp():
            round += 1
        return round

    def _take(self, changes: Changes) -> None:
        if self._options.time is not None:
            cells = np.full(len(changes), _NO_TIME, np.int64)
            there = np.flatnonzero(changes.there("time"))
            if len(there):
                times = changes.roles["time"].take(there).listed()
                cells[there] = self.cells(times, changes.numbers[there])
            events = (changes.codes != CLOSE) & (changes.codes != NOTHING)
            self.inside(cells[events], changes.numbers[events])
            # changes that are not late count from the round that takes them
            closed = self._stream.round - 1
            by_value = (changes.codes == DELETE) & ~changes.there("id")
            late = np.where(by_value | (cells <= closed), cells, self._stream.round)
            changes = self.stamped(changes, late, closed)
        self.sequence.apply(changes)

    @property
    def ended(self) -> bool:
        return self._grid.rounds is not None and self._stream.round > self._grid.rounds

    def tick(self) -> None:
        """Close, and so publish, the rounds that are due."""
        cut = self._options.cut
        wait = cut.grace if cut.publish_after is None else cut.publish_after
        while not self.ended and now() >= (self._grid.closes(self._stream.round) + wait).timestamp():
            with self._delivery.at(during=f"at the end of round {self._stream.round:,}"):
                self._rounds.close()
            for changes in self._later.pop(self._stream.round, []):
                self._take(changes)

    def finish(self) -> None:
        self.tick()

    @property
    def holds(self) -> bool:
        """Whether changes wait for their round to open."""
        return bool(self._later)


def cells_of(grid: Grid, times: Any, column: str, numbers: Any, name: str, unit: Unit = "line") -> I64:
    """The rounds of times. Whole numbers are seconds, or what the name of the column says, as in ts_ms."""
    try:
        return grid.cells(times, at=lambda index: Place(column, index + 1), unit=_UNITS.get(column[-3:], "s"))
    except InputError as error:
        error.hint = hint_for(error, OF_TIMES)
        raise error.at(numbers, name, unit) from None
