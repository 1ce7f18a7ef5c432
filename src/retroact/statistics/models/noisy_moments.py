"""Noisy second moments as matrices, in the units of points in the unit ball and of targets from -1 to 1.

The noise of z z' is that of a symmetric matrix with the deviation s on its diagonal and s / sqrt(2) off it: turning the
coordinates does not change its law, and its largest eigenvalue is about s sqrt(2 d) (semicircle law). No direction in
which the records vary less than that can be distinguished from noise. Nothing here sees exact sums.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from ...arrays import F64
from ..answer import Noisy
from .exact import eigen, product
from .feature_map import LENGTH
from .products import INTERCEPT, Products

# The intercept, in the units of points.
ONE = INTERCEPT / LENGTH
# A count below this many deviations is taken to be as large.
LEAST = 3
# What the squared lengths of points, and those of targets, are taken to be on average, for plans.
SPREAD = 0.5
# 10 to this power, and a float times it, are floats.
MOST_DIGITS = 150


class NoisyMoments:
    """``squares`` and ``sums`` are z z' and z y'; ``deviation`` is that of the diagonal of z z'."""

    def __init__(self, noisy: Noisy, products: Products) -> None:
        values, deviations = noisy.values, noisy.deviations
        corner, sums, last = products.blocks
        self.width = products.width - 1
        if products.shares.squares:
            self.squares = np.zeros((products.width, products.width))
            self.squares[products.corner] = values[corner] / LENGTH**2
            self.squares.T[products.corner] = values[corner] / LENGTH**2
            self.deviation = float(deviations[0]) / LENGTH**2
        if products.target is not None:
            unit = LENGTH * products.target.largest
            self.sums = values[sums].reshape(products.width, products.targets) / unit
            self.sum_deviation = float(deviations[sums.start]) / unit
            if products.shares.target_square:
                self.target_square = float(values[last][0]) / products.target.largest**2
                self.target_square_deviation = float(deviations[last.start]) / products.target.largest**2

    @property
    def count(self) -> float:
        """About how many records there are."""
        return float(self.squares[0, 0]) / ONE**2

    @property
    def count_deviation(self) -> float:
        return self.deviation / ONE**2

    @cached_property
    def records(self) -> float:
        """The noisy number of records, but never too few to divide by."""
        return max(self.count, LEAST * self.count_deviation)

    @cached_property
    def means(self) -> F64:
        return np.asarray(self.squares[0, 1:] / (ONE * self.records))

    @cached_property
    def centred(self) -> F64:
        """The sums of products around the means."""
        means = self.means
        return np.asarray(self.squares[1:, 1:] - self.records * (means[:, None] * means))

    @cached_property
    def raw_spectrum(self) -> tuple[F64, F64]:
        """The spectrum of `centred`: eigenvalues, some perhaps below 0, and eigenvectors."""
        return eigen(self.centred)

    @property
    def spectrum(self) -> tuple[F64, F64]:
        """The spectrum with no eigenvalue below 0."""
        values, vectors = self.raw_spectrum
        return np.maximum(values, 0.0), vectors

    @property
    def radius(self) -> float:
        """About the largest eigenvalue of the noise."""
        return radius(self.deviation, self.width)

    def turned(self, factors: F64, vectors: F64) -> F64:
        """The function of `centred` whose values are ``factors``, times ``vectors``."""
        _, own = self.spectrum
        inner = product(np.ascontiguousarray(own.T), vectors)
        return product(own, factors * inner if inner.ndim == 1 else factors[:, None] * inner)


def radius(deviation: float, width: int) -> float:
    return deviation * math.sqrt(2 * width)


def rounded(values: F64, errors: F64 | float) -> F64:
    """Round to hundredths of the leading digit of the errors: more digits are noise, and depend on the machine.

    >>> rounded(np.array([3.14159265, 271.8281828]), np.array([0.02, 30.0])).tolist()
    [3.1416, 271.8]
    """
    given = np.asarray(values, dtype=np.float64)
    each = np.broadcast_to(np.asarray(errors, dtype=np.float64), given.shape)
    known = np.isfinite(each) & (each > 0)
    digits = np.where(known, 2 - np.floor(np.log10(np.where(known, each, 1.0))), 12)
    digits = np.clip(digits, -MOST_DIGITS, MOST_DIGITS).astype(int)
    out = given.copy()
    for one in np.unique(digits).tolist():
        out[digits == one] = np.round(given[digits == one], one)
    return np.asarray(out + 0.0)


def shortened(errors: F64) -> F64:
    """Errors to three digits."""
    return rounded(errors, np.asarray(errors))
