"""Output for people: colours on a terminal only, and lines in a file are never wrapped."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import Literal, TextIO

import click

from ..escape import printable

# Used where there is no terminal, and so no width.
WIDE = 160
CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}


class Console:
    """Standard output or standard error, or any other file of text."""

    def __init__(
        self, to: Literal["stdout", "stderr"] | TextIO, *, terminal: bool | None = None, width: int | None = None
    ) -> None:
        self._to = to
        self.is_terminal = self.file.isatty() if terminal is None else terminal
        self.width = width or (shutil.get_terminal_size().columns if self.is_terminal else WIDE)

    @property
    def file(self) -> TextIO:
        return getattr(sys, self._to) if isinstance(self._to, str) else self._to

    def print(self, text: str = "") -> None:
        """A text as it is, which may run over the edge of the window."""
        click.echo(text, file=self.file, color=self.is_terminal)

    def lines(self, lines: Iterable[str]) -> None:
        self.print("\n".join(lines))

    def styled(self, text: str, style: str = "") -> str:
        """Add colours to a text, if they are shown.

        >>> Console("stdout", terminal=True).styled("done", "bold green")
        '\\x1b[1;32mdone\\x1b[0m'
        >>> Console("stdout", terminal=False).styled("done", "bold green")
        'done'
        """
        if not (style and self.is_terminal) or "NO_COLOR" in os.environ:
            return text
        return f"\x1b[{';'.join(str(CODES[word]) for word in style.split())}m{text}\x1b[0m"


def console_for(stream: Literal["stdout", "stderr"]) -> Console:
    return Console(stream)


def message(console: Console, text: str, style: str = "") -> None:
    """A line exactly as it is, control characters escaped."""
    console.print(console.styled(printable(text), style))


def say(text: str, *, err: bool = False) -> None:
    """Print a line without colours, control characters escaped."""
    click.echo(printable(text), err=err)
