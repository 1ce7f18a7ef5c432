"""An interior point in a domain of any number of bits. The records needed grow with the logarithm of that number at
depth 1, and with the square of the depth for deeper trees, whatever the domain (`LevelPlan`)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ..arrays import U64
from ..checks import from_text, number, positive_int
from ..coins import Coins
from ..coins.exact_cdf import exp_minus
from ..errors import InputError
from ..oneshot.base import BOTTOM, Bottom, Contract
from ..oneshot.exponential import Values, Weights, choose, interior_point, ordered
from ..oneshot.ordered_domain import Decode, Ordered, check_beta, laplace, log_up
from ..oneshot.quantiles import interior_records
from ..schema import Schema
from .trie import branchings, deepest, heavy_path

# Weights of epsilon (gate, test, last choice, choice of a level) and of beta (test, last choice, level) for one level:
# about the best for epsilon 1, delta 10^-6 and 16 to 8192 bits.
WEIGHTS = Fraction(368, 1000), Fraction(184, 1000), Fraction(200, 1000), Fraction(248, 1000)
FAILURES = Fraction(2, 10), Fraction(5, 10), Fraction(3, 10)
# Far above what `Weights` cuts off.
LEAST_DELTA = Fraction(1, 2**100)


def tail(epsilon: Fraction, probability: Fraction) -> int:
    """A k from 1 on for which discrete Laplace noise of scale 1/epsilon is k or more with this probability at most:
    P(X >= k) = q^k / (1 + q), q = exp(-epsilon).

    >>> tail(Fraction(1), Fraction(1, 10**6))
    14
    """
    q = Fraction(max(exp_minus(epsilon, 128) - 1, 0), 1 << 128)
    return max(1, math.ceil(log_up(1 / (probability * (1 + q))) / epsilon))


@dataclass(frozen=True)
class LevelPlan:
    """All the numbers of one level of `tree_log`: functions of the public arguments.

    **The split.** Privacy adds up along the depth, and so do the records that are needed: each level takes 2 ends + 2
    half off, and what is left goes to the next. So every level gets the same: the weights (g, t, l) for each of depth r
    and i for the choice at the bottom, of Z_r = r (g + t + l) + i in all. The rest, for a tree of depth r - 1, is
    Z_(r-1) / Z_r of what there was, and gives its level as much as this one has. (What n terms A_j / x_j need is least,
    for a given sum of x, with x_j in proportion to sqrt(A_j), and these terms are alike on all levels.) delta is
    divided in the same way, in 2 parts for each level, and beta by `FAILURES`.

    **Records.** Let d be the whole depth, Z = Z_d <= d, L = ln(2d / delta) and B = ln(6d / beta). On every level the
    gate has g epsilon / Z, the test t epsilon / Z and the last choice l epsilon / Z; part = delta / 2d; of beta the
    test has beta / 5d or more, the last choice beta / 2d or more. What is left at depth r is epsilon_r >= epsilon / Z
    and delta_r >= delta / d. So reach <= 1 + L Z / (g epsilon); least <= 2 + (1 + 2^-30) L Z / ((1 - g) epsilon); the
    test passes from 2 + (L + B) Z / (t epsilon) on; ends <= 1 + B Z / (l epsilon). A level takes O(d (L + B) /
    epsilon), all of them O(d^2 (L + B) / epsilon), and the choice at the bottom, among the d-fold logarithm b of the
    domain, O(d (ln b + B) / epsilon): quadratic in the depth. A split that leaves a fixed part of epsilon to the next
    level takes a factor more on each.

    >>> [LevelPlan.of(bits, Fraction(1), Fraction(1, 10**6), 0.05, 1).records for bits in (16, 32, 64, 256, 1024, 8192)]
    [294, 300, 306, 317, 329, 345]
    >>> [LevelPlan.of(64, Fraction(1), Fraction(1, 10**6), 0.05, depth).records for depth in range(1, 6)]
    [306, 999, 2149, 3778, 5907]
    """

    gate: Fraction
    test: Fraction
    last: Fraction
    inner: Fraction
    inner_delta: Fraction
    inner_beta: Fraction
    heavy: int
    """The gate counts as heavy from this value of gamma."""
    certain: int
    """A test passes from this value."""
    deep: int
    """How many of the deepest values determine the node."""
    ends: int
    """How many of the smallest, and of the largest, values stay out of the tree."""
    records: int
    """How many values it needs."""

    @classmethod
    def of(cls, bits: int, epsilon: Fraction, delta: Fraction, beta: float | Fraction, depth: int) -> LevelPlan:
        if not LEAST_DELTA <= delta < 1:
            raise InputError(f"expected a number from 2^-100 to below 1, got {float(delta)!r}", place="delta")
        *own, choice = WEIGHTS
        gate, test, last = (weight / (depth * sum(own) + choice) * epsilon for weight in own)
        inner = epsilon - gate - test - last
        part = delta / (2 * depth)
        inner_delta = delta - 2 * part
        tested, chosen, found = FAILURES
        whole = depth * (tested + chosen) + found
        lost = [tested / whole * Fraction(beta), chosen / whole * Fraction(beta)]
        inner_beta = Fraction(beta) - sum(lost)
        # A little more than the logarithm makes up for the rounding of weights.
        least = 1 + math.ceil(log_up(1 / (delta - part)) * (1 + Fraction(1, 2**30)) / (epsilon - gate))
        reach = tail(gate, part)
        heavy = least - 1 + reach
        certain = 1 + tail(test, part)
        half = max(heavy + reach - 1, certain - 1 + tail(test, lost[0]))
        ends = math.ceil(log_up(3 / lost[1]) / last)
        if depth == 1:
            rest = interior_records(bits + 1, inner, float(inner_beta))
        else:
            rest = cls.of(bits.bit_length(), inner, inner_delta, inner_beta, depth - 1).records
        records = 2 * ends + 2 * half + rest
        return cls(gate, test, last, inner, inner_delta, inner_beta, heavy, certain, 2 * half, ends, records)


def tree_log(
    values: Values, bits: int, epsilon: Fraction, delta: Fraction, beta: float | Fraction, coins: Coins, depth: int = 1
) -> int | Bottom:
    """A value that is neither below all of the values nor above all, with probability 1 - beta for `LevelPlan.records`
    values or more of 0 .. 2^bits - 1; for fewer, any value or BOTTOM.

    Take the ``ends`` smallest and largest values away; M is what is left, none of fewer than 2 ends. gamma is the
    largest lighter child on the heavy path of the trie of M (`heavy_path`). If gamma + noise >= heavy (and there is a
    branching node, gamma > 0): choose among the branching nodes by the weight of the lighter child, and answer with the
    largest value of the left half of the node. Otherwise, the level of a value is the depth at which it leaves the
    heavy path; find a level y in the middle of the levels of all but the ``deep`` deepest values (by the exponential
    mechanism, or for depth > 1 by `tree_log` on levels), and the node at depth y that most of the deepest share, if a
    test says that it is safe; and choose among the two ends and the two middle values of that node by the score
    min(#{x <= c}, #{x >= c}) over all values.

    **Privacy.** (epsilon, delta) for one value more or less. Let D' be D with x more; write e1, e2, e3, e4 for gate,
    test, last and inner, e5 = e2 + e3 + e4, and epsilon = e1 + e5. M' is M with one value more, or M. gamma' - gamma is
    0 or 1. Let g = least, the noise of the gate be ``reach`` or more with probability a at most, heavy = g - 1 + reach,
    and t = heavy + reach - 2.

    1. *Heavy branch, gamma' >= g: (e5, d5).* The lighter children of nodes that branch in M move by 0 or 1, and at most
       one node branches again, with weight 1. Let p be its probability in D', where another node has weight gamma'.
       Given that it is not chosen, the exponential mechanisms on the old nodes are within a factor e^e5 of each other.
       So P'(S) <= e^e5 P(S) + p, and P(S) - e^e5 P'(S) <= P(S) - (1 - p) P(S) <= p; and p <= e^(-e5 (gamma' - 1)) <=
       d5.
    2. *Light branch, gamma <= t: (e5, d2 + d4).* Levels are common prefixes with the heavy leaf. If both leaves agree,
       M' has one level more. If they part at a node u, then by one value more on the side that was lighter, so u weighs
       at most 2 gamma + 1, and 2 gamma + 2 <= deep in M'. The values below u are the deepest ones in both, and all
       other levels agree. In either case the deepest ones have x in the place of one of theirs, which joins the others
       with its level unchanged (or nothing or x joins): one level more, (e4, d4); and for each y the counts by prefix
       move by at most one up and one down. d = floor((c1 - c2) / 2) of the two largest counts is 1-sensitive then, and
       if the largest is another one, d <= 1 in both. So either the node agrees, and the test costs e2, or both tests
       pass with probability d2 at most, d2 = P(noise >= certain - 1). Given the node, the last score moves by 0 or 1:
       e3.
    3. *Together.* gamma' < g: both gates say heavy with probability a at most, so (epsilon, a + d2 + d4) by case 2.
       gamma > t: both say light with probability a at most, so (epsilon, a + d5) by case 1. Else both cases hold: given
       what the gate says, at a price of e1, (epsilon, max(d5, d2 + d4)). With a = d2 = delta / 2r for depth r, d4 =
       delta - a - d2 for the inner tree (0 for depth 1) and d5 = delta - a: at most delta. An inner tree is a case of
       this theorem, with its own e4 and d4.
       gamma = 0 always says light; then gamma' <= 1 < g, as if a gate of D were coupled with that of D' but for a.

    **Use.** A branching node has values on both sides. If y is within the levels of the others, one of those values
    stays on the path to depth y, so all of the deepest do: c1 = deep, c2 = 0, and the test fails with its share of
    beta. Another leaves the path at depth y or above: outside the node, next to one of its ends, or in its lighter
    child, and M has values in the heavier one. So one of the four lies within M and scores ``ends`` or more, and at
    most three lie outside of all values and score 0.

    >>> tree_log([5 << 1000, 6 << 1000] * 200, 1024, Fraction(1), Fraction(1, 10**6), 0.05, Coins(bytes(32))) >> 1000
    5
    """
    plan = LevelPlan.of(bits, epsilon, delta, beta, depth)
    if not bits:
        return 0
    found = [int(value) for value in ordered(values, 0, (1 << bits) - 1)]
    middle = found[plan.ends : max(len(found) - plan.ends, plan.ends)]
    leaf, gamma = heavy_path(middle)
    if gamma and gamma + int(laplace(plan.gate, coins.branch("gate"))[0]) >= plan.heavy:
        return _heavy(middle, gamma, epsilon - plan.gate, coins.branch("node"))
    others, deep = deepest(middle, leaf, bits, plan.deep)
    if depth == 1:
        level: int | Bottom = interior_point(others, 0, bits, plan.inner, coins.branch("level"))
    else:
        level = tree_log(
            others, bits.bit_length(), plan.inner, plan.inner_delta, plan.inner_beta, coins.branch("inner"), depth - 1
        )
    if isinstance(level, Bottom):
        return BOTTOM
    level = min(level, bits)
    counts = Counter(value >> (bits - level) for value in deep)
    (node, first), (_, second) = (*sorted(counts.items(), key=lambda item: (-item[1], item[0])), (0, 0), (0, 0))[:2]
    if (first - second) // 2 + int(laplace(plan.test, coins.branch("test"))[0]) < plan.certain:
        return BOTTOM
    return _last(found, node << (bits - level), bits - level, plan.last, coins.branch("last"))


def _heavy(middle: Sequence[int], gamma: int, epsilon: Fraction, coins: Coins) -> int:
    """The largest value of the left half of a branching node."""
    known, pieces = node_pieces(middle, gamma, epsilon)
    split = known[choose(pieces, epsilon, coins)]
    bit = (middle[split - 1] ^ middle[split]).bit_length() - 1
    return (middle[split] >> bit << bit) - 1


def node_pieces(middle: Sequence[int], gamma: int, epsilon: Fraction) -> tuple[list[int], list[tuple[int, int, int]]]:
    """All branching nodes, each by the index of the first value of its right half, and pieces for `choose` of them.

    >>> node_pieces([1, 2, 3, 7], 1, Fraction(1))
    ([1, 2, 3], [(2, 1, 0), (0, 1, 0), (1, 1, 0)])
    """
    # Subtrees too light to matter are not traversed.
    nodes = branchings(middle, gamma - Weights(epsilon, 2**64).cap)
    # A branching node is identified by the first value of its right half: every value that differs from the one before.
    known = [i for i in range(1, len(middle)) if middle[i - 1] != middle[i]]
    pieces = []
    for start, size, lighter in nodes:
        first = bisect_left(known, start if lighter else start + 1)
        pieces.append((first, 1 if lighter else bisect_left(known, start + size) - first, gamma - lighter))
    return known, pieces


def _last(found: Sequence[int], first: int, bits: int, epsilon: Fraction, coins: Coins) -> int:
    """One of the two ends and the two middle values of the node with 2^bits values from ``first`` on."""
    half = (1 << bits) >> 1
    candidates = sorted({first, first + (1 << bits) - 1, first + max(half - 1, 0), first + half})
    scores = [min(bisect_right(found, c), len(found) - bisect_left(found, c)) for c in candidates]
    best = max(scores)
    return candidates[choose([(i, 1, best - score) for i, score in enumerate(scores)], epsilon, coins, size=4)]


class TreeLog(Ordered):
    """An interior point of a field, for a number of records that hardly grows with the number of bits; BOTTOM where it
    finds too few. Fields have 64 bits at most, where `InteriorPoint` needs a third of the records: at epsilon 1 and
    delta 10^-6 a tree needs fewer from 224 bits on, which `tree_log` takes. Depth is for theory (`LevelPlan`).

    **Privacy.** (epsilon, delta) for one record more or less: `tree_log`.

    >>> from retroact.schema import Integer
    >>> TreeLog("id", delta=1e-6, epsilon=1).needed(Schema({"id": Integer(0, 2**32 - 1)}), 0.05)
    300
    """

    kind: ClassVar[str] = "treelog"

    def __init__(
        self,
        field: str,
        *,
        delta: float | Fraction,
        beta: float = 0.05,
        depth: int = 1,
        epsilon: float | Fraction | None = None,
    ) -> None:
        super().__init__(field, epsilon=epsilon)
        given = number(from_text(delta), "delta", "a number from 2^-80 to below 1", least=2**-80, below=1)
        positive_int(depth, "depth", most=5, expected="a depth from 1 to 5")
        self.delta, self.beta, self.depth = Fraction(str(given)), check_beta(beta), depth

    def promised(self, epsilon: Fraction) -> Contract:
        return Contract(epsilon, self.delta)

    def answer(self, values: U64, last: int, decode: Decode, coins: Coins) -> Any:
        found = tree_log(values.tolist(), last.bit_length(), self.spent, self.delta, self.beta, coins, self.depth)
        return found if isinstance(found, Bottom) else decode(min(found, last))

    def needed(self, schema: Schema, beta: float) -> int | None:
        """Only for the failure probability that the algorithm was designed for, or a larger one."""
        bits = (self.size(schema) - 1).bit_length()
        plan = LevelPlan.of(bits, self.spent, self.delta, self.beta, self.depth)
        return plan.records if beta >= self.beta else None
