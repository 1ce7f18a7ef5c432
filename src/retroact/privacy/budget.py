"""Splitting one budget among the statistics of a stream.

Each statistic is a mechanism with independent noise, and one operation touches all of them, so their losses compose.
Equal shares mean equal epsilon (pure) or equal mu^2 (Gaussian). If a stream mixes both kinds, epsilon is first split by
weight between the pure statistics and the Gaussian ones as a group, and that group gets all of delta.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

import msgspec

from ..checks import number
from ..errors import InputError
from .gaussian import largest_mu
from .measures import GaussianDP, Measure, PureDP

Kind = Literal["pure", "gaussian"]

LEAST_WEIGHT = 1e-30


class Share(msgspec.Struct, frozen=True):
    """What one statistic may spend: an exact epsilon (pure) or an exact mu^2 (Gaussian)."""

    kind: Kind
    amount: Fraction

    @property
    def measure(self) -> Measure:
        return PureDP(float(self.amount)) if self.kind == "pure" else GaussianDP(math.sqrt(self.amount))


LARGEST_EPSILON = 1000


def check_epsilon(epsilon: float | Fraction) -> Fraction:
    expected = f"a number above 0 and up to {LARGEST_EPSILON:,}"
    return Fraction(number(epsilon, "epsilon", expected, above=0, most=LARGEST_EPSILON))


def check_budget(epsilon: float | Fraction, delta: float | Fraction) -> tuple[Fraction, Fraction]:
    check_epsilon(epsilon)
    number(delta, "delta", "a number from 0 to below 1", least=0, below=1)
    if delta and delta < 1e-60:
        raise InputError(f"expected 0 or at least 1e-60, got {delta!r}", place="delta")
    return Fraction(epsilon), Fraction(delta)


def split(
    epsilon: float | Fraction, delta: float | Fraction, kinds: Mapping[str, Kind], weights: Mapping[str, float]
) -> dict[str, Share]:
    """
    >>> {n: float(s.amount) for n, s in split(1.0, 0, {"a": "pure", "b": "pure"}, {"a": 3, "b": 1}).items()}
    {'a': 0.75, 'b': 0.25}
    """
    whole, failure = check_budget(epsilon, delta)
    exact = {name: check_weight(weights.get(name, 1), f"statistics.{name}.weight") for name in kinds}
    total = sum(exact.values())
    gaussian = sum((exact[name] for name, kind in kinds.items() if kind == "gaussian"), Fraction(0))
    mu = largest_mu(whole * gaussian / total, failure) if gaussian else Fraction(0)
    return {
        name: Share(kind, whole * exact[name] / total if kind == "pure" else mu**2 * exact[name] / gaussian)
        for name, kind in kinds.items()
    }


def check_weight(weight: float, place: str) -> Fraction:
    least, most = LEAST_WEIGHT, 1 / LEAST_WEIGHT
    return Fraction(number(weight, place, f"a weight from {least:g} to {most:g}", least=least, most=most))
