"""`retroact run`: a file of events in, releases out."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from ..coins import Key
from ..coins.keyring import from_environment, from_file
from ..errors import InputError
from ..feeds.batch import Changes
from ..feeds.options import Options, options_for
from ..feeds.play import Feed, open_feed
from ..feeds.source import FORMATS, STDIN, Source
from ..feeds.totals import Totals
from ..messages import plural
from ..outputs.page import ADD_UP
from ..store.targets import check_targets
from ..stream import Durable, Specification, Stream
from ..stream.open import exists
from ..stream.rounds import CLOSE_BY, LATE
from .files import check_sources, put, require_page
from .files import opened as opened_files
from .notes import Notes, name_not_found, naming_not_found
from .options import (
    INPUT,
    MISSING_HELP,
    OUTPUT,
    QUIET_HELP,
    ROUNDS,
    STORE,
    Restoring,
    Roles,
    Secrets,
    argument,
    command,
    flag,
    option,
    warn_of_debt,
)
from .output import OutputOptions
from .progress import Progress, busy
from .specification import SpecOptions, at_options

OF_THIS_RUN = ("rounds", "until", "follow", "complete", "source", "input_format", "delimiter")


@dataclass(frozen=True)
class Cutting:
    """Options for where the rounds of a feed end, and for its format."""

    rounds: int | None = option("Publish exactly this many rounds. Required for rounds by number.", min=1, group=ROUNDS)
    until: str | None = option("Publish the rounds of the grid up to this time; the file has all of them.", "TIME")
    close_by: str | None = option("What ends a round. Default: lines, or the grid.", words=CLOSE_BY)
    start: str | None = option("Where the grid of time starts.", "TIME")
    length: str | None = option("The length of a round on the grid, such as 1h, 1d, 1w or 1mo.")
    end: str | None = option("Where the grid ends.", "TIME")
    time_zone: str | None = option("The zone of days and local times: UTC, +01:00, Europe/Berlin.", "ZONE")
    late: str | None = option("What to do with records of closed rounds. Default: stamp.", words=LATE)
    contribution: int | None = option("The most records that one event stands for.", "C", min=1)
    input_format: str | None = option("Default: by the name or the content.", words=FORMATS, group=INPUT)
    delimiter: str | None = option("What separates cells of CSV: ; | tab. Default: found in the header.", "CHARACTER")
    source: str | None = option("The name under which positions are kept. Default: the path of the file.", "NAME")

    @property
    def table(self) -> dict[str, Any]:
        """The options as the table [rounds] of a specification; digits alone are whole seconds."""
        given = {key: value for key, value in asdict(self).items() if key not in OF_THIS_RUN and value is not None}
        if "late" in given:
            given["late_events"] = given.pop("late")
        return given | {key: _time(given[key]) for key in ("start", "end") if key in given}

    @property
    def read(self) -> dict[str, Any]:
        """How the input is read, as `Options` have it."""
        return {"until": _time(self.until), "format": self.input_format, "delimiter": self.delimiter}


def _time(text: str | None) -> str | int | None:
    return int(text) if text and text.isascii() and text.isdigit() else text


@dataclass(frozen=True)
class Reading(Cutting):
    """Options for how a feed is cut into rounds and read."""

    follow: bool = flag("Keep reading as the file grows, until interrupted.", group=INPUT)
    complete: bool = flag("With --store: accept a last line without a line end.")
    grace: str | None = option("With --follow: how long a round waits for late records.", "LENGTH", group=ROUNDS)
    publish_after: str | None = option("With --follow: how long after its end a round is published.", "LENGTH")


@dataclass(frozen=True)
class RunOptions:
    """Options for where the stream is kept, and for what the operator sees."""

    html: Path | None = option("A page with every statistic as a chart, written at the end.", "FILE", group=OUTPUT)
    quiet: bool = flag(QUIET_HELP, "--quiet", "-q")
    allow_missing: bool = flag(MISSING_HELP)
    store: str | None = option("Keep the stream here: a folder, or postgresql://...#name.", "STREAM", group=STORE)
    testing_key: int | None = option("Reproducible noise that anybody can remove: for tests only.", "SEED")


@command
def run(
    events: Annotated[str, argument("JSON lines, CSV, Parquet, Arrow, or - for stdin.", "EVENTS")],
    asked: SpecOptions,
    roles: Roles,
    reading: Reading,
    output: OutputOptions,
    order: RunOptions,
    secrets: Secrets,
    restoring: Restoring,
) -> None:
    """Replay a file of additions, deletions and erasures, and publish every round.

    What to publish is described by a file (--spec) or by options.

    JSON lines may be native events, plain records, insert/delete pairs, or change events of Debezium, Materialize,
    Delta or Flink. The format is recognised from the first events, and shown.

    A round ends with a line {"op": "close"}, when the round number grows, with a progress message, or on a grid of
    time. Otherwise the whole input is one round.

    With --store the stream is durable: it is created if it does not exist, every round is on disk before it is
    published, and an interrupted run resumes where it stopped.

    The key comes from --key-file (created if it does not exist), from RETROACT_KEY (64 hexadecimal digits), or from the
    command in RETROACT_KEY_COMMAND. Otherwise a new key is created: next to the store, or for this run only.

    \b
    Examples:
      retroact run events.jsonl --spec retroact.toml --store orders --out releases.jsonl
      retroact run orders.csv --count --sum amount:0..500 --subject customer \\
        --round day --rounds 365 --epsilon 1
      retroact run orders.csv --count --epsilon 1 --html page.html \\
        --time created --start 2026-01-01 --length 1d --end 2027-01-01
    """
    notes, totals, cut = Notes(quiet=order.quiet), Totals(), reading.table
    targets = [("--out", output.out), ("--html", order.html)]
    used = {
        "file of events": Path("/dev/stdin") if events == STDIN else Path(events),
        "specification": asked.file if asked.given else None,
    }
    check_targets(targets, used=used, store=order.store, **vars(secrets))
    require_page(order.html)
    output.chosen()
    if order.store is None:
        for name in (*(["fence"] if secrets.fence is not None else []), *restoring.given):
            raise InputError("expected --store: this is for durable streams", place=f"--{name.replace('_', '-')}")
    source = reading.source or (None if events == STDIN else events)
    once: dict[str, Any] = {name: getattr(reading, name) for name in ("rounds", "follow", "complete")} | reading.read
    with naming_not_found(totals.missed, notes, allowed=order.allow_missing), ExitStack() as opened:

        def durable(specification: Specification | None) -> Durable:
            key = None if order.testing_key is None else Key.for_testing(order.testing_key)
            given = {**vars(secrets), **restoring.given}
            with busy("opening the stream", shown=not order.quiet):
                stream = Stream.open(order.store or "", specification=specification, key=key, **given)
            return opened.enter_context(stream)

        kept: Durable | None = None
        made = order.store is not None and exists(order.store)
        unread = asked.unread_by(order.store) if made and order.store else asked.unread
        if unread is not None:
            notes.line(unread)
        if order.store is not None and (made or not asked.given):
            # what an existing stream does not allow is refused before anything is read
            kept = durable(asked.specification(rounds=cut) if asked.asked else None)
            spec = kept.specification
            with at_options():
                options = options_for(kept, source, roles.table, cut, **once)
            check_sources(targets, kept)
        else:
            read = {"follow": reading.follow, "complete": reading.complete}
            spec, options = new_stream(asked, roles, reading, source, **read)
        with open_feed(events, spec.schema, options, lasting=order.store is not None) as feed:
            require_texts(roles, feed)
            feed.look()
            # a new stream is made last: bad input leaves no store behind
            if order.store is None:
                key, origin = choose_key(secrets.key_file, order.testing_key)
                stream = Stream.from_specification(spec, key=key)
            else:
                stream = kept = kept or durable(spec)
                origin = _state(kept)
                if kept.moved_boundaries:
                    notes.line(f"note: {kept.moved_boundaries}")
            with opened_files((order.html, "--html")) as pages:
                _play(feed, stream, origin, output, order, notes, totals)
                put(pages, [stream.releases().page().encode() for _ in pages])
        if not stream.durable:
            notes.line(f"note: {ADD_UP}")
        notes.summary(stream, feed, totals)
        if order.html is not None:
            notes.line(f"page: {order.html}")
        waiting = totals.waiting
        if waiting is not None:
            if not waiting.adds:
                raise InputError(waiting.message, source=waiting.source, row=waiting.line, unit="line")
            notes.warn(f"{waiting.source}:{waiting.line}: {waiting.message}")


def require_texts(roles: Roles, feed: Feed) -> None:
    """Texts for missing values are cells of CSV."""
    if roles.na_values and feed.source.format != "CSV":
        raise InputError(f"expected CSV, got {feed.source.format}, where null is missing", place="--na-values")


def new_stream(
    asked: SpecOptions,
    roles: Roles,
    cutting: Cutting,
    source: str | None,
    *,
    follow: bool = False,
    complete: bool = False,
) -> tuple[Specification, Options]:
    """A stream that does not exist yet, and how to read its feed; what it could not hold is refused."""
    spec = asked.specification(columns=roles.table, rounds=cutting.table, declared=cutting.rounds)
    with at_options():
        if roles.table.get("time") and spec.rounds.grid is None:
            raise InputError("expected a grid (--start, --length, --end) with the column of the time", place="time")
        spec.check_rounds()
        spec.check_rounds(cutting.rounds)
        return spec, Options(
            spec.columns_of(source), spec.rounds, source, cutting.rounds, follow, complete, **cutting.read
        )


def _state(stream: Durable) -> str:
    """A line about a durable stream; warns if a restore is not finished."""
    warn_of_debt(stream)
    state = f"note: round {stream.round:,} of {stream.store.where} is open"
    state += f"; promised: {'; '.join(stream.promises)}" if stream.promises else ""
    if stream.replaying:
        state += "; it was published before: nothing is released until it is replayed"
    return state


def _play(
    feed: Feed, stream: Stream, origin: str, output: OutputOptions, order: RunOptions, notes: Notes, totals: Totals
) -> None:
    # a file of releases starts with what a store has published
    before = stream.releases() if stream.durable else None
    shown = not notes.quiet and (output.out is not None or not sys.stdout.isatty())
    with (
        output.opened(stream.releases().form, before=before) as writer,
        notes.horizon_warnings(stream, lasting=feed.source.follow),
        Progress(notes.console, feed.source.size, shown=shown) as progress,
        _ending(feed),
    ):

        def recognised(first: Changes) -> None:
            notes.recognised(feed, stream.specification, first)
            notes.line(origin)

        def after() -> None:
            writer.flush()
            if feed.source.follow:
                name_not_found(totals.missed, notes, allowed=order.allow_missing)
            read, words = feed.source.progress()
            progress.update(read, f"{words}, {plural(totals.rounds, 'round')}")

        feed.play(stream, writer.write, recognised=recognised, after=after, totals=totals)


@contextmanager
def _ending(feed: Feed) -> Iterator[None]:
    """An interrupt ends a followed source after a whole line, never in the middle of one."""
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
    """The key, and a line about where it comes from and what follows from that."""
    if key_file is not None and testing_seed is not None:
        raise InputError("expected one key, got --key-file and --testing-key")
    if testing_seed is not None:
        origin = "warning: a testing key, which anybody can guess: do not publish this output"
        return Key.for_testing(testing_seed), origin
    once = "use it for this stream only: the same noise on other data would reveal the difference"
    if key_file is not None:
        key, created = from_file(key_file)
        return key, f"note: key {'created in' if created else 'from'} {key_file}; {once}"
    given = from_environment()
    if given is not None:
        return given[0], f"note: key from {given[1]}; {once}"
    return Key.generate(), "note: a fresh key, used once and forgotten: this run cannot be repeated (see --key-file)"
