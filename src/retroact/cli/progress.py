"""Progress: a bar on a terminal, removed at the end; elsewhere, a line now and then."""

from __future__ import annotations

import time

from ..escape import printable
from .console import Console

WIPE = "\r\x1b[2K"
BAR = 30
REDRAW = 0.1
NEXT_LINE = 15.0
"""Seconds between two lines in a file."""


class Progress:
    """Shown from ``patience`` seconds on."""

    def __init__(
        self, console: Console, total: int | None = None, *, shown: bool = True, patience: float = 1.0
    ) -> None:
        self._console = console
        self._total = total
        self._shown = shown
        self._drawn = False
        self._next = time.monotonic() + (patience if console.is_terminal else max(patience, 2.0))

    def update(self, done: int, text: str, total: int | None = None) -> None:
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        total = total or self._total
        share = min(1.0, done / total) if total else None
        percent = "" if share is None else f"{share:4.0%} "
        if not self._console.is_terminal:
            self._next = now + NEXT_LINE
            self._console.print(f"progress: {percent.strip()} {printable(text)}".replace("  ", " "))
            return
        self._next = now + REDRAW
        self._drawn = True
        full = 0 if share is None else round(BAR * share)
        bar = self._console.styled("━" * full, "cyan") + self._console.styled("━" * (BAR - full), "dim")
        words = f"{percent}{printable(text)}"[: max(0, self._console.width - BAR - 2)]
        self._write(f"{WIPE}{bar} {words}")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            self._write(WIPE)

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()
