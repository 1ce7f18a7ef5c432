"""`retroact demo`: see it at work on a made-up shop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..console import console_for
from ..options import command, flag, option
from .history import show


@command
def demo(
    out: Annotated[Path, option("The page to write.", "FILE")] = Path("retroact-demo.html"),
    rounds: Annotated[int, option("How many rounds the shop is open.", min=10)] = 1000,
    seed: Annotated[int | None, option("Repeat a demonstration exactly.")] = None,
    open_page: Annotated[bool, flag("Open the page in a browser.", "--open")] = False,
) -> None:
    """See it at work: a made-up shop publishes, erases a customer, and writes a page that shows both.

    \b
    Example:
      retroact demo --rounds 500 --seed 1
    """
    show(out=out, rounds=rounds, seed=seed, open_page=open_page, console=console_for("stdout"))
