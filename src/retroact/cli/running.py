"""`retroact run`: a file of events in, releases out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from retroact.cli.keys import choose_key
from retroact.cli.options import Asked
from retroact.cli.output import OutputFormat, open_output
from retroact.cli.report import Progress, Report
from retroact.errors import InputError
from retroact.feeds.csvfile import CsvFile, cell_readers
from retroact.feeds.events import Records, Roles
from retroact.feeds.files import Source, open_events
from retroact.feeds.jsonlines import JsonLines
from retroact.feeds.replay import Replay
from retroact.schema import Schema
from retroact.stream import Stream


@dataclass(frozen=True)
class Run:
    """All that `retroact run` can be told, beside what to publish."""

    events: str
    roles: Roles
    rounds: int | None
    out: Path | None
    format: OutputFormat
    key_file: Path | None
    testing_seed: int | None
    quiet: bool


def run(asked: Asked, order: Run) -> None:
    report = Report(quiet=order.quiet)
    spec = asked.specification()
    with open_events(order.events) as source:
        reader = _reader(source, spec.schema, order.roles, by_options=asked.file is None)
        blocks = iter(reader)
        first = next(blocks, None)
        if first is None or not first.events:
            # an empty block comes only before an error, which is raised here
            next(blocks, None)
            raise source.nothing()
        with open_output(order.out, order.format, events=order.events) as output:
            key, origin = choose_key(order.key_file, order.testing_seed)
            stream = Stream.from_specification(spec, key=key)
            report.recognised(source, reader, spec, first)
            report.line(origin)
            replay = Replay(stream, reader.records, source.name, output.write, order.rounds)
            shown = order.out is not None or not sys.stdout.isatty()
            with report.horizon_warnings(), Progress(report, source, shown=shown) as progress:
                for block in chain([first], blocks):
                    replay.apply(block)
                    output.flush()
                    progress.update(replay.totals.rounds)
                replay.finish()
    report.summary(replay)


def _reader(source: Source, schema: Schema, roles: Roles, *, by_options: bool) -> CsvFile | JsonLines:
    names = list(schema.fields)
    if source.format == "CSV":
        cells = Records(names, strict=not by_options, readers=cell_readers(schema))
        return CsvFile(source, schema, cells, roles=roles)
    if not by_options and roles.items():
        role = roles.items()[0][0]
        raise InputError(
            f'expected --{role} for CSV or for plain records only: native JSON lines say "{role}" themselves',
            place=f"--{role}",
        )
    records = Records(names, strict=not by_options)
    return JsonLines(source, schema, records, roles=roles if by_options else None)
