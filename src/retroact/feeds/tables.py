"""Columnar feeds into a stream: Parquet and Arrow files, and frames, in batches and never whole.

Every hand-over names how far the source was read. With that, a run that was cut short goes on where its stream stands,
and what is delivered twice is taken once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retroact.errors import InputError, RetroactError
from retroact.feeds.changes import CLOSE, NOTHING, Layout, layout_of, operations, positions_of
from retroact.feeds.columns import Batch
from retroact.feeds.events import Roles, located
from retroact.feeds.gridded import Gridded
from retroact.feeds.handing import Hand, Origin, Rows
from retroact.feeds.options import Options
from retroact.feeds.rounds import Publish, Rounds, Totals
from retroact.feeds.tablefiles import Table, open_table, source_name
from retroact.schema import Schema
from retroact.stream import Stream

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
Progress = Callable[[int], None]
"""Told how many rows are done, after each batch."""


def play_table(
    stream: Stream,
    source: Any,
    options: Options,
    publish: Publish | None = None,
    *,
    strict: bool = False,
    progress: Progress | None = None,
) -> Totals:
    """Play a columnar file, or a frame, into a stream, and publish its rounds as they close.

    >>> import pyarrow as pa
    >>> import retroact as ra
    >>> stream = ra.Stream({"amount": ra.Number(0, 500)}, {"orders": ra.Count()}, epsilon=1.0, horizon=10)
    >>> changes = pa.table({"op": ["add", "add", "delete"], "id": ["a", "b", "a"], "amount": [12.5, 3.0, None]})
    >>> totals = play_table(stream, changes, Options())
    >>> totals.rounds, totals.added
    (1, 1)
    """
    table = open_table(source)
    layout = _layout(table, stream.schema, options, strict)
    origin = Origin(stream, source_name(source, options.source_name))
    if layout.position and origin.name is None:
        raise InputError("expected a name for the source of the positions", place="source_name")
    kind = _Sequential if options.grid is None else Gridded
    return kind(stream, table, layout, options, publish, origin, progress).run()


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


def recognise_table(source: Any, schema: Schema, options: Options, *, strict: bool = False) -> Recognised:
    """What a source looks like. A reader that can be read only once is used up by this.

    >>> import pyarrow as pa
    >>> from retroact.schema import Number
    >>> seen = recognise_table(pa.table({"id": [7], "amount": [12.5]}), Schema({"amount": Number(0, 500)}), Options())
    >>> seen.format, seen.rows, seen.example
    ('Arrow table', 1, {'op': 'add', 'record': {'amount': 12.5}, 'id': 7})
    """
    table = open_table(source)
    layout = _layout(table, schema, options, strict)
    first = next(table.batches(layout.needed), None)
    example: dict[str, Any] | None = None
    if first is not None and len(first):
        cells = {name: column.take(slice(0, 1)).listed()[0] for name, column in first.columns.items()}
        example = {"op": cells[layout.operation] if layout.operation else "add"}
        example["record"] = {name: cells[name] for name in layout.fields}
        example |= {role: cells[column] for role, column in layout.roles.items() if cells[column] is not None}
        example |= {"time": cells[layout.time]} if layout.time else {}
    return Recognised(table.name, table.format, table.rows, layout.operation, layout.roles, layout.ignored, example)


def _layout(table: Table, schema: Schema, options: Options, strict: bool) -> Layout:
    if options.follow:
        raise InputError("expected JSON lines or CSV to follow: a table is complete", place="follow")
    if options.close_by == "progress":
        raise InputError("expected rounds that close by lines, by a grid or at the end of a table", place="close_by")
    try:
        return layout_of(table.names, schema, options, strict=strict)
    except InputError as error:
        raise located(error, table.name) from None


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
        progress: Progress | None,
    ) -> None:
        self._stream, self._table, self._layout, self._options = stream, table, layout, options
        self._rounds = Rounds(stream, publish, options.rounds)
        self._numbered = self._begun = False
        self._closing = False
        """Whether rows close rounds, also such as were read before."""
        self._hand = Hand(stream, layout, table.name)
        self._origin = origin
        self._progress = progress

    def run(self) -> Totals:
        reached = self._origin.reached()
        if reached is not None and len(reached) != 1:
            raise InputError(f"expected the grid that {self._origin.name} was read with before, got none", place="grid")
        skip = reached[0] if reached is not None and not self._layout.position else 0
        self._look_back(skip)
        for batch in self._table.batches(self._layout.needed, skip=skip, words=self._layout.words):
            self._play(batch)
            if self._progress is not None:
                self._progress(int(batch.numbers[-1]))
        try:
            if self._rounds.limit is not None:
                self._rounds.close_before(self._rounds.limit + 1)
            elif not self._numbered and not self._closing and not self._published(reached):
                self._rounds.close()
        except RetroactError as error:
            raise located(error, f"{self._table.name}, at its end") from None
        return self._rounds.totals

    def _published(self, reached: tuple[int, ...] | None) -> bool:
        """Whether all of the input went into rounds that were closed before."""
        return not self._begun and reached is not None and self._origin.delivered(reached[0])

    def _look_back(self, skip: int) -> None:
        """At what is not read again, for rows that close: those tell whether the end closes a round."""
        layout = self._layout
        if skip and layout.operation and not layout.weighted and self._rounds.limit is None:
            for batch in self._table.batches({layout.operation}, words=layout.words):
                if self._closing or batch.numbers[0] > skip:
                    return
                self._note_closing(operations(batch, layout, None)[0][: skip - int(batch.numbers[0]) + 1])

    def _note_closing(self, codes: NDArray[np.int8]) -> None:
        self._closing |= self._options.close_by != "end" and bool((codes == CLOSE).any())

    def _play(self, batch: Batch) -> None:
        """All rows of a batch, piece by piece."""
        layout = self._layout
        try:
            codes, copies = operations(batch, layout, self._options.contribution)
            rounds = batch.columns[layout.roles.round] if layout.roles.round else None
            targets = None if rounds is None else rounds.whole(layout.roles.round or "")
            positions = positions_of(batch, layout)
        except InputError as error:
            raise self._hand.located(error, batch.numbers) from None
        known = np.zeros(len(batch), np.bool_) if rounds is None else rounds.there()
        self._note_closing(codes)
        rows = Rows(batch, codes, copies)
        if positions is not None:
            fresh = self._fresh(positions)
            if not fresh.all():
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
        with self._receiving(number, positions):
            self._rounds.close_one()

    def _take(self, rows: Rows, positions: I64 | None) -> None:
        number = int(rows.batch.numbers[-1])
        changes = rows.codes != NOTHING
        self._rounds.open = self._begun = True
        with self._receiving(number, positions):
            self._hand.over(rows if changes.all() else rows.take(changes))

    def _receiving(self, number: int, positions: I64 | None) -> AbstractContextManager[None]:
        if positions is None:
            return self._origin.receiving((number,))
        return self._origin.receiving((int(positions.max()),), positions.tolist())

    def _fresh(self, positions: I64) -> Mask:
        """Which rows were not delivered before, neither in this batch nor in another."""
        reached = self._origin.reached()
        grown = bool((positions[1:] > positions[:-1]).all())
        if grown and (reached is None or int(positions[0]) > reached[0]):
            return np.ones(len(positions), np.bool_)
        fresh = np.zeros(len(positions), np.bool_)
        fresh[np.unique(positions, return_index=True)[1]] = True
        if reached is not None:
            for row in np.flatnonzero(fresh & (positions <= reached[0])).tolist():
                fresh[row] = not self._origin.delivered(int(positions[row]))
        return fresh

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
