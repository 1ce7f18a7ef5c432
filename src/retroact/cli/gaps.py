"""Gaps in a specification file: public choices that `retroact init` leaves to people."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..errors import InputError

GAP = "FILL IN"
"""A value that is still to be chosen. It is a text, so that the file is TOML for every editor."""
CHOICES = {
    "epsilon": "the budget of the whole published sequence, such as 1.0",
    "delta": "a small probability, far below 1 / records, such as 1e-6; or 0",
    "horizon": "the number of rounds that will be published, such as 12 (a single file without times is one round)",
    "records": "a public guess of how many records there will be, such as 10000",
    "lower": "the smallest value that can occur",
    "upper": "the largest value that can occur",
    "step": "the precision to keep, such as 0.01, or 1 for whole numbers",
    "clip": "true (values out of bounds are moved to the bound) or false (they are refused)",
    "missing": '"skip" (values may be missing) or "error" (records without one are refused)',
    "values": 'the list of categories, such as ["A", "B", "C"]',
    "dimension": "the number of coordinates of a vector",
    "radius": "the largest length of a vector",
    "start": 'the start of the first round, such as "2026-01-01"',
    "end": 'the end of the last round, such as "2027-01-01"',
    "length": 'the length of a round, such as "1d", "1w" or "1mo"',
    "time_zone": 'the zone of dates, such as "UTC" or "Europe/Berlin"',
    "k": "the number of clusters",
}
"""What each gap is for."""
_QUOTED = re.compile(rf"\"{GAP}\"|'{GAP}'")
_NUMBERED = re.compile(rf"{GAP} (\d+)")


def gaps_in(text: str, allowed: Collection[str] = ()) -> list[InputError]:
    """An error for each gap in a file, except the ``allowed`` ones, in the order of its lines.

    >>> for error in gaps_in('epsilon = 1 # not "FILL IN"\\n[schema]\\na = { type = "number", lower = "FILL IN" }'):
    ...     print(error)
    expected the smallest value that can occur, got a gap ("FILL IN") - at schema.a.lower, line 3
    """
    found = list(_QUOTED.finditer(text))
    if not found:
        return []
    numbers = iter(range(len(found)))
    marked = tomllib.loads(_QUOTED.sub(lambda _: f'"{GAP} {next(numbers)}"', text))
    errors = {}
    for path, number in _paths(marked):
        if path not in allowed:
            what = CHOICES.get(path.rpartition(".")[2], "a value")
            line = text.count("\n", 0, found[number].start()) + 1
            errors[number] = InputError(expected=what, found=f'a gap ("{GAP}")', place=path, row=line, unit="line")
    return [errors[number] for number in sorted(errors)]


def require_no_gaps(text: str, source: str, allowed: Collection[str] = ()) -> None:
    """Refuse a file with gaps, and name them all."""
    errors = [error.found_in(source, row=error.row, unit="line") for error in gaps_in(text, allowed)]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("gaps in the specification", errors)


def _paths(value: Any, path: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _paths(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for part in value:
            yield from _paths(part, path)
    elif isinstance(value, str) and (found := _NUMBERED.fullmatch(value)):
        yield path, int(found[1])
