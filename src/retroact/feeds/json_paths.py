"""Single values out of JSON lines, without a look at the rest: times and positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from retroact.feeds.events import key_of
from retroact.messages import mismatch
from retroact.stream.open_round import LARGEST


def picker(places: Sequence[tuple[str, ...]]) -> Callable[[bytes], Any]:
    """A function from a line to what it holds at the first of these places that holds something, or to None.

    >>> pick = picker([("after", "lsn"), ("before", "lsn")])
    >>> pick(b'{"after": {"lsn": 7}, "before": null}'), pick(b'{"after": null, "before": {"lsn": 6}}'), pick(b"null")
    (7, 6, None)
    """
    # anything may stand where an object is expected: such a line holds nothing at that place
    decoders = [msgspec.json.Decoder(_nested(place)).decode for place in places]

    def pick(line: bytes) -> Any:
        for decode, place in zip(decoders, places, strict=True):
            try:
                value: Any = decode(line)
                for _ in place:
                    value = None if value is None else value.at
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            if value is not None:
                return value
        return None

    return pick


def _nested(place: tuple[str, ...]) -> Any:
    kind: Any = Any
    for name in reversed(place):
        kind = msgspec.defstruct("At", [("at", kind, msgspec.field(name=key_of(name), default=None))], gc=False) | None
    return kind


def position_of(value: Any, place: str) -> int:
    """A position as a whole number."""
    number = value
    if isinstance(value, str) and len(value) < 30 and value.isascii() and value.removeprefix("-").isdigit():
        number = int(value)
    if type(number) is not int:
        raise mismatch("a whole number, the position of the event", value, place)
    if not -LARGEST < number < LARGEST:
        raise mismatch("a whole number below 2^62, the position of the event", value, place)
    return number
