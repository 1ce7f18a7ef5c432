"""The noisy count from which a bin of an unknown universe is released (Theorem "histogram").

Only bins with surviving records are candidates, so an operation that adds the first record of a bin changes which bins
can be released at all. With a threshold, that shows with small probability only.

**Privacy** (shift plus threshold failure). Let Z be the noise of one bin, S+ a history in which bin b has one record
more on an interval I, and W the released rounds of I in which the counts of b are 1 and 0. Let shifting Z by 1_I be
(epsilon, d1)-indistinguishable, and d2 >= P(some l in W has Z_l >= tau_l - 1). Then the thresholded release is
(epsilon, d1 + d2)-private, in both directions:
- S+ to S-: let H be the output of S+ with b suppressed on W. H is the same function of the shifted noise as A(S-) is
  of the noise, so P[A(S+) in E] <= P[H in E] + P(some 1 + Z_l >= tau_l) <= e^epsilon P[A(S-) in E] + d1 + d2.
- S- to S+: let B be the event that the noisy value of b (count 0 included) reaches tau on W. Outside of B the two
  outputs are the same function of noise that is shifted: P[A(S-) in E] <= e^epsilon P[A(S+) in E, not B] + d1 + P(B),
  and P(B) <= P(some Z_l >= tau_l) <= d2.
Other bins have equal counts and independent noise. The union bound runs over the released rounds only; with a window,
over those in which one record can be live.

*Adaptive streams.* There the bin b may be chosen after its noise was seen (released while it was full, emptied, and
challenged later), so d2 must bound the failure of every bin that ever holds a record: with at most A of them, A times
the sum. Without a bound on A the guarantee is for oblivious streams only.

*Tails.* For Gaussian noise, Z_l is up to a factor e^(+-2^-300) the discrete Gaussian on a lattice of some spacing
g <= 1 / refinement (docs/proofs.md, 7), and beyond one deviation s a sum over a lattice is at most the integral from
half a spacing lower: P(Z_l >= x) <= P(N > (x - g/2) / s). For Laplace noise, `Tail.proven_reach` bounds the sum, and
d1 = 0: all of delta is the threshold's.
**Retroactivity.** A threshold depends on the round alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..privacy.halving import halved
from ..privacy.normal import upper_tail_float
from .mechanism import Mechanism

# Thresholds are rounded up to this grid, far coarser than the last digits of floats.
GRID = 64
# The smallest chance of failure in one release of one bin: below it, floats lose digits.
SMALLEST = Fraction(1, 10**250)
# Up to this many releases, a threshold for all of them is computed from the noise of each.
ENUMERATED = 1 << 17

Variances = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]
Reach = Callable[[int, float], float]
"""Maps (release, chance) to what its noise exceeds with at most that chance."""


class Threshold:
    """Fails with probability at most ``failure`` over all ``releases``, or over those in which a record can be live:
    an equal part of it for each of them; without any bound 1/((j+1)(j+2)) of it for the 2^j releases from 2^j on, which
    sums to 1. This is the one for Laplace noise."""

    def __init__(self, reach: Reach, failure: Fraction, releases: int | None, *, bins: int = 1) -> None:
        check_failure(failure, bins, releases)
        self._reach, self._failure, self._releases = reach, failure / bins, releases

    def at(self, release: int) -> Fraction:
        return _rounded(self._reach(release, float(self._part(release))))

    def _part(self, release: int) -> Fraction:
        if self._releases is not None:
            return self._failure / self._releases
        epoch = release.bit_length() - 1
        return self._failure / ((epoch + 1) * (epoch + 2) << epoch)


class GaussianThreshold(Threshold):
    """Suits Gaussian noise. If ``releases`` are those from 1 on, and known, all of them have one threshold."""

    def __init__(
        self,
        variances: Variances,
        spacing: float,
        failure: Fraction,
        releases: int | None,
        *,
        bins: int = 1,
        windowed: bool = False,
    ) -> None:
        super().__init__(self._tail, failure, releases, bins=bins)
        self._variances, self._half_spacing = variances, spacing / 2
        self._one = None
        if not windowed and releases is not None and releases <= ENUMERATED:
            self._one = self._common(releases)

    def at(self, release: int) -> Fraction:
        return super().at(release) if self._one is None else self._one

    def _tail(self, release: int, chance: float) -> float:
        return math.sqrt(float(self._variances(np.array([release]))[0])) * tail_quantile(chance) + self._half_spacing

    def _common(self, releases: int) -> Fraction:
        """The smallest tau with sum over releases of P(N > (tau - 1 - g/2) / s) <= failure."""
        variances = self._variances(np.arange(1, releases + 1))
        # Rounded up to 12 bits: releases of nearly equal noise are counted together.
        mantissa, exponent = np.frexp(variances)
        sizes, counts = np.unique(np.ldexp(np.ceil(mantissa * 4096) / 4096, exponent), return_counts=True)
        deviations = np.sqrt(sizes).tolist()
        parts = list(zip(deviations, counts.tolist(), strict=True))

        def fails(reach: float) -> bool:
            chances = (count * upper_tail_float(reach / deviation) for deviation, count in parts if deviation)
            return math.fsum(chances) > self._failure

        most = max(deviations) * tail_quantile(float(self._failure / releases))
        return _rounded(halved(fails, 0.0, most, absolute=1 / (4 * GRID))[1] + self._half_spacing)


def check_failure(failure: Fraction, bins: int, releases: int | None) -> None:
    """A chance that is 0 as a float would give a threshold that is too low."""
    if failure / bins / (releases or 1 << 80) < SMALLEST:
        raise InputError(
            f"expected a part of delta that leaves at least {float(SMALLEST):g} for each bin and release, got less: "
            "take fewer bins, a larger delta or a larger weight"
        )


def threshold_for(
    noise: Mechanism, failure: Fraction, releases: int | None, *, live: int | None = None, bins: int = 1
) -> Threshold:
    """The threshold of the first coordinate, by the law of its noise."""
    counted = releases if live is None else live
    if noise.share.kind == "pure":
        return Threshold(partial(_proven_reach, noise), failure, counted, bins=bins)
    variances, windowed = partial(noise.variances_of, 0), live is not None
    return GaussianThreshold(variances, 1 / noise.refinement, failure, counted, bins=bins, windowed=windowed)


def _proven_reach(noise: Mechanism, release: int, chance: float) -> float:
    return noise.tail(release, 0).proven_reach(chance)


def _rounded(reach: float) -> Fraction:
    return Fraction(math.ceil((1 + reach) * GRID), GRID)


@lru_cache(maxsize=1024)
def tail_quantile(probability: float) -> float:
    """The smallest z with P(N > z) <= probability, rounded up to 9 digits."""
    _, high = halved(lambda z: upper_tail_float(z) > probability, 0.0, 1.0, grow=2, relative=1e-12)
    return float(f"{high * (1 + 1e-9):.10g}")
