"""How a command declares its options, and those that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import Field, asdict, dataclass, field, fields, is_dataclass
from enum import Enum
from inspect import Parameter, getdoc, signature
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import click

from ..errors import InputError
from .console import say
from .progress import busy
from .statistic_options import listed

if TYPE_CHECKING:
    from ..stream import Durable

METAVARS = {int: "INTEGER", float: "NUMBER", str: "TEXT"}


def option(
    help: str, metavar: str | None = None, *names: str, group: str | None = None, default: Any = None, **limits: Any
) -> Any:
    """A field of a dataclass that is an option of a command. Its type is that of the field: text (with ``words=`` if it
    is one of several), a number (with ``min=`` and ``max=``), a path, an enumeration, a list for an option that
    repeats. In the help, the option and those after it in the dataclass stand under the heading ``group``."""
    about = {"kind": click.Option, "help": help, "metavar": metavar, "names": names, "limits": limits, "group": group}
    return field(default=default, metadata=about)


def flag(help: str, *names: str, group: str | None = None) -> Any:
    """An option that is given or not, such as ``--count``; there is no ``--no-count``."""
    return option(help, None, *names, group=group, default=False)


def argument(help: str, metavar: str) -> Any:
    """An argument that may be left out; as an annotation of a parameter without a default, one that may not."""
    return field(default=None, metadata={"kind": click.Argument, "help": help, "metavar": metavar})


class GroupedOptions(click.Command):
    """Lists its options in groups, those without one last."""

    headings: Mapping[str | None, str]
    """The headings of options, by name; an option without a group has none."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        others: list[tuple[str, str]] = []
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                heading = self.headings.get(option.name)
                (others if heading is None else sections.setdefault(heading, [])).append(record)
        for heading, records in [*sections.items(), ("Other options" if sections else "Options", others)]:
            with formatter.section(heading):
                formatter.write_dl(records)


class OneOf(click.Choice[str]):
    """Words that the help and the shell offer. Whoever reads the option refuses all others, and says why."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value


def command(function: Callable[..., None]) -> click.Command:
    """A command of the program. A parameter that is a dataclass stands for all its fields, each of which is an option;
    any other has its option as an annotation.

    >>> @command
    ... def show(name: Annotated[str, argument("Of whom.", "NAME")], restoring: Restoring) -> None:
    ...     print(name, restoring.after)
    >>> show(["orders", "--after", "3"], standalone_mode=False)
    orders 3
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[click.Parameter] = []
    headings: dict[str | None, str] = {}
    for name, parameter in signature(function).parameters.items():
        if name in groups:
            kinds = get_type_hints(groups[name])
            heading = None
            for own in fields(groups[name]):
                parameters.append(_parameter(own.name, kinds[own.name], own, own.default))
                heading = own.metadata.get("group") or heading
                headings |= {own.name: heading} if heading else {}
        else:
            kind, declared = get_args(hints[name])
            parameters.append(_parameter(name, kind, declared, parameter.default))
            headings |= {name: heading} if (heading := declared.metadata.get("group")) else {}

    def call(**given: Any) -> None:
        # an option that repeats is None where it was not given
        values = {name: (list(value) or None) if isinstance(value, tuple) else value for name, value in given.items()}
        made = {name: kind(**{own.name: values.pop(own.name) for own in fields(kind)}) for name, kind in groups.items()}
        function(**made, **values)

    made = GroupedOptions(function.__name__, callback=call, params=parameters, help=getdoc(function))
    made.headings = headings
    return made


def _parameter(name: str, kind: Any, declared: Field[Any], default: Any) -> click.Parameter:
    if isinstance(kind, UnionType):
        kind = get_args(kind)[0]
    about, repeats = declared.metadata, get_origin(kind) is list
    if repeats:
        kind = get_args(kind)[0]
    if about["kind"] is click.Argument:
        # a text may be a file or a folder: shells complete it
        values = click.Choice(kind) if issubclass(kind, Enum) else click.Path(path_type=kind)
        needed = default is Parameter.empty
        metavar = about["metavar"] if needed else f"[{about['metavar']}]"
        return click.Argument([name], type=values, help=about["help"], metavar=metavar, required=needed)
    names = about["names"] or [f"--{name.replace('_', '-')}"]
    settings: dict[str, Any] = {"help": about["help"], "multiple": repeats}
    if kind is bool:
        settings["is_flag"] = True
    else:
        type = _type(kind, about["limits"])
        metavar = about["metavar"] or (None if isinstance(type, OneOf) else METAVARS.get(kind))
        settings |= {"type": type, "metavar": metavar}
    if default is not None:
        settings |= {"default": default, "show_default": kind is not bool}
    return click.Option([name, *names], **settings)


def _type(kind: Any, limits: dict[str, Any]) -> Any:
    if kind is Path:
        return click.Path(path_type=Path)
    if issubclass(kind, Enum):
        return click.Choice(kind)
    if "words" in limits:
        return OneOf(limits["words"])
    if limits:
        return (click.IntRange if kind is int else click.FloatRange)(**limits)
    return kind


WHAT, COLUMNS, BUDGET, ROUNDS, INPUT, OUTPUT, STORE, RESTORED = (
    "What to publish", "Columns", "Budget and horizon", "Rounds", "Input", "Output", "Store and key", "After a restore",
)  # fmt: skip
"""The groups of options in the help of commands."""
SPEC_HELP = "A TOML file that describes the stream. Default: retroact.toml, if it exists."
MISSING_HELP = "Exit with 0, not 5, when an erasure finds no record."
TESTING_HELP = "The testing key that the stream was made with: for tests only."
QUIET_HELP = "Print nothing to stderr but errors."
StreamArgument = Annotated[str, argument("The folder of a stream, or postgresql://...#name.", "STREAM")]
TestingKey = Annotated[int | None, option(TESTING_HELP, "SEED", group=STORE)]


@dataclass(frozen=True)
class Secrets:
    """The files that a durable stream has outside its store."""

    key_file: Path | None = option("The secret key. Default: next to the stream, or RETROACT_KEY.", "FILE", group=STORE)
    fence: Path | None = option("The fence file. Default: next to the key.", "FILE")


@dataclass(frozen=True)
class Restoring:
    """What an operator states about a store that is not the latest, or whose fence is lost."""

    restored: bool = flag(
        "The store is an old backup: replay what was published, without new releases.", group=RESTORED
    )
    after: int | None = option("The fence is lost, and nothing was published after this round.", "ROUND", min=0)
    erasures_asked: bool = flag("All erasures that a restored store lacks have been requested again.")

    @property
    def given(self) -> dict[str, Any]:
        """What was stated, as `Stream.open` takes it."""
        return {name: value for name, value in asdict(self).items() if value is not None and value is not False}


@dataclass(frozen=True)
class Roles:
    """Which columns of a source have which role."""

    id: str | None = option("The id of a record; '' for none.", "COLUMN", group=COLUMNS)
    subject: str | None = option("The person it belongs to; '' for none.", "COLUMN")
    time: str | None = option("When it happened, for rounds by time.", "COLUMN")
    op: str | None = option("What to do with it (add, delete, ...); '' for none.", "COLUMN")
    position: str | None = option("Its place in the source, such as source.lsn: repeats are absorbed.", "COLUMN")
    stamp: str | None = option("The round from which it counts; '' for none.", "COLUMN")
    round: str | None = option("The number of its round, from 1; '' for none.", "COLUMN")
    optional: list[str] | None = option("A role that records may lack; repeatable.", "ROLE")
    na_values: list[str] | None = option("Texts in CSV that stand for a missing value; repeatable.", "TEXT,...")

    @property
    def table(self) -> dict[str, Any]:
        """The roles as the table [columns] of a specification."""
        given = asdict(self)
        texts = given.pop("na_values")
        given["na_values"] = texts and [part for text in texts for part in listed(text)]
        optional = given.pop("optional") or []
        named = {role: column for role, column in given.items() if column is not None}
        for role in optional:
            if not named.get(role):
                raise InputError(f"expected a role that is named, such as --{role} COLUMN", place="--optional")
            named[role] = {"column": named[role], "optional": True}
        return named


@contextmanager
def opened(
    where: str, secrets: Secrets, testing_key: int | None, restoring: Restoring | None = None
) -> Iterator[Durable]:
    """A durable stream."""
    from ..coins import Key
    from ..stream import Stream

    key = None if testing_key is None else Key.for_testing(testing_key)
    given = {} if restoring is None else restoring.given
    with busy("opening the stream"):
        stream = Stream.open(where, key=key, **vars(secrets), **given)
    with stream:
        yield stream


def warn_of_debt(stream: Durable) -> None:
    """What is left to do after a restore; shown even when a run is quiet."""
    if stream.debt:
        say(f"warning: {stream.debt}", err=True)
