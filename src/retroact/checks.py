"""Checks of arguments. Each returns the value, or raises an `InputError` that says what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeGuard

import numpy as np

from .messages import mismatch


def is_int(value: object) -> TypeGuard[int]:
    """A Python int, but not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_integral(value: object) -> TypeGuard[int]:
    """An integer of Python or numpy, but not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float | Fraction]:
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)


def integer(
    value: Any, place: str, *, least: int | None = None, most: int | None = None, expected: str = "a whole number"
) -> int:
    """A whole number between two inclusive bounds.

    >>> integer(3, "lag", least=0)
    3
    >>> integer(-1, "lag", least=0, expected="lags of whole rounds from 0 on")
    Traceback (most recent call last):
    retroact.errors.InputError: expected lags of whole rounds from 0 on, got -1 - at lag
    """
    if not is_int(value) or (least is not None and value < least) or (most is not None and value > most):
        raise mismatch(expected, value, place)
    return value


def positive_int(value: Any, place: str, *, most: int | None = None, expected: str = "a whole number from 1 on") -> int:
    return integer(value, place, least=1, most=most, expected=expected)


def number(
    value: Any,
    place: str,
    expected: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> int | float | Fraction:
    """A number between two bounds, inclusive (``least``, ``most``) or exclusive (``above``, ``below``); never a NaN.

    >>> number(0.5, "level", "a level between 0 and 1", above=0, below=1)
    0.5
    >>> number(1, "level", "a level between 0 and 1", above=0, below=1)
    Traceback (most recent call last):
    retroact.errors.InputError: expected a level between 0 and 1, got 1 - at level
    """
    if (
        not is_number(value)
        or value != value
        or (least is not None and value < least)
        or (above is not None and value <= above)
        or (most is not None and value > most)
        or (below is not None and value >= below)
    ):
        raise mismatch(expected, value, place)
    return value


def flag(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise mismatch("true or false", value, place)
    return value


def choice(value: Any, choices: Sequence[Any], place: str) -> Any:
    """
    >>> choice("laplac", ("gaussian", "laplace"), "law")
    Traceback (most recent call last):
    retroact.errors.InputError: expected 'gaussian' or 'laplace', got 'laplac' - at law
    """
    if value not in choices:
        *others, last = map(repr, choices)
        raise mismatch(f"{', '.join(others)} or {last}" if others else last, value, place)
    return value


def as_fraction(value: object) -> Fraction | None:
    """The number as it is written: 0.1 is one tenth, "1/3" one third; None for anything else.

    >>> as_fraction(0.1), as_fraction("1/3"), as_fraction("x")
    (Fraction(1, 10), Fraction(1, 3), None)
    """
    try:
        return Fraction(str(value)) if is_number(value) or isinstance(value, str) else None
    except (ValueError, ZeroDivisionError):
        return None


def from_text(value: Any) -> Any:
    """Specifications hold exact numbers as texts; other values are returned unchanged."""
    return (as_fraction(value) or value) if isinstance(value, str) else value
