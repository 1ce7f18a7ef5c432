"""Fields as they stand in a specification file: `amount = { type = "number", lower = 0, upper = 500 }`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from retroact.errors import InputError
from retroact.messages import mismatch, show
from retroact.schema.bytes_field import Bytes
from retroact.schema.field import Field
from retroact.schema.numbers import Integer, Number
from retroact.schema.text_and_category import Boolean, Category, Text
from retroact.schema.times import Date, Timestamp
from retroact.schema.vector import Vector

# for each type: the field, the keys it needs, the keys it may have
_KINDS: dict[str, tuple[Callable[..., Field], tuple[str, ...], tuple[str, ...]]] = {
    "number": (Number, ("lower", "upper"), ("step", "clip", "missing")),
    "integer": (Integer, ("lower", "upper"), ("clip", "missing")),
    "boolean": (Boolean, (), ("missing",)),
    "category": (Category, ("values",), ("missing",)),
    "text": (Text, (), ("missing",)),
    "bytes": (Bytes, (), ("missing",)),
    "date": (Date, ("lower", "upper"), ("clip", "missing")),
    "timestamp": (Timestamp, ("lower", "upper"), ("step", "clip", "missing")),
    "vector": (Vector, ("dimension", "radius", "step"), ("clip", "missing")),
}


def from_spec(mapping: Mapping[str, Any], place: str) -> Field:
    """The field that a table of a TOML or JSON file describes; `Field.spec()` is one such table.

    >>> from_spec({"type": "number", "lower": 0, "upper": 500, "step": 0.01}, "schema.amount")
    Number(0, 500, step=0.01)
    >>> from_spec({"type": "number", "lower": 0, "uper": 500}, "schema.amount")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected the keys type, lower, upper, step, clip, missing, got 'uper' - at schema.amount
    """
    if not isinstance(mapping, Mapping):
        raise mismatch("a table with a type", mapping, place)
    kind = mapping.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise mismatch(f"a type, one of {', '.join(_KINDS)}", kind, place)
    make, needed, optional = _KINDS[kind]
    for key in mapping:
        if key not in ("type", *needed, *optional):
            raise InputError(
                f"expected the keys {', '.join(('type', *needed, *optional))}, got {show(key)}", place=place or None
            )
    for key in needed:
        if key not in mapping:
            raise InputError(f"expected the key {key!r}, got only {', '.join(mapping)}", place=place or None)
    try:
        return make(**{key: value for key, value in mapping.items() if key != "type"})
    except InputError as error:
        raise error.under(place) from None
