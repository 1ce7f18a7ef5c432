"""Which nodes of which noise hide a change: of one series, of separate lags, and of lags that share one noise."""

from __future__ import annotations

from collections.abc import Sequence

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
        return mechanism.moved(coordinate, patterns)
    if mechanism.shared:
        rectangles = _rectangles([part.process for part in mechanism.parts], patterns)
        return [(mechanism, min(rectangles, key=lambda shift: mechanism.cost_of(coordinate, shift)))]
    parts = zip(mechanism.parts, patterns, strict=True)
    return [moved for part, pattern in parts for moved in part.moved(coordinate, [pattern])]


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
