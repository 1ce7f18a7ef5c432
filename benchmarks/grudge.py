"""The worst case of smoothing: a count that is as wrong as it may be, in the direction that shows the past."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from retroact.ledger.definition import Add, Delete, Update
from retroact.ledger.definition import Sequence as History
from retroact.privacy import Guarantee, PureDP
from retroact.stateful.base import NOT_RETROACTIVE, Stateful


class Grudge(Stateful):
    """Counts additions less deletions, plus E if a deletion ever came and minus E otherwise. It promises no privacy; it
    is within E of the truth on histories whose deletions all find a record. It does not say so itself, so that it can
    be smoothed for less.

    >>> grudge = Grudge(Fraction(5))
    >>> grudge.close([Add("x")]), grudge.close([Delete("x", 1)])
    (Fraction(-4, 1), Fraction(5, 1))
    """

    def __init__(self, error: Fraction) -> None:
        self._off = error
        self._count, self._forgave = 0, True

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(PureDP(math.inf), math.inf, unit=f"one operation ({NOT_RETROACTIVE})", adaptive=False)

    def close(self, updates: Sequence[Update]) -> Fraction:
        for update in updates:
            self._count += 1 if isinstance(update, Add) else -1
            self._forgave &= isinstance(update, Add)
        return self._count + (-self._off if self._forgave else self._off)


def united(rounds: int) -> tuple[History, History]:
    """A record that comes and goes, and nothing at all: nothing survives either from round 2 on."""
    nothing: tuple[tuple[Update, ...], ...] = ((),) * rounds
    return ((Add("x"),), (Delete("x", 1),), *nothing), ((), (), *nothing)
