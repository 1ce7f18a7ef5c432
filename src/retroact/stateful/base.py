"""The third shape of algorithm: stateful. Its answers may depend on everything that ever happened.

**Privacy.** Each algorithm has a guarantee of its own, whose unit says that it is not retroactive.
**Retroactivity.** None, and Lemma "amnesia" says why it cannot be had for free: a retroactive answer is a function of
the round and the surviving data alone, and these algorithms are better than that allows because they remember. A
`Stream` refuses them. They are here to be compared with (docs/price.md) and to be compiled.
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
        """What is promised; its unit ends with "private, not retroactive"."""

    def error(self, beta: float) -> float | None:
        """E, where it is proven: with probability 1 - beta every answer is within that of the truth, on every history
        that keeps what the algorithm was promised. None where no bound is; `smooth` goes by it."""
        return None

    @abstractmethod
    def close(self, updates: Sequence[Update]) -> Any:
        """Takes the updates of the next round, gives its answer."""
