"""Events on a grid of time: the round of an event is a function of its own time or of the clock, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import time as now
from typing import Any

import numpy as np

from retroact.arrays import I64
from retroact.errors import InputError, RetroactError
from retroact.feeds.events import Block, Event, Moment, located
from retroact.feeds.options import Options
from retroact.feeds.paths import cells_of
from retroact.feeds.replay import Replay
from retroact.feeds.rounds import changed
from retroact.stream.grid import Grid, last_rows

_NO_TIME = -1


class Timed:
    """What both ways of playing on a grid do with one event."""

    def __init__(self, replay: Replay, options: Options, name: str) -> None:
        if options.grid is None:
            raise InputError("expected a grid", place="grid")
        self.replay = replay
        self.grid: Grid = options.grid
        self._options = options
        self._name = name

    def cells(self, times: Sequence[Any], lines: Sequence[int]) -> I64:
        return cells_of(self.grid, times, self._options.time or "", lines, self._name)

    def inside(self, cell: int, line: int) -> None:
        """Refuse what has no round on the grid."""
        column, rounds = self._options.time, self.grid.rounds
        if cell == _NO_TIME:
            raise InputError(
                "expected a time, got none: on a grid every event says when it happened, deletions too",
                place=column,
                row=line,
                source=self._name,
                unit="line",
            )
        if cell < 1 or (rounds is not None and cell > rounds):
            where = "before the start" if cell < 1 else "after the end"
            wrong = InputError(f"expected a time on the grid, got one {where}", place=column)
            raise wrong.found_in(self._name, row=line, unit="line")

    def stamped(self, event: Event, cell: int, closed: int, line: int) -> Event | None:
        """The event with its stamp, where its round is one of the closed ones; None when it is left out for that."""
        stamp: Any = event.stamp
        if isinstance(stamp, Moment):
            times = [] if stamp.time is None else [stamp.time]
            stamp = int(self.cells(times, [line])[0]) if times else _NO_TIME
            self.inside(stamp, line)
            return Event(event.op, event.record, None, event.subject, stamp)
        if event.op != "add" or stamp is not None or cell > closed:
            return event
        if self._options.late == "refuse":
            self.replay.totals.leave_out(f"{self._name}:{line}")
            return None
        return Event("add", event.record, event.id, event.subject, cell)


class Complete(Timed):
    """A complete file: events of later rounds than the open one are held back; a round closes when every event of it,
    and of the rounds before, was read. All rounds of the grid are closed, empty ones too."""

    def __init__(self, replay: Replay, options: Options, name: str, lines: int) -> None:
        super().__init__(replay, options, name)
        if self.grid.rounds is None:
            raise InputError(
                "a complete file on a grid needs its end (--end): how many rounds are published is a public choice, "
                "and must not be read off the last record",
                place="end",
            )
        reached = replay.stream.position(replay.source)
        if reached and len(reached) != 4:
            raise InputError(f"{replay.source} was read without a grid before: expected another source name (--source)")
        if reached and reached[3] != lines:
            raise changed(name, reached[3], lines, "lines")
        if not reached and replay.stream.round > self.grid.rounds:
            raise InputError(f"all {self.grid.rounds:,} rounds of the grid are closed", place="--end", source=name)
        self._first = reached[0] if reached else replay.stream.round
        self._done = reached[1:3] if reached else (0, 0)
        replay.total = (lines,)
        if reached:
            where = f"in round {reached[1]:,}, after line {reached[2]:,}"
            replay.totals.taken_up = f"{replay.source} is taken up {where}"
        self._last = self.grid.rounds
        self._waiting: dict[int, Block] = {}
        self._cells: I64 = np.zeros(0, np.int64)
        self._ends: I64 = np.zeros(0, np.int64)

    def read_times(self, times: Iterable[tuple[list[int], list[Any]]]) -> None:
        """The round of every line, before any of them is played."""
        parts = [(lines, self.cells(found, lines)) for lines, found in times if lines]
        for lines, cells in parts:
            odd = np.flatnonzero((cells < 1) | (cells > self._last))
            if odd.size:
                self.inside(int(cells[odd[0]]), lines[odd[0]])
        count = max((lines[-1] for lines, _ in parts), default=0)
        self._cells = np.full(count + 1, _NO_TIME, np.int64)
        for lines, cells in parts:
            self._cells[lines] = cells
        self._ends = last_rows(self._cells, self._first, self._last) - 1

    def apply(self, block: Block) -> None:
        positions: list[int | None] = block.positions
        for index, (line, event) in enumerate(block.pairs()):
            if event.op == "close":
                self.replay.totals.skipped["close lines"] += 1
                continue
            cell = int(self._cells[line]) if line < len(self._cells) else _NO_TIME
            self.inside(cell, line)
            round = max(cell, self._first)
            if (round, line) <= self._done:
                continue
            played = self.stamped(event, cell, self.replay.stream.round - 1, line)
            if played is not None:
                waiting = self._waiting.setdefault(max(round, self.replay.stream.round), Block())
                waiting.lines.append(line)
                waiting.events.append(played)
                waiting.positions += positions[index : index + 1]
        if block.lines:
            self._play(block.lines[-1])

    def finish(self) -> None:
        self._play(len(self._cells))

    def _play(self, line: int) -> None:
        """Whatever can be played once this line was read."""
        stream = self.replay.stream
        while stream.round <= self._last:
            self.replay.place = (self._first, stream.round)
            waiting = self._waiting.pop(stream.round, None)
            if waiting is not None:
                self.replay.apply(waiting)
            if line < self._ends[stream.round - self._first]:
                return
            try:
                self.replay.rounds.close()
            except RetroactError as error:
                raise located(error, self._name, during=f"at the end of round {stream.round:,}") from None


class Ended(Timed):
    """A file that is read when all rounds are closed: erasures and deletions by id, whatever their times."""

    def apply(self, block: Block) -> None:
        for line, event in block.pairs():
            if event.op == "add" or (event.op == "delete" and event.id is None):
                wrong = InputError("all rounds are closed: only erasures and deletions by id are taken", place="--end")
                raise wrong.found_in(self._name, row=line, unit="line")
        self.replay.apply(block)

    def finish(self) -> None:
        """No round comes of it."""


class Followed(Timed):
    """A growing file: rounds close when their time is over by this machine's clock, whatever the records say. A record
    goes to the round that takes records when it comes, with its own round as stamp where that is an earlier one. Where
    rounds are published some time after they took their last record, what comes meanwhile waits for its own."""

    def __init__(self, replay: Replay, options: Options, name: str) -> None:
        super().__init__(replay, options, name)
        self._later: dict[int, list[Block]] = {}

    def apply(self, block: Block) -> None:
        self.tick()
        if not block.events:
            return
        taking = self._taking()
        if self.grid.rounds is not None and taking > self.grid.rounds:
            wrong = InputError("the last round of the grid is closed", place="--end")
            raise wrong.found_in(self._name, row=block.lines[0], unit="line")
        if taking > self.replay.stream.round:
            self._later.setdefault(taking, []).append(block)
        else:
            self._take(block)

    def _taking(self) -> int:
        """The round that takes records now: the first whose time, and what stragglers get, is not over."""
        round, last = self.replay.stream.round, self.grid.rounds
        while (last is None or round <= last) and now() >= (self.grid.closes(round) + self._options.grace).timestamp():
            round += 1
        return round

    def _take(self, block: Block) -> None:
        cells = self._block_cells(block)
        kept, events = [], []
        for index, (line, event) in enumerate(block.pairs()):
            played: Event | None = event
            if event.op != "close" and self._options.time is not None:
                cell = int(cells[index])
                self.inside(cell, line)
                played = self.stamped(event, cell, self.replay.stream.round - 1, line)
            kept.append(played is not None)
            events += [] if played is None else [played]
        left = block.where(kept)
        left.events = events
        self.replay.apply(left)

    def _block_cells(self, block: Block) -> I64:
        cells = np.full(len(block.events), _NO_TIME, np.int64)
        there = [index for index, time in enumerate(block.times) if time is not None]
        if there:
            cells[there] = self.cells([block.times[i] for i in there], [block.lines[i] for i in there])
        return cells

    @property
    def ended(self) -> bool:
        return self.grid.rounds is not None and self.replay.stream.round > self.grid.rounds

    def tick(self) -> None:
        """Close, and so publish, the rounds whose time for that has come."""
        cut = self._options.cut
        wait = cut.grace if cut.publish_after is None else cut.publish_after
        while not self.ended and now() >= (self.grid.closes(self.replay.stream.round) + wait).timestamp():
            try:
                self.replay.rounds.close()
            except RetroactError as error:
                round = self.replay.stream.round
                raise located(error, self._name, during=f"at the end of round {round:,}") from None
            for block in self._later.pop(self.replay.stream.round, []):
                self._take(block)

    def finish(self) -> None:
        self.tick()

    @property
    def holds(self) -> bool:
        """Whether something that came waits for its round to open."""
        return bool(self._later)
