"""What to publish, as options of the command line or as a file: either becomes a checked specification."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retroact.errors import InputError

if TYPE_CHECKING:
    from retroact.stream import Specification

DEFAULT_FILE = Path("retroact.toml")
_STATISTICS, _BUDGET = "Statistics, in place of a file", "Budget, in place of a file"
_BOUNDS = re.compile(r"(?P<field>.+):(?P<lower>[^:]+?)\.\.(?P<upper>[^:]+)(?::(?P<step>[^:]+))?", re.DOTALL)
_LINE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")

SpecOption = Annotated[
    Path | None, typer.Option("--spec", metavar="FILE", help="The stream as a TOML file; retroact.toml if it is there.")
]
SpecArgument = Annotated[
    Path | None, typer.Argument(metavar="[SPEC]", help="The stream as a TOML file; retroact.toml if it is there.")
]
CountOption = Annotated[bool, typer.Option("--count", help="How many records.", rich_help_panel=_STATISTICS)]
SumOption = Annotated[
    list[str] | None,
    typer.Option("--sum", metavar="FIELD:LOW..HIGH[:STEP]", help="Such as amount:0..500.", rich_help_panel=_STATISTICS),
]
MeanOption = Annotated[
    list[str] | None,
    typer.Option("--mean", metavar="FIELD:LOW..HIGH[:STEP]", help="Such as age:0..120.", rich_help_panel=_STATISTICS),
]
VarianceOption = Annotated[
    list[str] | None,
    typer.Option("--variance", metavar="FIELD:LOW..HIGH[:STEP]", help="As --mean.", rich_help_panel=_STATISTICS),
]
ByOption = Annotated[
    list[str] | None,
    typer.Option(
        "--by", metavar="FIELD=A,B,...", help="A count for each declared category.", rich_help_panel=_STATISTICS
    ),
]
ClipOption = Annotated[
    bool,
    typer.Option(
        "--clip", help="Values out of bounds count as the bound, instead of an error.", rich_help_panel=_STATISTICS
    ),
]
SkipOption = Annotated[
    bool,
    typer.Option(
        "--skip-missing",
        help="Leave a record that lacks a value out of the statistics that need it, instead of an error.",
        rich_help_panel=_STATISTICS,
    ),
]
EpsilonOption = Annotated[
    float | None, typer.Option("--epsilon", help="Over the whole sequence; required.", rich_help_panel=_BUDGET)
]
DeltaOption = Annotated[
    float | None,
    typer.Option("--delta", help="Such as 1e-6: much less noise over many rounds.", rich_help_panel=_BUDGET),
]
HorizonOption = Annotated[
    int | None,
    typer.Option("--horizon", help="Rounds promised in advance; unbounded if absent.", rich_help_panel=_BUDGET),
]
WindowOption = Annotated[
    int | None, typer.Option("--window", help="Only records of the last so many rounds.", rich_help_panel=_BUDGET)
]
RecordsOption = Annotated[
    int | None,
    typer.Option(
        "--records",
        min=1,
        help="About how many records to expect, to judge errors by; 10,000 if absent. Public: not from the data.",
        rich_help_panel=_BUDGET,
    ),
]
EveryOption = Annotated[
    int | None, typer.Option("--every", help="Publish every so many rounds.", rich_help_panel=_BUDGET)
]
AllowMissingOption = Annotated[
    bool, typer.Option("--allow-missing", help="Not exit code 5 when an erasure finds no record.")
]


@dataclass(frozen=True)
class Asked:
    """What was asked for: a file, or statistics by options."""

    spec: Path | None = None
    count: bool = False
    sums: list[str] = field(default_factory=list)
    means: list[str] = field(default_factory=list)
    variances: list[str] = field(default_factory=list)
    by: list[str] = field(default_factory=list)
    clip: bool = False
    skip_missing: bool = False
    epsilon: float | None = None
    delta: float | None = None
    horizon: int | None = None
    window: int | None = None
    records: int | None = None
    every: int | None = None

    @property
    def given(self) -> bool:
        """Whether anything says what to publish."""
        return self.spec is not None or any(self._given().values()) or DEFAULT_FILE.is_file()

    @property
    def file(self) -> Path | None:
        """The specification file, given or found; None when options say it all."""
        options = [f"--{name}" for name, value in self._given().items() if value]
        if self.spec is not None:
            if options:
                raise InputError(f"expected either a specification file or options, got {self.spec} and {options[0]}")
            return self.spec
        if self._statistics_given():
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
        from retroact.cli.declaring import add_to
        from retroact.stream import Specification

        path = self.file
        if path is not None:
            data = add_to(read_toml(path), columns or {}, rounds or {}, declared)
            return Specification.from_dict(data if epsilon is None else {"epsilon": epsilon, **data}, str(path))
        budget = self.epsilon if self.epsilon is not None else epsilon
        if budget is None:
            raise InputError(
                "expected a budget for the whole published sequence, such as --epsilon 1", place="--epsilon"
            )
        data = {**self._tables(), "epsilon": budget, **self._limits()}
        if columns is not None:
            data["columns"] = {"ignore": True}
        return Specification.from_dict(add_to(data, columns or {}, rounds or {}, declared))

    def _given(self) -> dict[str, Any]:
        budget = {"epsilon": self.epsilon, "delta": self.delta, "horizon": self.horizon, "window": self.window}
        budget["records"] = self.records
        others = {"every": self.every, "clip": self.clip, "skip-missing": self.skip_missing}
        return {
            **self._statistics_given(),
            **{name: value not in (None, False) for name, value in (budget | others).items()},
        }

    def _statistics_given(self) -> dict[str, Any]:
        every = {"count": self.count, "sum": self.sums, "mean": self.means, "variance": self.variances, "by": self.by}
        return {name: value for name, value in every.items() if value}

    def _limits(self) -> dict[str, Any]:
        limits = {"delta": self.delta, "horizon": self.horizon, "window": self.window, "records": self.records}
        return {name: value for name, value in limits.items() if value is not None}

    def _tables(self) -> dict[str, Any]:
        """The tables [schema] and [statistics] that a file would have."""
        from retroact.feeds.events import EVERY_RECORD

        schema: dict[str, dict[str, Any]] = {}
        statistics: dict[str, dict[str, Any]] = {}
        if self.count:
            statistics["count"] = {"type": "count"}
        for kind, texts in (("sum", self.sums), ("mean", self.means), ("variance", self.variances)):
            for text in texts:
                name, table = _bounded(text, f"--{kind}")
                self._declare(schema, name, table, f"--{kind} {text}")
                _publish(statistics, f"{kind}_{name}", {"type": kind, "field": name}, f"--{kind} {text}")
        for text in self.by:
            name, table = _categories(text)
            self._declare(schema, name, table, f"--by {text}")
            _publish(statistics, f"count_by_{name}", {"type": "count", "by": name}, f"--by {text}")
        if self.every is not None:
            statistics = {name: {**table, "every": self.every} for name, table in statistics.items()}
        if not schema:
            schema[EVERY_RECORD] = {"type": "integer", "lower": 0, "upper": 0}
        return {"schema": schema, "statistics": statistics}

    def _declare(self, schema: dict[str, dict[str, Any]], name: str, table: dict[str, Any], place: str) -> None:
        from retroact.schema import Field

        shared: dict[str, Any] = {"missing": "skip"} if self.skip_missing else {}
        if self.clip and table["type"] == "number":
            shared["clip"] = True
        whole = {**table, **shared}
        if schema.setdefault(name, whole) != whole:
            raise InputError(f"expected {name} with the same bounds everywhere, got other ones", place=place)
        Field.from_spec(whole, place)


def read_toml(path: Path) -> dict[str, Any]:
    from retroact.feeds.source import read_text

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
