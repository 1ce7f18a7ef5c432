"""Privacy guarantees as values: pure, approximate, zero-concentrated and Gaussian, with conversion, composition and
group privacy. Each bounds how much the whole published sequence can differ when one operation is added or left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import msgspec

from ..checks import positive_int
from ..errors import InputError
from .gaussian import delta_of, epsilon_of, shifted
from .halving import halved


class Measure:
    """A bound on the privacy loss of one operation. Subclasses say how large it is."""

    __slots__ = ()

    def epsilon(self, delta: float = 0.0) -> float:
        """The smallest proven epsilon at this delta; infinite if there is none."""
        raise NotImplementedError

    def delta(self, epsilon: float) -> float:
        """The smallest proven delta at this epsilon."""
        raise NotImplementedError

    def group(self, size: int) -> Measure:
        """The bound for ``size`` operations at once."""
        raise NotImplementedError


class PureDP(Measure, msgspec.Struct, frozen=True):
    """
    >>> PureDP(0.5).group(3)
    PureDP(value=1.5)
    """

    value: float

    def epsilon(self, delta: float = 0.0) -> float:
        return self.value

    def delta(self, epsilon: float) -> float:
        if epsilon >= self.value:
            return 0.0
        # Randomised response is the worst case: p = e^v / (1 + e^v).
        return -math.expm1(epsilon - self.value) / (1 + math.exp(-self.value))

    def group(self, size: int) -> PureDP:
        return PureDP(self.value * check_size(size))

    def __str__(self) -> str:
        return f"ε = {self.value:.4g}"


class ApproximateDP(Measure, msgspec.Struct, frozen=True):
    """
    >>> ApproximateDP(1.0, 1e-6).group(2).epsilon(4e-6)
    2.0
    """

    value: float
    failure: float

    def epsilon(self, delta: float = 0.0) -> float:
        return self.value if delta >= self.failure else math.inf

    def delta(self, epsilon: float) -> float:
        return self.failure if epsilon >= self.value else 1.0

    def group(self, size: int) -> ApproximateDP:
        # delta (1 + e^epsilon + ... + e^((size - 1) epsilon)); beyond e^700 the bound is void anyway
        factor = sum(math.exp(min(700.0, i * self.value)) for i in range(check_size(size)))
        return ApproximateDP(self.value * size, min(1.0, self.failure * factor))

    def __str__(self) -> str:
        return f"ε = {self.value:.4g}, δ = {self.failure:.3g}"


class ZeroConcentratedDP(Measure, msgspec.Struct, frozen=True):
    """
    >>> round(ZeroConcentratedDP(0.5).epsilon(1e-6), 2)
    5.22
    """

    rho: float

    def epsilon(self, delta: float = 0.0) -> float:
        if self.rho == 0:
            return 0.0
        if not 0 < delta < 1:
            return math.inf
        # epsilon = alpha rho + (log(1/(alpha delta)) + (alpha - 1) log(1 - 1/alpha)) / (alpha - 1), minimised over
        # alpha > 1 (Canonne, Kamath and Steinke 2020, Proposition 12); unimodal in log(alpha - 1).
        return max(0.0, _minimum(lambda t: self._bound(1 + math.exp(t), delta), -20.0, 40.0))

    def _bound(self, alpha: float, delta: float) -> float:
        penalty = math.log(1 / (alpha * delta)) + (alpha - 1) * math.log1p(-1 / alpha)
        return alpha * self.rho + penalty / (alpha - 1)

    def delta(self, epsilon: float) -> float:
        low, high = -700.0, 0.0
        if self.epsilon(math.exp(low)) <= epsilon:
            return math.exp(low)
        return math.exp(halved(lambda power: self.epsilon(math.exp(power)) > epsilon, low, high, steps=80)[1])

    def group(self, size: int) -> ZeroConcentratedDP:
        return ZeroConcentratedDP(self.rho * check_size(size) ** 2)

    def __str__(self) -> str:
        return f"ρ = {self.rho:.4g}"


class GaussianDP(Measure, msgspec.Struct, frozen=True):
    """
    >>> round(GaussianDP(0.2367).epsilon(1e-6), 3)
    1.0
    """

    mu: float

    def epsilon(self, delta: float = 0.0) -> float:
        return epsilon_of(self.mu, delta)

    def delta(self, epsilon: float) -> float:
        return delta_of(self.mu, epsilon)

    def group(self, size: int) -> GaussianDP:
        return GaussianDP(self.mu * check_size(size))

    def __str__(self) -> str:
        return f"μ = {self.mu:.4g}"


class MixedDP(Measure, msgspec.Struct, frozen=True):
    """A composition of pure, Gaussian and approximate parts, kept apart so that nothing is lost before a conversion.

    >>> both = compose([PureDP(0.5), GaussianDP(0.1)])
    >>> both.epsilon(1e-6) < 0.5 + 0.5
    True
    """

    pure: float = 0.0
    mu: float = 0.0
    failure: float = 0.0

    def epsilon(self, delta: float = 0.0) -> float:
        if delta < self.failure:
            return math.inf
        return self.pure + epsilon_of(self.mu, delta - self.failure)

    def delta(self, epsilon: float) -> float:
        if epsilon < self.pure:
            return 1.0
        return min(1.0, self.failure + delta_of(self.mu, epsilon - self.pure))

    def group(self, size: int) -> MixedDP:
        # A failure of probability f for one operation has, from i operations away, the probability that a shift by
        # i mu and a factor e^(i epsilon) turn f into (docs/proofs.md, 7).
        moved = (min(1.0, self.failure * math.exp(min(700.0, i * self.pure))) for i in range(check_size(size)))
        failure = min(1.0, math.fsum(shifted(f, i * self.mu) for i, f in enumerate(moved)))
        return MixedDP(self.pure * size, self.mu * size, failure)

    def __str__(self) -> str:
        parts = [f"ε = {self.pure:.4g}"] * bool(self.pure) + [f"μ = {self.mu:.4g}"] * bool(self.mu)
        return " and ".join(parts + [f"δ = {self.failure:.3g}"] * bool(self.failure)) or "ε = 0"


def compose(measures: Iterable[Measure]) -> Measure:
    """Everything published, together: epsilons, deltas, rhos and squared mus add up.

    >>> compose([GaussianDP(0.3), GaussianDP(0.4)])
    GaussianDP(mu=0.5)
    """
    parts = list(measures)
    pure = [m.value for m in parts if isinstance(m, PureDP | ApproximateDP)]
    pure += [m.pure for m in parts if isinstance(m, MixedDP)]
    mus = [m.mu for m in parts if isinstance(m, GaussianDP | MixedDP)]
    failure = math.fsum(m.failure for m in parts if isinstance(m, ApproximateDP | MixedDP))
    rhos = [m.rho for m in parts if isinstance(m, ZeroConcentratedDP)]
    if rhos:
        # Pure and Gaussian parts are concentrated too, with rho = epsilon^2 / 2 and mu^2 / 2.
        if failure:
            raise InputError("zero-concentrated and approximate guarantees do not compose here: convert one of them")
        return ZeroConcentratedDP(math.fsum(rhos + [x**2 / 2 for x in pure + mus]))
    epsilon, mu = math.fsum(pure), math.sqrt(math.fsum(x**2 for x in mus))
    if not mu:
        return ApproximateDP(epsilon, failure) if failure else PureDP(epsilon)
    return MixedDP(epsilon, mu, failure) if epsilon or failure else GaussianDP(mu)


def check_size(size: int) -> int:
    return positive_int(size, "group", expected="a whole number of operations from 1 on")


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Golden-section search."""
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(200):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if function(a) < function(b) else (a, high)
    return function((low + high) / 2)
