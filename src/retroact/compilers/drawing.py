"""Which of the live records an algorithm sees: all of them, or a sample by named coins."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..coins import COIN_BITS, Coins, distinct, tossed
from ..errors import InputError
from ..ledger import sorted_keys
from ..privacy import Form
from ..schema import Rows
from ..schema.numbers import exact_number
from .live_records import Live


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


def smallest(live: Live, size: int) -> Rows:
    """The ``size`` live copies of smallest rank, or all there are."""
    if size >= live.count:
        return live.all()
    ranks = [block.ranks for block in live.blocks.values()]
    # First those below a bound that about twice as many stay under; more if these were too few.
    limit = (2 * size + 64 << 64) // live.count
    while True:
        bound = np.uint64(min(limit, (1 << 64) - 1))
        parts = [one.first(int(np.searchsorted(one.high, bound, side="right"))) for one in ranks]
        high, low = (np.concatenate(words) for words in zip(*((part.high, part.low) for part in parts), strict=True))
        if len(high) >= size or limit >= 1 << 64:
            break
        limit *= 2
    chosen = np.sort(sorted_keys.order((high, low))[:size])
    return live.joined([part.labels for part in parts]).take(chosen)


def below(live: Live, bound: int) -> Rows:
    """The live copies whose rank is below the bound, in units of 2^-64: persistent coins."""
    if bound >= 1 << 64:
        return live.all()
    ranks = [block.ranks for block in live.blocks.values()]
    return live.joined([one.first(int(np.searchsorted(one.high, np.uint64(bound)))).labels for one in ranks])


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
