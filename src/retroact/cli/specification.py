"""What to publish, as options of the command line or as a file: either becomes a checked specification."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..feeds.batch import EVERY_RECORD
from ..feeds.source import read_text
from ..messages import show
from ..stream import Specification
from ..stream.columns import Columns
from ..stream.rounds import Rounds
from ..stream.stored import differences
from .gaps import GAP, require_no_gaps
from .options import BUDGET, SPEC_HELP, WHAT, argument, flag, option
from .statistic_options import BOUNDED, described_by
from .toml_lines import naming_lines

DEFAULT_FILE = Path("retroact.toml")
LIMITS = ("delta", "horizon", "window", "records")
STATISTICS = (
    "count", "sum", "mean", "variance", "quantiles", "histogram", "distinct", "kmeans", "ratio", "ridge", "classifier",
    "nearest_mean", "naive_bayes", "covariance", "correlation", "pca", "by",
)  # fmt: skip
MODEL, COLUMNS = "TARGET ~ FIELD,...", "FIELD,..."
_LINE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(frozen=True)
class SpecOptions:
    """What to publish: a file, or statistics by options."""

    spec: Path | None = option(SPEC_HELP, "FILE", group=WHAT)
    count: bool = flag("Count the records.")
    sum: list[str] | None = option("The sum of a field, such as amount:0..500; repeatable.", BOUNDED)
    mean: list[str] | None = option("The mean of a field, such as age:0..120; repeatable.", BOUNDED)
    variance: list[str] | None = option("The variance of a field; repeatable.", BOUNDED)
    quantiles: list[str] | None = option("Quantiles of a field, such as age:0.5,0.9:0..120.", "FIELD[:P,P]:LOW..HIGH")
    histogram: list[str] | None = option("How many records have each value of a field.", "FIELD[,FIELD]")
    distinct: list[str] | None = option("How many different values a field has.", "FIELD[,FIELD]")
    kmeans: list[str] | None = option("K clusters, such as x:0..1,y:0..1:5.", "FIELD:LOW..HIGH,...:K")
    ratio: list[str] | None = option("Two counts or sums, such as 'tip:0..100/fare:0..500'.", "A/B")
    ridge: list[str] | None = option("Regression, such as 'fare:0..300 ~ miles:0..50, car=small,van'.", MODEL)
    classifier: list[str] | None = option("A classifier, such as 'late=yes,no ~ miles:0..50'.", MODEL)
    nearest_mean: list[str] | None = option("The class with the nearest mean.", MODEL)
    naive_bayes: list[str] | None = option("Classes from counts; numbers in ten bins.", MODEL)
    covariance: list[str] | None = option("Covariances, such as x:0..1,y:0..1.", COLUMNS)
    correlation: list[str] | None = option("Correlations, such as x:0..1,y:0..1.", COLUMNS)
    pca: list[str] | None = option("K principal components, such as x:0..1,y:0..1,z:0..1:2.", "FIELD,...:K")
    by: list[str] | None = option(
        "Each statistic for every category; end with * to count all others together.", "FIELD=A,B,..."
    )
    where: list[str] | None = option("Only records for which this holds, such as 'country = DE'.", "CONDITION")
    every: int | None = option("Publish only every N-th round.", "N")
    clip: bool = flag("Move values that are out of bounds to the bound, instead of an error.")
    skip_missing: bool = flag("Leave records that lack a value out of statistics that need it, instead of an error.")
    epsilon: float | None = option("The budget of the whole published sequence. Required with options.", group=BUDGET)
    delta: float | None = option("A value such as 1e-6 means much less noise over many rounds. Default: 0.")
    horizon: int | None = option("The number of rounds, promised in advance. Default: unlimited.")
    window: int | None = option("Count only the records of the last WINDOW rounds.")
    records: int | None = option(
        "About how many records to expect, for expected errors; a public guess, not from the data. Default: 10,000.",
        min=1,
    )

    @property
    def given(self) -> bool:
        """Whether anything says what to publish."""
        return self.asked or DEFAULT_FILE.is_file()

    @property
    def asked(self) -> bool:
        """Whether the command says it, not just a file that happens to lie in the folder."""
        return self.spec is not None or bool(self._options())

    @property
    def file(self) -> Path | None:
        """The specification file, given or found; None when options say it all."""
        options = self._options()
        if self.spec is not None:
            if options:
                raise InputError(f"expected either a specification file or options, got {self.spec} and {options[0]}")
            return self.spec
        if any(getattr(self, name) for name in STATISTICS):
            return None
        if options:
            wanted = f"expected a statistic such as --count with {options[0]}"
            if DEFAULT_FILE.is_file():
                wanted += f"; without one, {DEFAULT_FILE} describes the stream, and the choice belongs there"
            raise InputError(wanted)
        if DEFAULT_FILE.is_file():
            return DEFAULT_FILE
        raise InputError(
            "expected what to publish: a specification file (--spec FILE, or retroact.toml in this folder), or "
            "statistics such as --count --sum amount:0..500 with --epsilon 1"
        )

    @property
    def unread(self) -> str | None:
        """A note on a file that happens to lie in the folder."""
        if self.spec is None and self._options() and DEFAULT_FILE.is_file():
            return f"note: options describe the stream; {DEFAULT_FILE} in this folder is not read"
        return None

    def unread_by(self, store: str) -> str | None:
        """A note on such a file for a stream that exists: its own specification counts."""
        if not self.asked and DEFAULT_FILE.is_file():
            return f"note: {store} has its own specification; {DEFAULT_FILE} in this folder is not read"
        return self.unread

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
            text = _text(path)
            given = _tables(text, path, allowed=() if epsilon is None else ("epsilon",))
            if epsilon is not None and given.get("epsilon", GAP) == GAP:
                given["epsilon"] = epsilon
            with naming_lines(text, str(path)):
                return Specification.from_dict(add_to(given, columns or {}, rounds or {}, declared))
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
        found = {field.name: getattr(self, field.name) for field in fields(SpecOptions) if field.name != "spec"}
        given = [name for name, value in found.items() if value or (value == 0 and value is not False)]
        return [f"--{name.replace('_', '-')}" for name in given]

    def _tables(self) -> dict[str, Any]:
        """The tables [schema] and [statistics] that a file would have."""
        found = described_by(self)
        nothing = {EVERY_RECORD: {"type": "integer", "lower": 0, "upper": 0}}
        return {"schema": found.schema or nothing, "statistics": found.statistics}


@dataclass(frozen=True)
class SpecOrOptions(SpecOptions):
    """What to publish, where the file may also be an argument."""

    described_by: Path | None = argument(SPEC_HELP, "SPEC")

    def __post_init__(self) -> None:
        if self.described_by is not None:
            if self.spec is not None:
                raise InputError("expected one specification, got SPEC and --spec", place="--spec")
            object.__setattr__(self, "spec", self.described_by)


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file without gaps."""
    return _tables(_text(path), path)


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except InputError as error:
        if not path.exists():
            error.hint = "retroact init FILE writes a specification for a file of yours"
        raise


def _tables(text: str, path: Path, *, allowed: Collection[str] = ()) -> dict[str, Any]:
    """The tables of a file. One with gaps, other than the ``allowed`` ones, is refused."""
    try:
        tables = tomllib.loads(text)
        require_no_gaps(text, str(path), allowed)
        return tables
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        line = int(found[1]) if found and found[1] else text.rstrip().count("\n") + 1
        reason = _LINE.sub("", str(error))
        wrong = InputError(f"expected TOML: {reason[:1].lower()}{reason[1:]}")
        raise wrong.found_in(str(path), row=line, unit="line") from None


@contextmanager
def at_options() -> Iterator[None]:
    """An error at a key of [columns] or [rounds] is at the option of that name."""
    try:
        yield
    except InputError as error:
        path = (error.path or "").removeprefix("rounds.").removeprefix("columns.")
        if not path or path.startswith("-"):
            raise
        name = {"late_events": "late", "format": "input-format"}.get(path, path.replace("_", "-"))
        raise error.moved(f"--{name}") from None


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
        texts = tuple(roles.get("na_values", columns.na_values))
        if columns.na_values and texts != columns.na_values:
            wrong = f"expected {show(list(columns.na_values))}, as the specification has it, got {show(list(texts))}"
            raise InputError(wrong, place="--na-values")
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
