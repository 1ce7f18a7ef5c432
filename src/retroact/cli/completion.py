"""`retroact completion`: what makes a shell complete commands, options and files."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import click
from click.shell_completion import get_completion_class

from .options import argument, command


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


@command
def completion(shell: Annotated[Shell, argument("The shell that you use.", "bash|zsh|fish")]) -> None:
    """Print a script that lets your shell complete commands, options and files.

    \b
    Add to ~/.bashrc or ~/.zshrc:
      eval "$(retroact completion bash)"
      eval "$(retroact completion zsh)"
    Or, for fish:
      retroact completion fish > ~/.config/fish/completions/retroact.fish
    """
    from .main import PROGRAM, app

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(app, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source())
