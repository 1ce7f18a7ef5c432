"""A feed from its first line to its last: recognised, resumed where it was left, played into a stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain
from typing import Any

from ..errors import InputError
from ..schema import Schema
from ..stream import Durable, Stream
from ..stream.grid import Grid
from ..stream.rounds import CloseBy, Late
from . import source as sources
from .batch import Changes
from .deliver import Delivery
from .grid import Complete, Followed
from .options import Options, options_for
from .readers.arrow import ColumnarSource, TableReader, is_table, open_table
from .readers.csv import CsvFile
from .readers.json_lines import JsonLines
from .rounds import Publish, RoundCloser
from .sequence import AfterTheEnd, Sequence
from .source import Source, open_source
from .totals import Totals, Waiting

Player = Sequence | Complete | Followed
NO_EVENTS = "a file of records has at least one; in CSV, below a line with the names of the columns"


def play(
    stream: Stream,
    source: Any,
    *,
    id: str | None = None,
    subject: str | None = None,
    stamp: str | None = None,
    round: str | None = None,
    time: str | None = None,
    grid: Grid | None = None,
    close_by: CloseBy | None = None,
    late: Late | None = None,
    op: str | None = None,
    position: str | None = None,
    source_name: str | None = None,
    contribution: int | None = None,
    publish: Publish | None = None,
    rounds: int | None = None,
    until: Any = None,
    follow: bool = False,
    complete: bool = False,
    format: str | None = None,
    delimiter: str | None = None,
    na_values: Iterable[str] | None = None,
) -> Totals:
    """Play a file (JSON lines, CSV, Parquet, Arrow), standard input ("-") or an Arrow-capable frame into a stream.
    JSON lines and CSV may be compressed with gzip or Zstandard.

    Columns have the roles that the stream declares; roles named here take precedence. Rounds are those of the stream; a
    stream in memory that declares none takes a grid and the like from here.

    On a grid a source has everything up to ``until``, by default the end of the grid: the round that ends there is the
    last one that closes.

    ``publish`` is called with every round that closes. An error names the line. If the number of rounds of a file is
    declared, they are published together, and an error leaves the stream as it was; otherwise rounds that closed before
    it stay closed, and what the open round was given stays in it.

    >>> import tempfile, retroact as ra
    >>> stream = ra.Stream({"amount": ra.Number(0, 500)}, {"orders": ra.Count()}, epsilon=1.0, horizon=10)
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("amount,customer\\n12.5,u1\\n3,u2\\n")
    ...     file.flush()
    ...     totals = play(stream, file.name, subject="customer")
    >>> totals.rounds, totals.added
    (1, 2)
    """
    roles = {
        "id": id, "subject": subject, "time": time, "op": op, "position": position, "stamp": stamp, "round": round,
        "na_values": None if na_values is None else list(na_values),
    }  # fmt: skip
    cut: dict[str, Any] = {} if grid is None else dict(grid.spec())
    cut |= {"close_by": close_by, "late_events": late, "contribution": contribution}
    name = source_name or (os.fspath(source) if isinstance(source, str | os.PathLike) else None)
    run: dict[str, Any] = {
        "rounds": rounds,
        "until": until,
        "follow": follow,
        "complete": complete,
        "format": format,
        "delimiter": delimiter,
    }
    options = options_for(stream, name, roles, cut, **run)
    with open_feed(source, stream.schema, options, lasting=isinstance(stream, Durable)) as feed:
        return feed.play(stream, publish)


class Feed:
    """An open source and its reader."""

    def __init__(self, source: Source | ColumnarSource, schema: Schema, options: Options) -> None:
        self.source = source
        self.options = options
        self.reader: CsvFile | JsonLines | TableReader
        if isinstance(source, Source):
            self.reader = (CsvFile if source.format == "CSV" else JsonLines)(source, schema, options)
        else:
            self.reader = TableReader(source, schema, options)
        self.delivery: Delivery | None = None
        self.clocked = False
        """Whether something but the end of the input closed rounds."""
        self._first: Changes | None = None
        self._rest: Iterator[Changes] | None = None

    def look(self) -> None:
        """Read the first changes, which say what the rest is or why it is refused, and keep them until they are
        played."""
        if self._rest is not None:
            return
        self._rest = iter(self.reader)
        self._first = next(self._rest, None)
        if not self.source.follow and (self._first is None or not len(self._first)):
            # an empty batch comes only before an error, which is raised here
            next(self._rest, None)
            if not self._may_be_empty and self._waiting() is None:
                raise InputError(f"no events in {self.source.name}", hint=NO_EVENTS)

    def play(
        self,
        stream: Stream,
        publish: Publish | None = None,
        *,
        recognised: Callable[[Changes], None] | None = None,
        after: Callable[[], None] | None = None,
        totals: Totals | None = None,
    ) -> Totals:
        """Play everything. ``recognised`` is called with the first changes, ``after`` after every batch; ``totals`` go
        on being counted."""
        rounds = RoundCloser(stream, publish, self.options.rounds, totals)
        totals = rounds.totals
        kept_under = self.options.source_name or (self.source.path if self.source.is_table else self.source.name)
        if kept_under is None and self.options.position:
            raise InputError("expected a name for the source of the positions", place="source_name")
        delivery = self.delivery = Delivery(stream, rounds, self.source.name, self.reader.unit, kept_under)
        delivery.refusals = self.options.refusals
        player = self._player(delivery)
        with rounds.in_one_pass() if self._rounds_are_known(player) and stream.passes else nullcontext():
            return self._played(player, rounds, recognised, after)

    def _played(
        self,
        player: Player,
        rounds: RoundCloser,
        recognised: Callable[[Changes], None] | None,
        after: Callable[[], None] | None,
    ) -> Totals:
        totals, seen = rounds.totals, False
        for changes in self._batches(player):
            if len(changes) and changes.numbers[-1] > self.reader.begin_after and not seen:
                seen = True
                if recognised is not None:
                    recognised(changes.take(changes.numbers > self.reader.begin_after))
            player.apply(changes)
            if after is not None:
                after()
            if isinstance(player, Followed) and player.ended:
                break
        if self.source.is_table and not seen and recognised is not None:
            recognised(Changes.nothing())
        totals.waiting = self._waiting()
        assert self.delivery is not None
        if not (seen or self.source.follow or self._may_be_empty) and self.delivery.reached() is None:
            if totals.waiting is None:
                raise InputError(f"no events in {self.source.name}", hint=NO_EVENTS)
            return totals
        totals.skipped.update(self.reader.skipped)
        if isinstance(player, Complete | Followed) or not self.source.follow:
            player.finish()
        stop = self.source.stop if isinstance(self.source, Source) else None
        while isinstance(player, Followed) and player.holds and stop and not stop.wait(sources.POLL):
            player.tick()
        self.clocked = not isinstance(player, Sequence) or player.clocked
        totals.left_open = rounds.open
        return totals

    def _rounds_are_known(self, player: Player) -> bool:
        """Whether this is a complete file whose number of rounds is declared: these are computed in one pass."""
        if isinstance(player, Complete):
            return self.options.refusals is None
        whole = self.source.rereadable and not self.source.follow and self.options.refusals is None
        return whole and isinstance(player, Sequence) and (self.options.rounds or 0) > 1

    def _player(self, delivery: Delivery) -> Player:
        """What cuts the input into rounds."""
        options, stream = self.options, delivery.stream
        # a grid that is over has no rounds for what comes: it deletes at once
        if options.cut.grid is not None and stream.over and len(delivery.reached() or ()) < 2:
            return AfterTheEnd(delivery, options, by_line=self.source.rereadable)
        if options.cut.grid is None or options.follow:
            sequence = Sequence(delivery, options, by_line=self.source.rereadable)
            return sequence if options.cut.grid is None else Followed(delivery, options, sequence)
        if self.source.path is None and not self.source.is_table:
            raise InputError(
                "a grid on standard input needs --follow: rounds then close by the clock", place="--follow"
            )
        return Complete(delivery, options)

    def _batches(self, player: Player) -> Iterator[Changes]:
        """The changes that were not read before, perhaps with some that were."""
        if isinstance(player, Complete):
            yield from self._in_rounds(player)
            return
        sequence = player if isinstance(player, Sequence) else player.sequence
        begin, source = sequence.begin_after(), self.source
        if isinstance(source, ColumnarSource):
            yield from self._after(begin, source, sequence) if begin else self._kept()
            return
        for changes in self._kept():
            # the first batch says what all are, and is read in any case
            self.reader.begin_after = begin
            yield changes
            if begin and source.follow and not len(changes):
                sequence.require(begin, source.count)
        if begin and not source.follow:
            sequence.require(begin, source.count)

    def _kept(self) -> Iterator[Changes]:
        """All changes, beginning with those that `look` kept."""
        if self._rest is None:
            return iter(self.reader)
        return chain([] if self._first is None else [self._first], self._rest)

    def _after(self, begin: int, table: ColumnarSource, sequence: Sequence) -> Iterator[Changes]:
        """The rows of a table after those that were read before."""
        if table.size is not None:
            sequence.require(begin, table.size)
            first = self._first or next(iter(self.reader), None)
            if first is not None:
                sequence.adopt_numbering(first)
        self.reader.begin_after = begin
        yield from self.reader
        if not table.count:
            sequence.require(begin, None)

    def _in_rounds(self, player: Complete) -> Iterator[Changes]:
        """All changes, once the times of all of them are known."""
        if self._rest is not None:
            self.source.again()
        self.reader.begin_after = player.read_times(self.reader.times(), self.source)
        self.source.require_whole_lines()
        self.source.again()
        yield from self.reader
        if isinstance(self.source, ColumnarSource):
            player.require_all(self.source.count)

    def _waiting(self) -> Waiting | None:
        """The last line, if nothing ends it and it was not read before."""
        found = self.reader.unfinished() if self.source.holds else None
        if found is None or found[0] <= self.reader.begin_after:
            return None
        return Waiting(self.source.name, *found)

    @property
    def _may_be_empty(self) -> bool:
        """Whether the number of rounds was declared, since these are published without any record, too; a table without
        rows is complete in any case. If all rows were refused, that is known already."""
        refused = self.options.refusals is not None and bool(self.options.refusals.kinds)
        declared = self.options.cut.grid is not None or self.options.rounds is not None
        return declared or self.source.is_table or refused


@contextmanager
def open_feed(source: Any, schema: Schema, options: Options, *, lasting: bool = False) -> Iterator[Feed]:
    """Open a file, standard input or a frame. A ``lasting`` stream does not take half a line for a whole one: later
    runs would begin after it."""
    if is_table(source):
        yield Feed(open_table(source), schema, options)
        return
    holds = lasting and not options.complete
    with open_source(os.fspath(source), follow=options.follow, holds=holds, format=options.format) as opened:
        yield Feed(opened, schema, options)
