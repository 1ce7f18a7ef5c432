"""`retroact demo`: see it at work on a made-up shop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..console import console_for
from ..options import command
from .history import show


@command
def demo(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path("retroact-demo.html"),
    rounds: Annotated[int, typer.Option(min=10, help="How many rounds the shop is open.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="Repeat a demonstration exactly.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """See it at work: a made-up shop publishes, erases a customer, and writes a page that shows both.

    \b
    Example:
      retroact demo --rounds 500 --seed 1
    """
    show(out=out, rounds=rounds, seed=seed, open_page=open_page, console=console_for("stdout"))
