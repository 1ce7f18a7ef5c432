"""Consoles for people: colours on a terminal alone, and never a line broken for a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import typer

from retroact.escape import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# Where there is no terminal there is no width to respect.
WIDE = 160


def console_for(stream: Literal["stdout", "stderr"]) -> Console:
    from rich.console import Console

    console = Console(stderr=stream == "stderr", highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    return console


def message(console: Console, text: str, style: str | None = None) -> None:
    """A line as it is: no markup is read into it, it is not wrapped, and no name in it can do anything."""
    console.print(printable(text), style=style, markup=False, emoji=False, soft_wrap=True)


def say(text: str, *, err: bool = False) -> None:
    """The same, without a console."""
    typer.echo(printable(text), err=err)


def plain(text: str) -> Text:
    """A text that rich takes as it is, square brackets included, with no name in it that can do anything."""
    from rich.text import Text

    return Text(printable(text))
