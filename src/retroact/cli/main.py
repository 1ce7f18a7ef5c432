"""The program `retroact`: its commands, and how it ends when something is wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from .. import __version__
from ..errors import InputError, RetroactError

COMMANDS = {
    "init": "Write a specification for a file, from the names and types of its columns.",
    "check": "List what a run would refuse or leave out of a file; publishes nothing.",
    "run": "Replay a file of events and publish every round.",
    "plan": "Show the errors to expect, or the epsilon that wanted errors cost.",
    "explain": "Explain in words what is protected and what is not.",
    "demo": "See it at work on a made-up shop; needs no data.",
    "erase": "Erase a subject from a stream, with a receipt.",
    "verify": "Check a stream against its surviving data, or check a receipt.",
    "compact": "Rewrite the layout of a large store after erasures, now.",
    "export": "Write what a stream has published to a file.",
    "report": "Make a page of what a stream has published.",
    "columns": "Show or change which columns of the sources have which role.",
    "audit": "Try to break every promise of a stream, and write a signed report.",
    "completion": "Print a completion script for your shell.",
}
"""Each is the function of that name in the module of that name."""
PROGRAM = "retroact"
INTERRUPTED = 130
GRAVEST = (4, 2, 3, 5)
"""If several things fail, the first of these that occurs is the exit code."""


class Commands(click.Group):
    """Loads a command when it is called, so that `retroact --help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        made: click.Command = getattr(import_module(f"retroact.cli.{cmd_name}"), cmd_name)
        return made

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:
            raise click.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        commands = [CompletionItem(name, help=help) for name, help in COMMANDS.items() if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=Commands, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s", help="Show the version and exit.")
def app() -> None:
    """Publish statistics again and again from a stream of additions and deletions: differentially private, and exactly
    retroactive. After a deletion, all later answers are as if the record had never been there.

    \b
    Start with:
      retroact demo
      retroact run orders.csv --count --sum amount:0..500 --id order --subject customer --epsilon 1 --rounds 1
    """


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the program and end the process. Exit codes: 0 fine, 2 bad input, 3 horizon exhausted, 4 verification failed,
    5 an erasure found nothing."""
    code: int | str | None = 0
    try:
        code = app.main(argv, PROGRAM, standalone_mode=False) or 0
    except SystemExit as ended:
        code = ended.code
    except click.ClickException as error:
        code = _misused(error)
    except click.Abort:
        code = INTERRUPTED
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
        if not isinstance(error, BrokenPipeError) and code != 2:  # or the first write has reported it
            code = _gravest(code, _fail(error))
    sys.exit(code)


def _gravest(*codes: int | str | None) -> int | str | None:
    return next((code for code in GRAVEST if code in codes), codes[0])


def _fail(error: Exception) -> int:
    """Print what is wrong; returns the exit code."""
    from .console import console_for, message

    text, code = str(error), 2
    if isinstance(error, RetroactError):
        code = error.exit_code
    elif isinstance(error, OSError):
        text = f"{error.filename or 'standard output'}: {(error.strerror or text).lower()}"
    else:
        raise error
    console = console_for("stderr")
    message(console, f"error: {text}", "red")
    if isinstance(error, InputError) and error.hint is not None:
        message(console, f"hint: {error.hint}")
    return code


def _misused(error: click.ClickException) -> int:
    """Print what is wrong with the command line, in the form of all other errors; returns the exit code."""
    from .console import console_for, message

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    text, context = error.format_message(), getattr(error, "ctx", None)
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter) and error.param:
        text = f"{error.message.removesuffix('.')} - at {error.param.get_error_hint(context).strip(chr(39))}"
    console = console_for("stderr")
    message(console, f"error: {text[:1].lower()}{text[1:].removesuffix('.')}", "red")
    if context is not None:
        message(console, f"hint: {context.command_path} --help")
    return error.exit_code


def _drop_stdout() -> None:
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
