"""How a feed is read and when rounds close: one set of options for files, standard input and frames."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from retroact.errors import InputError
from retroact.schema.messages import show

if TYPE_CHECKING:
    from retroact.stream.grid import Grid

CloseBy = Literal["lines", "progress", "grid", "end"]
Late = Literal["stamp", "refuse"]
CLOSE_BY: tuple[CloseBy, ...] = ("lines", "progress", "grid", "end")
LATE: tuple[Late, ...] = ("stamp", "refuse")
LARGEST_CONTRIBUTION = 10_000
_COUNTS = re.compile(r"(updates?|counts?|rows?|records?|events?|number|n|batch|size|\d+)\b.*", re.IGNORECASE)
_TIMES = re.compile(
    r"(event[-_ ]?)?(times?|timestamps?|clock|date|day|hour|minute|second|watermark)\b.*", re.IGNORECASE
)
_SHIFTS = "then one added or deleted record could shift every later round, which breaks both promises"


@dataclass(frozen=True)
class Options:
    """What the keywords of `play` and the options of `retroact run` say of a feed.

    >>> Options(id="order", close_by="end").close_by
    'end'
    """

    id: str | None = None
    """The column of the id of a record."""
    subject: str | None = None
    """The column of whom a record belongs to."""
    stamp: str | None = None
    """The column of the round a record counts from."""
    round: str | None = None
    """The column of the round an event belongs to."""
    time: str | None = None
    """The column, or dotted path, of when an event happened."""
    grid: Grid | None = None
    """The rounds as spans of time."""
    close_by: CloseBy = "lines"
    """What ends a round."""
    late: Late = "stamp"
    """What becomes of an event whose round on the grid is closed."""
    position: str | None = None
    """The column, or dotted path, of the position of an event in its source: a whole number, different for each."""
    source_name: str | None = None
    """What the source is called where positions are kept; the path of the file as given if absent."""
    contribution: int | None = None
    """The most copies of a record that one event of aggregated input stands for."""
    rounds: int | None = None
    """How many rounds are published."""
    follow: bool = False
    """Whether to wait for more at the end of the input."""
    complete: bool = False
    """Whether the last line is a whole one, though nothing ends it; without that a durable stream leaves it unread."""
    grace: int = 0
    """How many microseconds a followed round on the grid stays open after its time."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "close_by", checked_close_by(self.close_by, grid=self.grid is not None))
        if self.late not in LATE:
            raise InputError(f"expected one of {', '.join(LATE)}, got {show(self.late)}", place="late")
        whole = isinstance(self.contribution, int) and not isinstance(self.contribution, bool)
        if self.contribution is not None and not (whole and 1 <= self.contribution <= LARGEST_CONTRIBUTION):
            raise InputError(
                f"expected a whole number from 1 to {LARGEST_CONTRIBUTION:,}, got {show(self.contribution)}",
                place="contribution",
            )
        if self.grid is None and self.time is not None:
            raise InputError("expected a grid (--start, --length, --end) beside the column of the time", place="time")
        if self.grid is not None and self.rounds is not None:
            raise InputError("expected no number of rounds beside a grid: its end says how many", place="rounds")
        if self.grid is not None and self.time is None and not self.follow:
            raise InputError("expected the column of the time (--time) beside a grid", place="time")
        if self.grid is not None and self.position is not None and not self.follow:
            raise InputError(
                "expected no positions beside a grid: a complete file is played in the order of its rounds, and is "
                "taken up again where it was left",
                place="position",
            )


def checked_close_by(wanted: str, *, grid: bool) -> CloseBy:
    """What ends a round; a count or the records' own times never do.

    >>> checked_close_by("updates:1000", grid=False)
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: rounds never close by the number of updates: then one added or deleted record could
    shift every later round, which breaks both promises. Close them by lines that say so, by progress messages or by a
    grid of time - at close_by
    """
    if grid and wanted in ("lines", "grid"):
        return "grid"
    if wanted in CLOSE_BY:
        if wanted == "grid":
            raise InputError("expected a grid: --start and --length, and --end for a complete file", place="close_by")
        if grid:
            raise InputError(f"expected rounds by the grid or by {wanted}, got both", place="close_by")
        return cast(CloseBy, wanted)
    if isinstance(wanted, str) and _TIMES.fullmatch(wanted):
        raise InputError(
            f"rounds never close by the times that records happen to have: {_SHIFTS}. Name a public grid (--time "
            "COLUMN --start T --length 1h --end T), where the round of a record depends on its own time alone",
            place="close_by",
        )
    if isinstance(wanted, str) and _COUNTS.fullmatch(wanted):
        raise InputError(
            f"rounds never close by the number of updates: {_SHIFTS}. Close them by lines that say so, by progress "
            "messages or by a grid of time",
            place="close_by",
        )
    raise InputError(f"expected one of {', '.join(CLOSE_BY)}, got {show(wanted)}", place="close_by")
