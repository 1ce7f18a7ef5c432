"""Options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from retroact.cli.console import say
from retroact.errors import InputError

if TYPE_CHECKING:
    from retroact.stream import Durable

SPEC_HELP = "The stream as a TOML file; retroact.toml if it is there."
SpecArgument = Annotated[Path | None, typer.Argument(metavar="[SPEC]", help=SPEC_HELP)]
StreamArgument = Annotated[
    str, typer.Argument(metavar="STREAM", help="The folder of a stream, or postgresql://...#name.")
]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Do not fail (exit code 5) when an erasure finds no record.")
]
OutOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Appears whole or not at all; stdout if absent.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A function for typer: a parameter that is a dataclass stands for all its fields, each of which is an option.

    >>> @command
    ... def show(name: str, given: Restoring) -> None:
    ...     print(name, given.after)
    >>> list(signature(show).parameters)
    ['name', 'restored', 'after', 'erasures_asked']
    >>> show(name="orders", restored=False, after=3, erasures_asked=False)
    orders 3
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))
            continue
        own = get_type_hints(groups[name], include_extras=True)
        for field in fields(groups[name]):
            parameters.append(
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=own[field.name])
            )

    @wraps(function)
    def call(**given: Any) -> None:
        made = {name: kind(**{one.name: given.pop(one.name) for one in fields(kind)}) for name, kind in groups.items()}
        function(**made, **given)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return call


@dataclass(frozen=True)
class Secrets:
    """What a stream that lasts has outside its store."""

    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The secret; beside the stream, or RETROACT_KEY, if absent.")
    ] = None
    fence: Annotated[Path | None, typer.Option(metavar="FILE", help="The fence; beside the key if absent.")] = None


@dataclass(frozen=True)
class Restoring:
    """What an operator says of a store that is not the latest, or of one whose fence is lost."""

    restored: Annotated[
        bool, typer.Option("--restored", help="An old backup: replay what was published, without releases.")
    ] = False
    after: Annotated[
        int | None,
        typer.Option(min=0, metavar="ROUND", help="The fence is lost; nothing was published after this round."),
    ] = None
    erasures_asked: Annotated[
        bool,
        typer.Option("--erasures-asked", help="All erasures that a restored store lacks were asked for again."),
    ] = False

    @property
    def given(self) -> dict[str, Any]:
        """What was said, as `Stream.open` takes it."""
        return {name: value for name, value in asdict(self).items() if value is not None and value is not False}


@dataclass(frozen=True)
class Roles:
    """Which columns of a source have which role."""

    id: Annotated[str | None, typer.Option(metavar="COLUMN", help="The id of a record; '' for none.")] = None
    subject: Annotated[str | None, typer.Option(metavar="COLUMN", help="Whom it belongs to; '' for none.")] = None
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="When it happened, for a grid.")] = None
    op: Annotated[str | None, typer.Option(metavar="COLUMN", help="What is done with it; '' for none.")] = None
    position: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Such as source.lsn: repeats are absorbed.")
    ] = None
    stamp: Annotated[str | None, typer.Option(metavar="COLUMN", help="The round it counts from; '' for none.")] = None
    round: Annotated[str | None, typer.Option(metavar="COLUMN", help="Its round, from 1; '' for none.")] = None
    optional: Annotated[list[str] | None, typer.Option(metavar="ROLE", help="Records may lack it; repeatable.")] = None

    @property
    def table(self) -> dict[str, str | dict[str, Any]]:
        """As the table [columns] of a specification has them."""
        given = asdict(self)
        optional = given.pop("optional") or []
        named = {role: column for role, column in given.items() if column is not None}
        for role in optional:
            if not named.get(role):
                raise InputError(f"expected a role that is named, such as --{role} COLUMN", place="--optional")
            named[role] = {"column": named[role], "optional": True}
        return named


@contextmanager
def opened(where: str, secrets: Secrets, restoring: Restoring | None = None) -> Iterator[Durable]:
    """A stream that lasts."""
    from retroact.stream import Stream

    given = {} if restoring is None else restoring.given
    with Stream.open(where, key_file=secrets.key_file, fence=secrets.fence, **given) as stream:
        yield stream


def warn_of_debt(stream: Durable) -> None:
    """What is left to do after a restore, whether or not a run is quiet."""
    if stream.debt:
        say(f"warning: {stream.debt}", err=True)
