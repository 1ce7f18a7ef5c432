"""`retroact run`: a file of events in, releases out."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retroact.cli.declaring import Said, as_option
from retroact.cli.keys import choose_key
from retroact.cli.not_found import naming_not_found, tell
from retroact.cli.options import Asked
from retroact.cli.output import OutputFormat, format_of, open_output
from retroact.cli.places import check_sources
from retroact.cli.report import Progress, Report
from retroact.cli.restoring import Restoring, warn
from retroact.coins import Key
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
class Run:
    """All that `retroact run` can be told, beside what to publish and how the feed is read."""

    events: str
    out: Path | None
    format: OutputFormat | None
    key_file: Path | None
    testing_seed: int | None
    quiet: bool
    store: str | None = None
    fence: Path | None = None
    restoring: Restoring = field(default_factory=Restoring)
    allow_missing: bool = False


def run(asked: Asked, said: Said, order: Run) -> None:
    report, totals = Report(quiet=order.quiet), Totals()
    targets = [("--out", order.out)]
    events = Path("/dev/stdin") if order.events == STDIN else Path(order.events)
    used = {"file of events": events, "specification": asked.file if asked.given else None}
    check_targets(targets, used=used, store=order.store, key_file=order.key_file, fence=order.fence)
    with naming_not_found(totals.missed, report, allowed=order.allow_missing), _Target(asked, said, order) as target:
        if target.stream is not None:
            check_sources(targets, target.stream)
        _run(target, order, report, totals)


class _Target:
    """The stream of a run: in memory, or in a store. One that is there is opened first: what it does not allow is
    refused before anything is read. A new one is made last, when the input was looked at: bad input leaves no store
    behind."""

    def __init__(self, asked: Asked, said: Said, order: Run) -> None:
        self._order = order
        self.stream: Stream | None = None
        if order.store is None:
            for name in (*(["fence"] if order.fence is not None else []), *order.restoring.given):
                place = f"--{name.replace('_', '-')}"
                raise InputError("expected --store: this is about a stream that lasts", place=place)
        source = said.source or (None if order.events == STDIN else order.events)
        if order.store is not None and (exists(order.store) or not asked.given):
            self._given = asked.specification(rounds=said.cut) if asked.given else None
            self.stream = self._lasting()
            try:
                self.options = options_for(
                    self.stream, source, said.roles, said.cut, rounds=said.rounds, follow=said.follow,
                    complete=said.complete,
                )  # fmt: skip
            except InputError as error:
                self.__exit__()
                raise as_option(error) from None
            return
        self._given = asked.specification(columns=said.roles, rounds=said.cut, declared=said.rounds)
        self.options = _options(self._given, said, source)

    @property
    def spec(self) -> Specification:
        spec = self._given if self.stream is None else self.stream.specification
        assert spec is not None
        return spec

    def open(self) -> tuple[Stream, str]:
        """The stream, and a line on its key."""
        if self._order.store is None:
            key, origin = choose_key(self._order.key_file, self._order.testing_seed)
            return Stream.from_specification(self.spec, key=key), origin
        if self.stream is None:
            self.stream = self._lasting()
        stream = self.stream
        assert isinstance(stream, Durable)
        warn(stream)
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
        key = None if order.testing_seed is None else Key.for_testing(order.testing_seed)
        return Stream.open(
            order.store or "",
            specification=self._given,
            key=key,
            key_file=order.key_file,
            fence=order.fence,
            **order.restoring.given,
        )

    def __enter__(self) -> _Target:
        return self

    def __exit__(self, *error: object) -> None:
        if isinstance(self.stream, Durable):
            self.stream.close()


def _options(spec: Specification, said: Said, source: str | None) -> Options:
    """How the feed of a stream that is yet to be made is read; what it could not hold is refused."""
    try:
        if said.roles.get("time") and spec.rounds.grid is None:
            raise InputError("expected a grid (--start, --length, --end) beside the column of the time", place="time")
        spec.check_rounds()
        spec.check_rounds(said.rounds)
        return Options(spec.columns_of(source), spec.rounds, source, said.rounds, said.follow, said.complete)
    except InputError as error:
        raise as_option(error) from None


def _run(target: _Target, order: Run, report: Report, totals: Totals) -> None:
    lasting = order.store is not None
    with open_feed(order.events, target.spec.schema, target.options, lasting=lasting) as feed:
        feed.look()
        stream, origin = target.open()
        with open_output(order.out, format_of(order.out, order.format), before=target.before) as output:

            def recognised(first: Changes) -> None:
                report.recognised(feed, target.spec, first)
                report.line(origin)

            shown = order.out is not None or not sys.stdout.isatty()
            size = feed.source.size
            with report.horizon_warnings(), Progress(report, size, shown=shown) as progress, _ending(feed):

                def after() -> None:
                    output.flush()
                    if feed.source.follow:
                        tell(totals.missed, report, allowed=order.allow_missing)
                    read, words = feed.source.progress()
                    progress.update(read, f"{words}, {totals.rounds:,} rounds")

                feed.play(stream, output.write, recognised=recognised, after=after, totals=totals)
    report.summary(stream, feed, totals)
    waiting = totals.waiting
    if waiting is not None:
        if not waiting.adds:
            raise InputError(waiting.message, source=waiting.source, row=waiting.line, unit="line")
        report.warn(f"{waiting.source}:{waiting.line}: {waiting.message}")


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
