"""Two laws that are the worst case of one release, and how sampling changes them.

A pair (A, B) *dominates* (P, Q) when one randomised map takes A to P and B to Q; equivalently (Blackwell), when D(P ||
Q) <= D(A || B) at every e^x, x real, where D(P || Q)(x) = sup over events E of P(E) - e^x Q(E). Dominating pairs
compose, also when each release depends on the earlier ones (Zhu, Dong and Wang 2022, Theorem 10); so a record that
touches at most W releases costs at most the W-fold product of the dominating pair, for heterogeneous releases and for
adaptive streams alike. (Releases that it does not touch are products of a trivial pair, which everything dominates.) D
is jointly convex, so averages of dominated pairs with the same weights are dominated too.

**With failures.** M is (epsilon, f)-private. Then D(P || Q)(x) <= f + (1 - f) D(A || B)(x) for the pair (A, B) of pure
privacy: (P, Q) is dominated by (A, B) scaled to 1 - f and two further atoms, (f, 0) and (0, f) (Kairouz, Oh and
Viswanath 2015). In a mixture at rate q they become (qf, 0) and ((1 - q)f, f). Towards the first law, the second of them
has a loss below 0: raise it to 0. Towards the other, remove the mass qf from it: it then has loss 0 as well. Either way
a release fails with probability qf, and otherwise is dominated by the mixture of (A, B) or by a trivial pair:
  delta_W(x) <= 1 - (1 - qf)^W (1 - delta(x)) <= W q f + delta(x),
where delta is that of the W-fold product of the mixture of (A, B) alone.

**Two records.** For P0 - P1 - P2, one record apart each, the power of the best test of P0 at level y against P2 is
g(g(y)), g(y) = min(1, f + e^epsilon y, 1 - e^-epsilon (1 - f - y)). With f = 0 this is `distance_two`. With f > 0 put
f' = (1 + e^epsilon) f: the first and the last line of g(g(y)) are exactly those of f' + (1 - f') `distance_two`, and
its middle line (slope 1) leaves the first one earlier, hence lies lower. So f' takes the place of f.
"""

from __future__ import annotations

import math

import msgspec


def mixed_loss(rate: float, loss: float) -> float:
    """ln(1 - q + q e^loss): the loss of a mixture, without cancellation and without overflow.

    >>> mixed_loss(0.5, 0.0), mixed_loss(1.0, 1000.0)
    (0.0, 1000.0)
    """
    if rate == 1 or loss == 0:
        return loss
    if loss > 30:
        return loss + math.log(rate + (1 - rate) * math.exp(-loss)) if rate else 0.0
    return math.log1p(rate * math.expm1(loss))


class LawPair(msgspec.Struct, frozen=True):
    """Two laws on finitely many atoms: their probabilities, and the losses ln(first/second) in ascending order.

    The losses are stored, since a quotient of nearly equal probabilities would lose digits.

    >>> LawPair.randomised_response(1.0).delta(0.5) == -math.expm1(-0.5) / (1 + math.exp(-1))
    True
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    losses: tuple[float, ...]

    @classmethod
    def randomised_response(cls, epsilon: float) -> LawPair:
        """The truth with probability e^epsilon / (1 + e^epsilon): dominates every epsilon-indistinguishable pair."""
        g = math.exp(-epsilon)
        low, high = g / (1 + g), 1 / (1 + g)
        return cls((low, high), (high, low), (-epsilon, epsilon))

    @classmethod
    def distance_two(cls, epsilon: float) -> LawPair:
        """Pure privacy at distance two, exactly: three atoms, with losses of at most 2 epsilon.

        The power of the best test is g(g(y)) for g(y) = min(1, e^epsilon y, 1 - e^-epsilon (1 - y)): slopes
        e^(2 epsilon), 1, e^(-2 epsilon), the middle one on a share (1 - e^-epsilon) / (1 + e^epsilon) of both laws.
        """
        g = math.exp(-epsilon)
        low, middle, high = g * g / (1 + g), -g * math.expm1(-epsilon) / (1 + g), 1 / (1 + g)
        return cls((low, middle, high), (high, middle, low), (-2 * epsilon, 0.0, 2 * epsilon))

    def mixed(self, rate: float) -> LawPair:
        """((1 - q) B + q A, B): the record is in the sample with probability q.

        If (A, B) dominates (P', P) by a map, the same map takes this pair to ((1 - q) P + q P', P). A smaller rate
        q' <= q is dominated: keep the outcome with probability q'/q, and otherwise replace it by a fresh draw of B,
        which gives ((1 - q') B + q' A, B). So q may be any bound on the rates of the releases.

        >>> LawPair.randomised_response(1.0).mixed(1.0) == LawPair.randomised_response(1.0)
        True
        """
        first = tuple((1 - rate) * b + rate * a for a, b in zip(self.first, self.second, strict=True))
        return LawPair(first, self.second, tuple(mixed_loss(rate, loss) for loss in self.losses))

    def reversed(self) -> LawPair:
        return LawPair(self.second[::-1], self.first[::-1], tuple(-loss for loss in self.losses[::-1]))

    @property
    def symmetric(self) -> bool:
        return self == self.reversed()

    def delta(self, epsilon: float) -> float:
        """sup over events of first(E) - e^epsilon second(E)."""
        return math.fsum(
            -a * math.expm1(epsilon - loss) for a, loss in zip(self.first, self.losses, strict=True) if loss > epsilon
        )


def failure_of_two(epsilon: float, failure: float) -> float:
    """(1 + e^epsilon) f, at most 1: the failure probability at distance two (see above)."""
    return min(1.0, failure * (1 + math.exp(min(700.0, epsilon))))


def failure_in_all(releases: int, rate: float, failure: float) -> float:
    """1 - (1 - q f)^W, rounded up."""
    if rate * failure >= 1:
        return 1.0
    return min(1.0, -math.expm1(releases * math.log1p(-rate * failure)) * (1 + 1e-12))
