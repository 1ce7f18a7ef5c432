"""The program `retroact`: its commands, and how it ends when something is wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
import typer.core
import typer.main

from retroact import __version__
from retroact.errors import RetroactError

COMMANDS = {
    "run": "Replay a file of events and publish every round.",
    "plan": "Show the errors to expect, or the epsilon that wanted errors cost.",
    "explain": "Explain in words what is protected and what is not.",
    "demo": "See it at work on a made-up shop; needs no data.",
    "erase": "Erase a subject from a stream, with a receipt.",
    "verify": "Check a stream against its surviving data, or check a receipt.",
    "export": "Write what a stream has published to a file.",
    "columns": "Show or change which columns of the sources have which role.",
    "audit": "Try to break every promise of a stream, and write a signed report.",
}
"""Each is the function of that name in the module of that name."""
PLAIN: dict[str, Any] = {
    "add_completion": False,
    # a traceback with local variables would show the key
    "pretty_exceptions_enable": False,
    # the rich help takes twice as long to appear
    "rich_markup_mode": None,
}
GRAVEST = (4, 2, 3, 5)
"""Of several reasons to fail, the first of these is the exit code."""


class Commands(typer.core.TyperGroup):
    """Loads a command when it is called, so that `retroact --help` answers at once."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        alone = typer.Typer(**PLAIN)
        alone.command(cmd_name)(getattr(import_module(f"retroact.cli.{cmd_name}"), cmd_name))
        return typer.main.get_command(alone)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    name="retroact",
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    **PLAIN,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"retroact {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Publish statistics again and again from a stream of additions and deletions: differentially private, and exactly
    retroactive. After a deletion, all later answers are as if the record had never been there.

    \b
    Start with:
      retroact demo
      retroact run orders.csv --count --sum amount:0..500 --id order --subject customer --epsilon 1
    """


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the program and end the process. Exit codes: 0 fine, 2 bad input, 3 horizon exhausted, 4 verification failed,
    5 an erasure found nothing."""
    code: int | str | None = 0
    try:
        app(None if argv is None else list(argv))
    except SystemExit as ended:
        code = ended.code
    except ExceptionGroup as several:
        code = _gravest(*(_fail(error) for error in several.exceptions))
    except (RetroactError, OSError) as error:
        code = _fail(error)
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except OSError as error:
        # otherwise the interpreter would try again when it ends
        _drop_stdout()
        if not isinstance(error, BrokenPipeError):
            code = _gravest(code, _fail(error))
    sys.exit(code)


def _gravest(*codes: int | str | None) -> int | str | None:
    return next((code for code in GRAVEST if code in codes), codes[0])


def _fail(error: Exception) -> int:
    """Print what is wrong; returns the exit code."""
    from retroact.cli.console import console_for, message

    text, code = str(error), 2
    if isinstance(error, RetroactError):
        code = error.exit_code
    elif isinstance(error, OSError):
        text = f"{error.filename or 'standard output'}: {(error.strerror or text).lower()}"
    else:
        raise error
    message(console_for("stderr"), f"error: {text}", "red")
    return code


def _drop_stdout() -> None:
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
