"""Intervals for numbers that are nearly linear in Gaussian noise."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any


def around(values: Any, errors: Any, level: float, bounds: tuple[float, float] | None = None) -> Any:
    """Each number plus and minus as many of its errors as the level needs; None where there is no number.

    >>> around({"a": 1.0, "b": [None, 3.0]}, {"a": 0.5, "b": [None, 1.0]}, 0.95)
    {'a': [0.020018, 1.979982], 'b': [None, [1.04004, 4.95996]]}
    """
    if isinstance(values, Mapping):
        return {key: around(value, errors[key], level, bounds) for key, value in values.items()}
    if isinstance(values, list):
        return [around(value, error, level, bounds) for value, error in zip(values, errors, strict=True)]
    if values is None:
        return None
    reach = NormalDist().inv_cdf((1 + level) / 2) * errors
    ends = [round(values - reach, _digits(reach)), round(values + reach, _digits(reach))]
    return ends if bounds is None else [max(ends[0], bounds[0]), min(ends[1], bounds[1])]


def _digits(reach: float) -> int:
    """So that six digits of the reach are kept."""
    return 12 if reach <= 0 else 5 - int(f"{reach:e}".partition("e")[2])
