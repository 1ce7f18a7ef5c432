"""What to publish, as options of the command line or as a file: either becomes a checked specification."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from retroact.cli.options import SPEC_HELP, SpecArgument
from retroact.errors import InputError
from retroact.feeds.batch import EVERY_RECORD
from retroact.feeds.source import read_text
from retroact.messages import show
from retroact.schema import Field
from retroact.stream import Specification
from retroact.stream.columns import Columns
from retroact.stream.rounds import Rounds
from retroact.stream.stored import differences

DEFAULT_FILE = Path("retroact.toml")
STATISTICS = ("count", "sum", "mean", "variance", "by")
LIMITS = ("delta", "horizon", "window", "records")
# What a key of [rounds] is called as an option.
_OPTIONS = {"late_events": "late"}
_BOUNDED = "FIELD:LOW..HIGH[:STEP]"
_BOUNDS = re.compile(r"(?P<field>.+):(?P<lower>[^:]+?)\.\.(?P<upper>[^:]+)(?::(?P<step>[^:]+))?", re.DOTALL)
_LINE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(frozen=True)
class Asked:
    """What was asked for: a file, or statistics by options."""

    spec: SpecArgument = None
    count: Annotated[bool, typer.Option("--count", help="How many records.")] = False
    sum: Annotated[list[str] | None, typer.Option(metavar=_BOUNDED, help="Such as amount:0..500.")] = None
    mean: Annotated[list[str] | None, typer.Option(metavar=_BOUNDED, help="Such as age:0..120.")] = None
    variance: Annotated[list[str] | None, typer.Option(metavar=_BOUNDED, help="As --mean.")] = None
    by: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=A,B,...", help="A count for each declared category.")
    ] = None
    epsilon: Annotated[float | None, typer.Option(help="Over the whole sequence; required.")] = None
    delta: Annotated[float | None, typer.Option(help="Such as 1e-6: much less noise over many rounds.")] = None
    horizon: Annotated[int | None, typer.Option(help="Rounds promised in advance; unbounded if absent.")] = None
    window: Annotated[int | None, typer.Option(help="Only records of the last WINDOW rounds.")] = None
    records: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="About how many records to expect, to judge errors by; 10,000 if absent. Public: not from the data.",
        ),
    ] = None
    every: Annotated[int | None, typer.Option(help="Publish every this many rounds.")] = None
    clip: Annotated[
        bool, typer.Option("--clip", help="Values out of bounds count as the bound, instead of an error.")
    ] = False
    skip_missing: Annotated[
        bool,
        typer.Option(
            "--skip-missing",
            help="Leave a record that lacks a value out of the statistics that need it, instead of an error.",
        ),
    ] = False

    @property
    def given(self) -> bool:
        """Whether anything says what to publish."""
        return self.spec is not None or bool(self._given()) or DEFAULT_FILE.is_file()

    @property
    def file(self) -> Path | None:
        """The specification file, given or found; None when options say it all."""
        options = [f"--{name}" for name in self._given()]
        if self.spec is not None:
            if options:
                raise InputError(f"expected either a specification file or options, got {self.spec} and {options[0]}")
            return self.spec
        if any(getattr(self, name) for name in STATISTICS):
            return None
        if options:
            raise InputError(f"expected a statistic such as --count beside {options[0]}")
        if DEFAULT_FILE.is_file():
            return DEFAULT_FILE
        raise InputError(
            "expected what to publish: a specification file (--spec FILE, or retroact.toml in this folder), or "
            "statistics such as --count --sum amount:0..500 with --epsilon 1"
        )

    def specification(
        self,
        *,
        epsilon: float | None = None,
        columns: Mapping[str, Any] | None = None,
        rounds: Mapping[str, Any] | None = None,
        declared: int | None = None,
    ) -> Specification:
        """The checked specification; ``epsilon`` stands in where none is given, a ``declared`` number of rounds for a
        horizon, and options for roles of columns and the cut of rounds: they may add to a file and not contradict it.
        """
        path = self.file
        if path is not None:
            data = add_to(read_toml(path), columns or {}, rounds or {}, declared)
            return Specification.from_dict(data if epsilon is None else {"epsilon": epsilon, **data}, str(path))
        budget = self.epsilon if self.epsilon is not None else epsilon
        if budget is None:
            raise InputError(
                "expected a budget for the whole published sequence, such as --epsilon 1", place="--epsilon"
            )
        limits = {name: value for name in LIMITS if (value := getattr(self, name)) is not None}
        data = {**self._tables(), "epsilon": budget, **limits}
        if columns is not None:
            data["columns"] = {"ignore": True}
        return Specification.from_dict(add_to(data, columns or {}, rounds or {}, declared))

    def _given(self) -> list[str]:
        """The options that were given, but for the file."""
        found = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "spec"}
        return [name.replace("_", "-") for name, value in found.items() if value or (value == 0 and value is not False)]

    def _tables(self) -> dict[str, Any]:
        """The tables [schema] and [statistics] that a file would have."""
        schema: dict[str, dict[str, Any]] = {}
        statistics: dict[str, dict[str, Any]] = {}
        if self.count:
            statistics["count"] = {"type": "count"}
        for kind, texts in (("sum", self.sum), ("mean", self.mean), ("variance", self.variance)):
            for text in texts or ():
                name, table = _bounded(text, f"--{kind}")
                self._declare(schema, name, table, f"--{kind} {text}")
                _publish(statistics, f"{kind}_{name}", {"type": kind, "field": name}, f"--{kind} {text}")
        for text in self.by or ():
            name, table = _categories(text)
            self._declare(schema, name, table, f"--by {text}")
            _publish(statistics, f"count_by_{name}", {"type": "count", "by": name}, f"--by {text}")
        if self.every is not None:
            statistics = {name: {**table, "every": self.every} for name, table in statistics.items()}
        if not schema:
            schema[EVERY_RECORD] = {"type": "integer", "lower": 0, "upper": 0}
        return {"schema": schema, "statistics": statistics}

    def _declare(self, schema: dict[str, dict[str, Any]], name: str, table: dict[str, Any], place: str) -> None:
        shared: dict[str, Any] = {"missing": "skip"} if self.skip_missing else {}
        if self.clip and table["type"] == "number":
            shared["clip"] = True
        whole = {**table, **shared}
        if schema.setdefault(name, whole) != whole:
            raise InputError(f"expected {name} with the same bounds everywhere, got other ones", place=place)
        Field.from_spec(whole, place)


@dataclass(frozen=True)
class AskedOfRun(Asked):
    """The same, where the file is no argument."""

    spec: Annotated[Path | None, typer.Option(metavar="FILE", help=SPEC_HELP)] = None


def read_toml(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        line = int(found[1]) if found and found[1] else text.rstrip().count("\n") + 1
        reason = _LINE.sub("", str(error))
        wrong = InputError(f"expected TOML: {reason[:1].lower()}{reason[1:]}")
        raise wrong.found_in(str(path), row=line, unit="line") from None


def _bounded(text: str, option: str) -> tuple[str, dict[str, Any]]:
    """
    >>> _bounded("amount:0..500:0.01", "--sum")
    ('amount', {'type': 'number', 'lower': '0', 'upper': '500', 'step': '0.01'})
    """
    parts = _BOUNDS.fullmatch(text)
    if parts is None:
        raise InputError(f"expected a field with its bounds, such as amount:0..500, got {text!r}", place=option)
    name, *numbers = parts.groups()
    keys = zip(("lower", "upper", "step"), numbers, strict=True)
    return name, {"type": "number", **{key: number.strip() for key, number in keys if number is not None}}


def _categories(text: str) -> tuple[str, dict[str, Any]]:
    name, equals, values = text.partition("=")
    if not (name and equals and values):
        raise InputError(f"expected a field with its categories, such as country=DE,FR,US, got {text!r}", place="--by")
    return name, {"type": "category", "values": values.split(",")}


def _publish(statistics: dict[str, dict[str, Any]], name: str, table: dict[str, Any], place: str) -> None:
    if name in statistics:
        raise InputError(f"expected every statistic once, got {name} twice", place=place)
    statistics[name] = table


def as_option(error: InputError) -> InputError:
    """The same error, at an option."""
    path = (error.path or "").removeprefix("rounds.").removeprefix("columns.")
    if not path or path.startswith("-"):
        return error
    return error.moved(f"--{_OPTIONS.get(path, path).replace('_', '-')}")


def add_to(
    data: Mapping[str, Any], roles: Mapping[str, Any], cut: Mapping[str, Any], declared: int | None
) -> dict[str, Any]:
    """Tables with what options say beside them. Where the tables say something else, it is refused.

    >>> add_to({"columns": {"id": "order"}}, {"subject": "customer"}, {}, 12)
    {'columns': {'id': 'order', 'subject': 'customer'}, 'horizon': 12}
    >>> add_to({"columns": {"id": "order"}}, {"id": "nr"}, {}, None)
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected 'order', as the specification has it, got 'nr' - at --id
    """
    tables = dict(data)
    if roles:
        columns = Columns.from_spec(tables["columns"]) if "columns" in tables else Columns.usual()
        asked_for = columns.updated(roles)
        known = {role for role, _ in columns.items()} if columns.given else set()
        for role in known:
            own, other = columns.column(role), asked_for.column(role)
            if own != other:
                raise InputError(
                    f"expected {show(own)}, as the specification has it, got {show(other)}", place=f"--{role}"
                )
        named = {role: column for role, column in roles.items() if role not in known}
        tables["columns"] = columns.updated(named).spec()
    if cut:
        own_cut = tables.get("rounds", {})
        try:
            asked = Rounds.from_spec({**own_cut, **cut})
        except InputError as error:
            raise as_option(error) from None
        if own_cut and asked != Rounds.from_spec(own_cut):
            changed = "; ".join(differences(Rounds.from_spec(own_cut).spec(), asked.spec(), "in the file"))
            raise InputError(f"expected the rounds of the specification, got others: {changed}", place="rounds")
        tables["rounds"] = asked.spec()
    if (
        declared is not None
        and tables.get("horizon") is None
        and Rounds.from_spec(tables.get("rounds", {})).count is None
    ):
        tables["horizon"] = declared
    return tables
