"""A private median under additions and deletions over a huge ordered domain: the base of the remark on medians.

Two dyadic trees over the rounds, one for the records added, one for those deleted. A node holds a one-shot private
estimate of the distribution function of the records of its rounds (`oneshot.block_cdf.block_cdf`; the error of the one
that the paper cites grows with the domain X like 2^O(log* |X|), that of this one like ln |X|: see
`MedianDesign.error`). Rounds 1 .. l are those of the nodes D(l), one for every binary digit 1 of l, and round l
completes the last of them. The answer is the sum over D(l) of the first tree minus that of the second, made
non-decreasing.

**Privacy.** (epsilon, delta) for one operation. A round counts in at most h = floor(log2 T) + 1 used nodes. An addition
more is one record more in its round of the first tree, and lets at most one later deletion find a record: one more in
the second. A deletion more is one record more in the second tree, and at most one later deletion finds nothing any
more; it has the same stamp and value, so a node with both rounds does not change. Either way at most 2h nodes have one
record more or less and all others are the same. Each is (epsilon / 2h, delta / 2h)-private or better, and these add up,
also where updates are chosen after seeing answers: given all nodes before, the inputs of the next one are settled in
both worlds, and at most 2h of them differ. Everything else is post-processing.
**Retroactivity.** None: what a node published about a record stays in it, and deletions are estimated separately. The
same key gives different answers to a history in which the record never existed. Deleted records are kept for as long as
the trees need them, possibly until the last round.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np

from ..checks import integer, is_int, number, positive_int
from ..coins import Coins, Key
from ..errors import ExhaustedError, InputError
from ..ledger.definition import Add, Update
from ..messages import mismatch
from ..noise.process import check_horizon
from ..oneshot.block_cdf import block_cdf, block_error, estimate, gap_length
from ..privacy import ApproximateDP, Guarantee, check_budget
from .base import NOT_RETROACTIVE, Stateful
from .presence import Survivors

WORD = range(-(1 << 63), 1 << 63)
# Designs to try: block lengths as powers of 5/4 of the smallest, and numbers of blocks in a node.
LENGTHS = 20
MOST_BLOCKS = (1 << 6, 1 << 10, 1 << 14)
# `block_error` promises nothing if one node has a smaller chance of failure.
SMALLEST = 2.0**-40


@dataclass(frozen=True)
class Cumulative:
    """How many records lie up to each value, as steps (value, records up to it), both increasing.

    >>> estimate = Cumulative(((10, 4), (20, 9), (30, 10)))
    >>> estimate.total, estimate.upto(19), estimate.median
    (Fraction(10, 1), Fraction(4, 1), 20)
    """

    steps: tuple[tuple[int, int | Fraction], ...] = ()

    def __post_init__(self) -> None:
        values, counts = [value for value, _ in self.steps], [count for _, count in self.steps]
        if any(a >= b for a, b in pairwise(values)):
            raise InputError("expected rising values, each once", place="steps")
        if any(a > b for a, b in pairwise([0, *counts])):
            raise InputError("expected counts that rise from 0 on", place="steps")

    @property
    def total(self) -> Fraction:
        return Fraction(self.steps[-1][1]) if self.steps else Fraction(0)

    def upto(self, value: int) -> Fraction:
        found = bisect_right(self.steps, value, key=lambda step: step[0])
        return Fraction(self.steps[found - 1][1]) if found else Fraction(0)

    @property
    def median(self) -> int | None:
        """The first value with half of the records up to it; None if there are no records."""
        half = self.total / 2
        return next((value for value, count in self.steps if count >= half), None) if half else None

    @classmethod
    def rising(cls, jumps: dict[int, int]) -> Cumulative:
        """The function with these jumps, made non-decreasing from 0 on: the mean of the largest value before and the
        smallest after. If it was within E of a non-decreasing function, it still is: both of these are.

        >>> Cumulative.rising({1: 4, 2: -2, 3: 6}).steps
        ((1, Fraction(3, 1)), (3, Fraction(8, 1)))
        """
        values = sorted(jumps)
        raw = list(accumulate(jumps[value] for value in values))
        before = accumulate(raw, max, initial=0)
        after = list(accumulate(reversed(raw), min))[::-1]
        next(before)
        steps: list[tuple[int, Fraction]] = []
        last = Fraction(0)
        for value, up, down in zip(values, before, after, strict=True):
            count = Fraction(up + max(down, 0), 2)
            if count != last:
                steps.append((value, count))
            last = count
        return cls(tuple(steps))


def check_ends(lower: int, upper: int) -> None:
    integer(lower, "lower")
    integer(upper, "upper", least=lower, expected=f"an upper end from {lower} on")


@dataclass(frozen=True)
class RankEstimate:
    """The answer of one round: a distribution function, and its median."""

    round: int
    value: Cumulative

    @property
    def median(self) -> int | None:
        return self.value.median

    def encode(self) -> bytes:
        return repr((self.round, *((value, str(count)) for value, count in self.value.steps))).encode()


@dataclass(frozen=True)
class MedianDesign:
    """What does not depend on data. ``records`` bounds the additions of the whole stream, and ``failure`` the chance of
    an error above `error`; only that error relies on either.

    >>> design = MedianDesign(2**16, 15, Fraction(8), Fraction(1, 10**6), 100_000, 1e-3)
    >>> design.nodes, 5_000 < design.error(1e-3) < 10_000
    (8, True)
    """

    size: int
    horizon: int
    epsilon: Fraction
    delta: Fraction
    records: int
    failure: float

    @property
    def nodes(self) -> int:
        """2h: the most nodes that differ."""
        return 2 * self.horizon.bit_length()

    @property
    def node_epsilon(self) -> Fraction:
        return self.epsilon / self.nodes

    @property
    def block(self) -> int:
        """The block length with the smallest error."""
        return _best(self)[0]

    @property
    def node_delta(self) -> Fraction:
        """Delta makes the gaps between blocks shorter, and fail more often: no more of it is used than ``failure``
        allows."""
        return _best(self)[1]

    def error(self, beta: float) -> float:
        """E: with probability 1 - beta, C(x) - N/2 is off by at most E, for all values and rounds at once. Infinite
        where the blocks, which are designed for ``failure``, are too small for a promise.

        A round sums up at most h nodes of each tree. The i-th largest of them holds at most records / i records, and
        the error of one grows with its records. Each of the 2T nodes fails with probability beta / 2T at most. That
        bounds the error of C(x) for all x, N = C(upper) among them, so C(x) - N/2 is off by at most 3/2 of it.

        It grows with the logarithm of the domain: the points of blocks come from the exponential mechanism, which is
        off by 2 (ln |X| + ln(1/share)) / node_epsilon ranks or more, and a block must hold as many records.

        >>> designs = [MedianDesign(2**bits, 15, Fraction(8), Fraction(1, 10**6), 100_000, 1e-4) for bits in (16, 256)]
        >>> [round(design.error(1e-4)) for design in designs]
        [8790, 17346]
        """
        return self.error_of(*_best(self), beta)

    def error_of(self, block: int, delta: Fraction, beta: float) -> float:
        share = beta / (2 * self.horizon)
        if share < SMALLEST:
            return math.inf
        # The most ones in the binary digits of a round up to the horizon.
        ones = (self.horizon + 1).bit_length() - 1
        sizes = [self.records // i for i in range(1, ones + 1)]
        return 3 * math.fsum(block_error(self.size, n, block, self.node_epsilon, delta, share) for n in sizes)


@lru_cache(maxsize=64)
def _best(design: MedianDesign) -> tuple[int, Fraction]:
    """The block length, and the delta of a node."""
    # A quarter of a node's share of failure is for the gaps of its blocks.
    share = Fraction(design.failure) / (8 * design.horizon)
    tried = [
        (math.ceil((gap_length(design.node_epsilon, delta) + 1) * 1.25**k), delta)
        for delta in {min(design.delta / design.nodes, share / most) for most in MOST_BLOCKS}
        for k in range(LENGTHS)
    ]
    error, block, delta = min((design.error_of(block, delta, design.failure), block, delta) for block, delta in tried)
    if math.isinf(error):
        raise InputError(
            f"expected a chance of failure that blocks of records can be made for, got {design.failure!r}: take a "
            "larger one, a larger epsilon, a shorter horizon or a smaller domain",
            place="failure",
        )
    return block, delta


@dataclass
class _Node:
    """A node of D(l): its records, for the nodes above it, and the jumps of its estimate."""

    level: int
    points: list[int]
    jumps: dict[int, int]


@dataclass
class _Tree:
    """One of the two trees, as far as later rounds need it."""

    coins: Coins
    stack: list[_Node] = field(default_factory=list)


class MedianTracker(Stateful):
    """The distribution function, and with it the median, of whole-number values of surviving records.

    ``records`` promises at most that many additions, and ``failure`` is the chance of a larger error that the blocks
    are designed for; `error` relies on both, privacy on neither. Additions have no id; deletions name value and stamp.

    >>> from retroact.ledger.definition import Delete
    >>> tracker = MedianTracker(0, 999, 7, epsilon=40, delta=1e-6, records=4000, key=Key.for_testing(1))
    >>> first = tracker.close([Add(value) for value in range(1000)])
    >>> second = tracker.close([Delete(value, 1) for value in range(500)])
    >>> abs(first.median - 500) < 100, abs(second.median - 750) < 100
    (True, True)
    >>> tracker.error(1e-4) < 1000
    True
    """

    def __init__(
        self,
        lower: int,
        upper: int,
        horizon: int,
        *,
        epsilon: float | Fraction,
        delta: float | Fraction,
        records: int = 1_000_000,
        failure: float = 1e-4,
        key: Key,
    ) -> None:
        check_ends(lower, upper)
        exact = check_budget(epsilon, delta)
        if exact[1] == 0:
            raise InputError("expected a delta above 0: the gaps between blocks need one, got 0", place="delta")
        positive_int(records, "records", most=1 << 40, expected="a number of records between 1 and 2^40")
        number(failure, "failure", "a probability above 0 and below 1", above=0, below=1)
        self.lower, self.upper = lower, upper
        self.design = MedianDesign(upper - lower + 1, check_horizon(horizon), *exact, records, float(failure))
        named = (lower, upper, horizon, *exact, records, float(failure), self.design.block, self.design.node_delta)
        coins = key.coins("median", *(str(part) for part in named))
        self._additions, self._deletions = _Tree(coins.branch("additions")), _Tree(coins.branch("deletions"))
        self._budget = float(epsilon), float(delta)
        self._survivors = Survivors()
        self._round = 0
        key.claim()  # last, so that a tracker that could not be made leaves its key free

    @property
    def guarantee(self) -> Guarantee:
        unit = f"one operation: one addition or one deletion of a record ({NOT_RETROACTIVE})"
        return Guarantee(ApproximateDP(*self._budget), *self._budget, unit=unit)

    def error(self, beta: float) -> float:
        """In ranks relative to the middle, over all rounds and values: `MedianDesign.error`."""
        return self.design.error(beta)

    def close(self, updates: Sequence[Update]) -> RankEstimate:
        if self._round == self.design.horizon:
            raise ExhaustedError(f"all {self._round:,} promised rounds are released; the budget is split among them")
        self._check_values(updates)
        came, went = self._survivors.apply(updates, self._round + 1)
        self._round += 1
        jumps: Counter[int] = Counter()
        for tree, points, sign in ((self._additions, came, 1), (self._deletions, went, -1)):
            # Values equal to a whole number, as 1.0 is to 1, count as that number.
            self._grow(tree, [int(point.value.real) for point in points])  # type: ignore[attr-defined]
            for node in tree.stack:
                for value, jump in node.jumps.items():
                    jumps[value] += sign * jump
        return RankEstimate(self._round, Cumulative.rising(jumps))

    def _check_values(self, updates: Sequence[Update]) -> None:
        for update in updates:
            if isinstance(update, Add) and not (is_int(update.value) and self.lower <= update.value <= self.upper):
                raise mismatch(f"whole numbers in {self.lower} .. {self.upper}", update.value, "updates")

    def _grow(self, tree: _Tree, points: list[int]) -> None:
        """The node that this round completes replaces those below it."""
        level = (self._round & -self._round).bit_length() - 1
        held = list(points)
        while tree.stack and tree.stack[-1].level < level:
            held += tree.stack.pop().points
        design = self.design
        fits = self.lower in WORD and self.upper in WORD
        values = np.array(held, dtype=np.int64) if fits else held
        coins = tree.coins.branch("node", self._round)
        pairs = block_cdf(
            values, self.lower, self.upper, design.block, design.node_epsilon, coins, delta=design.node_delta
        )
        points_at = sorted({value for value, _ in pairs})
        upto = [estimate(pairs, design.block, value) for value in points_at]
        jumps = {value: count - last for value, count, last in zip(points_at, upto, [0, *upto], strict=False)}
        tree.stack.append(_Node(level, held, jumps))
