"""`retroact run`: a file of events in, releases out."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from retroact.cli.files import check_sources
from retroact.cli.notes import Notes, Progress, naming_not_found, tell
from retroact.cli.options import AllowMissing, OutOption, QuietOption, Restoring, Roles, command, warn_of_debt
from retroact.cli.output import FormatOption, format_of, open_output
from retroact.cli.specification import AskedOfRun, as_option
from retroact.coins import Key
from retroact.coins.keyring import from_environment, from_file
from retroact.errors import InputError
from retroact.feeds.batch import Changes
from retroact.feeds.options import Options, options_for
from retroact.feeds.play import Feed, open_feed
from retroact.feeds.source import STDIN, Source
from retroact.feeds.totals import Totals
from retroact.store.targets import check_targets
from retroact.stream import Durable, Specification, Stream
from retroact.stream.open import exists


@dataclass(frozen=True)
class Reading:
    """How the feed is read, and where its rounds end."""

    rounds: Annotated[int | None, typer.Option(min=1, help="Publish exactly this many; rounds by number need it.")] = (
        None
    )
    close_by: Annotated[str | None, typer.Option(help="lines, progress, grid or end.")] = None
    start: Annotated[str | None, typer.Option(metavar="TIME", help="Where the grid begins.")] = None
    length: Annotated[str | None, typer.Option(help="Of a round on the grid: 1h, 1d, PT15M.")] = None
    end: Annotated[str | None, typer.Option(metavar="TIME", help="Where the grid ends.")] = None
    time_zone: Annotated[str | None, typer.Option(metavar="ZONE", help="Of days: UTC, or such as +01:00.")] = None
    late: Annotated[str | None, typer.Option(help="Records of closed rounds: stamp or refuse.")] = None
    contribution: Annotated[int | None, typer.Option(min=1, metavar="C", help="The most records in one event.")] = None
    follow: Annotated[bool, typer.Option("--follow", help="Go on as the file grows, until interrupted.")] = False
    complete: Annotated[bool, typer.Option("--complete", help="With --store, take a last line that nothing ends.")] = (
        False
    )
    grace: Annotated[str | None, typer.Option(metavar="LENGTH", help="With --follow, how long rounds wait.")] = None
    publish_after: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="With --follow, how long after their time rounds are published."),
    ] = None
    source: Annotated[str | None, typer.Option(metavar="NAME", help="What positions are kept under.")] = None

    @property
    def table(self) -> dict[str, Any]:
        """As the table [rounds] of a specification has it; whole seconds are told from other texts."""
        of_this_run = ("rounds", "follow", "complete", "source")
        given = {key: value for key, value in asdict(self).items() if key not in of_this_run and value is not None}
        if "late" in given:
            given["late_events"] = given.pop("late")
        for key in ("start", "end"):
            text = given.get(key, "")
            if text.isascii() and text.isdigit():
                given[key] = int(text)
        return given


@dataclass(frozen=True)
class Run:
    """Where releases go, and what lasts."""

    out: OutOption = None
    format: FormatOption = None
    quiet: QuietOption = False
    key_file: Annotated[Path | None, typer.Option(metavar="FILE", help="The secret; created if absent.")] = None
    testing_key: Annotated[int | None, typer.Option(metavar="SEED", help="Reproducible, not private.")] = None
    allow_missing: AllowMissing = False
    store: Annotated[
        str | None, typer.Option(metavar="STREAM", help="A stream that lasts: a folder, or postgresql://...#name.")
    ] = None
    fence: Annotated[Path | None, typer.Option(metavar="FILE", help="Its fence; beside the key if absent.")] = None


@command
def run(
    events: Annotated[
        str, typer.Argument(metavar="EVENTS", help="JSON lines, CSV, Parquet, Arrow, or - for JSON lines on stdin.")
    ],
    asked: AskedOfRun,
    roles: Roles,
    reading: Reading,
    order: Run,
    restoring: Restoring,
) -> None:
    """Replay a file of additions, deletions and erasures, and publish every round.

    JSON lines are native events, plain records, insert/delete, Debezium, Materialize, Delta or Flink change events:
    recognised from the first of them, and shown.

    Rounds end by lines {"op": "close"}, by a growing round number, by progress messages or by a grid of time; with none
    of them, the input is one round.

    Without a file that describes the stream, options do.

    With --store the stream lasts: it is made if it is not there, every round is on disk before it is published, and a
    run that was stopped goes on where it was.

    The key comes from --key-file, from RETROACT_KEY (64 hexadecimal digits), from the command in RETROACT_KEY_COMMAND,
    or is made: beside the store, or for this run alone.

    \b
    Examples:
      retroact run events.jsonl --spec retroact.toml --store orders --out releases.jsonl
      retroact run orders.csv --count --sum amount:0..500 --subject customer \\
        --round day --rounds 365 --epsilon 1
      retroact run orders.csv --count --epsilon 1 \\
        --time created --start 2026-01-01 --length 1d --end 2027-01-01
    """
    notes, totals = Notes(quiet=order.quiet), Totals()
    targets = [("--out", order.out)]
    used = {
        "file of events": Path("/dev/stdin") if events == STDIN else Path(events),
        "specification": asked.file if asked.given else None,
    }
    check_targets(targets, used=used, store=order.store, key_file=order.key_file, fence=order.fence)
    with (
        naming_not_found(totals.missed, notes, allowed=order.allow_missing),
        _Target(events, asked, roles.table, reading, order, restoring) as target,
    ):
        if target.stream is not None:
            check_sources(targets, target.stream)
        _play(events, target, order, notes, totals)


class _Target:
    """The stream of a run: in memory, or in a store. One that is there is opened first: what it does not allow is
    refused before anything is read. A new one is made last, when the input was looked at: bad input leaves no store
    behind."""

    def __init__(
        self, events: str, asked: AskedOfRun, roles: dict[str, Any], reading: Reading, order: Run, restoring: Restoring
    ) -> None:
        self._order, self._restoring, cut = order, restoring, reading.table
        self.stream: Stream | None = None
        if order.store is None:
            for name in (*(["fence"] if order.fence is not None else []), *restoring.given):
                place = f"--{name.replace('_', '-')}"
                raise InputError("expected --store: this is about a stream that lasts", place=place)
        source = reading.source or (None if events == STDIN else events)
        if order.store is not None and (exists(order.store) or not asked.given):
            self._given = asked.specification(rounds=cut) if asked.given else None
            self.stream = self._lasting()
            try:
                self.options = options_for(
                    self.stream, source, roles, cut, rounds=reading.rounds, follow=reading.follow,
                    complete=reading.complete,
                )  # fmt: skip
            except InputError as error:
                self.__exit__()
                raise as_option(error) from None
            return
        self._given = asked.specification(columns=roles, rounds=cut, declared=reading.rounds)
        self.options = _options(self._given, bool(roles.get("time")), reading, source)

    @property
    def spec(self) -> Specification:
        spec = self._given if self.stream is None else self.stream.specification
        assert spec is not None
        return spec

    def open(self) -> tuple[Stream, str]:
        """The stream, and a line on its key."""
        if self._order.store is None:
            key, origin = choose_key(self._order.key_file, self._order.testing_key)
            return Stream.from_specification(self.spec, key=key), origin
        if self.stream is None:
            self.stream = self._lasting()
        stream = self.stream
        assert isinstance(stream, Durable)
        warn_of_debt(stream)
        origin = f"note: round {stream.round:,} of {stream.store.where} is open"
        origin += f"; promised: {'; '.join(stream.promises)}" if stream.promises else ""
        if stream.replaying:
            return stream, f"{origin}; it was published before: nothing is released until it is replayed"
        return stream, origin

    @property
    def before(self) -> Iterator[dict[str, Any]] | None:
        """What a store has published, which a file of releases begins with."""
        return self.stream.releases() if isinstance(self.stream, Durable) else None

    def _lasting(self) -> Stream:
        order = self._order
        key = None if order.testing_key is None else Key.for_testing(order.testing_key)
        return Stream.open(
            order.store or "",
            specification=self._given,
            key=key,
            key_file=order.key_file,
            fence=order.fence,
            **self._restoring.given,
        )

    def __enter__(self) -> _Target:
        return self

    def __exit__(self, *error: object) -> None:
        if isinstance(self.stream, Durable):
            self.stream.close()


def _options(spec: Specification, timed: bool, reading: Reading, source: str | None) -> Options:
    """How the feed of a stream that is yet to be made is read; what it could not hold is refused."""
    try:
        if timed and spec.rounds.grid is None:
            raise InputError("expected a grid (--start, --length, --end) beside the column of the time", place="time")
        spec.check_rounds()
        spec.check_rounds(reading.rounds)
        return Options(spec.columns_of(source), spec.rounds, source, reading.rounds, reading.follow, reading.complete)
    except InputError as error:
        raise as_option(error) from None


def _play(events: str, target: _Target, order: Run, notes: Notes, totals: Totals) -> None:
    lasting = order.store is not None
    with open_feed(events, target.spec.schema, target.options, lasting=lasting) as feed:
        feed.look()
        stream, origin = target.open()
        with open_output(order.out, format_of(order.out, order.format), before=target.before) as output:

            def recognised(first: Changes) -> None:
                notes.recognised(feed, target.spec, first)
                notes.line(origin)

            shown = order.out is not None or not sys.stdout.isatty()
            size = feed.source.size
            with notes.horizon_warnings(), Progress(notes, size, shown=shown) as progress, _ending(feed):

                def after() -> None:
                    output.flush()
                    if feed.source.follow:
                        tell(totals.missed, notes, allowed=order.allow_missing)
                    read, words = feed.source.progress()
                    progress.update(read, f"{words}, {totals.rounds:,} rounds")

                feed.play(stream, output.write, recognised=recognised, after=after, totals=totals)
    notes.summary(stream, feed, totals)
    waiting = totals.waiting
    if waiting is not None:
        if not waiting.adds:
            raise InputError(waiting.message, source=waiting.source, row=waiting.line, unit="line")
        notes.warn(f"{waiting.source}:{waiting.line}: {waiting.message}")


@contextmanager
def _ending(feed: Feed) -> Iterator[None]:
    """A followed source ends after whole lines when it is interrupted, and not in the middle of something."""
    source = feed.source
    if not (isinstance(source, Source) and source.follow) or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *_: source.stop.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def choose_key(key_file: Path | None, testing_seed: int | None) -> tuple[Key, str]:
    """The key, and a line on where it comes from and what follows from that."""
    if key_file is not None and testing_seed is not None:
        raise InputError("expected one key, got --key-file and --testing-key")
    if testing_seed is not None:
        return Key.for_testing(
            testing_seed
        ), "warning: a testing key, which anybody can guess: do not publish this output"
    once = "use it for this stream only: the same noise on other data would reveal the difference"
    if key_file is not None:
        key, created = from_file(key_file)
        return key, f"note: key {'created in' if created else 'from'} {key_file}; {once}"
    given = from_environment()
    if given is not None:
        return given[0], f"note: key from {given[1]}; {once}"
    return Key.generate(), "note: a fresh key, used once and forgotten: this run cannot be repeated (see --key-file)"
