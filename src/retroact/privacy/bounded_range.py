"""Exponential mechanisms: the log-ratio of two neighbouring laws lies in an interval of length r ("bounded range").

Such a pair is dominated by one with two losses, t and t - r, for some unknown t in [0, r], which may change from
release to release and depend on earlier ones. Two bounds hold nevertheless, for adaptive streams too:

* **One pair for all t.** sup over t of D(x) is (1 - e^((x - r)/2))^2 / (1 - e^-r) for |x| <= r (the best t is
  (x + r)/2). This is itself a profile, of the pair whose second law has density e^(-l/2) / (4 sinh(r/2)) in the loss
  l in [-r, r]. It dominates every t, so it composes like any dominating pair and may be mixed at a rate.
* **Rényi.** At each order a, the W releases cost at most W times the largest Rényi divergence over t; then the
  conversion of Canonne, Kamath and Steinke (2020). Without sampling this is never above r^2 a / 8, the
  zero-concentrated bound.

The first wins for a few releases (for one it is exact) and where delta is close to the total variation, the second for
many: their losses have variances r^2/3 and r^2/4. The optimal composition of Dong, Durfee and Rogers (2020) is not
used: its closed form is for releases fixed in advance.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import F64
from .composition import SAFE, Lattice, cells, on_lattice
from .dominating_pair import mixed_loss


def range_pair(length: float, rate: float, releases: int) -> Lattice:
    """The pair above, mixed at a rate, on a lattice (which again dominates it).

    Between two neighbouring losses l1 < l2 of the unmixed pair, the mass of the second law that goes to each end, with
    both laws kept, is e^(-l1/2) and e^(-l2/2) times tanh((l2 - l1)/4) / (2 sinh(r/2)).
    """
    top, bottom = mixed_loss(rate, length), mixed_loss(rate, -length)
    coarse = np.linspace(-length, length, 65)
    flat = np.array([mixed_loss(rate, float(loss)) for loss in coarse])
    first = (1 - rate) * np.exp(-(coarse + length) / 2) + rate * np.exp((coarse - length) / 2)
    step = top / cells(flat, first / first.sum(), releases)
    inner = np.arange(math.ceil(bottom / step), math.floor(top / step) + 1) * step
    nodes = np.concatenate(([bottom], inner[(inner > bottom) & (inner < top)], [top]))
    plain = np.concatenate(([-length], _unmixed(nodes[1:-1], rate), [length]))
    parts = np.tanh(np.diff(plain) / 4)
    # 2 sinh(r/2) = e^(r/2) (1 - e^-r); the exponents stay below 0.
    scale = -math.expm1(-length)

    def at_both_ends(heights: F64) -> F64:
        out = np.zeros_like(nodes)
        out[:-1] += parts * heights[:-1]
        out[1:] += parts * heights[1:]
        return out / scale

    second, unmixed = at_both_ends(np.exp(-(plain + length) / 2)), at_both_ends(np.exp((plain - length) / 2))
    return on_lattice(step, nodes, (1 - rate) * second + rate * unmixed, second)


def range_epsilon(length: float, rate: float, releases: int, delta: float) -> float:
    """The Rényi bound at the best order. The order is a guess; the bound at that order is proven.

    >>> round(range_epsilon(1.0, 0.01, 1000, 1e-6), 2)
    0.75
    """
    if length == 0 or rate == 0:
        return 0.0
    top = mixed_loss(rate, length)
    orders = 1 + np.exp(np.linspace(math.log(0.02), math.log(max(4.0, 400 / top)), 60))
    points = np.linspace(0, length, 41)[1:-1]
    for _ in range(2):
        guesses = _converted(orders, releases * _largest(orders, points, length, rate), delta)
        best = int(np.argmin(guesses))
        near = orders[max(0, best - 1)], orders[min(len(orders) - 1, best + 1)]
        orders = 1 + np.exp(np.linspace(math.log(near[0] - 1), math.log(near[1] - 1), 13))
    order = float(orders[len(orders) // 2])
    # Without sampling, the other direction only swaps t and r - t.
    cost = releases * max(_proven(order, length, rate, way) for way in ((1, -1) if rate < 1 else (1,)))
    return max(0.0, float(_converted(np.array([order]), np.array([cost]), delta * (1 - SAFE))[0])) * (1 + SAFE)


def _unmixed(losses: F64, rate: float) -> F64:
    """The inverse of `mixed_loss`: ln(1 + (e^l - 1) / q)."""
    small = np.minimum(losses, 30.0)
    large = losses - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-losses.clip(0)))
    return losses if rate == 1 else np.asarray(np.where(losses > 30, large, np.log1p(np.expm1(small) / rate)))


def _moment(orders: F64, high: F64, low: F64, rate: float, way: int) -> F64:
    """E[(1 - q + q R)^a] - 1 under the second law, R = e^high or e^low with mean 1; a becomes 1 - a the other way."""
    powers = orders if way > 0 else 1 - orders
    rise, fall = np.expm1(high), -np.expm1(low)
    # The probabilities of e^high and e^low are fall / span and rise / span.
    span = np.maximum(rise + fall, 1e-300)
    up, down = np.log1p(rate * rise), np.log1p(-rate * fall) if rate < 1 else low
    limited = np.minimum(powers * up, 700.0), np.minimum(powers * down, 700.0)
    return np.asarray((fall / span) * np.expm1(limited[0]) + (rise / span) * np.expm1(limited[1]))


def _largest(orders: F64, points: F64, length: float, rate: float) -> F64:
    """The Rényi divergence at each order, maximised over a few t: a guess."""
    high = np.minimum(points[None, :], 600.0)
    both = [_moment(orders[:, None], high, points[None, :] - length, rate, way).max(axis=1) for way in (1, -1)]
    return np.asarray(np.log1p(np.maximum(0.0, np.maximum(*both))) / (orders - 1))


def _proven(order: float, length: float, rate: float, way: int) -> float:
    """An upper bound on the Rényi divergence over all t: for t in [u, v] the pair is dominated by the one with losses
    v and u - r, and only intervals whose bound exceeds a value that is attained are divided further."""
    edges = np.linspace(0.0, length, 129)
    low, high, orders = edges[:-1], edges[1:], np.array(order)
    if high[-1] > 600 or order * mixed_loss(rate, length) > 690:
        return mixed_loss(rate, length)
    attained, settled = 0.0, 0.0
    for _ in range(6):
        attained = max(attained, float(_moment(orders, low, low - length, rate, way).max()))
        bounds = _moment(orders, high, low - length, rate, way)
        open_ = bounds > attained * (1 + 1e-6)
        settled = attained
        if not open_.any():
            break
        settled = max(settled, float(bounds[open_].max()))
        low, high = low[open_], high[open_]
        cuts = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, 9)[None, :]
        low, high = cuts[:, :-1].ravel(), cuts[:, 1:].ravel()
    return math.log1p(settled * (1 + 1e-6)) / (order - 1)


def _converted(orders: F64, costs: F64, delta: float) -> F64:
    """Canonne, Kamath and Steinke 2020, Proposition 12, as in `ZeroConcentratedDP`."""
    penalty = -np.log(orders * delta) + (orders - 1) * np.log1p(-1 / orders)
    return np.asarray(costs + penalty / (orders - 1))
