"""Confidence sets for ratios of noisy totals.

If a ratio r is the true one, top - r * bottom is noise and nothing else: a linear combination whose law is known for
every r. The set of all r for which it stays within the half-width of that law holds the true one with probability
``level``, whatever the totals (Fieller). As the half-width grows by at most that of the bottom's noise for each unit
of r, the set is an interval wherever the bottom is beyond its own half-width, and narrower for a lower level.
"""

from __future__ import annotations

from collections.abc import Callable

# Beside the width of the bounds.
TOLERANCE = 1e-12
STEPS = 100


def ratio_interval(
    top: float,
    bottom: float,
    reach: Callable[[float], float],
    bounds: tuple[float, float],
    *,
    above: float = 0.0,
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
    """Where a falling function turns negative, or the nearer bound (false position, halving the end that stays)."""
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
