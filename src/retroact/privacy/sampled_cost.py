"""The cost of a window of releases, for each way to choose the records on which a one-shot algorithm M runs.

A record is live in at most W releases. M is (epsilon0, delta0)-private for one record more or less (also from none to
one), or only for one record in the place of another (``substitution``).

========= ================================================= =============== ==================================
form      M runs on                                         two runs differ amplified
========= ================================================= =============== ==================================
whole     all live records                                  one record      no
fresh     k of them, drawn afresh each release              two records     at rate k/(n+1), if n_l >= n >= k
poisson   each with probability q, afresh each release      one record      at rate q
ranks     the k of smallest secret, lasting rank            two records     over the window, if n_l >= n >= k
coins     those with a lasting coin of probability q        one record      over the window, at rate q
========= ================================================= =============== ==================================

"whole", "fresh" and "poisson" hold for adaptive streams, as do "ranks" and "coins" without amplification: for each
fixing of the ranks they are adaptive compositions of M, and an average of such. The rate q must be public and must not
depend on how many records are live. Each cost is the least of all bounds that hold: basic composition, the exact
composition of dominating pairs (`dominating_pair`, `composition`) and, for bounded range, those of `bounded_range`.
Amplified bounds of persistent samples are those of `persistent_samples`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

import msgspec

from ..checks import number, positive_int
from ..errors import InputError
from .bounded_range import range_epsilon, range_pair
from .budget import check_epsilon
from .composition import SAFE, product_epsilon
from .dominating_pair import LawPair, failure_in_all, failure_of_two, mixed_loss
from .persistent_samples import rank_reach

Form = Literal["whole", "fresh", "poisson", "ranks", "coins"]

# Beyond this number of releases the Rényi bound is better than the single pair for bounded range, or all but equal.
PAIR_RELEASES = 32
# The parts of delta tried as the probability that the thresholds of the ranks exceed their bound.
RANK_SPLITS = (0.3, 0.03)
LARGEST = 1000


class Cost(msgspec.Struct, frozen=True):
    """(epsilon, delta) for one record over all releases, the bound that gave it, and which streams it holds for."""

    epsilon: float
    delta: float
    bound: str
    adaptive: bool
    amplified: bool


@dataclass(frozen=True)
class SampledRounds:
    """Which records M runs on, what M promises (``delta0``, ``bounded_range``, ``substitution``), and what it may cost.

    ``bounded_range`` only helps where delta0 is 0. ``occupancy`` is a promise, n_l >= n in every release.
    """

    form: Form
    _: KW_ONLY
    releases: int
    delta: float
    delta0: float = 0.0
    size: int | None = None
    rate: float | None = None
    occupancy: int | None = None
    bounded_range: bool = False
    substitution: bool = False

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise InputError(f"expected one of {', '.join(get_args(Form))}, got {self.form!r}", place="form")
        positive_int(self.releases, "releases")
        if self._sized or self.size is not None:
            positive_int(self.size, "size")
        if self.occupancy is not None:
            positive_int(self.occupancy, "occupancy")
        if self.form in ("poisson", "coins"):
            number(self.rate, "rate", "a probability", least=0, most=1)
        for place in ("delta0", "delta"):
            failure = number(getattr(self, place), place, "a number from 0 to below 1", least=0, below=1)
            object.__setattr__(self, place, float(failure))
        if self.substitution and self.promised is None:
            # Otherwise one of two neighbouring samples may have one record more, for which M promises nothing.
            raise InputError(
                "expected an algorithm for one record more or less, or samples of a fixed size with an occupancy of at "
                "least that size, got one for one record in the place of another",
                place="substitution",
            )

    @property
    def _sized(self) -> bool:
        return self.form in ("fresh", "ranks")

    @property
    def promised(self) -> tuple[int, int] | None:
        """The size of the samples and the least number of records, if there are always enough to draw from."""
        if not self._sized or self.size is None or self.occupancy is None or self.occupancy < self.size:
            return None
        return self.size, self.occupancy

    @property
    def two(self) -> bool:
        """Whether two runs differ by two records, one gone and one new."""
        return self._sized and not self.substitution


def window_cost(form: Form, *, epsilon0: float | Fraction, **rounds: Any) -> Cost:
    """The least proven epsilon at this total delta, for rounds as in `SampledRounds`; infinite where delta0 leaves
    nothing of delta.

    >>> window_cost("whole", releases=10, epsilon0=0.1, delta0=0, delta=0)
    Cost(epsilon=1.0, delta=0.0, bound='basic composition', adaptive=True, amplified=False)
    >>> cost = window_cost("poisson", releases=1000, epsilon0=1, delta0=0, delta=1e-6, rate=0.01)
    >>> round(cost.epsilon, 3), cost.bound
    (1.46, 'randomised response')
    """
    setting = SampledRounds(form, **rounds)
    return _cost(setting, Fraction(number(epsilon0, "epsilon0", "a number from 0 to 1,000", least=0, most=LARGEST)))


def largest_epsilon0(form: Form, *, epsilon: float | Fraction, **rounds: Any) -> Fraction:
    """The largest epsilon0 of six digits (and at most 1,000) whose `window_cost` is at most epsilon.

    Six digits, rounded down, are the same on every machine.

    >>> largest_epsilon0("whole", releases=1000, epsilon=1, delta=0)
    Fraction(1, 1000)
    """
    setting = SampledRounds(form, **rounds)
    return _largest(setting, float(check_epsilon(epsilon)))


@lru_cache(maxsize=4096)
def _cost(setting: SampledRounds, epsilon0: Fraction) -> Cost:
    chances = _chances(setting)
    if not chances:
        return _sampled(setting, epsilon0)
    best = min((_persistent(setting, epsilon0, *each) for each in chances), key=lambda cost: cost.epsilon)
    # With (delta - beta) / p >= delta, epsilon_W is taken at a larger delta and then amplified: the rest is above it.
    if best.epsilon > 0 and any((setting.delta - beta) * (1 - SAFE) >= p * setting.delta for p, beta in chances):
        return best
    return min(_sampled(setting, epsilon0), best, key=lambda cost: cost.epsilon)


def _chances(setting: SampledRounds) -> list[tuple[float, float]]:
    """Probabilities that a persistent rank or coin puts the record into the sample, and that this bound fails."""
    if setting.form == "coins" and setting.rate is not None and 0 < setting.rate < 1:
        return [(setting.rate, 0.0)]
    if setting.form != "ranks" or not setting.delta or setting.promised is None:
        return []
    parts = [part * setting.delta for part in RANK_SPLITS]
    return [(rank_reach(setting.releases, *setting.promised, part), part) for part in parts]


def _sampled(setting: SampledRounds, epsilon0: Fraction) -> Cost:
    """The cost release by release: at the rate of a fresh sample, at rate 1 for everything else."""
    rate = 1.0
    if setting.form == "poisson" or (setting.form == "coins" and not setting.rate):
        rate = setting.rate or 0.0
    elif setting.form == "fresh" and setting.promised is not None:
        size, occupancy = setting.promised
        rate = math.nextafter(size / (occupancy + 1), 1.0)
    found = _composed(setting, epsilon0, rate, setting.delta)
    if 0.5 < rate < 1:
        # The lattices of nearby rates differ in the fifth digit: sampling must never seem to cost more.
        found = min(found, _composed(setting, epsilon0, 1.0, setting.delta))
    epsilon, delta, name = found
    return Cost(epsilon, delta, name, adaptive=True, amplified=rate < 1)


def _persistent(setting: SampledRounds, epsilon0: Fraction, chance: float, failure: float) -> Cost:
    """The cost of a persistent rank or coin, for streams that are fixed in advance."""
    left = (setting.delta - failure) * (1 - SAFE)
    if left >= chance:
        # The two transcripts differ with total probability at most delta.
        return Cost(0.0, setting.delta, "coupling", adaptive=False, amplified=True)
    epsilon, delta, name = _composed(setting, epsilon0, 1.0, left / chance)
    total = delta * chance + failure if delta < left / chance else setting.delta
    return Cost(mixed_loss(chance, epsilon) * (1 + SAFE), total, f"{name}, joint convexity", False, True)


def _composed(setting: SampledRounds, epsilon0: Fraction, rate: float, delta: float) -> tuple[float, float, str]:
    """The best (epsilon, delta used, name) for W releases at a rate."""
    single, factor = float(epsilon0), 2 if setting.two else 1
    if rate == 0 or (epsilon0 == 0 and not setting.delta0):
        return 0.0, 0.0, "nothing is released"
    failure = failure_of_two(single, setting.delta0) if setting.two else setting.delta0
    lost = failure_in_all(setting.releases, rate, failure)
    if lost > delta:
        return math.inf, delta, "delta0 exceeds delta"
    if rate == 1:
        basic = float(setting.releases * factor * epsilon0)
    else:
        basic = setting.releases * mixed_loss(rate, factor * single) * (1 + SAFE)
    bounds = [(basic, lost, "basic composition")]
    left = (delta - lost) / (1 - lost) * (1 - SAFE)
    if left > 0 and epsilon0:
        bounds += [(value, delta, name) for value, name in _bounds(setting, single, rate, left)]
    return min(bounds)


def _bounds(setting: SampledRounds, single: float, rate: float, delta: float) -> Iterator[tuple[float, str]]:
    length, releases = single * (2 if setting.two else 1), setting.releases
    yield product_epsilon(LawPair.randomised_response(length).mixed(rate), releases, delta), "randomised response"
    if setting.bounded_range and not setting.delta0:
        # Its single pair is dominated by that of two records: (1 - s) / ((1 + s)(1 - g)) <= 1 for s >= g = e^-epsilon0.
        yield range_epsilon(length, rate, releases, delta), "bounded range, Rényi"
        if releases <= PAIR_RELEASES:
            pair = range_pair(length, rate, releases)
            yield product_epsilon(pair, releases, delta, symmetric=rate == 1), "bounded range"
    elif setting.two:
        yield product_epsilon(LawPair.distance_two(single).mixed(rate), releases, delta), "distance two"


@lru_cache(maxsize=1024)
def _largest(setting: SampledRounds, epsilon: float) -> Fraction:
    return largest_within(lambda single: _cost(setting, single), epsilon, setting.releases, setting.delta)


def largest_within(cost_of: Callable[[Fraction], Cost], epsilon: float, releases: int, delta: float) -> Fraction:
    """The largest epsilon0 of six digits that costs at most epsilon. The cost must grow with epsilon0, and be at most
    that of basic composition at distance two."""

    def cost(place: int) -> float:
        return cost_of(_number(place)).epsilon

    low, high = _place(epsilon / (2 * releases)) - 1, _place(float(LARGEST))
    if cost(high) <= epsilon:
        return Fraction(LARGEST)
    # Basic composition is a lower start, if delta0 leaves room for any epsilon0 at all.
    at, over = cost(low), math.inf
    if at > epsilon:
        raise InputError(f"expected a delta that delta0 leaves room in, got {delta!r}", place="delta")
    slow = 0
    while high - low > 1:
        # Costs are nearly powers of epsilon0: follow the power, and bisect where that does not help.
        power = math.log(over / at) / math.log(_number(high) / _number(low)) if 0 < at < over < math.inf else 1.0
        if at > 0 and slow < 3:
            guess = _place(float(_number(low)) * (epsilon / at) ** (1 / power))
        else:
            guess, slow = (low + high) // 2, 0
        guess = min(high - 1, max(low + 1, guess))
        width, value = high - low, cost(guess)
        low, at, high, over = (guess, value, high, over) if value <= epsilon else (low, at, guess, value)
        slow = slow + 1 if high - low > width / 2 else 0
    return _number(low)


def _number(place: int) -> Fraction:
    """The numbers of six digits in ascending order: 1.00000 has place 0, 1.00001 has place 1, 10.0000 has 900,000."""
    exponent, digits = divmod(place, 900_000)
    return (100_000 + digits) * Fraction(10) ** (exponent - 5)


def _place(number: float) -> int:
    exponent = math.floor(math.log10(number))
    return 900_000 * exponent + min(899_999, max(0, math.floor(number * 10.0 ** (5 - exponent)) - 100_000))
