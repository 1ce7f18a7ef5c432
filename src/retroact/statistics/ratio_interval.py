"""Confidence sets for ratios of noisy totals.

For the true ratio r, top - r * bottom is pure noise: a linear combination whose law is known for every r. The set of
all r for which it stays within the half-width of that law contains the true one with probability ``level``, whatever
the totals (Fieller). The half-width grows per unit of r by at most that of the bottom's noise, so the set is an
interval wherever the bottom exceeds its own half-width, and narrower at a lower level.
"""

from __future__ import annotations

from collections.abc import Callable

# Relative to the width of the bounds.
TOLERANCE = 1e-12
STEPS = 100


def ratio_interval(
    top: float, bottom: float, reach: Callable[[float], float], bounds: tuple[float, float], *, above: float = 0.0
) -> tuple[float, float]:
    """All r within the bounds for which -reach(r) - above <= top - r * bottom <= reach(r).

    >>> ratio_interval(50.0, 100.0, lambda r: 10.0, (0.0, 1.0))
    (0.4, 0.6)
    """
    return (
        _turn(lambda r: top - r * bottom - reach(r), *bounds),
        _turn(lambda r: top - r * bottom + reach(r) + above, *bounds),
    )


def _turn(falling: Callable[[float], float], low: float, high: float) -> float:
    """Find where a decreasing function turns negative, or the nearer bound (the Illinois method)."""
    above, below = falling(low), falling(high)
    if above <= 0 or high <= low:
        return low
    if below >= 0:
        return high
    wide, found, side = high - low, low, 0
    for _ in range(STEPS):
        before, found = found, low + (high - low) * (above / (above - below))
        value = falling(found)
        if value == 0 or abs(found - before) <= TOLERANCE * wide:
            break
        if value > 0:
            low, above, below, side = found, value, below / 2 if side > 0 else below, 1
        else:
            high, below, above, side = found, value, above / 2 if side < 0 else above, -1
    return found
