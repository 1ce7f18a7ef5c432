"""`retroact export`: what a durable stream has published."""

from __future__ import annotations

import sys
from typing import Annotated

from ..store.targets import check_targets
from .files import check_sources
from .options import Secrets, StreamArgument, TestingKey, command, opened, option
from .output import OutputOptions
from .progress import busy


@command
def export(
    stream: StreamArgument,
    secrets: Secrets,
    output: OutputOptions,
    first: Annotated[int, option("The first round to write.", min=1)] = 1,
    last: Annotated[int | None, option("The last round to write.", min=1)] = None,
    testing_key: TestingKey = None,
) -> None:
    """Write what a stream has published, as JSON lines, CSV, Parquet or Arrow.

    \b
    Examples:
      retroact export orders --out releases.parquet
      retroact export orders --format csv --first 100
    """
    targets = [("--out", output.out)]
    check_targets(targets, store=stream, **vars(secrets))
    with opened(stream, secrets, testing_key) as open_stream:
        check_sources(targets, open_stream)
        output.chosen()
        releases = open_stream.releases(first, last)
        shown = output.out is not None or not sys.stdout.isatty()
        with output.opened(releases.form) as writer, busy("writing releases", shown=shown):
            for line in releases:
                writer.write_line(line)
