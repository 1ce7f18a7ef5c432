"""What an erasure found when it was asked for. It is entered and applied in the same way whether it found anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .release import Round


@dataclass(frozen=True)
class Outcome:
    """What was found of one identifier. Exact, so for whoever runs the stream only."""

    identifier: str
    found: bool
    surviving: int | None = None
    """Records at the last close. What a request found is kept without counts, so it is None when one is repeated."""
    waiting: int | None = None
    """Records that the open round holds, whatever else it does to them."""


class Erasure:
    """An erasure that was taken, and what it found of each identifier.

    >>> Erasure([Outcome("u17", True, 7, 0), Outcome("u71", False, 0, 0)]).found
    False
    """

    def __init__(self, outcomes: Sequence[Outcome] = ()) -> None:
        self._outcomes = list(outcomes)

    @property
    def outcomes(self) -> list[Outcome]:
        """One for each identifier, in the order in which they were named."""
        return self._outcomes

    @property
    def found(self) -> bool:
        """Whether all of them had a record."""
        return all(outcome.found for outcome in self.outcomes)

    def __repr__(self) -> str:
        missing = sum(not outcome.found for outcome in self.outcomes)
        return f"{type(self).__name__}({len(self.outcomes)} subjects, no record found of {missing})"


@dataclass(frozen=True)
class Accepted:
    """What became of an entry."""

    erasure: Erasure
    """What its erasures found, itself included."""
    round: Round | None
    """What was published, where it closed the round."""
