"""What an erasure found, in memory and in a store."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..messages import plural
from .release import Round


class Outcome(msgspec.Struct, frozen=True):
    """What was found for one identifier. Exact, so for the operator only."""

    identifier: str
    found: bool
    surviving: int | None = None
    """Records at the last close; None for a repeated request, because counts are not stored."""
    waiting: int | None = None
    """Records added in the open round, whatever else it does to them."""


def outcomes(who: Sequence[str | bytes], surviving: Sequence[int], waiting: Sequence[int]) -> list[Outcome]:
    names = (each if isinstance(each, str) else each.hex() for each in who)
    return [Outcome(name, bool(a or b), a, b) for name, a, b in zip(names, surviving, waiting, strict=True)]


class Erasure:
    """What an erasure found for each identifier.

    >>> Erasure([Outcome("u17", True, 7, 0), Outcome("u71", False, 0, 0)]).found
    False
    """

    def __init__(self, outcomes: Sequence[Outcome] = ()) -> None:
        self._outcomes = list(outcomes)

    @property
    def outcomes(self) -> list[Outcome]:
        """One for each identifier, in the order given."""
        return self._outcomes

    @property
    def found(self) -> bool:
        """Whether every one of them had a record."""
        return all(outcome.found for outcome in self.outcomes)

    def __repr__(self) -> str:
        missing = sum(not outcome.found for outcome in self.outcomes)
        return f"{type(self).__name__}({plural(len(self.outcomes), 'subject')}, no record found of {missing})"


class Accepted(msgspec.Struct, frozen=True):
    """The result of an entry."""

    erasure: Erasure
    """What its erasures found, among its own records too."""
    round: Round | None
    """What was published, if it closed the round."""
