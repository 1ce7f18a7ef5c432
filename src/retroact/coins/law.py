"""The interface of a law of integer noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ..arrays import I64, U64
from ..errors import InputError
from .coins import RandomWords

# Samples are 64-bit integers; a law this wide exceeds them with probability below 2^-180.
WIDEST = 1 << 55


class Law(ABC):
    """An integer-valued law, symmetric about 0, that turns named bits into samples."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """The exact variance, rounded to a float."""

    @abstractmethod
    def sample(self, words: RandomWords) -> I64:
        """One sample for every name."""

    @abstractmethod
    def log_transform(self, s: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
        """log E exp(s X), where it exists: exact tails of sums are computed from it."""

    @property
    @abstractmethod
    def transform_limit(self) -> float:
        """The transform exists for real s below this (infinity for the Gaussian)."""


def check_width(size: Fraction, most: int, place: str) -> Fraction:
    """The parameter of a law, between 0 and ``most``."""
    if not 0 < size <= most:
        expected = f"a {place} above 0, and noise of at most 2^55 lattice steps"
        raise InputError(f"expected {expected}, got {float(size):.3g}", place=place)
    return size


def in_parts(words: RandomWords, sample: Callable[[RandomWords], I64]) -> I64:
    """The samples of many names, drawn as many at a time as fit the cache."""
    out = np.empty(words.shape, dtype=np.int64)
    for place, part in words.parts():
        out[place] = sample(part)
    return out


def signed(magnitude: I64, spare: U64) -> I64:
    """A fair sign from a bit that the magnitude does not use."""
    sign = (spare & np.uint64(1)).view(np.int64)
    sign *= -2
    sign += 1
    sign *= magnitude
    return sign
