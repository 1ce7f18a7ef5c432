"""A feed from its first line to its last: recognised, taken up where it was left, played into a stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from retroact.errors import InputError
from retroact.feeds import source as sources
from retroact.feeds.batch import Changes
from retroact.feeds.deliver import Delivery
from retroact.feeds.grid import Complete, Followed
from retroact.feeds.options import Options, options_for
from retroact.feeds.readers.arrow import ColumnarSource, is_table, open_table
from retroact.feeds.readers.csv import CsvFile
from retroact.feeds.readers.json_lines import JsonLines
from retroact.feeds.readers.table import TableReader
from retroact.feeds.rounds import Publish, RoundCloser
from retroact.feeds.sequence import AfterTheEnd, Sequence
from retroact.feeds.source import Source, open_source
from retroact.feeds.totals import Totals, Waiting
from retroact.schema import Schema
from retroact.stream import Durable, Stream
from retroact.stream.grid import Grid
from retroact.stream.rounds import CloseBy, Late

Player = Sequence | Complete | Followed


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
    follow: bool = False,
    complete: bool = False,
) -> Totals:
    """Play a file (JSON lines, CSV, Parquet, Arrow), standard input ("-") or an Arrow-capable frame into a stream.

    Columns have the roles that the stream gives them; those that are named here go before them. Rounds are cut as the
    stream says; one that says nothing, and is not kept, takes a grid and the like from here.

    ``publish`` is called with every round that closes. An error names the line, and leaves the rounds that were closed
    before it, and what the open round had been handed.

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
        "id": id, "subject": subject, "time": time, "op": op, "position": position, "stamp": stamp, "round": round
    }  # fmt: skip
    cut: dict[str, Any] = {} if grid is None else dict(grid.spec())
    cut |= {"close_by": close_by, "late_events": late, "contribution": contribution}
    name = source_name or (os.fspath(source) if isinstance(source, str | os.PathLike) else None)
    options = options_for(stream, name, roles, cut, rounds=rounds, follow=follow, complete=complete)
    with open_feed(source, stream.schema, options, lasting=isinstance(stream, Durable)) as feed:
        return feed.play(stream, publish)


class Feed:
    """An open source of changes and what is known of it."""

    def __init__(self, source: Source | ColumnarSource, schema: Schema, options: Options) -> None:
        self.source = source
        self.options = options
        self.reader: CsvFile | JsonLines | TableReader
        if isinstance(source, ColumnarSource):
            self.reader = TableReader(source, schema, options)
        else:
            self.reader = (CsvFile if source.format == "CSV" else JsonLines)(source, schema, options)
        self.delivery: Delivery | None = None
        self.clocked = False
        """Whether something but the end of the input closed rounds."""
        self._first: Changes | None = None
        self._rest: Iterator[Changes] | None = None

    def look(self) -> None:
        """At the first changes, before anything else is done: they say what the rest is, or why it is refused. They
        are kept until they are played."""
        if self._rest is not None:
            return
        self._rest = iter(self.reader)
        self._first = next(self._rest, None)
        if not self.source.follow and (self._first is None or not len(self._first)):
            # an empty batch comes only before an error, which is raised here
            next(self._rest, None)
            if not self._may_be_empty and self._waiting() is None:
                raise self._nothing()

    def play(
        self,
        stream: Stream,
        publish: Publish | None = None,
        *,
        recognised: Callable[[Changes], None] | None = None,
        after: Callable[[], None] | None = None,
        totals: Totals | None = None,
    ) -> Totals:
        """All of it. ``recognised`` is called with the first changes, ``after`` after every batch; ``totals`` are
        counted on."""
        rounds = RoundCloser(stream, publish, self.options.rounds, totals)
        totals = rounds.totals
        delivery = self.delivery = Delivery(stream, rounds, self.source.name, self.reader.unit, self._kept_under())
        player = self._player(delivery)
        seen = False
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
        if isinstance(self.source, ColumnarSource) and not seen and recognised is not None:
            recognised(Changes.nothing())
        totals.waiting = self._waiting()
        if not (seen or self.source.follow or self._may_be_empty) and delivery.reached() is None:
            if totals.waiting is None:
                raise self._nothing()
            return totals
        totals.skipped.update(self.reader.skipped)
        if isinstance(player, Complete | Followed) or not self.source.follow:
            player.finish()
        while isinstance(player, Followed) and player.holds and not self._stopped():
            player.tick()
        self.clocked = not isinstance(player, Sequence) or player.clocked
        totals.left_open = rounds.open
        return totals

    def _player(self, delivery: Delivery) -> Player:
        """What cuts the input into rounds."""
        options, stream = self.options, delivery.stream
        again = isinstance(self.source, ColumnarSource) or self._again
        # a grid that is over has no rounds for what comes: it deletes at once
        if options.cut.grid is not None and stream.over and len(delivery.reached() or ()) < 2:
            return AfterTheEnd(delivery, options, by_line=again)
        if options.cut.grid is None or options.follow:
            sequence = Sequence(delivery, options, by_line=again)
            return sequence if options.cut.grid is None else Followed(delivery, options, sequence)
        if isinstance(self.source, Source) and self.source.path is None:
            raise InputError(
                "a grid on standard input needs --follow: rounds then close by the clock", place="--follow"
            )
        return Complete(delivery, options)

    def _batches(self, player: Player) -> Iterator[Changes]:
        """The changes that were not read before, and some before them."""
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
                sequence.require(begin, source.lines)
        if begin and not source.follow:
            sequence.require(begin, source.lines)

    def _kept(self) -> Iterator[Changes]:
        """All changes, with those that were looked at."""
        if self._rest is None:
            return iter(self.reader)
        return chain([] if self._first is None else [self._first], self._rest)

    def _after(self, begin: int, table: ColumnarSource, sequence: Sequence) -> Iterator[Changes]:
        """The rows of a table that come after those that were read before."""
        if table.rows is not None:
            sequence.require(begin, table.rows)
            first = self._first or next(iter(self.reader), None)
            if first is not None:
                sequence.adopt_numbering(first)
        self.reader.begin_after = begin
        yield from self.reader
        if not table.done:
            sequence.require(begin, None)

    def _in_rounds(self, player: Complete) -> Iterator[Changes]:
        """All changes, after the times of all of them."""
        if self._rest is not None:
            self.source.again()
        self.reader.begin_after = player.read_times(self.reader.times(), self.reader.count)
        if isinstance(self.source, Source):
            if self.source.holds and self.source.rest.strip():
                wrong = (
                    "the last line has no end, so it may be half of one: end it, or say --complete, before rounds close"
                )
                raise self.source.refused(InputError(wrong), self.source.lines)
            self.source.again()
        yield from self.reader
        if isinstance(self.source, ColumnarSource):
            player.require_all(self.source.done)

    def _kept_under(self) -> str | None:
        """What positions of the source are kept under."""
        if self.options.source_name is not None or isinstance(self.source, Source):
            return self.options.source_name or self.source.name
        if self.options.position and self.source.path is None:
            raise InputError("expected a name for the source of the positions", place="source_name")
        return self.source.path

    def _waiting(self) -> Waiting | None:
        """The last line, where nothing ends it and it was not taken before."""
        found = self.reader.unfinished() if self.source.holds else None
        if found is None or found[0] <= self.reader.begin_after:
            return None
        return Waiting(self.source.name, *found)

    def _nothing(self) -> InputError:
        return InputError(f"no events in {self.source.name}")

    def _stopped(self) -> bool:
        return not isinstance(self.source, Source) or self.source.stop.wait(sources.POLL)

    @property
    def _may_be_empty(self) -> bool:
        """Whether it was said how many rounds there are: those are published without any record, too. A table without
        rows is a whole one."""
        options = self.options
        return options.cut.grid is not None or options.rounds is not None or isinstance(self.source, ColumnarSource)

    @property
    def _again(self) -> bool:
        """Whether it can be read from the beginning again."""
        return isinstance(self.source, Source) and self.source.path is not None and self.source.file.seekable()


@contextmanager
def open_feed(source: Any, schema: Schema, options: Options, *, lasting: bool = False) -> Iterator[Feed]:
    """A file, standard input or a frame.

    For a stream that is ``lasting`` half a line is not taken for a whole one: later runs would begin after it.
    """
    if is_table(source):
        yield Feed(open_table(source), schema, options)
        return
    holds = lasting and not options.complete
    with open_source(os.fspath(source), follow=options.follow, holds=holds) as opened:
        yield Feed(opened, schema, options)
