"""A feed from its first line to its last: recognised, taken up where it was left, played into a stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from retroact.errors import InputError
from retroact.feeds.clocked import Complete, Ended, Followed
from retroact.feeds.csvfile import CsvFile
from retroact.feeds.events import Block
from retroact.feeds.files import POLL, Source, open_events
from retroact.feeds.jsonlines import JsonLines
from retroact.feeds.options import Options, options_for
from retroact.feeds.replay import Replay
from retroact.feeds.rounds import Publish, Totals, Waiting, shorter
from retroact.schema import Schema
from retroact.stream import Durable, Stream
from retroact.stream.grid import Grid
from retroact.stream.rounds import CloseBy, Late

TABLES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")


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
    if is_table(source):
        from retroact.feeds.tables import play_table

        return play_table(stream, source, options, publish)
    with open_feed(source, stream.schema, options, lasting=isinstance(stream, Durable)) as feed:
        return feed.play(stream, publish)


def is_table(source: Any) -> bool:
    """Whether rows come in columns: a frame, or a file that holds one."""
    if hasattr(source, "__arrow_c_stream__"):
        return True
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"expected a path, - for standard input, or an Arrow-capable frame, got {type(source).__name__}"
        )
    return Path(source).suffix.lower() in TABLES


class Feed:
    """An open source of events and what is known of it."""

    def __init__(self, source: Source, schema: Schema, options: Options) -> None:
        self.source = source
        self.options = options
        kind = CsvFile if source.format == "CSV" else JsonLines
        self.reader: CsvFile | JsonLines = kind(source, schema, options)
        self.replay: Replay | None = None
        self._blocks: Iterator[Block] | None = None

    def look(self) -> None:
        """At the first events, before anything else is done: they say what the rest is, or why it is refused."""
        self._blocks = iter(self.reader)
        first = next(self._blocks, None)
        if not self.source.follow and (first is None or not first.events):
            # an empty block comes only before an error, which is raised here
            next(self._blocks, None)
            if not self._rounds_are_public and self._waiting() is None:
                raise self.source.nothing()
        self._blocks = chain([] if first is None else [first], self._blocks)
        if self._again:
            # what was read before is known when there is a stream
            self.source.again()
            self._blocks = None

    def play(
        self,
        stream: Stream,
        publish: Publish | None = None,
        *,
        recognised: Callable[[Block], None] | None = None,
        after: Callable[[Replay], None] | None = None,
        totals: Totals | None = None,
    ) -> Totals:
        """All of it. ``recognised`` is called with the first events, ``after`` after every block; ``totals`` are
        counted on."""
        replay = self.replay = Replay(stream, self.reader.records, self.source.name, self.options, publish, totals)
        played = self._on_grid(replay) if self.options.grid is not None else replay
        if not isinstance(played, Complete):
            self._take_up(replay)
        seen = False
        for block in self._blocks or self.reader:
            replay.records = self.reader.records
            if block.events and not seen:
                seen = True
                if recognised is not None:
                    recognised(block)
            played.apply(block)
            if after is not None:
                after(replay)
            if isinstance(played, Followed) and played.ended:
                break
        replay.totals.waiting = self._waiting()
        if not (seen or self.source.follow or self._rounds_are_public) and stream.position(replay.source) is None:
            if replay.totals.waiting is None:
                raise self.source.nothing()
            return replay.totals
        replay.totals.skipped.update(self.reader.skipped)
        if isinstance(played, Complete | Followed) or not self.source.follow:
            played.finish()
        while isinstance(played, Followed) and played.holds and not self.source.stop.wait(POLL):
            played.tick()
        replay.totals.left_open = replay.rounds.open
        return replay.totals

    def _waiting(self) -> Waiting | None:
        """The last line, where nothing ends it and it was not taken before."""
        found = self.reader.unfinished() if self.source.holds else None
        if found is None or found[0] <= self.reader.begin_after:
            return None
        return Waiting(self.source.name, *found)

    @property
    def _rounds_are_public(self) -> bool:
        """Whether it was said how many rounds there are: those are published without any record, too."""
        return self.options.grid is not None or self.options.rounds is not None

    @property
    def _again(self) -> bool:
        """Whether it can be read from the beginning again."""
        return self.source.path is not None and self.source.file.seekable()

    def _on_grid(self, replay: Replay) -> Complete | Ended | Followed:
        if replay.stream.over and len(replay.stream.position(replay.source) or ()) < 2:
            return Ended(replay, self.options, self.source.name)
        if self.options.follow:
            return Followed(replay, self.options, self.source.name)
        if self.source.path is None:
            raise InputError(
                "a grid on standard input needs --follow: rounds then close by the clock", place="--follow"
            )
        played = Complete(replay, self.options, self.source.name, self.source.count())
        if self.source.holds and self.source.unended:
            wrong = "the last line has no end, so it may be half of one: end it, or say --complete, before rounds close"
            raise self.source.refused(InputError(wrong), self.source.count())
        played.read_times(self.reader.times())
        self.source.again()
        return played

    def _take_up(self, replay: Replay) -> None:
        """Begin after the last line that was handed over before, if lines are positions at all."""
        if self.options.position is None and not self._again:
            replay.place = None
            return
        if self.options.close_by in ("lines", "progress") and replay.stream.settled(replay.source) is not None:
            # rounds were closed while this source was read: its end closes none
            replay.clocked = True
        reached = replay.stream.position(replay.source)
        if not reached or self.options.position is not None:
            return
        if len(reached) != 1:
            raise InputError(f"{replay.source} was read on a grid before: expected another source name (--source)")
        count = self.source.count(reached[0])
        if count < reached[0]:
            raise shorter(self.source.name, reached[0], count, "lines")
        replay.expect(next(iter(self.reader), Block()))
        self.source.again()
        self._blocks = None
        self.reader.begin_after = reached[0]
        replay.totals.taken_up = f"{replay.source} is taken up after line {reached[0]:,}"


@contextmanager
def open_feed(path: Any, schema: Schema, options: Options, *, lasting: bool = False) -> Iterator[Feed]:
    """A file or standard input.

    For a stream that is ``lasting`` half a line is not taken for a whole one: later runs would begin after it.
    """
    holds = lasting and not options.complete
    with open_events(os.fspath(path), follow=options.follow, holds=holds) as source:
        yield Feed(source, schema, options)
