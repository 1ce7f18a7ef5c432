"""What the operator of a run sees, on stderr: what was recognised, how far it is, what was done."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from retroact.cli.console import console_for, message
from retroact.cli.planning import plan_table
from retroact.feeds.events import EVERY_RECORD, Block, Roles
from retroact.feeds.files import Source
from retroact.schema.messages import show
from retroact.stream import HorizonWarning, Plan, Specification

if TYPE_CHECKING:
    from retroact.feeds.csvfile import CsvFile
    from retroact.feeds.jsonlines import JsonLines
    from retroact.feeds.replay import Replay

PATIENCE = 1.0


class Report:
    """Everything but errors, which are told whether or not a run is quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.console = console_for("stderr")

    def line(self, text: str) -> None:
        if not self.quiet:
            style = "yellow" if text.startswith("warning:") else "dim" if text.startswith("note:") else None
            message(self.console, text, style)

    def recognised(self, source: Source, reader: CsvFile | JsonLines, spec: Specification, first: Block) -> None:
        if self.quiet:
            return
        kind = source.format if reader.plain else "native JSON lines"
        fields = [f"{name} {field!r}" for name, field in spec.schema.fields.items() if name != EVERY_RECORD]
        self.line(f"{source.name}: {kind}; fields: {', '.join(fields) or 'none needed'}")
        if reader.plain:
            self.line(f"columns: {_roles(reader.roles)}")
        if not reader.records.strict and reader.ignored:
            self.line(f"note: ignored, as no statistic needs them: {', '.join(map(show, reader.ignored))}")
        from retroact.stream import plan

        expected = plan(spec)
        self.console.print(plan_table(expected, brief=True))
        self.line(f"{_rounds(expected)}; {expected.guarantee.text}")
        self._example(reader, first)

    def _example(self, reader: CsvFile | JsonLines, first: Block) -> None:
        for line, event in zip(first.lines, first.events, strict=True):
            if event.record is not None:
                record = reader.records.as_dict(event.record)
                record.pop(EVERY_RECORD, None)
                parts = {"record": record, "id": event.id, "subject": event.subject, "stamp": event.stamp}
                known = {"op": event.op, **{k: v for k, v in parts.items() if v is not None}, "round": event.round}
                text = msgspec.json.encode({k: v for k, v in known.items() if v is not None}).decode()
                self.line(f"example, line {line}: {text if len(text) <= 300 else text[:300] + '…'}")
                return

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

    def summary(self, replay: Replay) -> None:
        stream, totals = replay.stream, replay.totals
        if not replay.clocked:
            self.line("note: no close lines and no round numbers: the whole input is one round")
        if replay.open:
            self.line("note: what came after the last close line is not published: its round is still open")
        done = [f"{totals.rounds:,} round{'s' * (totals.rounds != 1)}"]
        done.append(f"{totals.added:,} records added, {totals.removed:,} removed")
        if totals.ignored_deletions:
            done.append(f"{totals.ignored_deletions:,} deletions named nothing")
        if totals.ignored_additions:
            done.append(f"{totals.ignored_additions:,} additions to future rounds had no effect")
        horizon = stream.specification.horizon
        done.append("no horizon" if horizon is None else f"{stream.round - 1:,} of {horizon:,} promised rounds used")
        delta = f", δ = {stream.guarantee.delta:.3g}" if stream.guarantee.delta else ""
        self.line(f"{'; '.join(done)}; ε = {stream.guarantee.epsilon:.4g}{delta}")


class Progress:
    """A bar that appears when a run takes its time; only on a terminal, and gone when it ends."""

    def __init__(self, report: Report, source: Source, *, shown: bool) -> None:
        self._console = report.console
        self._source = source
        self._wanted = shown and report.console.is_terminal and not report.quiet
        self._began = time.monotonic()
        self._bar: Any = None

    def update(self, rounds: int) -> None:
        if not self._wanted or (self._bar is None and time.monotonic() - self._began < PATIENCE):
            return
        if self._bar is None:
            from rich import progress

            columns = (progress.BarColumn(), progress.TaskProgressColumn(), progress.TextColumn("{task.description}"))
            self._bar = progress.Progress(*columns, console=self._console, transient=True)
            self._bar.add_task("", total=self._source.size)
            self._bar.start()
        done = f"{self._source.bytes_read / 1e6:,.0f} MB, {rounds:,} rounds"
        self._bar.update(self._bar.task_ids[0], completed=self._source.bytes_read, description=done)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _roles(roles: Roles) -> str:
    named = [f"{role} in {show(column)}" for role, column in roles.items()]
    missing = [f"no {role}" for role in ("id", "subject") if role not in dict(roles.items())]
    return ", ".join(named + missing)


def _rounds(plan: Plan) -> str:
    return "no horizon" if plan.horizon is None else f"horizon of {plan.horizon:,} rounds"
