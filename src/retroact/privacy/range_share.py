"""What each of several mechanisms with a bounded range may spend of a share of the budget.

A mechanism has range r if, for any two neighbouring inputs, the logarithm of the ratio of its two laws lies in an
interval of length r (`bounded_range`). The N mechanisms may be chosen one after the other, by earlier answers, and so
may the intervals. Under a pure share each gets the N-th part, or what the bounds of `bounded_range` allow where a part
of delta is spare. Under a Gaussian share it gets what follows from this:

**Theorem.** Let w_1 = pi/2 and w_(n+1) = w + w / (w - 1) for w = max(w_n, 2). Then N mechanisms of range r are together
mu-Gaussian private, for mu^2 = w_N r^2 / 4. (w_N = N + ln N + O(1), and N r^2 / 4 is the variance of their losses.)

**One.** The smallest trade-off function of all pairs of range r is that of the first bound of `bounded_range`: the miss
rate b at false alarm rate a has b / (1 - b) = e^-r (1 - a) / a. With F the logistic distribution function that is
F(F^-1(1 - a) - r). It is at least that of mu-Gaussian privacy if h(u) - h(u - r) <= mu for h = Phi^-1(F), all u. And
h' = Phi(z) Phi(-z) / phi(z) at z = h(u), where 4 Phi(z) Phi(-z) = 1 - P(|Z| <= |z|)^2 <= e^(-z^2/2), since a square of
half side |z| contains the disc of radius |z|. So h' <= sqrt(2 pi) / 4, and mu = r sqrt(2 pi) / 4.

**One more.** Let the N mechanisms that follow, whatever the first one answers, be sqrt(v)-Gaussian private, v > r^2/4.
Given an answer whose likelihood ratio is M, they contribute at most M C(e^x / M) to the delta at x, with C convex, so
this is convex in M. M has mean 1 and lies in [e^(t - r), e^t], so it contributes most if it takes the two ends alone.
Then the logarithm of the ratio of all is a mixture of two normal laws of variance v at distance r, against the normal
law of variance v + s of the claim, both with E[e^X] = 1. The logarithm of the ratio of their densities has the second
derivative -1/v + 1/(v + s) + (a variance of at most r^2 / 4v^2), which is at most 0 for s = (r^2/4) v / (v - r^2/4). So
it is concave: the densities cross twice, the claim is larger at both ends, the distribution functions cross once, and
as the means of e^X agree, E[(e^X - k)+] is at least as large under the claim for every k. Nothing is lost by calling v
larger, so w is taken as 2 where it is less.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from .budget import Share
from .gaussian import largest_mu
from .sampled_cost import largest_epsilon0

# From here on every further mechanism adds at most 1 + 1/COUNTED, since w_n - 1 > n.
COUNTED = 4096
# Above the rounding errors of as many sums.
SAFE = 1 + Fraction(1, 10**9)
DIGITS = 10**18
# Delta is spent only where it allows this much more.
WORTH = Fraction(101, 100)


def largest_range(share: Share, spare: Fraction, mechanisms: int) -> tuple[Fraction, Fraction]:
    """The largest range that ``mechanisms`` of them may have, rounded down, and what that spends of the ``spare`` part
    of delta, which a Gaussian share has no need of.

    >>> largest_range(Share("pure", Fraction(1)), Fraction(0), 4)
    (Fraction(1, 4), Fraction(0, 1))
    >>> [round(float(x), 6) for x in largest_range(Share("pure", Fraction(1)), Fraction(1, 10**6), 100)]
    [0.046108, 1e-06]
    """
    if share.kind == "gaussian":
        return _gaussian(share.amount, mechanisms), Fraction(0)
    pure = share.amount / mechanisms
    if not spare:
        return pure, spare
    single = largest_epsilon0(
        "whole", epsilon=share.amount, releases=mechanisms, delta0=0, delta=float(spare), bounded_range=True
    )
    found = max(single, _gaussian(largest_mu(share.amount, spare) ** 2, mechanisms))
    return (found, spare) if found > WORTH * pure else (pure, Fraction(0))


def _gaussian(square: Fraction, mechanisms: int) -> Fraction:
    return Fraction(math.isqrt(math.floor(4 * square / gaussian_weight(mechanisms) * DIGITS**2)), DIGITS)


@lru_cache(maxsize=256)
def gaussian_weight(mechanisms: int) -> Fraction:
    """w_N, rounded up.

    >>> [round(float(gaussian_weight(n)), 3) for n in (1, 2, 3, 1000)]
    [1.571, 4.0, 5.333, 1007.683]
    """
    weight = math.pi / 2
    for _ in range(min(mechanisms, COUNTED) - 1):
        weight = max(weight, 2.0)
        weight += weight / (weight - 1)
    further = max(0, mechanisms - COUNTED)
    return (Fraction(weight) + further + Fraction(further, COUNTED)) * SAFE
