"""The third shape of algorithm: stateful. Its answers may depend on everything that ever happened.

**Privacy.** Each algorithm has a guarantee, whose unit says that it is not retroactive.
**Retroactivity.** None, and Lemma "amnesia" says why it has a price: a retroactive answer is a function of the round
and the surviving data alone, and these algorithms are better than that allows because they remember. A `Stream` refuses
them. They serve for comparison (docs/price.md), and as input to the smoothing compiler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from ..ledger.definition import Update
from ..privacy import Guarantee

NOT_RETROACTIVE = "private, not retroactive"


class Stateful(ABC):
    """A dynamic algorithm (paper, section 2) in the model of `retroact.ledger.definition`, private and not retroactive.

    >>> Stateful.retroactive
    False
    """

    retroactive: ClassVar[Literal[False]] = False

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Its unit ends with "private, not retroactive"."""

    def error(self, beta: float) -> float | None:
        """E, if it is proven: with probability 1 - beta every answer is within E of the truth, on every history that
        keeps the algorithm's promises. None otherwise; `smooth` relies on it."""
        return None

    @abstractmethod
    def close(self, updates: Sequence[Update]) -> Any:
        """Applies the updates of the next round, and returns its answer."""
