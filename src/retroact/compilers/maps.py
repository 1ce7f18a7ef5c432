"""The randomised maps K that hide the errors of a base algorithm: Gaussian noise for numbers, choice by rank for a
median.

A map is close at a distance: if two answers are at most ``distance`` apart in its metric, P(K(y) in F) <=
e^alpha P(K(y') in F) + beta. Theorem "compiler" needs that and how far K(y) is from y, and nothing else about K (remark
on other metric spaces).

**Privacy.** A map is post-processing: it costs nothing. **Retroactivity.** See `closeness`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..checks import choice, number, positive_int
from ..coins import Coins, DiscreteGaussian, integer_cells
from ..coins.law import WIDEST
from ..errors import InputError
from ..oneshot import OneShot
from ..oneshot.exponential import choose
from ..paper_forms import paper_form
from ..params import Parameters, plain
from ..privacy import GaussianDP, Measure, discreteness, largest_mu
from ..privacy.halving import halved
from ..stateful.median import Cumulative, check_ends
from .closeness import check_block, check_positive, check_probability, repeated
from .gaussian_vectors import chi_quantile, power_of_two_below, root_above

Calibration = Literal["exact", "paper"]
# The lattice of Gaussian noise is at least 2^20 times finer than E.
FINER = 20
LARGEST_DIMENSION = 1 << 16


class Map(Parameters, ABC):
    """A randomised map from answers to answers; its coins are passed in."""

    @abstractmethod
    def closeness(self, distance: Fraction, block: int = 1) -> Measure:
        """Of the maps of ``block`` answers, each moved by at most ``distance``: delta(alpha) is beta."""

    @abstractmethod
    def error(self, beta: float) -> float:
        """How far K(y) is from y at most, with probability 1 - beta."""

    @abstractmethod
    def apply(self, answer: Any, coins: Coins) -> Any:
        """K(y)."""

    def check(self, answer: Any) -> Any:
        """The answer in the form that `apply` takes; raises if it cannot. It must not draw coins."""
        return answer

    def at(self, error: Fraction, alpha: Fraction, beta: Fraction, block: int) -> Map:
        """For maps that leave their width open: the same map, wide enough that any ``block`` answers within 2 * error
        are (alpha, beta)-close."""
        return self

    @abstractmethod
    def spec(self, *, digest: bool = False) -> dict[str, Any]:
        """Names the coins; maps are equal if their specs are."""

    def __repr__(self) -> str:
        shown = (f"{name}={value}" for name, value in self.spec().items() if name != "type")
        return f"{type(self).__name__}({', '.join(shown)})"


class GaussianMap(Map):
    """Noise for numbers, or for vectors of ``dimension`` numbers, in the Euclidean distance.

    No floats: the answer is rounded to a public lattice of spacing h (a power of two), and discrete Gaussian noise of
    deviation sigma, a multiple of h, is added to every coordinate. The price of the lattice: rounding moves each of two
    answers by at most h sqrt(d) / 2, so the noise must hide not the distance D but D + h sqrt(d); and discrete noise
    counts as Gaussian noise with mu larger by the factor `privacy.discreteness` at c = sigma / h. With h = E / 2^20
    both together are about one part in a million. Fresh noise in every round is independent of everything else, so B
    rounds make one vector: mu_B = (D + h sqrt(d)) sqrt(B) / sigma, times that factor.

    >>> K = GaussianMap().at(Fraction(100), Fraction(1), Fraction("1e-6"), block=1)
    >>> round(K.sigma), round(K.closeness(Fraction(200)).epsilon(1e-6), 6)
    (845, 1.0)
    >>> round(K.error(1e-6))
    4133
    """

    def __init__(
        self,
        dimension: int = 1,
        *,
        calibration: Calibration = "exact",
        sigma: float | Fraction | None = None,
        spacing: Fraction | None = None,
    ) -> None:
        choice(calibration, ("exact", "paper"), "calibration")
        expected = "a number of coordinates from 1 to 2^16"
        self.dimension = positive_int(dimension, "dimension", most=LARGEST_DIMENSION, expected=expected)
        self.calibration = calibration
        self._spacing: Fraction | None = None
        self._variance: Fraction | None = None
        if sigma is not None:
            exact = check_positive(sigma, "sigma")
            fine = power_of_two_below(exact / 2**FINER)
            self._settle(fine if spacing is None else check_positive(spacing, "spacing"), exact**2, "sigma")

    def at(self, error: Fraction, alpha: Fraction, beta: Fraction, block: int) -> GaussianMap:
        if self._variance is not None:
            return self
        spacing = power_of_two_below(error / 2**FINER / root_above(self.dimension))
        # Squares are exact; the one square root is rounded up.
        squared = (2 * error + spacing * root_above(self.dimension)) ** 2 * check_block(block)
        if self.calibration == "paper":
            needed: Fraction = paper_form("paper_variance")(squared, alpha, beta)
        else:
            needed = squared / largest_mu(alpha, beta) ** 2
            needed *= discreteness(needed / spacing**2) ** 2
        out = GaussianMap(self.dimension, calibration=self.calibration)
        out._settle(spacing, needed, "alpha")
        return out

    def _settle(self, spacing: Fraction, variance: Fraction, place: str) -> None:
        """The variance in lattice steps, rounded up."""
        steps = variance / spacing**2
        if not 4 <= steps <= WIDEST**2:
            raise InputError(
                f"expected noise between 2 and 2^55 steps of its lattice, which is {float(spacing):.3g} fine, got "
                f"{math.sqrt(variance):.3g}",
                place=place,
            )
        self._spacing, self._variance = spacing, Fraction(math.ceil(steps * 2**FINER), 2**FINER)

    @property
    def spacing(self) -> Fraction:
        return _settled(self._spacing)

    @cached_property
    def sigma(self) -> float:
        return math.sqrt(_settled(self._variance)) * float(self.spacing)

    @cached_property
    def law(self) -> DiscreteGaussian:
        """The noise in lattice steps."""
        return DiscreteGaussian(_settled(self._variance))

    def closeness(self, distance: Fraction, block: int = 1) -> GaussianDP:
        variance = _settled(self._variance)
        moved = distance / self.spacing + root_above(self.dimension)
        mu_squared = moved**2 / variance * discreteness(variance) ** 2
        return GaussianDP(math.sqrt(mu_squared) * math.sqrt(check_block(block)))

    def error(self, beta: float) -> float:
        """The exact quantile of the chi law with d degrees, and what the lattice adds.

        With s = sigma / h, P(X = k) <= e^(1 / (24 s^2)) P(s N rounds to k): the sum of exp(-k^2 / 2s^2) over all k is
        at least s sqrt(2 pi), and the mean of exp(-y^2 / 2s^2) over a cell is at least exp of the mean, where y^2 has
        the mean k^2 + 1/12. So |X| > r has at most e^(d / (24 s^2)) times the probability of |s N| > r - sqrt(d) / 2.
        """
        check_probability(beta, "beta")
        variance, steps = _settled(self._variance), float(root_above(self.dimension))
        smaller = beta * math.exp(-self.dimension / (24 * float(variance)))
        # Half a cell for the noise, half a cell for the rounding of the answer.
        return chi_quantile(self.dimension, smaller) * self.sigma + float(self.spacing) * steps

    def check(self, answer: Any) -> list[Fraction]:
        numbers = answer.tolist() if isinstance(answer, np.ndarray | np.generic) else answer
        listed = list(numbers) if isinstance(numbers, Sequence) and not isinstance(numbers, str) else [numbers]
        if len(listed) != self.dimension:
            raise InputError(f"expected {self.dimension} numbers, got {len(listed)}", place="answer")
        return [Fraction(number(one, "answer", "a finite number", above=-math.inf, below=math.inf)) for one in listed]

    def apply(self, answer: Any, coins: Coins) -> Fraction | tuple[Fraction, ...]:
        exact, step = self.check(answer), self.spacing
        noise = self.law.sample(coins.words([0], [0], integer_cells(self.dimension)))[0].tolist()
        moved = tuple((round(y / step) + n) * step for y, n in zip(exact, noise, strict=True))
        return moved[0] if self.dimension == 1 else moved

    def spec(self, *, digest: bool = False) -> dict[str, Any]:
        own: dict[str, Any] = {"type": "gaussian", "dimension": self.dimension, "calibration": self.calibration}
        if self._variance is None:
            return own
        return {**own, "variance": plain(self._variance), "spacing": plain(self.spacing)}


class RankMap(Map):
    """A median by rank, from an estimate of how many records lie up to each value of lower .. upper: picks o with
    probability proportional to exp(rate * u(o)), u(o) = min(C(o), N - C(o - 1)), C(o) records up to o, N = C(upper).

    The distance of two estimates is sup over x of |(C(x) - N/2) - (C'(x) - N'/2)|: how many ranks they differ by on
    where x is relative to the middle. u(o) - N/2 = min(C(o) - N/2, N/2 - C(o - 1)) moves by at most that distance D,
    and what moves all scores alike changes no probability. Scores are cut to multiples of a public h, a power of two,
    which leaves whole counts as they are; the scores of all o then move by amounts in an interval of length 2 (D + h).

    **Retroactivity.** So the log ratio of two probabilities stays, over all o, in an interval of length a = 2 rate (D +
    h) that holds 0 (`oneshot.exponential.choose`): a pure bound for a block of B is B a, and bounded range gives B a^2
    / 8 zero-concentrated (Cesar and Rogers 2021). With D = 2E and rate = alpha / (4E + 2h), a = alpha. The factor 2 is
    needed: scores left of the middle may rise while those right of it fall. That works for a choice that reads its data
    through C alone (cumulatively private). An algorithm that is private for one record is not one: between two
    estimates of the same data the counts of *all* points may differ at once. Such algorithms are refused.
    **Error.** With probability 1 - beta the answer is at most ln(|X| / beta) / rate + h ranks of C from the middle: the
    best score is at least N/2, and the values that score less by more than this have a probability of at most beta.
    That grows with ln |X|, times E / alpha: about 4E (ln |X| + ln(1/beta)) / alpha. The map that the paper cites grows
    with 2^(log* |X|), and is not implemented.

    >>> K = RankMap(0, 2**16 - 1).at(Fraction(10), Fraction(1), Fraction(1, 10**6), block=1)
    >>> round(K.error(1e-3), 2), K.closeness(Fraction(20)).epsilon()
    (719.92, 1.0)
    >>> K.apply(Cumulative(((10, 4000), (20, 9000), (30, 10000))), Coins(bytes(32)))
    20
    """

    def __init__(
        self, lower: int, upper: int, *, rate: Fraction | None = None, spacing: Fraction | None = None
    ) -> None:
        for end, place in ((lower, "lower"), (upper, "upper")):
            refuse_one_shot(end, place)
        check_ends(lower, upper)
        self.lower, self.upper = lower, upper
        self._rate = None if rate is None else check_positive(rate, "rate")
        self._spacing = None if rate is None else self._fine(1 / check_positive(rate, "rate"))
        if spacing is not None:
            self._spacing = check_positive(spacing, "spacing")

    @staticmethod
    def _fine(error: Fraction) -> Fraction:
        return min(Fraction(1), power_of_two_below(error / 2**FINER))

    def at(self, error: Fraction, alpha: Fraction, beta: Fraction, block: int) -> RankMap:
        if self._rate is not None:
            return self
        one = alpha if check_block(block) == 1 else self._share(float(alpha), float(beta), block)
        spacing = self._fine(error)
        return RankMap(self.lower, self.upper, rate=one / (4 * error + 2 * spacing), spacing=spacing)

    @staticmethod
    def _share(alpha: float, beta: float, block: int) -> Fraction:
        """The largest a whose ``block``-fold composition is (alpha, beta)-close, rounded down to 9 digits."""
        low, _ = halved(lambda a: repeated(a, block).epsilon(beta) <= alpha, alpha / block, alpha, steps=60)
        return Fraction(f"{low * (1 - 1e-9):.9e}")

    @property
    def rate(self) -> Fraction:
        return _settled(self._rate)

    @property
    def spacing(self) -> Fraction:
        return _settled(self._spacing)

    @property
    def size(self) -> int:
        """|X|."""
        return self.upper - self.lower + 1

    def closeness(self, distance: Fraction, block: int = 1) -> Measure:
        return repeated(float(2 * self.rate * (distance + self.spacing)), check_block(block))

    def error(self, beta: float) -> float:
        check_probability(beta, "beta")
        # `Weights` is flat beyond a share of 2^-64, and its rate is smaller by 2^-40.
        if beta < 2**-63:
            return math.inf
        # As a difference of logarithms: for a domain of more than 1,022 bits the ratio is no float.
        ratio = math.log(self.size) - math.log(beta)
        return ratio / float(self.rate) * (1 + 1e-9) + float(self.spacing)

    def check(self, answer: Any) -> Cumulative:
        if not isinstance(answer, Cumulative):
            raise InputError(f"expected an estimate of a distribution function, got {answer!r}", place="answer")
        if answer.steps and not self.lower <= answer.steps[0][0] <= answer.steps[-1][0] <= self.upper:
            raise InputError(f"expected values in {self.lower} .. {self.upper}", place="answer")
        return answer

    def apply(self, answer: Any, coins: Coins) -> int:
        return choose(self.pieces(self.check(answer)), self.rate * self.spacing, coins, size=self.size)

    def pieces(self, cumulative: Cumulative) -> list[tuple[int, int, int]]:
        """Runs of values with one score, as (start, length, minus the score in units of h)."""
        wide, fine = self.spacing.as_integer_ratio()
        all_n, all_d = cumulative.total.as_integer_ratio()
        out: list[tuple[int, int, int]] = []
        at, left, right = self.lower, 0, all_n * fine // (all_d * wide)  # C(o - 1) and N - C(o - 1), cut to units
        for value, upto in cumulative.steps:
            if at < value:
                out.append((at, value - at, -min(left, right)))
            n, d = upto.as_integer_ratio()
            left = n * fine // (d * wide)
            out.append((value, 1, -min(left, right)))
            at, right = value + 1, (all_n * d - n * all_d) * fine // (all_d * d * wide)
        if at <= self.upper:
            out.append((at, self.upper - at + 1, -min(left, right)))
        return out

    def spec(self, *, digest: bool = False) -> dict[str, Any]:
        own: dict[str, Any] = {"type": "rank", "lower": self.lower, "upper": self.upper}
        return own if self._rate is None else {**own, "rate": plain(self._rate), "spacing": plain(self._spacing)}


def as_map(candidate: Any) -> Map:
    """Checks that this can serve as K."""
    refuse_one_shot(candidate, "map")
    if not isinstance(candidate, Map):
        raise InputError(f"expected a map with a proven closeness, got {type(candidate).__name__}", place="map")
    return candidate


def refuse_one_shot(candidate: Any, place: str) -> None:
    if isinstance(candidate, OneShot) or (isinstance(candidate, type) and issubclass(candidate, OneShot)):
        name = candidate.__name__ if isinstance(candidate, type) else type(candidate).__name__
        raise InputError(
            f"{name} is private for one record more or less and not cumulatively private: between two estimates of the "
            "same data the interval counts of all points may move at once. Use RankMap(lower, upper)",
            place=place,
        )


def _settled(value: Fraction | None) -> Fraction:
    if value is None:
        raise InputError("expected a map whose width is fixed: `at` and `smooth` do that", place="map")
    return value
