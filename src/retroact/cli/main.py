"""The program `retroact`: its commands, and how it ends when something is wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from retroact import __version__
from retroact.cli import auditing, columns, lasting
from retroact.cli import options as o
from retroact.cli.output import OutputFormat
from retroact.cli.restoring import AfterOption, AskedOption, RestoredOption, Restoring
from retroact.errors import RetroactError

app = typer.Typer(
    name="retroact",
    no_args_is_help=True,
    add_completion=False,
    # a traceback with local variables would show the key
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    # plain help: the rich one takes twice as long to come up
    rich_markup_mode=None,
)

_COLUMNS = "Columns of CSV files and plain records"
_ROUNDS = "Rounds"
_OUTPUT = "Output"
_KEY = "Key"
_STORE = "Store"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"retroact {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Publish statistics again and again from a stream of additions and deletions: private, and exactly retroactive."""


@app.command(short_help="Replay a file of events and publish every round.")
def run(
    events: Annotated[
        str, typer.Argument(metavar="EVENTS", help="JSON lines, CSV, Parquet, Arrow, or - for JSON lines on stdin.")
    ],
    spec: o.SpecOption = None,
    count: o.CountOption = False,
    sums: o.SumOption = None,
    means: o.MeanOption = None,
    variances: o.VarianceOption = None,
    by: o.ByOption = None,
    clip: o.ClipOption = False,
    skip_missing: o.SkipOption = False,
    epsilon: o.EpsilonOption = None,
    delta: o.DeltaOption = None,
    horizon: o.HorizonOption = None,
    window: o.WindowOption = None,
    records: o.RecordsOption = None,
    every: o.EveryOption = None,
    id: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The id of a record (id).", rich_help_panel=_COLUMNS)
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject", metavar="COLUMN", help="Whom a record belongs to (subject).", rich_help_panel=_COLUMNS
        ),
    ] = None,
    stamp: Annotated[
        str | None,
        typer.Option("--stamp", metavar="COLUMN", help="The round it counts from (stamp).", rich_help_panel=_COLUMNS),
    ] = None,
    round: Annotated[
        str | None,
        typer.Option(
            "--round", metavar="COLUMN", help="Its round, from 1 (round); '' for none.", rich_help_panel=_COLUMNS
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", metavar="COLUMN", help="When it happened, for a grid.", rich_help_panel=_COLUMNS),
    ] = None,
    op: Annotated[
        str | None,
        typer.Option("--op", metavar="COLUMN", help="What is done with it (op).", rich_help_panel=_COLUMNS),
    ] = None,
    position: Annotated[
        str | None,
        typer.Option(
            "--position", metavar="COLUMN", help="Such as source.lsn: repeats are absorbed.", rich_help_panel=_COLUMNS
        ),
    ] = None,
    optional: Annotated[
        list[str] | None,
        typer.Option("--optional", metavar="ROLE", help="Records may lack it; repeatable.", rich_help_panel=_COLUMNS),
    ] = None,
    contribution: Annotated[
        int | None,
        typer.Option(
            "--contribution", min=1, metavar="C", help="The most records in one event.", rich_help_panel=_COLUMNS
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds", min=1, help="Publish exactly so many; rounds by number need it.", rich_help_panel=_ROUNDS
        ),
    ] = None,
    close_by: Annotated[
        str | None, typer.Option("--close-by", help="lines, progress, grid or end.", rich_help_panel=_ROUNDS)
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="TIME", help="Where the grid begins.", rich_help_panel=_ROUNDS)
    ] = None,
    length: Annotated[
        str | None, typer.Option("--length", help="Of a round on the grid: 1h, 1d, PT15M.", rich_help_panel=_ROUNDS)
    ] = None,
    end: Annotated[
        str | None, typer.Option("--end", metavar="TIME", help="Where the grid ends.", rich_help_panel=_ROUNDS)
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option("--time-zone", metavar="ZONE", help="Of days: UTC, or such as +01:00.", rich_help_panel=_ROUNDS),
    ] = None,
    late: Annotated[
        str | None, typer.Option("--late", help="Records of closed rounds: stamp or refuse.", rich_help_panel=_ROUNDS)
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on as the file grows, until interrupted.", rich_help_panel=_ROUNDS)
    ] = False,
    complete: Annotated[
        bool,
        typer.Option("--complete", help="With --store, take a last line that nothing ends.", rich_help_panel=_ROUNDS),
    ] = False,
    grace: Annotated[
        str | None,
        typer.Option("--grace", metavar="LENGTH", help="With --follow, how long rounds wait.", rich_help_panel=_ROUNDS),
    ] = None,
    publish_after: Annotated[
        str | None,
        typer.Option(
            "--publish-after",
            metavar="LENGTH",
            help="With --follow, how long after their time rounds are published.",
            rich_help_panel=_ROUNDS,
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="What positions are kept under.", rich_help_panel=_ROUNDS),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Appears whole or not at all.", rich_help_panel=_OUTPUT),
    ] = None,
    format: Annotated[
        OutputFormat | None,
        typer.Option("--format", help="By the name of the file if absent.", rich_help_panel=_OUTPUT),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.", rich_help_panel=_OUTPUT)
    ] = False,
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", metavar="FILE", help="The secret; created if absent.", rich_help_panel=_KEY),
    ] = None,
    testing_key: Annotated[
        int | None,
        typer.Option("--testing-key", metavar="SEED", help="Reproducible, not private.", rich_help_panel=_KEY),
    ] = None,
    allow_missing: o.AllowMissingOption = False,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="STREAM",
            help="A stream that lasts: a folder, or postgresql://...#name.",
            rich_help_panel=_STORE,
        ),
    ] = None,
    fence: Annotated[
        Path | None,
        typer.Option("--fence", metavar="FILE", help="Its fence; beside the key if absent.", rich_help_panel=_STORE),
    ] = None,
    restored: RestoredOption = False,
    after: AfterOption = None,
    erasures_asked: AskedOption = False,
) -> None:
    """Replay a file of additions, deletions and erasures, and publish every round.

    JSON lines are native events, plain records, insert/delete, Debezium, Materialize, Delta or Flink change events:
    recognised from the first of them, and shown.

    Rounds end by lines {"op": "close"}, by a growing round number, by progress messages or by a grid of time; with none
    of them, the input is one round.

    Without a file that describes the stream, options do.

    With --store the stream lasts: it is made if it is not there, every round is on disk before it is published, and a
    run that was stopped goes on where it was.

    The key comes from --key-file, from RETROACT_KEY (64 hexadecimal digits), from the command in RETROACT_KEY_COMMAND,
    or is made: beside the store, or for this run alone.

    Examples:

    retroact run events.jsonl --spec retroact.toml --store orders --out releases.jsonl

    retroact run orders.csv --count --sum amount:0..500 --subject customer --round day --rounds 365 --epsilon 1

    retroact run orders.csv --count --epsilon 1 --time created --start 2026-01-01 --length 1d --end 2027-01-01
    """
    from retroact.cli.declaring import Said
    from retroact.cli.running import Run
    from retroact.cli.running import run as run_events

    asked = o.Asked(
        spec, count, sums or [], means or [], variances or [], by or [], clip, skip_missing, epsilon, delta, horizon,
        window, records, every,
    )  # fmt: skip
    said = Said.of(
        {"id": id, "subject": subject, "time": time, "op": op, "position": position, "stamp": stamp, "round": round},
        optional or [],
        {"start": start, "length": length, "end": end, "time_zone": time_zone, "close_by": close_by,
         "late_events": late, "contribution": contribution, "grace": grace, "publish_after": publish_after},
        source=source, rounds=rounds, follow=follow, complete=complete,
    )  # fmt: skip
    restoring = Restoring(restored, after, erasures_asked)
    order = Run(events, out, format, key_file, testing_key, quiet, store, fence, restoring, allow_missing)
    run_events(asked, said, order)


@app.command(short_help="The errors to expect from an ε, or the ε for wanted errors.")
def plan(
    spec: o.SpecArgument = None,
    count: o.CountOption = False,
    sums: o.SumOption = None,
    means: o.MeanOption = None,
    variances: o.VarianceOption = None,
    by: o.ByOption = None,
    clip: o.ClipOption = False,
    skip_missing: o.SkipOption = False,
    epsilon: o.EpsilonOption = None,
    delta: o.DeltaOption = None,
    horizon: o.HorizonOption = None,
    window: o.WindowOption = None,
    records: o.RecordsOption = None,
    every: o.EveryOption = None,
    error: Annotated[
        list[str] | None,
        typer.Option("--error", metavar="STATISTIC=ERROR", help="Wanted: ± 95 % in the worst round, for each one."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """The expected error of every statistic, before anything is released; or the epsilon that wanted errors cost.

    Examples:

    retroact plan retroact.toml

    retroact plan --count --sum amount:0..500 --horizon 365 --delta 1e-6 --error count=50 --error sum_amount=2000
    """
    from retroact.cli.planning import plan_command

    asked = o.Asked(
        spec, count, sums or [], means or [], variances or [], by or [], clip, skip_missing, epsilon, delta, horizon,
        window, records, every,
    )  # fmt: skip
    plan_command(asked, errors=error or [], as_json=as_json)


@app.command(short_help="Say in words what is protected and what is not.")
def explain(
    spec: o.SpecArgument = None,
    count: o.CountOption = False,
    sums: o.SumOption = None,
    means: o.MeanOption = None,
    variances: o.VarianceOption = None,
    by: o.ByOption = None,
    clip: o.ClipOption = False,
    skip_missing: o.SkipOption = False,
    epsilon: o.EpsilonOption = None,
    delta: o.DeltaOption = None,
    horizon: o.HorizonOption = None,
    window: o.WindowOption = None,
    records: o.RecordsOption = None,
    every: o.EveryOption = None,
    subject_records: Annotated[
        int, typer.Option("--subject-records", min=1, metavar="C", help="The most records that one person ever adds.")
    ] = 5,
) -> None:
    """Say in plain words what is protected, what is not, and what an erasure does.

    Examples:

    retroact explain retroact.toml --subject-records 20

    retroact explain --count --epsilon 1 --horizon 365
    """
    from retroact.cli.explain import explain_command

    asked = o.Asked(
        spec, count, sums or [], means or [], variances or [], by or [], clip, skip_missing, epsilon, delta, horizon,
        window, records, every,
    )  # fmt: skip
    explain_command(asked, subject_records=subject_records)


@app.command(short_help="See it at work on a made-up shop; needs no data.")
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page that is written.")] = Path(
        "retroact-demo.html"
    ),
    rounds: Annotated[int, typer.Option("--rounds", min=10, help="How many rounds the shop is open.")] = 1000,
    seed: Annotated[int | None, typer.Option("--seed", help="The same demonstration again.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page when it is done.")] = False,
) -> None:
    """See it at work: a made-up stream, an erasure, and a page that shows both.

    Example:

    retroact demo --rounds 500 --seed 1
    """
    from retroact.cli.console import console_for
    from retroact.cli.demo.history import show

    show(out=out, rounds=rounds, seed=seed, open_page=open_page, console=console_for("stdout"))


lasting.register(app)
columns.register(app)
auditing.register(app)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the program and end the process: 0 fine, 2 bad input, 3 horizon exhausted, 4 verification failed, 5 an
    erasure found nothing."""
    code: int | str | None = 0
    try:
        app(None if argv is None else list(argv))
    except SystemExit as ended:
        code = ended.code
    except RetroactError as error:
        code = _fail(str(error), error.exit_code)
    except OSError as error:
        code = _fail(f"{error.filename or 'standard output'}: {(error.strerror or str(error)).lower()}", 2)
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()
    except OSError as error:
        # or the interpreter would try again when it ends
        _drop_stdout()
        code = code or _fail(f"standard output: {(error.strerror or str(error)).lower()}", 2)
    sys.exit(code)


def _fail(text: str, code: int) -> int:
    from retroact.cli.console import console_for, message

    message(console_for("stderr"), f"error: {text}", "red")
    return code


def _drop_stdout() -> None:
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
