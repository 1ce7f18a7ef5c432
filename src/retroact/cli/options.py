"""How a command declares its options, and those that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from retroact.cli.console import say
from retroact.errors import InputError

if TYPE_CHECKING:
    from retroact.stream import Durable


def option(help: str, metavar: str | None = None, *names: str, default: Any = None, **limits: Any) -> Any:
    """A field of a dataclass that is an option of a command."""
    return field(default=default, metadata={"typer": typer.Option(*names, metavar=metavar, help=help, **limits)})


def flag(help: str, *names: str) -> Any:
    """An option that is given or not, such as ``--count``; there is no ``--no-count``."""
    return option(help, None, *names, default=False)


def argument(help: str, metavar: str) -> Any:
    """An argument that may be left out."""
    return field(default=None, metadata={"typer": typer.Argument(metavar=metavar, help=help)})


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A function for typer: a parameter that is a dataclass stands for all its fields, each of which is an option.

    >>> @command
    ... def show(name: str, restoring: Restoring) -> None:
    ...     print(name, restoring.after)
    >>> list(signature(show).parameters)
    ['name', 'restored', 'after', 'erasures_asked']
    >>> show(name="orders", restored=False, after=3, erasures_asked=False)
    orders 3
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if name in groups:
            kinds = get_type_hints(groups[name])
            parameters += [_parameter(each.name, kinds[each.name], each) for each in fields(groups[name])]
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(function)
    def call(**given: Any) -> None:
        made = {name: kind(**{own.name: given.pop(own.name) for own in fields(kind)}) for name, kind in groups.items()}
        function(**made, **given)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return call


def _parameter(name: str, kind: Any, declared: Any) -> Parameter:
    info = declared.metadata["typer"]
    if kind is bool and not info.param_decls:
        info.param_decls = (f"--{name.replace('_', '-')}",)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=declared.default, annotation=Annotated[kind, info])


SPEC_HELP = "A TOML file that describes the stream. Default: retroact.toml, if it exists."
MISSING_HELP = "Exit with 0, not 5, when an erasure finds no record."
QUIET_HELP = "Print nothing to stderr but errors."
StreamArgument = Annotated[
    str, typer.Argument(metavar="STREAM", help="The folder of a stream, or postgresql://...#name.")
]


@dataclass(frozen=True)
class Secrets:
    """The files that a durable stream has outside its store."""

    key_file: Path | None = option("The secret key. Default: next to the stream, or RETROACT_KEY.", "FILE")
    fence: Path | None = option("The fence file. Default: next to the key.", "FILE")


@dataclass(frozen=True)
class Restoring:
    """What an operator states about a store that is not the latest, or whose fence is lost."""

    restored: bool = flag("The store is an old backup: replay what was published, without new releases.")
    after: int | None = option("The fence is lost, and nothing was published after this round.", "ROUND", min=0)
    erasures_asked: bool = flag("All erasures that a restored store lacks have been requested again.")

    @property
    def given(self) -> dict[str, Any]:
        """What was stated, as `Stream.open` takes it."""
        return {name: value for name, value in asdict(self).items() if value is not None and value is not False}


@dataclass(frozen=True)
class Roles:
    """Which columns of a source have which role."""

    id: str | None = option("The id of a record; '' for none.", "COLUMN")
    subject: str | None = option("The person it belongs to; '' for none.", "COLUMN")
    time: str | None = option("When it happened, for rounds by time.", "COLUMN")
    op: str | None = option("What to do with it (add, delete, ...); '' for none.", "COLUMN")
    position: str | None = option("Its place in the source, such as source.lsn: repeats are absorbed.", "COLUMN")
    stamp: str | None = option("The round from which it counts; '' for none.", "COLUMN")
    round: str | None = option("The number of its round, from 1; '' for none.", "COLUMN")
    optional: list[str] | None = option("A role that records may lack; repeatable.", "ROLE")

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
    """A durable stream."""
    from retroact.stream import Stream

    given = {} if restoring is None else restoring.given
    with Stream.open(where, **vars(secrets), **given) as stream:
        yield stream


def warn_of_debt(stream: Durable) -> None:
    """What is left to do after a restore; shown even when a run is quiet."""
    if stream.debt:
        say(f"warning: {stream.debt}", err=True)
