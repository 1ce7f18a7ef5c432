"""Single values of JSON lines, by where they stand: times and positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retroact.errors import Place
from retroact.messages import mismatch
from retroact.stream.open_round import LARGEST


def value_at(line: Any, places: Sequence[tuple[str, ...]]) -> Any:
    """What a decoded line holds at the first of these places that holds something, or None.

    >>> places = [("after", "lsn"), ("before", "lsn")]
    >>> value_at({"after": {"lsn": 7}}, places), value_at({"after": None, "before": {"lsn": 6}}, places)
    (7, 6)
    """
    for place in places:
        value = line
        for name in place:
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def position_of(value: Any, column: str, row: int) -> int:
    """A position as a whole number."""
    number = value
    if isinstance(value, str) and len(value) < 30 and value.isascii() and value.removeprefix("-").isdigit():
        number = int(value)
    if type(number) is not int:
        raise mismatch("a whole number, the position of the event", value, Place(column, row + 1))
    if not -LARGEST < number < LARGEST:
        raise mismatch("a whole number below 2^62, the position of the event", value, Place(column, row + 1))
    return number
