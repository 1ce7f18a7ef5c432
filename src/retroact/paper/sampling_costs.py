"""What the paper's own theorems charge for samples of a fixed size: for comparison with `privacy.window_cost`.

**Privacy.** Theorem "sampling", parts 2 and 3, and Theorem "amplification" of Appendix C, constant by constant.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from typing import Any

from ..errors import InputError
from ..privacy import Cost, Form
from ..privacy.dominating_pair import mixed_loss
from ..privacy.sampled_cost import largest_within

# The part of delta for a failure of the ranks.
RANKS = 0.5


def paper_basic(releases: int, epsilon0: float, delta0: float) -> tuple[float, float]:
    """Theorem "Sampling compiler", part 2: (2 W epsilon0, 2 W e^epsilon0 delta0).

    >>> paper_basic(10, 0.1, 0.0)
    (2.0, 0.0)
    """
    return 2 * releases * epsilon0, 2 * releases * math.exp(epsilon0) * delta0


def paper_advanced(releases: int, epsilon0: float, delta0: float, slack: float) -> tuple[float, float]:
    """Part 2 with advanced composition, slack > 0 being the paper's delta'.

    >>> round(paper_advanced(1000, 0.01, 0.0, 1e-6)[0], 3)
    3.729
    """
    epsilon = _advanced(releases, 2 * epsilon0, slack)
    return epsilon, 2 * releases * math.exp(epsilon0) * delta0 + slack


def paper_amplified(releases: int, epsilon0: float, delta0: float, slack: float, rate: float) -> tuple[float, float]:
    """Part 3, at q = k/(n + 1). The paper assumes epsilon0 <= 1, but only for the estimate 7 q epsilon0, not used here.

    >>> round(paper_amplified(1000, 1.0, 0.0, 1e-6, 0.01)[0], 2)
    14.25
    """
    epsilon = _advanced(releases, mixed_loss(rate, 2 * epsilon0), slack)
    return epsilon, 2 * releases * rate * math.exp(epsilon0) * delta0 + slack


def paper_ranks(
    releases: int, size: int, occupancy: int, epsilon: float, delta: float, failure: float
) -> tuple[float, float]:
    """Theorem "amplification" of Appendix C: (12 p epsilon_W, 3 p delta_W + beta_r), p = (2k + 8 ln(W/beta_r)) / n.

    ``epsilon`` and ``delta`` are epsilon_W and delta_W. Beyond p = 1/12 this says less than epsilon_W itself.

    >>> [round(x, 3) for x in paper_ranks(1000, 100, 10_000, 0.5, 0.0, 1e-6)]
    [0.219, 0.0]
    """
    reach = min(1.0, (2 * size + 8 * math.log(releases / failure)) / occupancy)
    if epsilon > 1:
        raise InputError(f"expected at most 1, got {epsilon!r}", place="epsilon")
    if reach > 0.5:
        raise InputError(f"expected an occupancy that makes p at most 1/2, got {occupancy}", place="occupancy")
    return 12 * reach * epsilon, 3 * reach * delta + failure


def _advanced(releases: int, epsilon: float, slack: float) -> float:
    """Dwork, Rothblum and Vadhan 2010."""
    return epsilon * math.sqrt(2 * releases * math.log(1 / slack)) + releases * epsilon * math.expm1(epsilon)


def paper_cost(
    form: Form,
    *,
    releases: int,
    epsilon0: float,
    delta0: float,
    delta: float,
    size: int,
    occupancy: int | None,
    **unused: Any,
) -> Cost:
    """Theorem "sampling", parts 2 and 3, and Theorem "amplification": the least of what applies at this delta. What
    else `privacy.window_cost` asks for plays no part.

    >>> cost = paper_cost("fresh", releases=1000, epsilon0=1.0, delta0=0, delta=1e-6, size=100, occupancy=9999)
    >>> round(cost.epsilon, 2), cost.bound
    (14.25, "the paper's, part 3")
    """
    basic, failure = paper_basic(releases, epsilon0, delta0)
    found: list[Cost] = []
    if failure <= delta:
        found.append(Cost(basic, failure, "the paper's, part 2", True, False))
    if failure < delta:
        advanced, _ = paper_advanced(releases, epsilon0, delta0, delta - failure)
        found.append(Cost(advanced, delta, "the paper's, part 2", True, False))
    rate = 1.0 if occupancy is None else size / (occupancy + 1)
    if form == "fresh" and occupancy is not None and epsilon0 <= 1 and rate * failure < delta:
        amplified, _ = paper_amplified(releases, epsilon0, delta0, delta - rate * failure, rate)
        found.append(Cost(amplified, delta, "the paper's, part 3", True, True))
    if form == "ranks" and occupancy is not None and failure < delta:
        whole = paper_advanced(releases, epsilon0, delta0, (delta - failure) * (1 - RANKS))
        with suppress(InputError):  # outside of what the theorem assumes
            epsilon, total = paper_ranks(releases, size, occupancy, *whole, (delta - failure) * RANKS)
            if total <= delta:
                found.append(Cost(epsilon, total, "the paper's, Appendix C", False, True))
    return min(found, key=lambda cost: cost.epsilon, default=_none(delta))


def _none(delta: float) -> Cost:
    return Cost(math.inf, delta, "none applies", True, False)


def paper_epsilon0(form: Form, *, releases: int, epsilon: float, delta: float, **terms: Any) -> Fraction:
    """The largest epsilon0 of six digits that costs at most epsilon.

    >>> paper_epsilon0("fresh", releases=10, epsilon=1.0, delta0=0, delta=0, size=5, occupancy=None)
    Fraction(1, 20)
    """

    def cost(epsilon0: Fraction) -> Cost:
        if epsilon0 > max(1, epsilon):
            return _none(delta)  # beyond 1 only part 2 applies, which charges more than epsilon0
        return paper_cost(form, releases=releases, epsilon0=float(epsilon0), delta=delta, **terms)

    return largest_within(cost, epsilon, releases, delta)
