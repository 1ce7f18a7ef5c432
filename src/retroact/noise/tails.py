"""Tails and quantiles of a sum of independent integer noises, sum of weight * noise over a denominator.

With K(s) = log E exp(s Z), and Z on a lattice of spacing h, for x on the lattice
  P(Z >= x) = (h / 2 pi i) * integral over s = c + iy, |y| <= pi / h, of exp(K(s) - s x) / (1 - exp(-s h)) ds,
exactly, for every c > 0 where K exists. At the saddle point c the integrand decays fast and is computed to five digits
or better. The Gaussian has the normal tail. Results are for people to read, and rounded to 6 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from ..arrays import I64
from ..coins import DiscreteGaussian, DiscreteLaplace
from ..coins.law import Law
from ..privacy.halving import halved
from ..privacy.normal import quantile as normal_quantile
from ..privacy.normal import upper_tail_float
from .spread import Spread

# Points of the quadrature: for probabilities, and for half-widths, which are rounded anyway.
FINE, COARSE = 1025, 257
# Half-widths by level, of noise seen before: streams of one kind ask for the same ones repeatedly.
MOST_KNOWN = 1 << 14
_KNOWN: dict[Hashable, dict[float, float]] = {}


class Summand(msgspec.Struct, frozen=True):
    """``counts[i]`` independent noises of one law, each with weight ``weights[i]`` (in absolute value)."""

    law: Law
    weights: npt.NDArray[np.float64]
    counts: I64

    @classmethod
    def of(cls, law: Law, weights: I64, denominator: int) -> Summand:
        size, counts = np.unique(np.abs(weights), return_counts=True)
        return cls(law, size / denominator, counts)

    @property
    def key(self) -> Hashable:
        """Equal for equal noise."""
        law = self.law.scale if isinstance(self.law, DiscreteLaplace) else self.law
        return law, self.weights.tobytes(), self.counts.tobytes()

    @property
    def variance(self) -> float:
        return float((self.weights**2 * self.counts).sum()) * self.law.variance

    @property
    def fourth(self) -> float:
        """The fourth cumulant: v + 3 v^2 for a discrete Laplace variable of variance v, and negligible for coarse
        Gaussian noise."""
        own = 0.0 if isinstance(self.law, DiscreteGaussian) else self.law.variance * (1 + 3 * self.law.variance)
        return float((self.weights**4 * self.counts).sum()) * own


class Tail:
    """
    >>> noise = Summand.of(DiscreteLaplace(8), np.array([1]), 1)
    >>> q = math.exp(-1 / 8)
    >>> abs(Tail([noise], 1.0).upper(20) - q**20 / (1 + q)) < 1e-9
    True
    """

    def __init__(self, summands: Sequence[Summand], spacing: float) -> None:
        self._summands = [s for s in summands if s.weights.any()]
        self._spacing = spacing
        self.variance = math.fsum(s.variance for s in self._summands)
        self.gaussian = all(math.isinf(s.law.transform_limit) for s in self._summands)
        if len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.clear()
        key = (*(s.key for s in self._summands), spacing)
        self._half_widths: dict[float, float] = {} if self.gaussian else _KNOWN.setdefault(key, {})

    @property
    def spread(self) -> Spread | None:
        """What is needed to combine it with other noise; None for a law that the user brings."""
        if not all(isinstance(s.law, DiscreteGaussian | DiscreteLaplace) for s in self._summands):
            return None
        return Spread(self.variance, math.fsum(s.fourth for s in self._summands), self._spacing)

    def upper(self, x: float) -> float:
        """P(Z >= x)."""
        if self.variance == 0:
            return 1.0 if x <= 0 else 0.0
        if self.gaussian:
            return upper_tail_float(x / math.sqrt(self.variance))
        x = self._on_lattice(x)
        if x <= 0:
            return 1.0 - self.upper(-x + self._spacing)
        return self._contour(x, FINE)(x)

    def half_width(self, level: float) -> float:
        """The smallest h with P(|Z| <= h) >= level, rounded up to 6 digits."""
        if level not in self._half_widths:
            self._half_widths[level] = self._half_width(level)
        return self._half_widths[level]

    def _half_width(self, level: float) -> float:
        if self.variance == 0:
            return 0.0  # also for noise whose variance is zero as a float
        start = normal_quantile((1 + level) / 2) * math.sqrt(self.variance)
        if self.gaussian:
            return rounded_up(start)
        # One contour serves all x near the quantile: only the factor exp(-s x) changes.
        upper = self._contour(self._on_lattice(start), COARSE)
        target = (1 - level) / 2

        def too_low(x: float) -> bool:
            return upper(self._on_lattice(x)) > target

        _, high = halved(too_low, 0.0, start, grow=1.5, relative=1e-7, absolute=self._spacing / 4)
        # P(Z >= high) is small enough, so the lattice point before it is the smallest half-width.
        return rounded_up(self._on_lattice(high) - self._spacing)

    def proven_reach(self, chance: float) -> float:
        """An h with P(Z >= h) <= chance, proven, for sums of Laplace noise: a refined Chernoff bound.

        Let aX be the widest summand, X discrete Laplace of scale b and q = e^(-1/b), and Y all others, so Z = aX + Y.
        P(X >= n) is q^n / (1 + q) for n >= 0 and 1 - q^(1-n) / (1 + q) below. For 0 < s <= 1/(ab), sigma = sab and
        every integer n, e^(san) P(X >= n) <= c: for n >= 0 it is at most 1 / (1 + q), and for n < 0, with u = q^-n and
        v = q / (1 + q), it is u^sigma (1 - vu), which over 0 < u <= 1 is largest at u = min(1, sigma / (v (1 + sigma)))
        and, at u = 1, is 1 / (1 + q). So P(Z >= x) = E P(X >= (x - Y) / a) <= c e^(-sx) E e^(sY), whatever s. With
        E e^(saX) in place of c this is Chernoff's bound; for X alone, s = 1/(ab) gives the tail itself.

        >>> alone = Tail([Summand.of(DiscreteLaplace(8), np.array([1]), 1)], 1.0)
        >>> q, h = math.exp(-1 / 8), alone.proven_reach(1e-6)
        >>> 0.999e-6 < q**h / (1 + q) <= 1e-6
        True
        """
        if self.variance == 0:
            return 0.0
        parts = [
            (weight, count, float(s.law.scale))  # type: ignore[attr-defined]
            for s in self._summands
            for weight, count in zip(s.weights.tolist(), s.counts.tolist(), strict=True)
            if weight
        ]
        widest, _, scale = max(parts, key=lambda part: part[0] * part[2])
        sigma = np.concatenate([np.linspace(0.02, 0.98, 97), 1 - 2.0 ** -np.arange(6, 20), [1.0]])
        s = sigma / (widest * scale)
        v = 1 / (1 + math.exp(1 / scale))
        u = np.minimum(1.0, sigma / (v * (1 + sigma)))
        growth = sigma * np.log(u) + np.log1p(-v * u)
        parts.append((widest, -1, scale))
        for weight, b in dict.fromkeys((weight, b) for weight, _, b in parts):
            count = sum(n for a, n, c in parts if (a, c) == (weight, b))
            growth = growth + (count * _log_moment(s * weight, b) if count else 0.0)
        # Slightly more than the last bits of exp and log.
        return rounded_up(max(0.0, float(((growth - math.log(chance)) / s).min())) * (1 + 1e-9))

    def _on_lattice(self, x: float) -> float:
        return math.ceil(x / self._spacing - 1e-9) * self._spacing

    def _transform(self, s: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
        total = np.zeros(s.shape, dtype=np.complex128)
        for part in self._summands:
            total += (part.law.log_transform(s[:, None] * part.weights) * part.counts).sum(axis=1)
        return total

    def _contour(self, x: float, points: int) -> Callable[[float], float]:
        """P(Z >= .) near x, along the contour through the saddle point of x."""
        limit = min(float(s.law.transform_limit / s.weights.max()) for s in self._summands)
        saddle, curvature = self._saddle(x, limit)
        width = 1 / math.sqrt(curvature)
        # y = width * sinh(t): dense at the saddle, stretched out where the integrand has died down.
        t = np.linspace(0.0, min(math.asinh(math.pi / self._spacing / width), 13.0), points)
        s = saddle + 1j * width * np.sinh(t)
        fixed = self._transform(s)
        kernel = self._spacing / -np.expm1(-s * self._spacing) * width * np.cosh(t)

        def upper(at: float) -> float:
            return max(0.0, float(np.trapezoid((np.exp(fixed - s * at) * kernel).real, t)) / math.pi)

        return upper

    def _saddle(self, x: float, limit: float) -> tuple[float, float]:
        """The minimum of K(s) - s x - log s by bisection of its derivative (taken along the imaginary axis)."""
        step = limit * 1e-7

        def falls(s: float) -> bool:
            return float(self._transform(np.array([s + 1j * step]))[0].imag) / step - x - 1 / s <= 0

        s = sum(halved(falls, 0.0, limit, steps=25)) / 2
        gap = min(s, limit - s) / 4
        k = self._transform(np.array([s - gap, s, s + gap], dtype=np.complex128)).real
        return s, float((k[0] - 2 * k[1] + k[2]) / gap**2 + 1 / s**2)


def _log_moment(s: npt.NDArray[np.float64], scale: float) -> npt.NDArray[np.float64]:
    """log E exp(sX) of discrete Laplace noise; infinite from s = 1 / scale on."""
    inside = s * scale < 1 - 1e-9
    at = np.where(inside, s, 0.0)
    rate = 1 / scale
    moment = 2 * math.log(-math.expm1(-rate)) - np.log(np.expm1(at - rate) * np.expm1(-at - rate))
    return np.where(inside, moment, np.inf)


def rounded_up(x: float) -> float:
    """Rounded up to 6 digits, so that the last bits of exp and log do not show."""
    if x == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(x)) - 5)
    return float(f"{math.ceil(x / unit - 1e-6) * unit:.6g}")
