"""Which nodes of which noise hide a change, and what that costs: of one series, of separate lags, and of lags that
share one noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from ..coins import DiscreteGaussian, DiscreteLaplace
from ..errors import InputError
from ..noise import Mechanism, Rectangle
from ..noise.process import Shift
from ..statistics.restated import Lagged


def nodes_hiding(
    mechanism: Mechanism, coordinate: int, patterns: Sequence[Sequence[int]]
) -> list[tuple[Mechanism, Shift]]:
    """How far nodes move, in units of the data, where a coordinate moves by one pattern over the releases of each
    view."""
    if not isinstance(mechanism, Lagged):
        (pattern,) = patterns
        return [(mechanism, mechanism.process.shift_hiding(pattern))]
    if mechanism.shared:
        return [(mechanism, _cheapest_rectangle(mechanism, coordinate, tuple(map(tuple, patterns))))]
    parts = zip(mechanism.parts, patterns, strict=True)
    return [(part, part.process.shift_hiding(pattern)) for part, pattern in parts]


def cost_of(mechanism: Mechanism, coordinate: int, shift: Shift) -> Fraction:
    """What it costs to move the nodes of one coordinate, in the exact scales of their laws: an epsilon, or a mu^2."""
    total, unit = Fraction(0), mechanism.units[coordinate]
    for (level, value), count in Counter((level, abs(value)) for (level, _), value in shift.items()).items():
        law = mechanism.law(level, unit)
        if isinstance(law, DiscreteLaplace):
            total += count * value / law.scale
        elif isinstance(law, DiscreteGaussian):
            total += count * Fraction(value * mechanism.refinement) ** 2 / law.parameter
    return total


@lru_cache(maxsize=256)
def _cheapest_rectangle(mechanism: Lagged, coordinate: int, patterns: tuple[tuple[int, ...], ...]) -> Shift:
    rectangles = _rectangles([part.process for part in mechanism.parts], patterns)
    return min(rectangles, key=lambda shift: cost_of(mechanism, coordinate, shift))


def _rectangles(processes: Sequence[object], patterns: Sequence[Sequence[int]]) -> list[Shift]:
    """Every rectangle that shows as these patterns (pairs that are never published leave some choice)."""
    parts = [process for process in processes if isinstance(process, Rectangle)]
    amounts = {amount for pattern in patterns for amount in pattern if amount}
    if len(amounts) != 1:
        raise InputError("expected one amount on a rectangle")
    (amount,) = amounts
    shown = {(k, i) for k, pattern in enumerate(patterns) for i, value in enumerate(pattern, 1) if value}
    first, last = min(i for _, i in shown), max(i for _, i in shown)
    found = []
    for start in range(first):
        for end in range(last, len(patterns[0]) + 1):
            for stamp in range(1, last * parts[0].every + 1):
                inside = {
                    (k, i)
                    for k, part in enumerate(parts)
                    for i in range(start + 1, end + 1)
                    if i * part.every - part.lag >= stamp
                }
                if inside == shown:
                    moved = parts[0].rectangle(start, end, stamp)
                    found.append({node: amount * value for node, value in moved.items()})
    if not found:
        raise InputError("expected a rectangle of rounds and past times")
    return found
