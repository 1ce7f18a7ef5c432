"""The analytic Gaussian mechanism (Balle and Wang 2018), and the cost of making its noise discrete.

A shift of Gaussian noise by mu standard deviations is (epsilon, delta)-private exactly when
  delta >= P(N > epsilon/mu - mu/2) - e^epsilon * P(N > epsilon/mu + mu/2).

**Discrete noise** (`discreteness`). The noise of a node is the discrete Gaussian with parameter sigma; a shift moves it
by whole numbers. Write Q(k) for the normal quantile of its distribution function at k. The trade-off curve of the
pair (noise, noise + y) has its corners at the k, and lies above the curve of a Gaussian shifted by m standard
deviations when Q(k) - Q(k - y) <= m for all k. The steepest slope of sigma * Q over all real offsets of the lattice is
at most 1 + 1/(20 c^2) for a lattice with c = sigma / spacing >= 2 (it is 1 + 1/(24 c^2) to first order, at the centre,
and falls to 1 in the tails; tests compute it to 30 digits). So each node is a Gaussian with mu larger by that factor,
and independent nodes compose as Gaussians do. docs/proofs.md carries this over to adaptive streams, where the lattice
of the noise that is still unknown, given everything published, has a spacing of at most the L2 sensitivity. Hence
c = sigma / sensitivity, and the lattice of the noise is refined until c reaches `FINENESS`.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from .halving import halved
from .normal import DIGITS, decimal, upper_tail, upper_tail_float

# Sigma is at least this many times the spacing of the lattice (in units of the sensitivity).
FINENESS = 4


def discreteness(coarseness_squared: Fraction) -> Fraction:
    """The factor on sigma that compensates for the lattice, for c^2 = (sigma / spacing)^2."""
    return 1 + 1 / (20 * coarseness_squared)


def exact_delta(mu: Decimal, epsilon: Decimal) -> Decimal:
    with localcontext(Context(prec=DIGITS)):
        ratio = epsilon / mu
        return upper_tail(ratio - mu / 2) - epsilon.exp() * upper_tail(ratio + mu / 2)


@lru_cache(maxsize=256)
def largest_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest mu that is (epsilon, delta)-private, rounded down to 15 digits: the same on every machine."""
    target, e = decimal(delta), decimal(epsilon)
    with localcontext(Context(prec=DIGITS)):
        start = Decimal(0), Decimal(1)
        low, _ = halved(lambda mu: exact_delta(mu, e) <= target, *start, grow=2, relative=Decimal("1e-17"))
        rounded = Context(prec=15, rounding=ROUND_FLOOR).plus(low)
    return Fraction(rounded)


def delta_of(mu: float, epsilon: float) -> float:
    """Delta for display: floats, with an absolute error of about 1e-15."""
    if mu == 0:
        return 0.0
    first = upper_tail_float(epsilon / mu - mu / 2)
    second = upper_tail_float(epsilon / mu + mu / 2)
    # exp overflows long before the product does
    product = math.exp(epsilon + math.log(second)) if second > 0 else 0.0
    return max(0.0, first - product)


def epsilon_of(mu: float, delta: float) -> float:
    if mu == 0:
        return 0.0
    if not 0 < delta < 1:
        return math.inf if delta <= 0 else 0.0
    if delta_of(mu, 0.0) <= delta:
        return 0.0
    return halved(lambda epsilon: delta_of(mu, epsilon) > delta, 0.0, 1.0, grow=2, steps=80)[1]


def shifted(probability: float, mu: float) -> float:
    """The largest probability that a shift by mu deviations can give an event of this probability, rounded up."""
    if probability <= 0 or probability >= 1 or mu == 0:
        return probability
    low, _ = halved(lambda x: upper_tail_float(x) > probability, -40.0, 40.0, absolute=1e-12)
    return min(1.0, upper_tail_float(low - mu))
