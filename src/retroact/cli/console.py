"""Output for people: colours on a terminal only, and lines in a file are never wrapped."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import typer

from retroact.escape import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Kind = Literal["fold", "left", "right"]
# Used where there is no terminal, and so no width.
WIDE = 160


def console_for(stream: Literal["stdout", "stderr"]) -> Console:
    from rich.console import Console

    console = Console(stderr=stream == "stderr", highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    return console


def message(console: Console, text: str, style: str | None = None) -> None:
    """A line exactly as it is: no markup, no wrapping, control characters escaped."""
    console.print(printable(text), style=style, markup=False, emoji=False, soft_wrap=True)


def say(text: str, *, err: bool = False) -> None:
    """The same without a console, which takes time to load."""
    typer.echo(printable(text), err=err)


def table(columns: Mapping[str, Kind], rows: Iterable[Iterable[str]]) -> Table:
    """Columns by their headings: long texts "fold", all others are aligned and never broken."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head, kind in columns.items():
        if kind == "fold":
            made.add_column(head, overflow="fold")
        else:
            made.add_column(head, justify=kind, no_wrap=True)
    for row in rows:
        made.add_row(*(Text(printable(cell)) for cell in row))
    return made


class Progress:
    """A bar that appears when something takes more than ``patience`` seconds; only on a terminal, gone at the end."""

    def __init__(
        self, console: Console, total: int | None = None, *, shown: bool = True, patience: float = 1.0
    ) -> None:
        self._console = console
        self._total = total
        self._wanted = shown and console.is_terminal
        self._start = time.monotonic() + patience
        self._bar: Any = None

    def update(self, done: int, text: str, total: int | None = None) -> None:
        if not self._wanted or time.monotonic() < self._start:
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


def plural(count: int, noun: str) -> str:
    """
    >>> plural(1, "round"), plural(1200, "round")
    ('1 round', '1,200 rounds')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"
