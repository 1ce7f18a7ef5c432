"""Keys that come twice in one JSON object: decoders take the last of them without a word, so they are looked for here.

Every key ends in a quote, perhaps blanks, and a colon, so counting those, or all colons, which is quicker, gives no
fewer keys than there are. Where the events of a block have as many, each of them came once, and no line is looked at.
Otherwise every line is decoded into dicts, which have each key once, and only where those have fewer keys than were
counted is a line read key by key.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from retroact.errors import InputError
from retroact.feeds.events import Event
from retroact.messages import show

_decode = msgspec.json.Decoder().decode
_TOLD = [attrgetter(role) for role in ("record", "id", "subject", "stamp", "round")]


def most_keys(text: bytes) -> int:
    """At least as many keys as there are.

    >>> most_keys(b'{"a": 1, "b" : {"c":2}}')
    3
    """
    return text.count(b'":') + text.count(b" :") + text.count(b"\t:") + text.count(b"\r:")


def fewest_keys(events: Sequence[Event], fields: int) -> int:
    """At most as many keys as the lines of native events have, whose records have so many fields."""
    there = [len(events) - list(map(told, events)).count(None) for told in _TOLD]
    return len(events) + there[0] * (1 + fields) + sum(there[1:])


def first_repeated(
    lines: Sequence[bytes], events: Sequence[Event], fields: int | None
) -> tuple[int, InputError] | None:
    """The first of the lines with a key that comes twice; ``fields`` is how many a record of native events has."""
    if fields is not None:
        text, fewest = b"\n".join(lines), fewest_keys(events, fields)
        if text.count(b":") == fewest or most_keys(text) == fewest:
            return None
    return next(((place, wrong) for place, text in enumerate(lines) if (wrong := repeated(text)) is not None), None)


def repeated(text: bytes) -> InputError | None:
    """What to say of a line with a key that comes twice in one object; None where each comes once.

    >>> print(repeated(b'{"op": "add", "record": {"amount": 1, "amount": 2}}'))
    expected every key once, got 'amount' twice - at amount
    >>> repeated(b'{"op": "add", "record": {"op": 1}, "note": "\\\\": "}')
    """
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # refused for that
    if _keys(value) == most_keys(text):
        return None
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            twice.extend([key] if key in seen else [])
            seen.add(key)

    json.loads(text, object_pairs_hook=once)
    if not twice:
        return None
    return InputError(f"expected every key once, got {show(twice[0])} twice", place=twice[0])


def _keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_keys(part) for part in value.values() if isinstance(part, dict | list))
    if isinstance(value, list):
        return sum(_keys(part) for part in value if isinstance(part, dict | list))
    return 0
