"""Progress: a bar on a terminal, removed at the end; elsewhere, a line now and then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from ..escape import printable
from .console import Console, console_for

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


@contextmanager
def busy(what: str, *, shown: bool = True) -> Iterator[None]:
    """Shows that work goes on that cannot say how far it is."""
    ended, begun = Event(), time.monotonic()
    with Progress(console_for("stderr"), shown=shown) as progress:

        def show() -> None:
            while not ended.wait(REDRAW):
                progress.update(0, f"{what}, {time.monotonic() - begun:.0f} s")

        thread = Thread(target=show, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
