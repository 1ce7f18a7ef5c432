"""`retroact run`: a file of events in, releases out."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from retroact.cli.keys import choose_key
from retroact.cli.options import Asked
from retroact.cli.output import OutputFormat, open_output
from retroact.cli.report import Progress, Report
from retroact.errors import InputError
from retroact.feeds.events import Block
from retroact.feeds.grid import Grid
from retroact.feeds.options import Options
from retroact.feeds.playing import Feed, is_table, open_feed
from retroact.feeds.replay import Replay
from retroact.stream import Specification, Stream


@dataclass(frozen=True)
class Run:
    """All that `retroact run` can be told, beside what to publish and how the feed is read."""

    events: str
    out: Path | None
    format: OutputFormat
    key_file: Path | None
    testing_seed: int | None
    quiet: bool


def feed_options(
    given: dict[str, Any], start: str | None, length: str | None, end: str | None, grace: str | None
) -> Options:
    """How the feed is read, with errors that name the options of the command line."""
    try:
        wait = 0 if grace is None else microseconds(grace)
        return Options(**given, grid=_grid(start, length, end), grace=wait)
    except InputError as error:
        place = error.place or ""
        named = place if place.startswith("-") else f"--{place.removeprefix('grid ').replace('_', '-')}"
        raise InputError(error.message, place=named if place else None) from None


def _grid(start: str | None, length: str | None, end: str | None) -> Grid | None:
    if start is None and length is None and end is None:
        return None
    if start is None or length is None:
        raise InputError(
            "expected --start and --length for a grid of rounds", place="start" if start is None else "length"
        )
    return Grid(_moment(start), length, None if end is None else _moment(end))


def microseconds(length: str) -> int:
    """A length of time as a grid takes it.

    >>> microseconds("1.5s")
    1500000
    """
    try:
        return (Grid(0, length).closes(1) - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
    except InputError as error:
        raise InputError(error.message, place="grace") from None


def _moment(text: str) -> str | int:
    """Whole seconds are told from other texts."""
    return int(text) if text.isascii() and text.isdigit() else text


def run(asked: Asked, options: Options, order: Run) -> None:
    report = Report(quiet=order.quiet)
    spec = asked.specification()
    if is_table(order.events):
        _run_table(spec, options, order, report, strict=asked.file is not None)
        return
    with open_feed(order.events, spec.schema, options, strict=asked.file is not None) as feed:
        feed.look()
        with open_output(order.out, order.format, events=order.events) as output:
            stream, origin = _stream(spec, order)

            def recognised(first: Block) -> None:
                report.recognised(feed, spec, first)
                report.line(origin)

            shown = order.out is not None or not sys.stdout.isatty()
            with report.horizon_warnings(), Progress(report, feed.source, shown=shown) as progress, _ending(feed):

                def after(replay: Replay) -> None:
                    output.flush()
                    progress.update(replay.totals.rounds)

                feed.play(stream, output.write, recognised=recognised, after=after)
    report.summary(stream, feed)


def _run_table(spec: Specification, options: Options, order: Run, report: Report, *, strict: bool) -> None:
    from retroact.feeds.tables import play_table, recognise_table

    seen = recognise_table(order.events, spec.schema, options, strict=strict)
    with open_output(order.out, order.format, events=order.events) as output:
        stream, origin = _stream(spec, order)
        report.table(seen, options, spec)
        report.line(origin)
        with report.horizon_warnings():
            totals = play_table(stream, order.events, options, output.write, strict=strict)
    report.totals(stream, totals, options.contribution)


def _stream(spec: Specification, order: Run) -> tuple[Stream, str]:
    key, origin = choose_key(order.key_file, order.testing_seed)
    return Stream.from_specification(spec, key=key), origin


@contextmanager
def _ending(feed: Feed) -> Iterator[None]:
    """A followed source ends after whole lines when it is interrupted, and not in the middle of something."""
    if not feed.source.follow or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *_: feed.source.stop.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
