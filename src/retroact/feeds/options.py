"""How a feed is read and when rounds close: the columns and rounds of the stream, and options of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..checks import choice
from ..errors import InputError
from ..messages import mismatch, show
from ..stream.columns import Columns
from ..stream.rounds import Rounds as Cut
from ..stream.stored import differences
from .refusals import Refusals
from .source import FORMATS

if TYPE_CHECKING:
    from ..stream import Stream


@dataclass(frozen=True)
class Options:
    """What is known about a feed before it is opened.

    >>> Options(Columns.from_spec({"id": "order"}), Cut(close_by="end")).cut.close_by
    'end'
    """

    columns: Columns = field(default_factory=Columns.usual)
    cut: Cut = field(default_factory=Cut)
    source_name: str | None = None
    """What positions are stored under; the path of the file as given, if absent."""
    rounds: int | None = None
    """How many rounds are published."""
    follow: bool = False
    """Whether to wait for more at the end of the input."""
    complete: bool = False
    """Whether a last line without an end is complete; otherwise a durable stream leaves it unread."""
    refusals: Refusals | None = None
    """Where what is refused is noted, so that all of it is found; otherwise the first error ends the feed."""
    format: str | None = None
    """csv, tsv or jsonl; by the name or the content of the source, if absent."""
    delimiter: str | None = None
    """What separates the cells of CSV; found from the header, if absent."""
    until: Any = None
    """On a grid, the end of the last round of which a complete source has everything; by default that of the grid."""

    def __post_init__(self) -> None:
        if self.format is not None:
            choice(self.format, tuple(FORMATS), "format")
        if self.format == "tsv" and self.delimiter not in (None, "\t", "tab"):
            raise InputError("expected no delimiter with tsv, whose cells are separated by tabs", place="delimiter")
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _checked_delimiter(self.delimiter))
        elif self.format == "tsv":
            object.__setattr__(self, "delimiter", "\t")
        if self.cut.grid is not None and self.rounds is not None:
            raise InputError("expected no number of rounds with a grid: its end says how many", place="rounds")
        if self.until is not None:
            if self.cut.grid is None or self.follow:
                raise InputError("expected a complete source on a grid, which ends at this time", place="until")
            self.cut.grid.rounds_until(self.until, "until")
        if self.cut.grid is not None and self.time is None and not self.follow:
            raise InputError("expected the column of the time (--time) with a grid", place="time")
        if self.cut.grid is not None and self.position is not None and not self.follow:
            raise InputError(
                "expected no positions with a grid: a complete file is played in the order of its rounds, and is "
                "taken up again where it was left",
                place="position",
            )

    @property
    def time(self) -> str | None:
        """The column, or dotted path, of the time of an event, if there is a grid."""
        return None if self.cut.grid is None else self.columns.column("time")

    @property
    def last(self) -> int | None:
        """The last round on a grid that this source has everything of."""
        grid = self.cut.grid
        return None if grid is None else grid.rounds if self.until is None else grid.rounds_until(self.until, "until")

    @property
    def position(self) -> str | None:
        """The column, or dotted path, of the position of an event in its source, a unique whole number."""
        return self.columns.column("position")

    @property
    def by_number(self) -> bool:
        """Whether events may have round numbers."""
        return self.cut.grid is None and self.cut.close_by != "end"


def options_for(
    stream: Stream,
    source: str | None,
    roles: Mapping[str, Any],
    cut: Mapping[str, Any],
    *,
    rounds: int | None = None,
    **run: Any,
) -> Options:
    """The columns and rounds of a stream, updated for one source. Declared rounds cannot be changed, nor can columns of
    a durable stream. What cannot be met is refused here, before anything is read. ``run`` are other options of one
    run."""
    spec = stream.specification
    own = spec.columns_of(source)
    columns = own.updated({role: column for role, column in roles.items() if column is not None})
    if columns.has_subjects != spec.has_subjects:
        raise InputError("expected a stream with subjects: its specification names none", place="subject")
    for role, _ in [*own.items(), *columns.items()]:
        if stream.durable and own.column(role) != columns.column(role):
            raise InputError(
                f"expected {_named(own.column(role))}, as this stream has it, got {_named(columns.column(role))}: "
                "columns change by `retroact columns`",
                place=role,
            )
    if stream.durable and own.na_values != columns.na_values:
        raise InputError(
            f"expected {_listed(own.na_values)}, as this stream has it, got {_listed(columns.na_values)}: texts for "
            "missing values change by `retroact columns`",
            place="na_values",
        )
    given = {key: value for key, value in cut.items() if value is not None}
    asked = Cut.from_spec({**spec.rounds.spec(), **given}, "") if given else spec.rounds
    if asked != spec.rounds and (stream.durable or spec.rounds != Cut()):
        changed = "; ".join(differences(spec.rounds.spec(), asked.spec(), "in the stream"))
        raise InputError(
            f"expected the rounds that this stream was made with, got others: {changed}. What a round means never "
            "changes",
            place="rounds",
        )
    if roles.get("time") and asked.grid is None:
        raise InputError("expected a grid (--start, --length, --end) with the column of the time", place="time")
    stream.check_rounds(asked.count if rounds is None else rounds)
    return Options(columns, asked, source, rounds, **run)


def _checked_delimiter(given: str) -> str:
    """
    >>> _checked_delimiter("tab"), _checked_delimiter(";")
    ('\\t', ';')
    """
    found = {"tab": "\t", "\\t": "\t"}.get(given, given)
    if not isinstance(found, str) or len(found) != 1 or found in '"\r\n' or not found.isascii():
        raise mismatch("one character, such as ; or | or tab", given, "delimiter")
    return found


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(map(show, texts)) or "no text for missing values"


def _named(column: str | None) -> str:
    return "no column" if column is None else show(column)
