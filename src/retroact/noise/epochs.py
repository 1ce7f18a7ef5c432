"""Noise that goes on after a restart: fresh coins, and one anchor that carries what lasts over the break.

When it is no longer known which rounds were released, the noise of the current coins may not be used any more. The
next epoch has fresh coins and releases the rounds R + 1, ... that no epoch before it released. At most E restarts are
accounted for in advance. Epochs are independent, so what an interval of rounds costs is the sum over the epochs of what
its part in each costs, and rounds that an epoch does not release are free there (docs/proofs.md, 15).

**Anchored** (`Tree`, `Unbounded`): L(shift(s)) = 1[q > s] without a remainder, and later epochs carry
  Z_q = process(q) + anchor.
The part of an interval is: *inside*, a difference of two shifts; a *suffix*, one shift; the *whole* epoch, the anchor;
a *prefix*, 1[q <= e] = 1 - 1[q > e]: the anchor and one shift. **l = max(l, A + E z)**, with z the cost of the anchor
and A that of two ends in different epochs: 2b - 1 for a tree over T rounds of b bits (shift(0) has b nodes and all
others at most b - 1, and e > 0), 2m in the paper's accounting, 1 for `Unbounded`.

**Tilted** (`Schauder`, `Bridge`): L(shift(s)) = 1[q > s] - q/n, so one noise more goes in along the ramp q/n, which
costs r for every end that stands alone. Later epochs carry
  Z_q = process(q) + (q/n - 1/2) * ramp + anchor / 2,
where shift(s) with the ramp is 1[q > s] - 1/2. With the anchor moved by 1 that is a suffix, and its opposite with the
anchor moved by 1 a prefix; the whole epoch moves the anchor by 2. With m levels (h of a bridge)
  **l1 = max(l1, 2m + 2r + (2E - 1) z),   l2_squared = max(l2_squared, 2m + 2r + (4E - 3) z)**.

**Restarted** (all others that are served): the nodes alone hide the parts, and every restart adds at most
``process.restart(p)``.

Spreads of ramp and anchor are 1/r and 1/z. They are chosen for the least worst error; privacy holds for any.
**Retroactivity.** Epoch, nodes and weights depend on the round and on restarts, not on data.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from ..coins.coins import I64
from ..errors import InputError
from .apart import COPY
from .bridge import Bridge
from .patterns import GRID, root
from .process import Process, Shift, Terms, Wrapping, combined, difference, some_rounds
from .schauder import Schauder
from .tree import Tree
from .unbounded import Unbounded

# The last levels of a copy: no process has as many of its own.
ANCHOR, RAMP = COPY - 1, COPY - 2
MOST = 64
# Rounds that the variance is looked at in, and as if there were so many where there is no horizon.
LOOKED_AT, FIRST = 64, 1023
# The square of the ramp where a tree is noisiest, and how much less than a ramp the anchor costs when both add as much.
STEEP = Fraction(4, 9)
HINTS = {"crossed": "use across='lags'", "flips": "use another form"}
RATIO = {1: Fraction(7, 9), 2: Fraction(3, 5)}


class Restarted(Wrapping):
    """Nothing is added: each restart costs what the process says.

    >>> from retroact.noise import Fresh
    >>> Restarted(Fresh(7), 5).l2_squared
    Fraction(7, 1)
    """

    def __init__(self, inner: Process, restarts: int, *, later: bool = False) -> None:
        super().__init__(inner)
        self.restarts, self.later = restarts, later

    @property
    def epochs(self) -> tuple[Process, ...]:
        return (self,)

    def in_epoch(self, epoch: int) -> Process:
        """Epoch 0 is before all restarts; later ones are alike."""
        return self.epochs[min(epoch, len(self.epochs) - 1)]

    def terms(self, rounds: I64) -> Terms:
        return self.inner.terms(rounds)

    def shift(self, boundary: int) -> Shift:
        return self.inner.shift(boundary)

    def hidden(self, pattern: Sequence[int]) -> Shift:
        return self.inner.hidden(pattern)

    @property
    def l1(self) -> Fraction:
        return self.inner.l1 + self.restarts * (self.inner.restart(1) or 0)

    @property
    def l2_squared(self) -> Fraction:
        return self.inner.l2_squared + self.restarts * (self.inner.restart(2) or 0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r}, restarts={self.restarts}{', later=True' * self.later})"


class Anchored(Restarted):
    """
    >>> process = Anchored(Tree(1 << 20), 1)
    >>> float(process.l1), process.epochs[1].variance(1) > process.variance(1)
    (42.5498046875, True)
    """

    @cached_property
    def epochs(self) -> tuple[Process, ...]:
        return tuple(type(self)(self.inner, self.restarts, later=later) for later in (False, True))

    def terms(self, rounds: I64) -> Terms:
        terms = self.inner.terms(rounds)
        one = np.ones((len(rounds), 1), dtype=np.int64)
        return _with(terms, 1, {ANCHOR: one * terms.denominator} if self.later else {})

    def part(self, start: int, end: int, first: int, last: int) -> Shift:
        """The change of the nodes of this epoch that hides the interval start < round <= end, where it releases the
        rounds first < round <= last."""
        if end <= first or last <= start:
            return {}
        if first <= start and end <= last:
            return difference(self.inner.shift(start), self.inner.shift(end))
        if not self.later:
            return self._end(start)
        if start <= first and end >= last:
            return {(ANCHOR, 0): self._whole}
        sign, boundary = (1, start) if start > first else (-1, end)
        # With weight 1 only prefixes move the anchor, with weight 1/2 both do.
        halves = {(ANCHOR, 0): 1} if sign < 0 or self._whole == 2 else {}
        return combined((sign, self._end(boundary)), (1, halves))

    def _end(self, boundary: int) -> Shift:
        """One end alone."""
        return self.inner.shift(boundary)

    @property
    def _whole(self) -> int:
        """How far the anchor moves for a whole epoch."""
        return 1

    def spread(self, level: int, p: int) -> Fraction:
        return 1 / self.anchor(p) if level == ANCHOR else self.inner.spread(level, p)

    def ends(self, p: int) -> Fraction:
        """What two ends in different epochs cost at most without the anchor."""
        if isinstance(self.inner, Tree):
            exact = self.inner.accounting == "exact"
            return Fraction(2 * self.inner.horizon.bit_length() - 1 if exact else 2 * self.inner.height)
        return Fraction(1)

    def anchor(self, p: int) -> Fraction:
        """z, for the least (A + E z)^(3 - p) * (variance + 1 / z^(3 - p))."""
        return _least(self.ends(p) / (self.restarts * self.worst[p]), p)

    @cached_property
    def worst(self) -> dict[int, Fraction]:
        """The largest variance of the process in some rounds, exactly: the same on every machine."""
        terms = self.inner.terms(some_rounds(self.horizon or FIRST, LOOKED_AT))
        levels = np.unique(terms.levels).tolist()
        out = {}
        for p in (1, 2):
            spread = {level: self.inner.spread(level, p) ** (3 - p) for level in levels}
            rows = zip(terms.levels.tolist(), terms.weights.tolist(), strict=True)
            sums = (sum(w * w * spread[level] for level, w in zip(*row, strict=True)) for row in rows)
            out[p] = Fraction(max(sums)) / terms.denominator**2
        return out

    def _norm(self, p: int) -> Fraction:
        return self.ends(p) + self.restarts * self.anchor(p)

    @property
    def l1(self) -> Fraction:
        return max(self.inner.l1, self._norm(1))

    @property
    def l2_squared(self) -> Fraction:
        return max(self.inner.l2_squared, self._norm(2))


class Tilted(Anchored):
    """
    >>> process = Tilted(Schauder(1 << 20), 1)
    >>> float(process.l2_squared), float(process.inner.l2_squared)
    (47.337109375, 44.0)
    """

    inner: Schauder | Bridge

    def terms(self, rounds: I64) -> Terms:
        terms, length, at = self.inner.terms(rounds), self.inner.length, rounds[:, None]
        if not self.later:
            return _with(terms, 1, {RAMP: at})
        return _with(terms, 2, {RAMP: 2 * at - length, ANCHOR: length + 0 * at})

    def _end(self, boundary: int) -> Shift:
        return {**self.inner.shift(boundary), (RAMP, 0): 1}

    @property
    def _whole(self) -> int:
        return 2

    def spread(self, level: int, p: int) -> Fraction:
        return 1 / self.ramp(p) if level == RAMP else super().spread(level, p)

    def ends(self, p: int) -> Fraction:
        return 2 * (self.inner.levels + self.ramp(p))

    def ramp(self, p: int) -> Fraction:
        """r, for the least (2m + K r)^(3 - p) * (variance + 4/9 / r^(3 - p)), K r = 2 r + what the anchors cost."""
        factor = 2 + RATIO[p] * self._anchors(p)
        return _least(2 * self.inner.levels * STEEP / (factor * self.worst[p]), p)

    def anchor(self, p: int) -> Fraction:
        """z, so that later epochs have about the error of the first."""
        return RATIO[p] * self.ramp(p)

    def _anchors(self, p: int) -> int:
        """One prefix and E - 1 whole epochs, in z."""
        return 1 + (self.restarts - 1) * (2 if p == 1 else 4)

    def _norm(self, p: int) -> Fraction:
        return self.ends(p) + self._anchors(p) * self.anchor(p)


def restarted(process: Process, restarts: int, place: str = "noise") -> Restarted:
    """The process with room for so many restarts.

    >>> restarted(Tree(7), 2)
    Anchored(Tree(horizon=7), restarts=2)
    """
    # Exactly these: what is derived from them hides other patterns.
    if type(process) in (Schauder, Bridge):
        return Tilted(process, restarts)
    if type(process) in (Tree, Unbounded):
        return Anchored(process, restarts)
    if process.restart(2) is None:
        hint = HINTS.get(process.name, "use another")
        raise InputError(
            f"its noise ({process.name}) is not known to hide a change across a restart: {hint}", place=place
        )
    return Restarted(process, restarts)


def check_restarts(restarts: int) -> int:
    if isinstance(restarts, bool) or not isinstance(restarts, int) or not 0 <= restarts <= MOST:
        raise InputError(f"expected a whole number between 0 and {MOST}, got {restarts!r}", place="restarts")
    return restarts


def _least(power: Fraction, p: int) -> Fraction:
    degree = 4 - p
    return Fraction(max(1, root(int(power * GRID**degree), degree)), GRID)


def _with(terms: Terms, factor: int, columns: dict[int, I64]) -> Terms:
    """Nodes 0 of further levels, in units of 1 / (denominator * factor)."""
    return Terms(
        np.hstack([terms.levels, *(np.full_like(column, level) for level, column in columns.items())]),
        np.hstack([terms.indices, *(np.zeros_like(column) for column in columns.values())]),
        np.hstack([terms.weights * factor, *columns.values()]),
        terms.denominator * factor,
    )
