"""What the operator of a run sees on stderr: what was recognised, how far it is, what was done."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import RetroactError
from ..feeds.batch import EVERY_RECORD, Changes
from ..feeds.native_events import NATIVE
from ..feeds.options import Options
from ..feeds.readers.csv import CsvFile
from ..feeds.totals import Missed, Totals
from ..messages import plural, show
from ..stream import Durable, HorizonWarning, Specification, Stream, plan
from ..stream.doubts import coarse_steps, doubts
from .console import console_for, message
from .plan import plan_table

if TYPE_CHECKING:
    from ..feeds.play import Feed
    from ..privacy import Guarantee

TABS: dict[str | None, str] = {"\t": "tabs"}
ONE_ROUND = ". If it is published once: --rounds 1 promises so, and errs much less"
SHORTER = ". If it is published once: a horizon of 1 promises so, and errs less"
ALLOW = "If that is right: --allow-missing"


class Notes:
    """Everything but errors, which are shown even when a run is quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self._resumed: str | None = None
        self.console = console_for("stderr")

    def line(self, text: str) -> None:
        if not self.quiet:
            style = "yellow" if text.startswith("warning:") else "dim" if text.startswith("note:") else ""
            message(self.console, text, style)

    def warn(self, text: str) -> None:
        """What is still to be done; shown even when a run is quiet."""
        message(self.console, f"warning: {text}", "yellow")

    def recognised(self, feed: Feed, spec: Specification, first: Changes) -> None:
        """What the feed was taken for, the errors to expect, and its first change as it was understood."""
        if self.quiet:
            return
        reader, options = feed.reader, feed.options
        kind: str = "native JSON lines" if reader.label == NATIVE else feed.source.format
        if feed.source.compressed:
            kind += f", compressed with {feed.source.compressed}"
        if isinstance(reader, CsvFile) and reader.delimiter not in (None, ","):
            kind += f", cells separated by {TABS.get(reader.delimiter, show(reader.delimiter))}"
        if reader.has_column_names and reader.label is not None:
            kind += f", {reader.label}"
        fields = [f"{name} {field!r}" for name, field in spec.schema.fields.items() if name != EVERY_RECORD]
        self.line(f"{feed.source.name}: {kind}; fields: {', '.join(fields) or 'none needed'}")
        if reader.has_column_names or options.time or options.position:
            self.line(f"columns: {_roles(reader.roles, options)}")
        if reader.ignored:
            self.line(f"note: ignored, as no statistic needs them: {', '.join(map(show, reader.ignored))}")
        expected = plan(spec)
        self.console.lines(plan_table(expected, brief=True, width=self.console.width))
        horizon = (
            "no horizon (a number of rounds that is promised errs less: --rounds)"
            if expected.horizon is None
            else f"horizon of {plural(expected.horizon, 'round')}"
        )
        self.line(f"{horizon}; {expected.guarantee.text}")
        for doubt in doubts(spec, expected):
            self.line(f"warning: {doubt}")
        for name, bound in spec.bounds.items():
            # otherwise nobody would know why nothing may be shown
            for shown in bound.notes(spec.records)[:1] if bound.threshold is not None else ():
                self.line(f"note: {name}: {shown}")
        for step in coarse_steps(spec):
            self.line(f"note: {step}")
        self._aggregated(expected.guarantee, options.cut.contribution)
        if feed.delivery is not None:
            self._taken_up(feed.delivery.rounds.totals)
        example = first.example()
        if example is not None:
            text = msgspec.json.encode(example[1], enc_hook=str).decode()
            self.line(f"example, {reader.unit} {example[0]}: {text if len(text) <= 300 else f'{text[:300]}…'}")

    def _taken_up(self, totals: Totals) -> None:
        """Show where the feed was resumed: once, with the first events or, where there are no more, at the end."""
        if totals.taken_up is not None and totals.taken_up != self._resumed:
            self._resumed = totals.taken_up
            self.line(f"note: {totals.taken_up}")

    def _aggregated(self, guarantee: Guarantee, contribution: int | None) -> None:
        if contribution is not None:
            self.line(
                f"warning: aggregated input: one event is up to {contribution:,} operations, so for one event the "
                f"guarantee is that of a group of {contribution:,}: {guarantee.for_operations(contribution).budget}"
            )

    @contextmanager
    def horizon_warnings(self, stream: Stream, *, lasting: bool) -> Iterator[None]:
        """Shows each as one line: at once on a stream that is followed (``lasting``), otherwise at the end, and only if
        the stream goes on after it."""
        waiting: list[str] = []
        with warnings.catch_warnings():
            warnings.simplefilter("always", HorizonWarning)
            usual = warnings.showwarning

            def show_line(text: Warning | str, category: type[Warning], *where: Any) -> None:
                if not issubclass(category, HorizonWarning):
                    usual(text, category, *where)
                elif lasting:
                    self.line(f"warning: {text}")
                else:
                    waiting.append(f"warning: {text}")

            warnings.showwarning = show_line  # type: ignore[assignment]
            try:
                yield
            except BaseException:
                for line in waiting:
                    self.line(line)
                raise
        if isinstance(stream, Durable) and not stream.over:
            for line in waiting:
                self.line(line)

    def summary(self, stream: Stream, feed: Feed, totals: Totals) -> None:
        delivery = feed.delivery
        promised = stream.specification.horizon
        if delivery is not None and delivery.begun and not feed.clocked and not feed.options.follow and promised != 1:
            why = "" if feed.options.cut.close_by == "end" else f"no close {delivery.unit}s and no round numbers: "
            fewer = "" if stream.durable else ONE_ROUND if promised is None else SHORTER
            self.line(f"note: {why}the whole input is one round{fewer}")
        self.totals(stream, totals, feed.options.cut.contribution)

    def totals(self, stream: Stream, totals: Totals, contribution: int | None) -> None:
        """What was done, in exact numbers."""
        if totals.left_open:
            self.line("note: what came after the last round was closed is not published: its round is still open")
        if totals.at_once:
            self.line("note: nothing more is published from this stream: erasures and deletions by id are done")
        self._taken_up(totals)
        for what, count in totals.skipped.items():
            self.line(f"note: {count:,} {what} skipped")
        if totals.absorbed:
            events = plural(totals.absorbed, "event")
            self.line(f"note: absorbed {events} that came before (first: {totals.first_absorbed})")
        if totals.late:
            late = plural(totals.late, "late addition")
            self.line(f"note: left out {late} (--late refuse; first: {totals.first_late})")
        if totals.rejected:
            self.line(f"note: left out {plural(totals.rejected, 'record')} of erased subjects (after_erasure)")
        if totals.replaced:
            additions = f"{plural(totals.replaced, 'addition')} of {totals.given:,}"
            self.line(
                f"note: {additions} had no effect: a later row of the same round replaced the record (an id that comes "
                "again) or removed it; retroact check names the rows"
            )
        for name, count in stream.left_out().items():
            if count:
                self.line(f"note: {name} leaves out {plural(count, 'surviving record')} without a value")
        self._aggregated(stream.guarantee, contribution)
        done = [plural(totals.rounds, "round"), f"{plural(totals.added, 'record')} added, {totals.removed:,} removed"]
        if totals.ignored_deletions:
            done.append(f"{plural(totals.ignored_deletions, 'deletion')} named nothing")
        if totals.ignored_additions:
            done.append(f"{plural(totals.ignored_additions, 'addition')} to future rounds had no effect")
        horizon = stream.specification.horizon
        done.append(
            "no horizon" if horizon is None else f"{stream.round - 1:,} of {plural(horizon, 'promised round')} used"
        )
        self.line(f"{'; '.join(done)}; {stream.guarantee.budget}")


class NotFoundError(RetroactError):
    """No record was found of somebody who is to be erased. Nothing else went wrong."""

    exit_code = 5


@contextmanager
def naming_not_found(missed: Missed, notes: Notes, *, allowed: bool) -> Iterator[None]:
    """Around a run: its erasures that found nothing are named at its end, also when it ends by another error."""
    try:
        yield
    except BaseException:
        name_not_found(missed, notes, allowed=allowed)
        raise
    if allowed or not missed.count:
        name_not_found(missed, notes, allowed=allowed)
    else:
        words = missed.words() if missed.untold else f"{missed.source}: no record was found for erasures named before"
        raise NotFoundError(f"{words}. {ALLOW}")


def name_not_found(missed: Missed, notes: Notes, *, allowed: bool) -> None:
    """Those that have not been named yet."""
    if missed.untold:
        words = missed.words()
        notes.line(f"note: {words}") if allowed else notes.warn(words)


def _roles(roles: dict[str, str], options: Options) -> str:
    others = [("time", options.time), ("position", options.position)]
    named = [f"{role} in {show(column)}" for role, column in [*roles.items(), *others] if column]
    missing = [f"no {role}" for role in ("id", "subject") if role not in roles]
    return ", ".join(named + missing)
