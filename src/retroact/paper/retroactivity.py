"""Theorem "compiler" as stated: basic or advanced composition over a block, and beta_0 with a factor.

**Retroactivity.** Each of B answers is (alpha, beta)-close; B of them are (alpha_B, B beta + beta' + (2 + e^alpha_B)
beta_0)-close. `compilers.closeness` has the exact form. **Privacy.** Unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ..checks import number
from ..compilers.closeness import check_block, check_probability
from ..compilers.maps import GaussianMap
from ..errors import InputError
from ..oneshot.ordered_domain import log_up


@dataclass(frozen=True)
class PaperRetroactivity:
    """Theorem "compiler" as stated, for Gaussian noise.

    >>> reference = PaperRetroactivity(error=1.0, alpha=0.1, beta=1e-6)
    >>> round(reference.sigma, 1), round(reference.alpha_of(100, slack=1e-6), 2)
    (106.0, 6.31)
    """

    error: float
    alpha: float
    beta: float
    failure: float = 0.0

    def __post_init__(self) -> None:
        number(self.alpha, "alpha", "a number above 0 and up to 1, as in the paper", above=0, most=1)
        check_probability(self.beta, "beta")

    @property
    def sigma(self) -> float:
        return 2 * float(self.error) / self.alpha * math.sqrt(2 * math.log(1.25 / self.beta))

    def alpha_of(self, block: int, slack: float) -> float:
        """alpha_B, with ``slack`` for the paper's beta'."""
        length, alpha = check_block(block), self.alpha
        check_probability(slack, "slack")
        return min(
            length * alpha, alpha * math.sqrt(2 * length * math.log(1 / slack)) + length * alpha * math.expm1(alpha)
        )

    def beta_of(self, block: int, slack: float) -> float:
        """beta_B; it may exceed 1."""
        factor = 2 + math.exp(min(700.0, self.alpha_of(block, slack)))
        return block * self.beta + slack + factor * self.failure


def paper_variance(squared: Fraction, alpha: Fraction, beta: Fraction) -> Fraction:
    """Of noise that makes answers at a distance of sqrt(``squared``) (alpha, beta)-close, rounded up."""
    if alpha > 1:
        raise InputError(f"expected at most 1 with the calibration of the paper, got {alpha}", place="alpha")
    return squared / alpha**2 * 2 * log_up(Fraction(5, 4) / beta)


def paper_error(map: GaussianMap, beta: float) -> float:
    """How far the map moves an answer, with probability 1 - beta: sigma (sqrt(d) + sqrt(2 ln(1/beta))).

    >>> K = GaussianMap().at(Fraction(100), Fraction(1), Fraction("1e-6"), block=1)
    >>> round(paper_error(K, 1e-6)), round(K.error(1e-6))
    (5286, 4133)
    """
    return map.sigma * (math.sqrt(map.dimension) + math.sqrt(2 * math.log(1 / beta)))
