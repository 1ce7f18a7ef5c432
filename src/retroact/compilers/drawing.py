"""Which of the live records an algorithm sees: all of them, or a sample by named coins."""

from __future__ import annotations

from fractions import Fraction

from ..coins import COIN_BITS, Coins, distinct, tossed
from ..errors import InputError
from ..privacy import Form
from ..schema import Rows
from ..schema.numbers import exact_number
from .live_records import Live
from .persistent_ranks import below, smallest


def drawn(
    form: Form, live: Live, coins: Coins, round: int, *, size: int | None = None, rate: Fraction | None = None
) -> Rows:
    """The sample of a round; ``size`` or ``rate`` as the form needs it."""
    match form:
        case "fresh":
            assert size is not None
            return live.rows(distinct(coins.branch("sample", round), live.count, min(size, live.count)))
        case "poisson":
            return live.rows(tossed(coins.branch("sample", round), live.count, threshold(rate, COIN_BITS)))
        case "ranks":
            assert size is not None
            return smallest(live, size)
        case "coins":
            return below(live, threshold(rate, 64))
        case _:
            return live.all()


def threshold(rate: Fraction | None, bits: int) -> int:
    """The rate in units of 2^-bits, rounded down: a smaller rate is covered by the bounds for a larger one."""
    assert rate is not None
    return int(rate * (1 << bits))


def exact_rate(rate: float | Fraction) -> Fraction:
    """As it was written, exactly.

    >>> exact_rate(0.1)
    Fraction(1, 10)
    """
    exact = Fraction(rate) if isinstance(rate, Fraction) else exact_number(rate, "rate")
    if not 0 < exact <= 1:
        raise InputError(f"expected a rate above 0 and up to 1, got {rate!r}", place="rate")
    if exact * (1 << COIN_BITS) < 1:
        raise InputError(f"expected a rate of at least 2^-{COIN_BITS}, got {rate!r}", place="rate")
    return exact
