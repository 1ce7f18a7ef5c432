"""What mean and variance share: a field centred on the middle of its bounds, in whole half-steps.

With k the lattice value, the centred value 2k - (lower + upper) is an integer of at most upper - lower in absolute
value. Centring halves the sensitivity of the sum, and is undone after the noise is on.
"""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..schema import Boolean, Field, Integer, Number, Rows, Schema
from .linear import Contributions, field_of

# A mean is a float.
LARGEST = 1 << 53


def bounded(schema: Schema, name: str) -> Field:
    field = field_of(schema, name, Number, Integer, Boolean)
    if max(abs(field.lower), abs(field.upper)) > LARGEST:
        raise InputError("expected bounds below 2^53, where every whole number is a float too", place="field")
    return field


def span(field: Field) -> int:
    return max(1, field.upper - field.lower)


def powers(rows: Rows, name: str, field: Field, highest: int) -> Contributions:
    """Every record adds 1, c, c^2, ... of its centred value c to coordinates 0, 1, 2, ..."""
    # From the lower bound on, so that nothing on the way is larger than twice the span, which is at most 2^54. Powers
    # are at most the largest amount of the layout, and a stream refuses layouts beyond 2^38.
    centred = 2 * (rows.columns[name] - field.lower) - (field.upper - field.lower)
    amounts = [np.ones_like(centred)]
    for _ in range(highest):
        amounts.append(amounts[-1] * centred)
    return Contributions(
        np.tile(np.arange(rows.count), highest + 1),
        np.repeat(np.arange(highest + 1), rows.count),
        np.concatenate(amounts),
    )
