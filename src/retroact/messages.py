"""How messages quote a value: short, exact, and safe for any value."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from .errors import InputError

At = Callable[[int], str]
"""From the index of a value to the place that a message names, such as `amount, row 3`."""

MOST_NAMES = 20
"""How many names a message lists."""
_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 60


def show(value: object) -> str:
    """
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


def plural(count: float, noun: str) -> str:
    """
    >>> plural(1, "round"), plural(1200, "round"), plural(1, "erasure")
    ('1 round', '1,200 rounds', '1 erasure')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def hint(name: object, known: Iterable[str]) -> str:
    """What a wrong name was probably meant to be.

    >>> hint("amonut", ["country", "amount"]), hint("x", ["country"])
    (" (did you mean 'amount'?)", '')
    """
    from difflib import get_close_matches  # slow to import, and needed for errors alone

    found = get_close_matches(name, known, n=1) if isinstance(name, str) else []
    return f" (did you mean {show(found[0])}?)" if found else ""


def no_such(name: object, known: Iterable[object]) -> KeyError:
    """For mappings that people look into.

    >>> no_such("cuont", ["count", "revenue"])
    KeyError("expected one of count, revenue, got 'cuont' (did you mean 'count'?)")
    """
    names = list(known)
    shown = [each if isinstance(each, str) else show(each) for each in names[:MOST_NAMES]]
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    texts = [each for each in names if isinstance(each, str)]
    return KeyError(f"expected one of {', '.join(shown) or 'none'}{more}, got {show(name)}{hint(name, texts)}")


class Named(dict[Any, Any]):
    """A dictionary that says what there is, when somebody looks for something else.

    >>> Named({"Rome": 3, "Oslo": 1})["Rom"]
    Traceback (most recent call last):
    ...
    KeyError: "expected one of Rome, Oslo, got 'Rom' (did you mean 'Rome'?)"
    """

    def __missing__(self, name: object) -> Any:
        raise no_such(name, self)


def check_keys(table: Collection[object], known: Collection[str], place: str, needed: Collection[str] = ()) -> None:
    """Refuse a table with unknown keys, or without one that is needed."""
    before = f"{place}." if place else ""
    for key in table:
        if key not in known:
            raise InputError(
                f"expected only {', '.join(known)}, got {show(key)}{hint(key, known)}", place=f"{before}{key}"
            )
    for key in needed:
        if key not in table:
            raise InputError(f"expected {key}, which is missing", place=f"{before}{key}")


def mismatch(expected: str, value: object, place: str | None) -> InputError:
    """
    >>> print(mismatch("a number", "x", "amount, row 3"))
    expected a number, got 'x' - at amount, row 3
    """
    return InputError(expected=expected, found=show(value), place=place)


def decimal_text(number: Fraction) -> str | None:
    """The exact decimal text without exponent; None if the expansion never ends.

    >>> decimal_text(Fraction(-5, 4)), decimal_text(Fraction(500)), decimal_text(Fraction(1, 3))
    ('-1.25', '500', None)
    """
    most = number.denominator.bit_length()
    if pow(10, most, number.denominator):
        return None
    places = next(places for places in range(most + 1) if 10**places % number.denominator == 0)
    digits = str(abs(number.numerator) * 10**places // number.denominator).zfill(places + 1)
    sign = "-" if number < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def exact_text(number: Fraction) -> str:
    """The decimal text if there is one, otherwise a fraction."""
    return decimal_text(number) or str(number)
