"""How a refused value is quoted: short, and safe whatever the value is."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

import numpy as np

from retroact.errors import InputError

At = Callable[[int], str]
"""From an index of the values at hand to the place that a message names, a `Place` such as `amount, row 3`."""

_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 60


def show(value: object) -> str:
    """The value as a message quotes it, cut to a bearable length.

    >>> show("x"), show(2.5), show(np.float32(0.1)), show(10**9000)
    ("'x'", '2.5', '0.1', 'an integer of 29898 bits')
    """
    if isinstance(value, np.number | np.bool_ | np.datetime64):
        return str(value)
    # Python refuses to write integers of more than 4300 digits
    if isinstance(value, int) and value.bit_length() > 4096:
        return f"an integer of {value.bit_length()} bits"
    try:
        return _brief.repr(value)
    except ValueError:
        return f"a {type(value).__name__} too long to show"


def meant(name: object, known: Iterable[str]) -> str:
    """
    >>> meant("amonut", ["country", "amount"]), meant("x", ["country"])
    (" (did you mean 'amount'?)", '')
    """
    found = get_close_matches(name, known, n=1) if isinstance(name, str) else []
    return f" (did you mean {show(found[0])}?)" if found else ""


def check_keys(table: Iterable[object], known: Sequence[str], place: str) -> None:
    """That a table has no other keys."""
    for key in table:
        if key not in known:
            raise InputError(f"expected {', '.join(known)}, got {show(key)}{meant(key, known)}", place=f"{place}.{key}")


def mismatch(expected: str, value: object, place: str | None) -> InputError:
    """The error in its one form, ready to be raised.

    >>> print(mismatch("a number", "x", "amount, row 3"))
    expected a number, got 'x' - at amount, row 3
    """
    return InputError(f"expected {expected}, got {show(value)}", place=place or None)
