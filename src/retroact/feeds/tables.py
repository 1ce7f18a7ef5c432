"""Columnar feeds into a stream: Parquet and Arrow files, and frames, in batches and never whole.

Every hand-over names how far the source was read. With that, a run that was cut short goes on where its stream stands,
and what is delivered twice is taken once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retroact.arrays import I64, Mask
from retroact.errors import InputError, RetroactError
from retroact.feeds.changes import ADD, CLOSE, DELETE, NOTHING, UPDATE, Layout, layout_of, operations, positions_of
from retroact.feeds.columns import Batch
from retroact.feeds.events import Roles, located
from retroact.feeds.gridded import Gridded
from retroact.feeds.handing import Hand, Origin, Rows, Versions
from retroact.feeds.options import Options
from retroact.feeds.rounds import Publish, Rounds, Totals, shorter
from retroact.feeds.tablefiles import Table, open_table
from retroact.schema import Schema
from retroact.stream import Stream

Progress = Callable[[int], None]
"""Told how many rows are done, after each batch."""


def play_table(
    stream: Stream,
    source: Any,
    options: Options,
    publish: Publish | None = None,
    *,
    totals: Totals | None = None,
    progress: Progress | None = None,
) -> Totals:
    """Play a columnar file, or a frame, into a stream, and publish its rounds as they close.

    ``totals``: where to count, so that it is known what was done even if this fails.

    >>> import pyarrow as pa
    >>> import retroact as ra
    >>> stream = ra.Stream({"amount": ra.Number(0, 500)}, {"orders": ra.Count()}, epsilon=1.0, horizon=10)
    >>> changes = pa.table({"op": ["add", "add", "delete"], "id": ["a", "b", "a"], "amount": [12.5, 3.0, None]})
    >>> totals = play_table(stream, changes, Options())
    >>> totals.rounds, totals.added
    (1, 1)
    """
    table = open_table(source)
    layout = _layout(table, stream.schema, options)
    path = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    origin = Origin(stream, options.source_name or path)
    if layout.position and origin.name is None:
        raise InputError("expected a name for the source of the positions", place="source_name")
    # a grid that is over has no rounds for what comes: it deletes at once
    ended = stream.over and len(origin.reached() or ()) < 2
    kind = _Sequential if options.grid is None or ended else Gridded
    return kind(stream, table, layout, options, publish, origin, totals, progress).run()


@dataclass(frozen=True)
class Recognised:
    """What a table was taken for, to be told before anything is done."""

    name: str
    format: str
    rows: int | None
    operation: str | None
    """The column that says what to do; None when all rows are additions."""
    roles: Roles
    ignored: tuple[str, ...]
    example: dict[str, Any] | None
    """The first row, by what its cells are for."""


def recognise_table(source: Any, schema: Schema, options: Options) -> Recognised:
    """What a source looks like. A reader that can be read only once is used up by this.

    >>> import pyarrow as pa
    >>> from retroact.schema import Number
    >>> seen = recognise_table(pa.table({"id": [7], "amount": [12.5]}), Schema({"amount": Number(0, 500)}), Options())
    >>> seen.format, seen.rows, seen.example
    ('Arrow table', 1, {'op': 'add', 'record': {'amount': 12.5}, 'id': 7})
    """
    table = open_table(source)
    layout = _layout(table, schema, options)
    first = next(table.batches(layout.needed), None)
    example: dict[str, Any] | None = None
    if first is not None and len(first):
        cells = {name: column.take(slice(0, 1)).listed()[0] for name, column in first.columns.items()}
        example = {"op": cells[layout.operation] if layout.operation else "add"}
        example["record"] = {name: cells[name] for name in layout.fields}
        example |= {role: cells[column] for role, column in layout.roles.items() if cells[column] is not None}
        example |= {"time": cells[layout.time]} if layout.time else {}
    return Recognised(table.name, table.format, table.rows, layout.operation, layout.roles, layout.ignored, example)


def _layout(table: Table, schema: Schema, options: Options) -> Layout:
    if options.follow:
        raise InputError("expected JSON lines or CSV to follow: a table is complete", place="follow")
    if options.close_by == "progress":
        raise InputError("expected rounds that close by lines, by a grid or at the end of a table", place="close_by")
    try:
        return layout_of(table.names, schema, options)
    except InputError as error:
        raise error.found_in(table.name) from None


class _Sequential:
    """Row by row in the order of the table: rounds close by number, by rows that say so, or at the end."""

    def __init__(
        self,
        stream: Stream,
        table: Table,
        layout: Layout,
        options: Options,
        publish: Publish | None,
        origin: Origin,
        totals: Totals | None,
        progress: Progress | None,
    ) -> None:
        self._stream, self._table, self._layout, self._options = stream, table, layout, options
        self._rounds = Rounds(stream, publish, options.rounds, totals)
        self._numbered = self._begun = False
        self._by_number: bool | None = None
        """Whether rows have the numbers of their rounds: all of them or none, as the first one says."""
        self._closing = options.close_by != "end" and origin.settled() is not None
        """Whether rows close rounds, or rounds were closed while this source was read before."""
        self._versions = Versions(table.names, layout)
        self._hand = Hand(stream, layout, table.name)
        self._origin = origin
        self._progress = progress

    def run(self) -> Totals:
        reached = self._origin.reached()
        if reached is not None and len(reached) != 1:
            raise InputError(f"expected the grid that {self._origin.name} was read with before, got none", place="grid")
        skip = reached[0] if reached and not self._layout.position else 0
        for batch in self._batches(skip):
            self._play(batch)
            if self._progress is not None:
                self._progress(int(batch.numbers[-1]))
        try:
            if self._rounds.limit is not None:
                self._rounds.close_before(self._rounds.limit + 1)
            elif not self._numbered and not self._closing and not self._published():
                self._rounds.close_last()
        except RetroactError as error:
            raise located(error, self._table.name, during="at its end") from None
        self._rounds.totals.left_open = self._rounds.open
        return self._rounds.totals

    def _published(self) -> bool:
        """Whether all of the input went into rounds that were closed before."""
        reached = self._origin.reached()
        return not self._begun and bool(reached) and self._origin.settled() == reached

    def _batches(self, skip: int) -> Iterator[Batch]:
        """What comes after the rows that were read before, which must be there."""
        table, layout = self._table, self._layout
        needed = layout.needed | self._versions.columns
        if skip:
            if table.rows is not None and table.rows < skip:
                raise shorter(table.name, skip, table.rows, "rows")
            self._rounds.totals.taken_up = f"{self._origin.name} is taken up after row {skip:,}"
            self._look_at_the_first()
        last = None
        # the last row that was read before shows that there are so many
        for batch in table.batches(needed, skip=max(0, skip - 1), words=layout.words):
            last = int(batch.numbers[-1])
            self._in_order(batch)
            left = batch if batch.numbers[0] > skip else batch.take(slice(1, None))
            if len(left):
                yield left
        if skip and last is None:
            raise shorter(table.name, skip, None, "rows")

    def _look_at_the_first(self) -> None:
        """At a row that was read before, where that can be done: what it is, all are."""
        layout = self._layout
        if layout.roles.round and self._table.rows is not None:
            wanted = {layout.roles.round, *((layout.operation,) if layout.operation else ())}
            batch = next(self._table.batches(wanted, words=layout.words), None)
            if batch is not None:
                codes, _ = operations(batch, layout, self._options.contribution)
                known = batch.columns[layout.roles.round].there()[(codes != CLOSE) & (codes != NOTHING)]
                self._by_number = bool(known[0]) if len(known) else None

    def _in_order(self, batch: Batch) -> None:
        try:
            self._versions.check(batch)
        except InputError as error:
            raise self._hand.located(error, batch.numbers) from None

    def _be_of_one_kind(self, codes: NDArray[np.int8], known: Mask) -> None:
        """A row without the number of a round among rows that have one would get that of its neighbours."""
        changes = (codes != CLOSE) & (codes != NOTHING)
        if self._by_number is None and changes.any():
            self._by_number = bool(known[int(np.argmax(changes))])
        odd = changes & (known != bool(self._by_number))
        if odd.any():
            wrong = (
                "expected the number of its round, as the rows before it have one, got none"
                if self._by_number
                else "expected no number of a round, as the rows before it have none, got one"
            )
            raise InputError(wrong, place=self._layout.roles.round, row=int(np.argmax(odd)) + 1)

    def _play(self, batch: Batch) -> None:
        """All rows of a batch, piece by piece."""
        layout = self._layout
        try:
            codes, copies = operations(batch, layout, self._options.contribution)
            rounds = batch.columns[layout.roles.round] if layout.roles.round else None
            targets = None if rounds is None else rounds.whole(layout.roles.round or "")
            positions = positions_of(batch, layout)
            known = np.zeros(len(batch), np.bool_) if rounds is None else rounds.there()
            self._be_of_one_kind(codes, known)
            fresh = None if positions is None else self._fresh(positions, batch)
        except InputError as error:
            raise self._hand.located(error, batch.numbers) from None
        rows = Rows(batch, codes, copies)
        if positions is not None and fresh is not None and not fresh.all():
            self._absorb(batch.numbers[~fresh])
            rows, positions, known = rows.take(fresh), positions[fresh], known[fresh]
            targets = None if targets is None else targets[fresh]
        if not len(rows):
            return
        cuts = _cuts(rows.codes == CLOSE, known, targets)
        for begin, end in zip(cuts, [*cuts[1:], len(rows)], strict=True):
            numbers = rows.batch.numbers[begin : begin + 1]
            try:
                if known[begin] and targets is not None:
                    self._advance(int(targets[begin]))
                if rows.codes[begin] == CLOSE:
                    self._close(int(numbers[0]), None if positions is None else positions[begin : begin + 1])
                    continue
            except RetroactError as error:
                raise self._hand.located(error, numbers) from None
            part = rows if end - begin == len(rows) else rows.take(slice(begin, end))
            self._take(part, None if positions is None else positions[begin:end])

    def _advance(self, target: int) -> None:
        if target != self._stream.round or not self._numbered:
            self._numbered = True
            self._rounds.advance(target)

    def _close(self, number: int, positions: I64 | None) -> None:
        if self._options.close_by == "end":
            self._rounds.totals.skipped["close lines"] += 1
            return
        self._closing = True
        with self._receiving(number, positions):
            self._rounds.close_one()

    def _take(self, rows: Rows, positions: I64 | None) -> None:
        number = int(rows.batch.numbers[-1])
        changes = rows.codes != NOTHING
        self._begun = True
        # a deletion without an id is one by value
        later = (ADD, UPDATE) if self._layout.roles.id is not None else (ADD, UPDATE, DELETE)
        waits = np.isin(rows.codes, later)
        if self._options.grid is not None and waits.any():
            wrong = InputError("all rounds are closed: only erasures and deletions by id are taken", place="--end")
            raise wrong.found_in(self._table.name, row=int(rows.batch.numbers[waits][0]), unit="row")
        self._rounds.take(waits=bool(waits.any()))
        with self._receiving(number, positions):
            missed = self._hand.over(rows if changes.all() else rows.take(changes))
        if missed:
            self._rounds.totals.missed.add(self._table.name, "row", missed)

    def _receiving(self, number: int, positions: I64 | None) -> AbstractContextManager[None]:
        if positions is None:
            return self._origin.receiving((number,))
        return self._origin.receiving((int(positions.max()),), positions.tolist())

    def _fresh(self, positions: I64, batch: Batch) -> Mask:
        """Which rows were not delivered before, neither in this batch nor in another."""
        reached = self._origin.reached()
        grown = bool((positions[1:] > positions[:-1]).all())
        if grown and (not reached or int(positions[0]) > reached[0]):
            return np.ones(len(positions), np.bool_)
        _, firsts, inverse = np.unique(positions, return_index=True, return_inverse=True)
        fresh = np.zeros(len(positions), np.bool_)
        fresh[firsts] = True
        if reached:
            for row in np.flatnonzero(fresh & (positions <= reached[0])).tolist():
                fresh[row] = not self._origin.delivered(int(positions[row]))
        first = firsts[inverse]
        again = np.flatnonzero((first != np.arange(len(positions))) & fresh[first])
        if again.size:
            self._require_equal(batch, positions, again, first[again])
        return fresh

    def _require_equal(self, batch: Batch, positions: I64, again: I64, first: I64) -> None:
        """Rows with the position of an earlier one must be that one, delivered again."""
        odd = np.zeros(len(again), np.bool_)
        for cells in batch.columns.values():
            pairs = zip(cells.take(again).listed(), cells.take(first).listed(), strict=True)
            # by their texts, as one that is no number equals nothing
            odd |= np.fromiter((repr(one) != repr(other) for one, other in pairs), np.bool_, len(again))
        if odd.any():
            row, other = int(again[int(np.argmax(odd))]), int(first[int(np.argmax(odd))])
            wrong = f"every event needs a position of its own, got {positions[row]} as in row {batch.numbers[other]}"
            raise InputError(wrong, place=self._layout.position, row=row + 1)

    def _absorb(self, numbers: I64) -> None:
        totals = self._rounds.totals
        totals.absorb(f"{self._table.name}: row {numbers[0]}")
        totals.absorbed += len(numbers) - 1


def _cuts(closing: Mask, known: Mask, targets: I64 | None) -> list[int]:
    """Where a piece of rows begins that are handed over together: at each new round number, and around rows that close.

    >>> _cuts(np.array([False, False, True, False]), np.array([True, True, False, True]), np.array([1, 2, 0, 3]))
    [0, 1, 2, 3]
    """
    marks = np.zeros(len(closing), np.bool_)
    marks[0] = True
    marks |= closing
    marks[1:] |= closing[:-1]
    if targets is not None:
        places = np.flatnonzero(known)
        closed = np.cumsum(closing)[places]
        changed = np.ones(len(places), np.bool_)
        changed[1:] = (targets[places][1:] != targets[places][:-1]) | (closed[1:] != closed[:-1])
        marks[places[changed]] = True
    return [int(place) for place in np.flatnonzero(marks)]
