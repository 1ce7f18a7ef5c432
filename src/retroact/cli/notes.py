"""What the operator of a run sees, on stderr: what was recognised, how far it is, what was done."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from retroact.cli.console import console_for, message
from retroact.cli.plan import plan_table
from retroact.errors import RetroactError
from retroact.feeds.batch import EVERY_RECORD, Changes
from retroact.feeds.envelopes import NATIVE
from retroact.feeds.options import Options
from retroact.feeds.totals import Missed, Totals
from retroact.messages import show
from retroact.stream import HorizonWarning, Plan, Specification, Stream, plan

if TYPE_CHECKING:
    from retroact.feeds.play import Feed
    from retroact.privacy import Guarantee

# A bar appears after this many seconds.
PATIENCE = 1.0
ALLOW = "If that is right: --allow-missing"


class Notes:
    """Everything but errors, which are told whether or not a run is quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self._told: str | None = None
        self.console = console_for("stderr")

    def line(self, text: str) -> None:
        if not self.quiet:
            style = "yellow" if text.startswith("warning:") else "dim" if text.startswith("note:") else None
            message(self.console, text, style)

    def warn(self, text: str) -> None:
        """What is left undone, which is told in any case."""
        message(self.console, f"warning: {text}", "yellow")

    def recognised(self, feed: Feed, spec: Specification, first: Changes) -> None:
        """What the feed is taken for, and its first change as it was understood."""
        if self.quiet:
            return
        reader, options = feed.reader, feed.options
        kind: str = "native JSON lines" if reader.label == NATIVE else feed.source.format
        if reader.has_column_names and reader.label is not None:
            kind += f", {reader.label}"
        shown = reader.has_column_names or options.time or options.position
        columns = _roles(reader.roles, options) if shown else None
        self._taken_for(f"{feed.source.name}: {kind}", columns, reader.ignored, spec)
        self._planned(spec, options.cut.contribution)
        if feed.delivery is not None:
            self._taken_up(feed.delivery.rounds.totals)
        self._example(first, reader.unit)

    def _taken_up(self, totals: Totals) -> None:
        """Told once: with the first events or, where there are no more, at the end."""
        if totals.taken_up is not None and totals.taken_up != self._told:
            self._told = totals.taken_up
            self.line(f"note: {totals.taken_up}")

    def _taken_for(self, source: str, columns: str | None, ignored: Sequence[str], spec: Specification) -> None:
        fields = [f"{name} {field!r}" for name, field in spec.schema.fields.items() if name != EVERY_RECORD]
        self.line(f"{source}; fields: {', '.join(fields) or 'none needed'}")
        if columns is not None:
            self.line(f"columns: {columns}")
        if ignored:
            self.line(f"note: ignored, as no statistic needs them: {', '.join(map(show, ignored))}")

    def _planned(self, spec: Specification, contribution: int | None) -> None:
        """The errors to expect, and the guarantee."""
        expected = plan(spec)
        self.console.print(plan_table(expected, brief=True))
        self.line(f"{_rounds(expected)}; {expected.guarantee.text}")
        if contribution is not None:
            self.line(_aggregated(expected.guarantee, contribution))

    def _example(self, first: Changes, unit: str) -> None:
        found = first.example()
        if found is not None:
            self.line(f"example, {unit} {found[0]}: {_brief(msgspec.json.encode(found[1], enc_hook=str).decode())}")

    @contextmanager
    def horizon_warnings(self) -> Iterator[None]:
        """As one line each."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", HorizonWarning)
            usual = warnings.showwarning

            def show_line(text: Warning | str, category: type[Warning], *where: Any) -> None:
                if issubclass(category, HorizonWarning):
                    self.line(f"warning: {text}")
                else:
                    usual(text, category, *where)

            warnings.showwarning = show_line  # type: ignore[assignment]
            yield

    def summary(self, stream: Stream, feed: Feed, totals: Totals) -> None:
        delivery = feed.delivery
        if delivery is not None and delivery.begun and not feed.clocked and not feed.options.follow:
            why = "" if feed.options.cut.close_by == "end" else f"no close {delivery.unit}s and no round numbers: "
            self.line(f"note: {why}the whole input is one round")
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
            self.line(f"note: absorbed {totals.absorbed:,} events that came before (first: {totals.first_absorbed})")
        if totals.late:
            self.line(f"note: left out {totals.late:,} late additions (--late refuse; first: {totals.first_late})")
        for name, count in stream.left_out().items():
            if count:
                self.line(f"note: {name} leaves out {count:,} surviving record{'s' * (count != 1)} for want of a value")
        if contribution is not None:
            self.line(_aggregated(stream.guarantee, contribution))
        done = [f"{totals.rounds:,} round{'s' * (totals.rounds != 1)}"]
        done.append(f"{totals.added:,} records added, {totals.removed:,} removed")
        if totals.ignored_deletions:
            done.append(f"{totals.ignored_deletions:,} deletion{'s' * (totals.ignored_deletions != 1)} named nothing")
        if totals.ignored_additions:
            done.append(f"{totals.ignored_additions:,} additions to future rounds had no effect")
        horizon = stream.specification.horizon
        done.append("no horizon" if horizon is None else f"{stream.round - 1:,} of {horizon:,} promised rounds used")
        delta = f", δ = {stream.guarantee.delta:.3g}" if stream.guarantee.delta else ""
        self.line(f"{'; '.join(done)}; ε = {stream.guarantee.epsilon:.4g}{delta}")


class Progress:
    """A bar that appears when something takes its time; only on a terminal, and gone when it ends."""

    def __init__(self, notes: Notes, total: int | None = None, *, shown: bool = True) -> None:
        self._console = notes.console
        self._total = total
        self._wanted = shown and notes.console.is_terminal and not notes.quiet
        self._began = time.monotonic()
        self._bar: Any = None

    def update(self, done: int, text: str, total: int | None = None) -> None:
        if not self._wanted or (self._bar is None and time.monotonic() - self._began < PATIENCE):
            return
        if self._bar is None:
            from rich import progress

            columns = (progress.BarColumn(), progress.TaskProgressColumn(), progress.TextColumn("{task.description}"))
            self._bar = progress.Progress(*columns, console=self._console, transient=True)
            self._bar.add_task("", total=self._total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, description=text, total=total or self._total)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


class NotFoundError(RetroactError):
    """No record was found of somebody who is to be erased. Nothing else went wrong."""

    exit_code = 5


@contextmanager
def naming_not_found(missed: Missed, notes: Notes, *, allowed: bool) -> Iterator[None]:
    """Around a run: the erasures in it that found nothing are named at its end, also when it ends by another error."""
    try:
        yield
    except BaseException:
        tell(missed, notes, allowed=allowed)
        raise
    if allowed or not missed.count:
        tell(missed, notes, allowed=allowed)
    else:
        words = missed.words() if missed.untold else f"{missed.source}: no record was found for erasures named before"
        raise NotFoundError(f"{words}. {ALLOW}")


def tell(missed: Missed, notes: Notes, *, allowed: bool) -> None:
    """Of those that nobody was told of yet."""
    if missed.untold:
        words = missed.words()
        notes.line(f"note: {words}") if allowed else notes.warn(words)


def _brief(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}…"


def _roles(roles: dict[str, str], options: Options) -> str:
    others = [("time", options.time), ("position", options.position)]
    named = [f"{role} in {show(column)}" for role, column in [*roles.items(), *others] if column]
    missing = [f"no {role}" for role in ("id", "subject") if role not in roles]
    return ", ".join(named + missing)


def _aggregated(guarantee: Guarantee, contribution: int) -> str:
    group = guarantee.for_operations(contribution)
    delta = f", δ = {group.delta:.3g}" if group.delta else ""
    return (
        f"warning: aggregated input: one event is up to {contribution:,} operations, so for one event the guarantee is "
        f"that of a group of {contribution:,}: ε = {group.epsilon:.4g}{delta}"
    )


def _rounds(plan: Plan) -> str:
    return "no horizon" if plan.horizon is None else f"horizon of {plan.horizon:,} rounds"
