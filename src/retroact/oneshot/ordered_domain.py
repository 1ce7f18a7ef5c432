"""What one-shot algorithms on an ordered field share: the field as a domain of integers, and exact probabilities."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import I64, U64
from ..checks import as_fraction, from_text
from ..coins import Coins, DiscreteLaplace
from ..coins.coins import integer_cells
from ..errors import InputError
from ..privacy.budget import check_epsilon
from ..schema import Date, Integer, Number, Rows, Schema, Timestamp, field_of
from ..schema.lattice import offsets
from .base import OneShot

Decode = Callable[[int], Any]

# Far above what `Weights` cuts off.
LEAST_BETA = 2.0**-40


class Ordered(OneShot):
    """An algorithm on one ordered field, whose values are offsets 0 .. last from its lower bound."""

    def __init__(self, field: str, *, epsilon: float | Fraction | None = None) -> None:
        if not isinstance(field, str):
            raise InputError(f"expected the name of a field, got {field!r}", place="field")
        self.field = field
        self.epsilon = None if epsilon is None else check_epsilon(from_text(epsilon))

    def check(self, schema: Schema, place: str) -> None:
        field_of(schema, self.field, Number, Integer, Date, Timestamp, place=f"{place}.field")

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (self.field,)

    def run(self, rows: Rows, schema: Schema, coins: Coins) -> Any:
        field = schema.fields[self.field]
        values = np.sort(offsets(rows.columns[self.field], field.lower))
        return self.answer(values, field.upper - field.lower, lambda offset: field.decode(field.lower + offset), coins)

    @abstractmethod
    def answer(self, values: U64, last: int, decode: Decode, coins: Coins) -> Any:
        """From sorted offsets in 0 .. last; ``decode`` turns an offset into a value of the field."""

    def size(self, schema: Schema) -> int:
        """How many values the field has."""
        field = schema.fields[self.field]
        return field.upper - field.lower + 1


def laplace(epsilon: Fraction, coins: Coins, count: int = 1) -> I64:
    """``count`` draws of discrete Laplace noise, each hiding a difference of 1 with epsilon."""
    found: I64 = DiscreteLaplace(1 / epsilon).sample(coins.words([0], [0], integer_cells(count)))[0]
    return found


def exact_probability(value: object, place: str) -> Fraction:
    """Exactly the number as written: 0.1 is one tenth, and "1/3" one third.

    >>> exact_probability(0.1, ""), exact_probability("1/3", "")
    (Fraction(1, 10), Fraction(1, 3))
    """
    found = as_fraction(value)
    if found is None or not 0 <= found <= 1:
        raise InputError(f"expected a probability between 0 and 1, got {value!r}", place=place)
    return found


def plain_probability(probability: Fraction) -> float | str:
    """A number if its decimal text is exact, a ratio otherwise."""
    number = float(probability)
    return number if Fraction(str(number)) == probability else str(probability)


def check_beta(beta: float) -> float:
    if not LEAST_BETA <= beta < 1:
        raise InputError(f"expected a failure probability from 2^-40 to below 1, got {beta!r}", place="beta")
    return float(beta)


def log_up(x: Fraction) -> Fraction:
    """The natural logarithm, rounded up by less than 10^-35 of it plus 10^-35; the same on every machine.

    >>> float(log_up(Fraction(2)))
    0.6931471805599453
    """
    context = Context(prec=60, Emin=-(10**9), Emax=10**9)
    # The quotient is off by 10^-60 of itself, its logarithm by as much and by 10^-60 of it.
    found = Fraction(context.ln(context.divide(Decimal(x.numerator), Decimal(x.denominator))))
    return found + (abs(found) + 1) / 10**36


def upward(number: float) -> int:
    """Rounded up, with room for the rounding errors of the formula."""
    return math.ceil(number * (1 + 1e-9))
