"""The threshold of Theorem "histogram" as the paper has it.

**Privacy.** A sum of m Laplace noises is bounded by m times the largest, in all T releases at once:
tau = 1 + (m / eps0) ln(2 m T / delta). The rest of the argument is that of `noise.threshold`.
**Retroactivity.** The threshold is one number.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ..coins import DiscreteLaplace
from ..noise.mechanism import Mechanism
from ..noise.threshold import Threshold, check_failure
from ..noise.tree import Tree


class PaperThreshold(Threshold):
    """tau = 1 + m b ln(2 m T A / delta), for sums of m Laplace noises of scale b with weights up to 1: in the theorem
    b = 1 / eps0 = 2m / epsilon.

    >>> [round(float(PaperThreshold.of(1.0, 1e-6, 2**k).at(1))) for k in (10, 16)]
    [5770, 16435]
    """

    def __init__(self, nodes: int, scale: Fraction, failure: Fraction, releases: int, bins: int = 1) -> None:
        check_failure(failure, bins, releases)
        reach = nodes * float(scale) * math.log(2 * nodes * releases * bins / float(failure))
        super().__init__(lambda release, chance: reach, failure, releases, bins=bins)

    @classmethod
    def for_noise(cls, noise: Mechanism, failure: Fraction, releases: int, bins: int) -> PaperThreshold:
        """For the first coordinate of a tree of Laplace noise."""
        law = noise.law(0, 1)
        assert isinstance(law, DiscreteLaplace)
        return cls(Tree(releases).height, law.scale, failure, releases, bins)

    @classmethod
    def of(cls, epsilon: float | Fraction, delta: float | Fraction, releases: int, bins: int = 1) -> PaperThreshold:
        """As the theorem states it."""
        height = Tree(releases).height
        return cls(height, 2 * height / Fraction(epsilon), Fraction(delta), releases, bins)
