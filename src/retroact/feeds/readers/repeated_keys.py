"""Keys that come twice in one JSON object, of which decoders silently take the last.

Every key ends in a quote, perhaps blanks, and a colon, so counting those, or all colons, which is faster, gives at
least the number of keys. Decoded values have each key once: if those of a block have as many as were counted, no key
came twice. Otherwise lines are counted one by one, and a line that has fewer keys than were counted is read key by key.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ...messages import show

_DEEPER = (dict, list)
_LARGE = 4096
"""The size in bytes from which all colons are examined at once."""
_PIECE = 1 << 16
"""The bytes that are examined at a time, which stay in the cache."""
_BLANKS = 16
"""More blanks before a colon count as a key."""


def most_keys(text: bytes) -> int:
    """An upper bound on the number of keys.

    >>> most_keys(b'{"a": 1, "b" : {"c":2}}')
    3
    """
    if len(text) < _LARGE:
        return text.count(b'":') + text.count(b" :") + text.count(b"\t:") + text.count(b"\r:")
    letters = np.frombuffer(text, np.uint8)
    count, spaced = 0, [np.zeros(0, np.int64)]
    for begin in range(0, len(letters) - 1, _PIECE):
        part = letters[begin : begin + _PIECE + 1]
        before, colons = part[:-1], part[1:] == ord(":")
        count += int(np.count_nonzero(colons & (before == ord('"'))))
        spaced.append(begin + np.flatnonzero(colons & (before <= ord(" "))))
    places = np.concatenate(spaced)
    for _ in range(_BLANKS):
        # back over the blanks, to see whether there is a quote
        places = places[places > 0] - 1
        count += int(np.count_nonzero(letters[places] == ord('"')))
        places = places[letters[places] <= ord(" ")]
        if not places.size:
            break
    return count + len(places)


def keys_in(values: Sequence[Any]) -> int:
    """The number of keys of decoded values, at any depth.

    >>> keys_in([{"a": 1, "b": {"c": 2}}, [{"d": 3}], 4])
    4
    """
    count = 0
    while values:
        objects = [value for value in values if type(value) is dict]
        count += sum(map(len, objects))
        inner: list[Any] = [part for value in objects for part in value.values() if type(part) in _DEEPER]
        values = inner + [part for value in values if type(value) is list for part in value if type(part) in _DEEPER]
    return count


def first_repeated(lines: Sequence[bytes], values: Sequence[Any]) -> tuple[int, InputError] | None:
    """The place of the first line with a key that comes twice in one object, and the error; ``values`` are the lines,
    decoded.

    >>> place, error = first_repeated([b'{"op": "add", "op": "delete"}'], [{"op": "delete"}])
    >>> print(error)
    expected every key once, got 'op' twice - at op
    >>> first_repeated([b'{"record": {"op": 1}, "note": "\\\\": "}'], [{"record": {"op": 1}, "note": '": '}])
    """
    whole = b"\n".join(lines)
    if keys_in(values) in (whole.count(b":"), most_keys(whole)):
        return None
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            twice.extend([key] if key in seen else [])
            seen.add(key)

    for place, (line, value) in enumerate(zip(lines, values, strict=True)):
        if keys_in([value]) != most_keys(line):
            json.loads(line, object_pairs_hook=once)
        if twice:
            return place, InputError(f"expected every key once, got {show(twice[0])} twice", place=twice[0])
    return None
