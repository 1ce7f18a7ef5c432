"""What an operator says of a store that is not the latest, or of one whose fence is lost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retroact.cli.console import say
from retroact.errors import InputError

if TYPE_CHECKING:
    from retroact.stream import Durable

_PANEL = "Store"

RestoredOption = Annotated[
    bool,
    typer.Option(
        "--restored", help="An old backup: replay what was published, without releases.", rich_help_panel=_PANEL
    ),
]
AfterOption = Annotated[
    int | None,
    typer.Option(
        "--after",
        min=0,
        metavar="ROUND",
        help="The fence is lost; nothing was published after this round.",
        rich_help_panel=_PANEL,
    ),
]
AskedOption = Annotated[
    bool,
    typer.Option(
        "--erasures-asked",
        help="All erasures that a restored store lacks were asked for again.",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True)
class Restoring:
    restored: bool = False
    after: int | None = None
    erasures_asked: bool = False

    @property
    def given(self) -> dict[str, Any]:
        """What was said, as `Stream.open` takes it."""
        return {name: value for name, value in asdict(self).items() if value is not None and value is not False}

    def check(self, *, dry_run: bool) -> None:
        if dry_run and self.given:
            raise InputError(
                "a dry run changes nothing: expected it without what opens a restored store", place="--dry-run"
            )


def warn(stream: Durable) -> None:
    """What is left to do after a restore: it is told in any case."""
    if stream.debt:
        say(f"warning: {stream.debt}", err=True)
