"""Both ends of an interval of values for a quantile, by tests on the way down the tree.

Let D(x) be the number of records below offset x minus p times the number of all: it never decreases, and the quantile q
has D(q) <= 0 <= D(q + 1). The noisy D(x) differs from it by a combination of nodes whose half-width h(x) is known
(`Spread`). The lower end is a descent that goes right of a middle x only where the noisy D(x) is below -h(x), so with a
chance of (1 - level) / 2 it passes a quantile that lies left of x; the upper end goes left only where it is above h(x).
Each takes the outermost offset of the interval where it ends, so ties and gaps inside cost nothing.

Values close in rank are tested for the same thing with different noise, and enough such tests would find any answer.
So there are few:
- a half that may well be empty is no reason to leave the other one: its far end has already been tested;
- a descent ends at an interval that holds hardly anything, and after a few small ones, sooner where one half has it
  all: from there on it would look for a single value, which the noise hides.

docs/proofs.md, 9, says what is proved and what is measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..noise import Spread
from .value_tree import ValueTree

# In deviations of the noise at the middle of an interval: counts at which a descent ends, or an interval is small.
ENDS, SMALL = 0.3, 4.0
# The most small intervals, and how many of them one with everything in one half counts for.
FEW, ALIKE = 5, 3
# What a half must hold to be worth a turn: in deviations of a node, and as a fraction of a small interval.
FILLED, PART = 1.5, 0.25


def value_bounds(
    tree: ValueTree, probabilities: Sequence[float], levels: Sequence[float]
) -> dict[float, list[tuple[int, int]]]:
    """The bounds of each level: the first and the last offset of an interval for every probability."""
    ways = []
    for level in levels:
        for p in probabilities:
            most, rank = tree.most_noise(p, level), tree.rank(p)
            ways += [_Way(p, level, side, most, tree.total, rank) for side in (-1, 1)]
    going, one = ways, float(tree.denominator)
    for depth in range(tree.bits):
        going = [way for way in going if way.goes_on(tree, one)]
        if not going:
            break
        tree.look_ahead({way.prefix for way in going}, depth)
        one *= 2
        for way in going:
            way.turn(tree, one)
    ends = [way.end(tree.bits) for way in ways]
    pairs = list(zip(ends[::2], ends[1::2], strict=True))
    size = len(probabilities)
    return {level: pairs[i * size : (i + 1) * size] for i, level in enumerate(levels)}


class _Way(msgspec.Struct):
    """A descent to the lower (side -1) or upper end (1); count and rank are over denominator * 2^depth."""

    p: float
    level: float
    side: int
    most: tuple[float, float]
    """The largest deviation and half-width of the noise: few tests are close enough to need more."""
    count: int
    rank: int
    prefix: int = 0
    depth: int = 0
    small: int = 0
    """Small intervals so far."""

    def goes_on(self, tree: ValueTree, one: float) -> bool:
        """A record is ``one`` at this depth."""
        if self.count > SMALL * one * self.most[0]:
            return True
        deviation = self._noise(tree).deviation * one
        self.small += self.count <= SMALL * deviation
        return self.small <= FEW and self.count > ENDS * deviation

    def turn(self, tree: ValueTree, one: float) -> None:
        """Turn to the left half or the right one; a record is ``one`` at their depth."""
        left = tree.left(self.depth, self.prefix, self.count)
        right = 2 * self.count - left
        over, inner = left - 2 * self.rank, left if self.side > 0 else right
        reach = self.most[1] * one
        if abs(over) <= reach:
            reach = self._noise(tree).half_width(self.level) * one
        to_right = over < self.side * reach
        if inner <= (PART * 2 * self.count if self.small else FILLED * tree.deviation * one):
            to_right = self.side > 0
            self.small += (ALIKE - 1) * (self.small > 0)
        self.depth, self.prefix = self.depth + 1, 2 * self.prefix + to_right
        self.count, self.rank = (right, 2 * self.rank - left) if to_right else (left, 2 * self.rank)

    def _noise(self, tree: ValueTree) -> Spread:
        return tree.noise_at_middle(self.depth, self.prefix, self.p)

    def end(self, bits: int) -> int:
        """The outermost offset of the last interval."""
        width = 1 << (bits - self.depth)
        return self.prefix * width + (width - 1 if self.side > 0 else 0)
