"""Approximate retroactivity: how close the answers to two histories are once the histories have united.

A base algorithm is within E of the truth with probability 1 - beta_0, and every answer goes through a randomised map K
with fresh coins (theorem "compiler"). On a block of B rounds, let G be the set of answers that are all within E of the
truth. After two histories S and S' have united the truths are equal, so any two members of G are within 2E of each
other in every round, and the maps of their B answers are (alpha, delta_B(alpha))-close for every alpha >= 0.

**Retroactivity.** For every alpha >= 0 the answers of the block are (alpha, delta_B(alpha) + beta_0)-close. Write the
law under S as P = a P_G + (1 - a) P_N, split by whether the base answers are in G, and under S' Q >= b Q_G, with
a, b >= 1 - beta_0. P_G and Q_G are mixtures of maps of members of G, hence P_G(F) <= e^alpha Q_G(F) + delta_B. So
  P(F) - e^alpha Q(F) <= a P_G(F) + (1 - a) P_N(F) - b (P_G(F) - delta_B)
                       = (a - b) P_G(F) + (1 - a) P_N(F) + b delta_B.
For a >= b this is at most (a - b) + (1 - a) + delta_B = (1 - b) + delta_B, else at most (1 - a) + delta_B. The theorem
has (2 + e^alpha_B) beta_0 there: 150 times as much at alpha_B = 5. Accuracy is needed on the block alone, so for single
answers (B = 1, corollary "marginal") in each round by itself.

For Gaussian noise of deviation sigma in R^d the B maps are one Gaussian vector in R^(dB), moved by at most 2E sqrt(B):
  delta_B(alpha) = delta_Gauss(alpha; mu_B), mu_B = 2E sqrt(B) / sigma (`GaussianDP`): no composition theorem beats it.

**Privacy.** Unchanged: what is published is a function of the base's answers and of independent coins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..checks import is_number, number, positive_int
from ..privacy import Measure, PureDP, ZeroConcentratedDP

if TYPE_CHECKING:
    from .maps import Map

MARGINALLY_RETROACTIVE = "private, marginally approximately retroactive"


@dataclass(frozen=True)
class BlockCloseness:
    """P(F) <= e^alpha Q(F) + beta, both ways, for ``length`` consecutive answers after the histories have united."""

    length: int
    closeness: Measure
    failure: float = 0.0

    def beta(self, alpha: float) -> float:
        """The smallest proven beta at this alpha."""
        number(alpha, "alpha", "a number from 0 on", least=0)
        return min(1.0, self.closeness.delta(float(alpha)) + self.failure)

    def alpha(self, beta: float) -> float:
        """The smallest proven alpha at this beta; infinite where beta is below beta_0."""
        number(beta, "beta", "a number from 0 to 1", least=0, most=1)
        return self.closeness.epsilon(float(beta) - self.failure) if beta >= self.failure else math.inf


@dataclass(frozen=True)
class ApproximateRetroactivity:
    """``error`` is E and ``failure`` beta_0; ``made_for``, the beta and the block of the map, is only shown.

    >>> from retroact.compilers.maps import GaussianMap
    >>> promise = ApproximateRetroactivity(Fraction(1), GaussianMap(sigma=8.45))
    >>> round(promise.alpha(1e-6), 3), round(promise.block(10).alpha(1e-6), 2)
    (1.0, 3.52)
    >>> print(promise.text)
    marginally approximately retroactive: once two histories have united, one answer is (α = 1, β = 1e-06)-close for
    both (P ≤ e^α Q + β), 16 consecutive answers together (α = 4.59, β = 1e-06). This rests on a promise of the caller,
    which no program checks: the base is within E = 1 of the truth with probability 1. If that is wrong, the answers are
    as private as before but not retroactive, and nothing will show it
    """

    error: Fraction
    map: Map = field(repr=False)
    failure: float = 0.0
    made_for: tuple[float, int] = (1e-6, 1)
    stated_by: str = ""
    """The base, where it states its error itself; empty where the caller promises it."""

    def block(self, length: int) -> BlockCloseness:
        return BlockCloseness(check_block(length), self.map.closeness(2 * self.error, length), self.failure)

    def beta(self, alpha: float, block: int = 1) -> float:
        return self.block(block).beta(alpha)

    def alpha(self, beta: float, block: int = 1) -> float:
        return self.block(block).alpha(beta)

    @property
    def text(self) -> str:
        beta = self.made_for[0] + self.failure
        one, *more = sorted({1, self.made_for[1], 16 * self.made_for[1]})
        shown = [f"(α = {self.alpha(beta, length):.3g}, β = {beta:.3g})" for length in (one, *more)]
        blocks = ", ".join(
            f"{n:,} consecutive answers together {pair}" for n, pair in zip(more, shown[1:], strict=True)
        )
        likely = f"1 - {self.failure:.3g} (in every round of a block at once)" if self.failure else "1"
        rests = (
            f"what {self.stated_by} states about its own error, given what it was promised"
            if self.stated_by
            else "a promise of the caller, which no program checks"
        )
        return (
            f"marginally approximately retroactive: once two histories have united, one answer is {shown[0]}-close for "
            f"both (P ≤ e^α Q + β), {blocks}. This rests on {rests}: the base is within E = {float(self.error):.6g} of "
            f"the truth with probability {likely}. If that is wrong, the answers are as private as before but not "
            "retroactive, and nothing will show it"
        )

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Closest(Measure):
    """Several bounds that all hold: the smallest counts.

    >>> round(Closest((PureDP(10.0), ZeroConcentratedDP(0.5))).epsilon(1e-6), 2)
    5.22
    """

    bounds: tuple[Measure, ...]

    def epsilon(self, delta: float = 0.0) -> float:
        return min(bound.epsilon(delta) for bound in self.bounds)

    def delta(self, epsilon: float) -> float:
        return min(bound.delta(epsilon) for bound in self.bounds)

    def group(self, size: int) -> Closest:
        return Closest(tuple(bound.group(size) for bound in self.bounds))


def repeated(one: float, block: int) -> Closest:
    """``block`` independent choices, each with a log ratio in an interval of length ``one`` that contains 0: pure, and
    zero-concentrated with one^2 / 8 each (bounded range; Cesar and Rogers 2021)."""
    return Closest((PureDP(block * one), ZeroConcentratedDP(block * one * one / 8)))


def check_positive(value: Any, place: str) -> Fraction:
    return Fraction(number(value, place, "a number above 0", above=0, below=math.inf))


def check_block(length: int) -> int:
    return positive_int(length, "block", most=1 << 40, expected="a whole number of answers between 1 and 2^40")


def check_probability(value: float | Fraction, place: str, *, zero: bool = False) -> Fraction:
    """Below 1 and above 0 (or 0 too); calibration works from 1e-60 on."""
    if zero and is_number(value) and value == 0:
        return Fraction(0)
    least = "0, or 1e-60" if zero else "1e-60"
    return Fraction(number(value, place, f"a probability from {least} to below 1", least=1e-60, below=1))
