"""The gate of Lemma "Removing the occupancy promise": how far the count of the paper's Laplace tree can be off.

A binary tree over T = 2^h releases puts Laplace noise of scale b = 2 (h + 1) / epsilon on each node; the count at
release l is off by the sum of popcount(l) of them. Each function gives the error that no release exceeds, except with
probability delta; the lemma asks for n - 1 of at least that. They are for reference: the gate that runs uses the noise
and the tails of this library.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..errors import InputError


def gate_union(horizon: int, epsilon: float, delta: float) -> int:
    """All 2T - 1 nodes are within b ln(2T/delta), so each count is within (h + 1) b ln(2T/delta).

    >>> [gate_union(2**h, 1.0, 1e-6) for h in (10, 12, 16, 20)]
    [5189, 7716, 14797, 25024]
    """
    nodes = _depth(horizon) + 1
    return math.ceil(2 * nodes**2 * math.log(2 * horizon / delta) / epsilon)


def gate_chernoff(horizon: int, epsilon: float, delta: float) -> int:
    """The moments of a sum of h + 1 Laplace variables, (1 - t^2)^-(h+1) in units of b, at every release, both sides.

    >>> [gate_chernoff(2**h, 1.0, 1e-6) for h in (10, 12, 16, 20)]
    [895, 1164, 1795, 2550]
    """
    nodes = _depth(horizon) + 1

    def tail(x: float) -> float:
        # The exponent -m ln(1 - t^2) - t x is smallest where t^2 x + 2 m t = x.
        t = x / (nodes + math.hypot(nodes, x))
        return 2 * horizon * math.exp(-nodes * math.log1p(-t * t) - t * x)

    return _smallest(tail, 2 * nodes / epsilon, delta)


def gate_exact(horizon: int, epsilon: float, delta: float, *, one_sided: bool = False) -> int:
    """The exact tails of sums of Laplace variables, added up over the releases.

    ``one_sided``: only counts that are too high matter to privacy. And b = 2 h / epsilon suffices: a record shifts the
    nodes over its first release up and those over its end down, h + 1 each, and at the root the two cancel (a record
    without an end shifts h + 1 <= 2 h).

    >>> [gate_exact(2**h, 1.0, 1e-6) for h in (10, 12, 16, 20)]
    [671, 878, 1366, 1952]
    >>> [gate_exact(2**h, 1.0, 1e-6, one_sided=True) for h in (10, 12, 16, 20)]
    [594, 790, 1257, 1823]
    """
    depth = _depth(horizon)
    sides, paid = (1, depth) if one_sided else (2, depth + 1)

    def tail(x: float) -> float:
        # comb(h, j) of the releases below T have j nodes, and T itself has one.
        each = [math.comb(depth, j) * laplace_sum_tail(j, x) for j in range(1, depth + 1)]
        return sides * (math.fsum(each) + laplace_sum_tail(1, x))

    return _smallest(tail, 2 * paid / epsilon, delta)


def laplace_sum_tail(count: int, x: float) -> float:
    """P(S > x), x >= 0, for a sum of j standard Laplace variables: a difference of two gamma variables.

    P(S > x) = sum over i < j of C(j - 1 + i, i) 2^-(j + i) P(Gamma(j - i) > x), and P(Gamma(a) > x) is Poisson.

    >>> laplace_sum_tail(1, 0.0), laplace_sum_tail(4, 0.0)
    (0.5, 0.5)
    """
    poisson = [math.exp(-x)]
    for r in range(1, count):
        poisson.append(poisson[-1] * x / r)
    return math.fsum(
        math.comb(count - 1 + i, i) * 0.5 ** (count + i) * math.fsum(poisson[: count - i]) for i in range(count)
    )


def _smallest(tail: Callable[[float], float], scale: float, delta: float) -> int:
    low, high = 0, 1
    while tail(high / scale) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tail(middle / scale) > delta else (low, middle)
    return high


def _depth(horizon: int) -> int:
    if horizon < 2 or horizon & (horizon - 1):
        raise InputError(f"expected a power of two from 2 on, got {horizon!r}", place="horizon")
    return horizon.bit_length() - 1
