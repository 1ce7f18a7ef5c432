"""How rounds are defined: by number, or by a grid of time. Declared with the stream, never derived from the data.

The end of a grid gives the horizon. Nothing here is part of a coin name; but the meaning of a round must not change, so
a durable stream never changes its rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, cast

from ..checks import choice, is_int, positive_int
from ..errors import InputError
from ..messages import check_keys, mismatch, show
from ..noise.process import check_horizon
from .grid import Grid
from .lengths import length_of, length_text

CloseBy = Literal["lines", "progress", "grid", "end"]
Late = Literal["stamp", "refuse"]
CLOSE_BY: tuple[CloseBy, ...] = ("lines", "progress", "grid", "end")
LATE: tuple[Late, ...] = ("stamp", "refuse")
LARGEST_CONTRIBUTION = 10_000
_GRID = tuple(Grid.parameters())
_PLAIN = ("close_by", "late_events", "contribution")
_WAITS = ("grace", "publish_after")


@dataclass(frozen=True)
class Rounds:
    """
    >>> rounds = Rounds.from_spec({"start": "2026-01-01", "length": "1d", "end": "2026-01-08", "grace": "5m"})
    >>> rounds.count, rounds.close_by, rounds.grace
    (7, 'grid', datetime.timedelta(seconds=300))
    >>> Rounds.from_spec(rounds.spec()) == rounds
    True
    >>> Rounds.from_spec({"start": "2026-01-01"})
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected start and length for a grid of rounds - at rounds.length
    """

    grid: Grid | None = None
    """The rounds as spans of time; None if they are only numbered."""
    close_by: CloseBy = "lines"
    """What ends a round."""
    late_events: Late = "stamp"
    """What happens to an addition whose round on the grid is closed."""
    contribution: int | None = None
    """The most copies of a record that one event of aggregated input may stand for."""
    grace: timedelta = timedelta(0)
    """How long after its end a round stays open, if the clock closes it."""
    publish_after: timedelta | None = None
    """How long after its end a round is published, if the clock closes it; by default when it closes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "close_by", checked_close_by(self.close_by, grid=self.grid is not None))
        choice(self.late_events, LATE, "late_events")
        if self.contribution is not None:
            expected = f"a whole number from 1 to {LARGEST_CONTRIBUTION:,}"
            positive_int(self.contribution, "contribution", most=LARGEST_CONTRIBUTION, expected=expected)
        for name in _WAITS:
            if (wait := getattr(self, name)) is not None:
                object.__setattr__(self, name, _wait(wait, name))
            if self.grid is None and getattr(self, name):
                raise InputError("expected a grid (start, length): the clock closes no other rounds", place=name)
        if self.publish_after is not None and self.publish_after < self.grace:
            raise InputError(f"expected no less than the grace of {_shown(self.grace)}", place="publish_after")

    @classmethod
    def from_spec(cls, table: Any, place: str = "rounds") -> Rounds:
        """Read the table of a file; in Python, a grid will do too."""
        if isinstance(table, Rounds):
            return table
        if isinstance(table, Grid):
            return cls(table)
        if not isinstance(table, Mapping):
            raise mismatch("a table such as { start = 2026-01-01, length = '1d' }", table, place)
        check_keys(table, (*_GRID, *_PLAIN, *_WAITS), place)
        try:
            return cls(_grid(table), **{key: value for key, value in table.items() if key not in _GRID})
        except InputError as error:
            raise error.moved((error.path or "").removeprefix("grid ")).under(place) from None

    @property
    def count(self) -> int | None:
        """The number of rounds, if a grid has an end."""
        return None if self.grid is None else self.grid.rounds

    def span(self, round: int) -> tuple[datetime, datetime] | None:
        """When a round of the grid starts and ends, in the time zone of the grid; None without a grid, or after it.

        >>> [time.isoformat() for time in Rounds(Grid("2026-01-01", "1d", time_zone="+01:00")).span(2)]
        ['2026-01-02T00:00:00+01:00', '2026-01-03T00:00:00+01:00']
        """
        grid = self.grid
        if grid is None or (grid.rounds is not None and round > grid.rounds):
            return None
        begins, ends = grid.span(round)
        return begins.astimezone(grid.zone), ends.astimezone(grid.zone)

    def spec(self) -> dict[str, Any]:
        """The table that a file would have; equal for equal rounds."""
        table: dict[str, Any] = {} if self.grid is None else self.grid.spec()
        usual = Rounds(self.grid)
        for name in (*_PLAIN, *_WAITS):
            value = getattr(self, name)
            if value != getattr(usual, name):
                table[name] = _shown(value) if name in _WAITS else value
        return table


def declared_rounds(given: Any) -> tuple[Rounds, int | None]:
    """The rounds of a stream, and their declared number: by the end of a grid, or just a number.

    >>> declared_rounds(12)
    (Rounds(grid=None, close_by='lines', late_events='stamp', contribution=None, grace=datetime.timedelta(0),
    publish_after=None), 12)
    """
    if is_int(given):
        return Rounds(), check_horizon(given, "rounds")
    rounds = Rounds() if given is None else Rounds.from_spec(given)
    return rounds, rounds.count


def _grid(table: Mapping[str, Any]) -> Grid | None:
    given = {key: table[key] for key in _GRID if table.get(key) is not None}
    for key in ("start", "length"):
        if given and key not in given:
            raise InputError("expected start and length for a grid of rounds", place=key)
    return Grid(**given) if given else None


def _wait(given: Any, place: str) -> timedelta:
    if given in (0, "0", "0s", timedelta(0)) and not isinstance(given, bool):
        return timedelta(0)
    try:
        return timedelta(microseconds=length_of(given))
    except InputError as error:
        raise error.moved(place) from None


def _shown(wait: timedelta) -> str:
    return length_text(wait // timedelta(microseconds=1)) if wait else "0s"


def checked_close_by(wanted: str, *, grid: bool) -> CloseBy:
    """What ends a round: never a count, nor the times of the records.

    >>> checked_close_by("updates:1000", grid=False)
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected one of lines, progress, grid, end, got 'updates:1000': rounds never close by a
    count or by the times of records, or one record added or deleted could shift every later round, which breaks both
    promises. Use lines that say so, progress messages, or a public grid (--time COLUMN --start T --length 1h --end T),
    where the round of a record depends on its own time alone - at close_by
    """
    if grid and wanted in ("lines", "grid"):
        return "grid"
    if wanted not in CLOSE_BY:
        raise InputError(
            f"expected one of {', '.join(CLOSE_BY)}, got {show(wanted)}: rounds never close by a count or by the times "
            "of records, or one record added or deleted could shift every later round, which breaks both promises. Use "
            "lines that say so, progress messages, or a public grid (--time COLUMN --start T --length 1h --end T), "
            "where the round of a record depends on its own time alone",
            place="close_by",
        )
    if wanted == "grid":
        raise InputError("expected a grid: --start and --length, and --end for a complete file", place="close_by")
    if grid:
        raise InputError(f"expected rounds by the grid or by {wanted}, got both", place="close_by")
    return cast(CloseBy, wanted)
