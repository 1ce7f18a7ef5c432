"""A table whose rounds are spans of time: the round of a row is a function of its own time alone.

The time column is read first, by itself. Then the rows are played by round, and by row within a round: a round closes
when all rows of it have been read, and rows of later rounds wait until then.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retroact.arrays import I64, Mask
from retroact.errors import InputError, Place, RetroactError
from retroact.feeds.changes import ADD, CLOSE, NOTHING, UPDATE, Layout, operations
from retroact.feeds.columns import Batch
from retroact.feeds.events import located
from retroact.feeds.handing import Hand, Origin, Rows, Versions
from retroact.feeds.options import Options
from retroact.feeds.paths import times_of
from retroact.feeds.rounds import Publish, Rounds, Totals, changed
from retroact.feeds.tablefiles import Table
from retroact.stream import Stream
from retroact.stream.grid import last_rows


class Gridded:
    """Late rows belong to rounds that were closed before the input began. They are played in the first open round, with
    the stamp of their own; or, if they are additions and those are refused, they are left out.

    Positions in the source are (first round, round, row, number of rows), in the order of play.
    """

    def __init__(
        self,
        stream: Stream,
        table: Table,
        layout: Layout,
        options: Options,
        publish: Publish | None,
        origin: Origin,
        totals: Totals | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        assert options.grid is not None
        if options.grid.rounds is None:
            raise InputError(
                "expected the end of the grid: how many rounds a complete input has is a public choice, and must not "
                "be read off its last record",
                place="grid end",
            )
        self._stream, self._table, self._layout, self._options = stream, table, layout, options
        self._grid, self._last = options.grid, options.grid.rounds
        self._rounds = Rounds(stream, publish, None, totals)
        self._hand = Hand(stream, layout, table.name)
        self._origin = origin
        self._progress = progress
        self._versions, self._checked = Versions(table.names, layout), 0
        self._held: dict[int, list[Rows]] = {}

    def run(self) -> Totals:
        reached = self._origin.reached()
        if reached is not None and len(reached) != 4:
            raise InputError(f"expected no grid, as {self._origin.name} was read without one before", place="grid")
        if reached is None and self._stream.round > self._last:
            raise InputError(
                f"all {self._last:,} rounds of the grid are closed", place="grid end", source=self._table.name
            )
        first = self._stream.round if reached is None else reached[0]
        cells = self._cells()
        if reached is not None:
            if reached[3] != len(cells):
                raise changed(self._table.name, reached[3], len(cells), "rows")
            where = f"in round {reached[1]:,}, after row {reached[2]:,}"
            self._rounds.totals.taken_up = f"{self._origin.name} is taken up {where}"
        self._count = len(cells)
        plays = np.maximum(cells, first)
        done = np.zeros(len(cells), np.bool_)
        if reached is not None:
            numbers = np.arange(1, len(cells) + 1)
            done = (plays < reached[1]) | ((plays == reached[1]) & (numbers <= reached[2]))
        last = last_rows(cells, first, self._last)
        self._first, self._open = first, first
        read = int(np.argmin(done)) if not done.all() else len(cells)
        needed = self._layout.needed | self._versions.columns
        for batch in self._table.batches(needed, skip=read, words=self._layout.words):
            span = slice(read, read + len(batch))
            if span.stop > len(cells):
                break
            self._hold(batch, cells[span], plays[span], ~done[span])
            read = span.stop
            self._catch_up(last, read)
            if self._progress is not None:
                self._progress(read)
        if read != len(cells):
            raise InputError("expected the same rows twice, as a grid needs, got others", source=self._table.name)
        self._catch_up(last, read)
        return self._rounds.totals

    def _cells(self) -> I64:
        """The round of every row."""
        time = self._layout.time or ""
        cells: list[I64] = [np.zeros(0, np.int64)]
        for batch in self._table.batches({time}):
            try:
                times: Any = times_of(batch.columns[time].column(), time)
                cells.append(self._grid.cells(times, at=lambda row: Place(time, row + 1)))
                self._require_inside(cells[-1])
            except InputError as error:
                raise self._hand.located(error, batch.numbers) from None
        return np.concatenate(cells)

    def _require_inside(self, cells: I64) -> None:
        odd = (cells < 1) | (cells > self._last)
        if odd.any():
            row = int(np.argmax(odd))
            where = "before the start" if cells[row] < 1 else "after the end"
            raise InputError(f"expected a time on the grid, got one {where}", place=self._layout.time, row=row + 1)

    def _hold(self, batch: Batch, cells: I64, plays: I64, kept: Mask) -> None:
        """The rows of a batch, by the round that they are played in."""
        try:
            codes, copies = operations(batch, self._layout, self._options.contribution)
        except InputError as error:
            raise self._hand.located(error, batch.numbers) from None
        rows = Rows(batch, codes, copies, cells)
        kept = kept & self._are_changes(batch, codes, cells < self._first)
        if not kept.all():
            rows, plays = rows.take(kept), plays[kept]
        if not len(rows):
            return
        order = np.argsort(plays, kind="stable")
        ordered = plays[order]
        cuts = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(rows)]
        for begin, end in pairwise(cuts):
            part = rows if end - begin == len(rows) else rows.take(order[begin:end])
            self._held.setdefault(int(ordered[begin]), []).append(part)

    def _are_changes(self, batch: Batch, codes: NDArray[np.int8], late: Mask) -> Mask:
        totals = self._rounds.totals
        closing = codes == CLOSE
        if closing.any():
            totals.skipped["close lines"] += int(closing.sum())
        refused = late & ((codes == ADD) | (codes == UPDATE)) & (self._options.late == "refuse")
        if self._layout.roles.stamp:
            # who says from when a record counts is not late
            refused &= ~batch.columns[self._layout.roles.stamp].there()
        if refused.any():
            totals.leave_out(f"{self._table.name}: row {batch.numbers[int(np.argmax(refused))]}")
            totals.late += int(refused.sum()) - 1
        changes: Mask = ~closing & ~refused & (codes != NOTHING)
        return changes

    def _in_order(self, batch: Batch) -> None:
        """Only within a round does the order of the table count."""
        if self._checked != self._open:
            self._versions, self._checked = Versions(self._table.names, self._layout), self._open
        try:
            self._versions.check(batch)
        except InputError as error:
            raise self._hand.located(error, batch.numbers) from None

    def _catch_up(self, last: I64, read: int) -> None:
        """Hand over what the open round waits for, and close all rounds that have been read."""
        while True:
            parts = self._held.pop(self._open, None)
            if parts is not None:
                rows = Rows.concatenate(parts)
                self._rounds.open = True
                self._in_order(rows.batch)
                with self._origin.receiving((self._first, self._open, int(rows.batch.numbers[-1]), self._count)):
                    missed = self._hand.over(rows)
                if missed:
                    self._rounds.totals.missed.add(self._table.name, "row", missed)
            if self._open > self._last or last[self._open - self._first] > read:
                return
            try:
                self._rounds.close_before(self._open + 1)
            except RetroactError as error:
                raise located(error, self._table.name, during=f"round {self._open}") from None
            self._open += 1
