"""What to publish, as options of the command line or as a file: either becomes a checked specification."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from retroact.cli.options import SPEC_HELP, argument, flag, option
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
LIMITS = ("delta", "horizon", "window", "records")
_BOUNDED = "FIELD:LOW..HIGH[:STEP]"
_BOUNDS = re.compile(r"(?P<field>.+):(?P<lower>[^:]+?)\.\.(?P<upper>[^:]+)(?::(?P<step>[^:]+))?", re.DOTALL)
_LINE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")
Tables = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class SpecOptions:
    """What to publish: a file, or statistics by options."""

    spec: Path | None = argument(SPEC_HELP, "SPEC")
    count: bool = flag("Count the records.")
    sum: list[str] | None = option("The sum of a field, such as amount:0..500; repeatable.", _BOUNDED)
    mean: list[str] | None = option("The mean of a field, such as age:0..120; repeatable.", _BOUNDED)
    variance: list[str] | None = option("The variance of a field; repeatable.", _BOUNDED)
    by: list[str] | None = option("Count the records of each category; repeatable.", "FIELD=A,B,...")
    epsilon: float | None = option("The budget of the whole published sequence. Required with options.")
    delta: float | None = option("Such as 1e-6: much less noise over many rounds.")
    horizon: int | None = option("The number of rounds, promised in advance. Default: unlimited.")
    window: int | None = option("Count only the records of the last WINDOW rounds.")
    records: int | None = option(
        "About how many records to expect, for expected errors; a public guess, not from the data. Default: 10,000.",
        min=1,
    )
    every: int | None = option("Publish only every N-th round.", "N")
    clip: bool = flag("Move values that are out of bounds to the bound, instead of an error.")
    skip_missing: bool = flag("Leave records that lack a value out of statistics that need it, instead of an error.")

    @property
    def given(self) -> bool:
        """Whether anything says what to publish."""
        return self.spec is not None or bool(self._options()) or DEFAULT_FILE.is_file()

    @property
    def file(self) -> Path | None:
        """The specification file, given or found; None when options say it all."""
        options = self._options()
        if self.spec is not None:
            if options:
                raise InputError(f"expected either a specification file or options, got {self.spec} and {options[0]}")
            return self.spec
        if self.count or self.sum or self.mean or self.variance or self.by:
            return None
        if options:
            raise InputError(f"expected a statistic such as --count with {options[0]}")
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
        """The checked specification. ``epsilon`` stands in where none is given, and a ``declared`` number of rounds
        for a horizon. Options for columns and rounds may add to a file, and must not contradict it."""
        path = self.file
        if path is not None:
            data = add_to(read_toml(path), columns or {}, rounds or {}, declared)
            return Specification.from_dict(data if epsilon is None else {"epsilon": epsilon, **data}, str(path))
        budget = self.epsilon if self.epsilon is not None else epsilon
        if budget is None:
            message = "expected a budget for the whole published sequence, such as --epsilon 1"
            raise InputError(message, place="--epsilon")
        limits = {name: value for name in LIMITS if (value := getattr(self, name)) is not None}
        data = {**self._tables(), "epsilon": budget, **limits}
        if columns is not None:
            data["columns"] = {"ignore": True}
        return Specification.from_dict(add_to(data, columns or {}, rounds or {}, declared))

    def _options(self) -> list[str]:
        """The options that were given, except the file."""
        found = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "spec"}
        given = [name for name, value in found.items() if value or (value == 0 and value is not False)]
        return [f"--{name.replace('_', '-')}" for name in given]

    def _tables(self) -> dict[str, Any]:
        """The tables [schema] and [statistics] that a file would have."""
        schema: Tables = {}
        statistics: Tables = {"count": {"type": "count"}} if self.count else {}
        asked = [
            (f"--{kind} {text}", f"{kind}_{{}}", {"type": kind}, "field", _bounded(text, f"--{kind}"))
            for kind in ("sum", "mean", "variance")
            for text in getattr(self, kind) or ()
        ]
        asked += [(f"--by {text}", "count_by_{}", {"type": "count"}, "by", _categories(text)) for text in self.by or ()]
        for place, called, statistic, key, (field, table) in asked:
            self._declare(schema, field, table, place)
            name = called.format(field)
            if name in statistics:
                raise InputError(f"expected every statistic once, got {name} twice", place=place)
            statistics[name] = {**statistic, key: field}
        if self.every is not None:
            statistics = {name: {**table, "every": self.every} for name, table in statistics.items()}
        nothing = {EVERY_RECORD: {"type": "integer", "lower": 0, "upper": 0}}
        return {"schema": schema or nothing, "statistics": statistics}

    def _declare(self, schema: Tables, name: str, table: dict[str, Any], place: str) -> None:
        if self.skip_missing:
            table["missing"] = "skip"
        if self.clip and table["type"] == "number":
            table["clip"] = True
        if schema.setdefault(name, table) != table:
            raise InputError(f"expected {name} with the same bounds everywhere, got other ones", place=place)
        Field.from_spec(table, place)


@dataclass(frozen=True)
class RunSpecOptions(SpecOptions):
    """The same, where the file is not an argument."""

    spec: Path | None = option(SPEC_HELP, "FILE")


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
    numbers = {key: number.strip() for key, number in parts.groupdict().items() if number is not None}
    return parts["field"], {"type": "number", **{key: number for key, number in numbers.items() if key != "field"}}


def _categories(text: str) -> tuple[str, dict[str, Any]]:
    name, equals, values = text.partition("=")
    if not (name and equals and values):
        raise InputError(f"expected a field with its categories, such as country=DE,FR,US, got {text!r}", place="--by")
    return name, {"type": "category", "values": values.split(",")}


@contextmanager
def at_options() -> Iterator[None]:
    """An error at a key of [columns] or [rounds] is at the option of that name."""
    try:
        yield
    except InputError as error:
        path = (error.path or "").removeprefix("rounds.").removeprefix("columns.")
        if not path or path.startswith("-"):
            raise
        raise error.moved("--late" if path == "late_events" else f"--{path.replace('_', '-')}") from None


def add_to(
    data: Mapping[str, Any], roles: Mapping[str, Any], cut: Mapping[str, Any], declared: int | None
) -> dict[str, Any]:
    """Tables of a file with what options add to them. A contradiction is refused.

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
        known = {role: own.column for role, own in columns.items()} if columns.given else {}
        for role, own in known.items():
            other = columns.updated(roles).column(role)
            if own != other:
                message = f"expected {show(own)}, as the specification has it, got {show(other)}"
                raise InputError(message, place=f"--{role}")
        added = {role: column for role, column in roles.items() if role not in known}
        tables["columns"] = columns.updated(added).spec()
    if cut:
        own_cut = tables.get("rounds", {})
        with at_options():
            asked = Rounds.from_spec({**own_cut, **cut})
        if own_cut and asked != Rounds.from_spec(own_cut):
            changed = "; ".join(differences(Rounds.from_spec(own_cut).spec(), asked.spec(), "in the file"))
            raise InputError(f"expected the rounds of the specification, got others: {changed}", place="rounds")
        tables["rounds"] = asked.spec()
    open_ended = tables.get("horizon") is None and Rounds.from_spec(tables.get("rounds", {})).count is None
    if declared is not None and open_ended:
        tables["horizon"] = declared
    return tables
