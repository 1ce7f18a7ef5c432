"""`retroact export`: what a stream that lasts has published."""

from __future__ import annotations

from typing import Annotated

import typer

from retroact.cli.files import check_sources
from retroact.cli.options import OutOption, Secrets, StreamArgument, command, opened
from retroact.cli.output import FormatOption, format_of, open_output
from retroact.store.targets import check_targets


@command
def export(
    stream: StreamArgument,
    secrets: Secrets,
    out: OutOption = None,
    format: FormatOption = None,
    first: Annotated[int, typer.Option(min=1, help="From this round on.")] = 1,
    last: Annotated[int | None, typer.Option(min=1, help="Up to this round.")] = None,
) -> None:
    """Write what a stream has published: JSON lines, CSV or Parquet.

    \b
    Examples:
      retroact export orders --out releases.parquet
      retroact export orders --format csv --first 100
    """
    check_targets([("--out", out)], store=stream, key_file=secrets.key_file, fence=secrets.fence)
    with opened(stream, secrets) as open_stream:
        check_sources([("--out", out)], open_stream)
        with open_output(out, format_of(out, format)) as output:
            for line in open_stream.releases(first, last):
                output.write_line(line)
