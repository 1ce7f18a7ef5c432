"""Which nodes of which noise hide a change, and at what cost: for one series, separate lags, lags that share noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from ..coins import DiscreteGaussian, DiscreteLaplace
from ..errors import InputError
from ..noise import Mechanism, Process, Rectangle
from ..noise.process import Shift
from ..statistics.restated import Lagged

Pattern = tuple[int, ...]
"""How far a coordinate moves in each release."""


def nodes_hiding(mechanism: Mechanism, coordinate: int, patterns: Sequence[Pattern]) -> list[tuple[Mechanism, Shift]]:
    """How far nodes move, in units of the data, to hide one pattern for each view; raises if nothing hides it."""
    if isinstance(mechanism, Lagged) and mechanism.shared:
        rectangles = _rectangles([part.process for part in mechanism.parts], patterns)
        shift = min(rectangles, key=lambda shift: cost_of(mechanism, coordinate, shift))
        _check_hidden([(part, shift) for part in mechanism.parts], patterns)
        return [(mechanism, shift)]
    parts = mechanism.parts if isinstance(mechanism, Lagged) else [mechanism]
    moved = [(part, part.process.shift_hiding(pattern)) for part, pattern in zip(parts, patterns, strict=True)]
    _check_hidden(moved, patterns)
    return moved


def cost_of(mechanism: Mechanism, coordinate: int, shift: Shift) -> Fraction:
    """The cost of moving the nodes of one coordinate, in the exact scales of their laws: an epsilon, or a mu^2."""
    total, unit, by_level = Fraction(0), mechanism.units[coordinate], dict[int, list[int | Fraction]]()
    for (level, _), value in shift.items():
        by_level.setdefault(level, []).append(value)
    for level, values in by_level.items():
        law = mechanism.law(level, unit)
        if isinstance(law, DiscreteLaplace):
            total += sum(abs(Fraction(value)) for value in values) / law.scale
        elif isinstance(law, DiscreteGaussian):
            total += _squares(values) * mechanism.refinement**2 / law.parameter
    return total


def cost_of_squares(mechanism: Mechanism, coordinate: int, squares: Mapping[int, Fraction]) -> Fraction:
    """The same for Gaussian noise, by the sums of the squares at each level."""
    unit, total = mechanism.units[coordinate], Fraction(0)
    for level, square in squares.items():
        law = mechanism.law(level, unit)
        assert isinstance(law, DiscreteGaussian)
        total += square * mechanism.refinement**2 / law.parameter
    return total


def _squares(values: Sequence[int | Fraction]) -> Fraction:
    """Their sum, by one division."""
    common = math.lcm(*{value.denominator for value in values})
    return Fraction(sum((value.numerator * (common // value.denominator)) ** 2 for value in values), common**2)


def _rectangles(processes: Sequence[Process], patterns: Sequence[Pattern]) -> list[Shift]:
    """Every rectangle that gives these patterns (there may be several, since not everything is published)."""
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
                releases = [(k, i, part) for k, part in enumerate(parts) for i in range(start + 1, end + 1)]
                if {(k, i) for k, i, part in releases if i * part.every - part.lag >= stamp} == shown:
                    moved = parts[0].rectangle(start, end, stamp)
                    found.append({node: amount * value for node, value in moved.items()})
    if not found:
        raise InputError("expected a rectangle of rounds and past times")
    return found


def _check_hidden(moved: Sequence[tuple[Mechanism, Shift]], patterns: Sequence[Pattern]) -> None:
    """Checks that moving the nodes by these shifts moves the noise of the releases by exactly these patterns."""
    for (part, shift), pattern in zip(moved, patterns, strict=True):
        if not _hides(part.process, shift, pattern):
            raise InputError(f"expected nodes that move the releases by {list(pattern)}, got {shift}")


def _hides(process: Process, shift: Shift, pattern: Sequence[int]) -> bool:
    for wanted, (nodes, denominator) in zip(pattern, _nodes_until(process, len(pattern)), strict=True):
        if sum(weight * shift.get(node, 0) for node, weight in nodes) != wanted * denominator:
            return False
    return True


@lru_cache(maxsize=64)
def _nodes_until(process: Process, last: int) -> list[tuple[list[tuple[tuple[int, int], int]], int]]:
    """The nodes of each release with their weights, and the denominator of the weights; no nodes for a lag that reaches
    back before the first round."""
    found: list[tuple[list[tuple[tuple[int, int], int]], int]] = []
    for index in range(1, last + 1):
        try:
            terms = process.at(index)
        except InputError:
            found.append(([], 1))
            continue
        nodes = zip(terms.levels.tolist(), terms.indices.tolist(), strict=True)
        found.append((list(zip(nodes, terms.weights.tolist(), strict=True)), terms.denominator))
    return found
