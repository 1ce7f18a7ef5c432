"""Texts of one form as times, many at once: they fit the form, or each of them is read by itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import I64

MILLION = 10**6
_DAY = 86400
_EPOCH = date(1970, 1, 1).toordinal()
# two days from the ends of the calendar, offsets decide
_FIRST, _LAST = ((day - _EPOCH) * _DAY * MILLION for day in (date.min.toordinal() + 2, date.max.toordinal()))


def moments_in(texts: Sequence[Any]) -> I64 | None:
    """Timestamps of one form, with an offset, as microseconds since 1970.

    >>> moments_in(["1970-01-01T00:00:01Z", "1970-01-01 00:00:02Z"]), moments_in(["1970-01-01T00:00:01"])
    (array([1000000, 2000000]), None)
    """
    if not _alike(texts):
        return None
    zone = zone_of(texts[0])
    # beyond microseconds, digits would be lost
    return of_form(texts, zone) if zone and 19 <= len(texts[0]) - len(zone) <= 26 else None


def days_in(texts: Sequence[Any]) -> I64 | None:
    """Dates such as 1970-01-02 as days since 1970.

    >>> days_in(["1970-01-02", "1969-12-31"])
    array([ 1, -1])
    """
    found = of_form(texts, "") if _alike(texts) and len(texts[0]) == 10 else None
    return None if found is None else found // (_DAY * MILLION)


def _alike(texts: Sequence[Any]) -> bool:
    return {*map(type, texts)} == {str} and len({*map(len, texts)}) == 1


def zone_of(text: str) -> str:
    """The form of the end of a text: Z, an offset, or neither."""
    return "Z" if text[-1:] == "Z" else "+dd:dd" if len(text) > 10 and text[-6:-5] in ("+", "-") else ""


def of_form(texts: Sequence[str], zone: str) -> I64 | None:
    """Texts of one length as microseconds, rounded down, if all are dates, or all are like 1970-01-01T00:00:00.0 with
    this zone; None otherwise."""
    whole, size = "".join(texts), len(texts[0])
    end = size - len(zone)
    if not whole.isascii() or not (end in (10, 19) or 21 <= end <= 34):
        return None
    form = f"dddd-dd-ddTdd:dd:dd.{'d' * 14}"[:end] + zone
    letters = np.frombuffer(whole.encode(), np.uint8).reshape(-1, size)
    if not all(map(_fits, form, np.ascontiguousarray(letters.T))):
        return None
    cut = min(end, 26)
    try:
        found = np.ascontiguousarray(letters[:, :cut]).view(f"S{cut}")[:, 0].astype("M8[us]").astype(np.int64)
    except ValueError:
        return None
    usual = (found >= _FIRST) & (found < _LAST)
    if zone == "+dd:dd":
        tens, ones = letters[:, [end + 1, end + 4]] - np.int64(48), letters[:, [end + 2, end + 5]] - np.int64(48)
        hour, minute = (10 * tens + ones).T
        usual &= (hour < 24) & (minute < 60)
        found -= np.where(letters[:, end] == ord("-"), -60, 60) * (hour * 60 + minute) * MILLION
    return found if usual.all() else None


def _fits(sign: str, letters: NDArray[np.uint8]) -> bool:
    if sign == "d":
        return bool(letters.min() >= ord("0") and letters.max() <= ord("9"))
    usual = {"T": "T ", "+": "+-"}.get(sign, sign)
    return bool(np.isin(letters, list(usual.encode())).all())
