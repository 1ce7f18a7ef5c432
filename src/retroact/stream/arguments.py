"""Ids, subjects and stamps at the door: one for a record, or one for each record of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import I64
from ..errors import InputError, Place

Name = str | int
Names = Name | Sequence[Name | None] | None
Stamps = int | Sequence[int] | I64 | None
FARTHEST = 1 << 40


def is_single(name: Any) -> bool:
    return name is None or isinstance(name, str | int | np.integer)


def name_of(value: Any, place: str) -> str | None:
    """Ids and subjects are texts; whole numbers are taken as their decimal text."""
    if value is None or (type(value) is str and value.isascii()):
        if value == "":
            raise InputError("expected a non-empty text, got ''", place=place)
        return value
    # numpy counts lengths of time among the integers
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_ | np.timedelta64):
        return str(int(value))
    if not isinstance(value, str):
        raise InputError(f"expected a text or a whole number, got {type(value).__name__}", place=place)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError("expected valid Unicode text, got a lone surrogate", place=place) from None
    return str(value)


def _are_plain(values: list[Any]) -> bool:
    """Names that need no second look."""
    return {*map(type, values)} <= {str} and "" not in values and "".join(values).isascii()


def as_list(given: Any, place: str) -> list[Any]:
    """Any usual column of names or stamps, as a list of Python values."""
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(given, method):
            listed = getattr(given, method)()
            if isinstance(listed, list):
                return listed
            # one value of numpy, NaT among them, or an array without rows
            raise InputError(f"expected one value or a list of them, got {type(given).__name__}", place=place)
    if isinstance(given, Mapping | bytes) or not hasattr(given, "__iter__"):
        raise InputError(f"expected one value or a list of them, got {type(given).__name__}", place=place)
    return list(given)


def names_of(given: Any, count: int, place: str) -> list[str | None] | str | None:
    """One name for each record, or one for all."""
    if is_single(given):
        return name_of(given, place)
    listed = as_list(given, place)
    if len(listed) != count:
        raise InputError(f"expected {count}, one for each record, got {len(listed)}", place=place)
    if _are_plain(listed):
        return listed
    try:
        return [name_of(value, place) for value in listed]
    except InputError:
        for position, value in enumerate(listed):
            name_of(value, Place(place, position + 1))
        raise


def digests_of(given: Any) -> list[bytes]:
    """One SHA-256 digest or several, as bytes."""
    listed = list(given) if isinstance(given, list | tuple) else [given]
    for digest in listed:
        if not isinstance(digest, bytes) or len(digest) != 32:
            raise InputError(f"expected 32 bytes, got {digest!r}", place="sha256")
    return listed


def required(given: Any, place: str) -> list[str]:
    """One name or several, none of them missing."""
    names, alone = [], is_single(given)
    for row, value in enumerate([given] if alone else as_list(given, place), 1):
        at = place if alone else Place(place, row)
        name = name_of(value, at)
        if name is None:
            raise InputError("expected a text or a whole number, got None", place=at)
        names.append(name)
    return names


def stamp_of(stamp: Any, now: int, row: int | None = None) -> int:
    if stamp is None:
        return now
    if isinstance(stamp, bool | np.bool_ | np.timedelta64) or not isinstance(stamp, int | np.integer) or stamp < 1:
        raise InputError(f"expected a round from 1 on, got {stamp!r}", place="stamp", row=row)
    return min(int(stamp), FARTHEST)


def stamps_of(stamp: Any, count: int, now: int) -> I64 | int:
    if stamp is None or isinstance(stamp, int | np.integer | bool):
        return stamp_of(stamp, now)
    listed = as_list(stamp, "stamp")
    if len(listed) != count:
        raise InputError(f"expected {count} stamps, one for each record, got {len(listed)}", place="stamp")
    return np.array([stamp_of(each, now, row) for row, each in enumerate(listed, 1)], dtype=np.int64)


def require_timely(stamps: I64, now: int, late: bool) -> None:
    """That none are past, where the stream takes no late data."""
    past = stamps < now
    if not late and past.any():
        first = int(np.argmax(past))
        raise InputError(
            f"this stream takes no late data (late=False): expected round {now}, got {stamps[first]}. What it "
            "publishes rests on stamps that are never used again",
            place="stamp",
            row=None if (stamps == stamps[0]).all() else first + 1,
        )
