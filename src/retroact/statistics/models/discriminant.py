"""Linear scores of classes from noisy moments: projected discriminant analysis, or nearest means.

**Discriminant analysis** with the covariance S + k is private, but k presses all scores towards the prior. So it is
done twice: first it gives K - 1 directions W in which classes differ most for their spread, with k as large as the
noise; then classes are told apart within these directions, where the noise is that of K - 1 dimensions alone, and is
added to the spread within classes.

**Nearest means** need no spread. Differences between classes are shrunk by the part of them that is noise. Scores are
divided by the mean spread within classes, so that they are logarithms of probabilities, roughly.

**Privacy, retroactivity.** Functions of noisy sums alone (Lemma "closure"): class counts, and so priors, are noisy too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...arrays import F64
from .exact import eigen, product
from .noisy_moments import ONE, NoisyMoments

# A class has at least as many records as this many deviations of their number.
FEWEST = 2
# The least part of a difference between classes that is kept.
KEPT = 0.02
# Eigenvalues are taken to be at least this part of the largest.
TINY = 1e-12


class Scores(NamedTuple):
    """A record x scores x' slopes + offsets; by class."""

    slopes: F64
    offsets: F64


class ClassMeans:
    """Noisy numbers, means, and differences from the mean of all, by class."""

    def __init__(self, moments: NoisyMoments) -> None:
        least = FEWEST * moments.sum_deviation
        self.counts = np.maximum(moments.sums[0], least) / ONE
        self.records = float(self.counts.sum())
        self.shares = self.counts / self.records
        self.sums = moments.sums[1:]
        self.total = self.sums.sum(axis=1)
        self.mean = self.total / self.records
        self.differences = self.sums / self.counts - self.mean[:, None]
        self._deviation, self._width = moments.sum_deviation, moments.width

    @property
    def means(self) -> F64:
        """The means of classes, drawn towards the mean of all by as much as is noise."""
        squares = (self.differences**2).sum(axis=0)
        noise = self._width * (self._deviation / self.counts) ** 2
        kept = np.maximum(KEPT, 1 - noise / np.where(squares > 0, squares, 1.0))
        return np.asarray(self.mean[:, None] + self.differences * kept)


def nearest(moments: NoisyMoments, classes: ClassMeans) -> Scores:
    """Score classes by the distance from their means, over the mean spread within classes."""
    within = float(moments.centred.diagonal().sum() - (classes.counts * classes.differences**2).sum())
    spread = max(within / moments.width, moments.radius) / classes.records
    means = classes.means
    return Scores(means / spread, -(means**2).sum(axis=0) / (2 * spread))


def projected(moments: NoisyMoments, classes: ClassMeans) -> Scores:
    """Discriminant analysis within K - 1 directions."""
    values, vectors = moments.spectrum
    size = len(classes.counts)
    between = classes.sums - classes.total[:, None] * classes.shares
    turned = product(np.ascontiguousarray(vectors.T), product(between, contrasts(size)))
    turned = turned / (values + moments.radius)[:, None]
    directions = product(vectors, turned)
    places = _across(directions, classes.differences)
    spread = _across(turned, turned * values[:, None]) - _across(places.T, (places * classes.counts).T)
    guard = math.sqrt(2 * (size - 1)) * moments.deviation
    inverse = _inverse(_positive(spread) + guard * _across(turned, turned)) * classes.records
    weights = product(inverse, places)
    slopes = product(directions, weights)
    offsets = np.log(classes.shares) - (places * weights).sum(axis=0) / 2 - (classes.mean[:, None] * slopes).sum(axis=0)
    return Scores(slopes, offsets)


def contrasts(size: int) -> F64:
    """Orthonormal columns that add up to 0.

    >>> contrasts(2).round(3).tolist()
    [[0.707], [-0.707]]
    """
    out = np.zeros((size, size - 1))
    for place in range(1, size):
        out[:place, place - 1] = 1 / math.sqrt(place * (place + 1))
        out[place, place - 1] = -place / math.sqrt(place * (place + 1))
    return out


def _across(left: F64, right: F64) -> F64:
    """left' right."""
    return product(np.ascontiguousarray(left.T), right)


def _positive(matrix: F64) -> F64:
    """The nearest matrix without negative eigenvalues."""
    values, vectors = eigen(matrix)
    return product(vectors * np.maximum(values, 0.0), np.ascontiguousarray(vectors.T))


def _inverse(matrix: F64) -> F64:
    values, vectors = eigen(matrix)
    largest = float(values[-1])
    if largest <= 0:
        return np.zeros_like(matrix)
    return product(vectors / np.maximum(values, TINY * largest), np.ascontiguousarray(vectors.T))
