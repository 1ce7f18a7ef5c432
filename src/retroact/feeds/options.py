"""How a feed is read and when rounds close: the columns and rounds of the stream, and options of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..messages import show
from ..stream.columns import Columns
from ..stream.rounds import Rounds as Cut
from ..stream.stored import differences
from .refusals import Refusals

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

    def __post_init__(self) -> None:
        if self.cut.grid is not None and self.rounds is not None:
            raise InputError("expected no number of rounds beside a grid: its end says how many", place="rounds")
        if self.cut.grid is not None and self.time is None and not self.follow:
            raise InputError("expected the column of the time (--time) beside a grid", place="time")
        if self.cut.grid is not None and self.position is not None and not self.follow:
            raise InputError(
                "expected no positions beside a grid: a complete file is played in the order of its rounds, and is "
                "taken up again where it was left",
                place="position",
            )

    @property
    def time(self) -> str | None:
        """The column, or dotted path, of the time of an event, if there is a grid."""
        return None if self.cut.grid is None else self.columns.column("time")

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
    follow: bool = False,
    complete: bool = False,
) -> Options:
    """The columns and rounds of a stream, updated for one source. Declared rounds cannot be changed, nor can columns of
    a durable stream. What cannot be met is refused here, before anything is read."""
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
        raise InputError("expected a grid (--start, --length, --end) beside the column of the time", place="time")
    stream.check_rounds(asked.count if rounds is None else rounds)
    return Options(columns, asked, source, rounds, follow, complete)


def _named(column: str | None) -> str:
    return "no column" if column is None else show(column)
