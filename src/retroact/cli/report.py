"""`retroact report`: a page of what a durable stream has published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..store.targets import check_targets
from .console import say
from .files import check_sources, put, require_page
from .files import opened as opened_files
from .options import Secrets, StreamArgument, TestingKey, command, opened, option
from .progress import busy


@command
def report(
    stream: StreamArgument,
    secrets: Secrets,
    html: Annotated[Path, option("Where the page goes; written atomically.", "FILE")] = Path("report.html"),
    first: Annotated[int, option("The first round to show.", min=1)] = 1,
    last: Annotated[int | None, option("The last round to show.", min=1)] = None,
    testing_key: TestingKey = None,
) -> None:
    """Make a page of what a stream has published: every statistic as a chart with its 95 % band and the table behind
    it, what is protected, what it cost, and how many rounds are left. One file, which loads nothing.

    \b
    Examples:
      retroact report orders --html page.html
      retroact report orders --html latest.html --first 100
    """
    targets = [("--html", html)]
    check_targets(targets, store=stream, **vars(secrets))
    require_page(html)
    with opened(stream, secrets, testing_key) as open_stream:
        check_sources(targets, open_stream)
        with opened_files((html, "--html")) as pages, busy("making the page"):
            put(pages, [open_stream.releases(first, last).page().encode() for _ in pages])
    say(f"page: {html}", err=True)
