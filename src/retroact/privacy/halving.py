"""Bisection: where a condition changes between two bounds."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

N = TypeVar("N", float, Decimal)


def halved(
    too_low: Callable[[N], bool],
    low: N,
    high: N,
    *,
    grow: float = 1,
    relative: Any = 0,
    absolute: float = 0,
    steps: int = 10_000,
) -> tuple[N, N]:
    """Bounds on the smallest number that is not too low. They end at most ``absolute`` apart, or ``relative`` times the
    upper one, or after ``steps`` halvings. An upper bound that may be too low first grows by the factor ``grow``.

    >>> low, high = halved(lambda x: x * x < 2, 0.0, 1.0, grow=2, relative=1e-9)
    >>> low**2 < 2 <= high**2, high - low < 1e-8
    (True, True)
    """
    while grow > 1 and too_low(high):
        low, high = high, high * grow  # type: ignore[operator]
    for _ in range(steps):
        if high - low <= max(relative * high, absolute):
            break
        middle = (low + high) / 2
        low, high = (middle, high) if too_low(middle) else (low, middle)
    return low, high
