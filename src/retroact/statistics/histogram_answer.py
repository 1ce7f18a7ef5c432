"""What a histogram publishes: a dictionary from bin to number, largest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..checks import positive_int
from ..errors import InputError
from .answer import check_level


class Bins(dict[Any, float]):
    """
    >>> bins = Bins([("DE", 1403.5), ("FR", 911.0)], threshold=128.5)
    >>> bins.top(1)
    {'DE': 1403.5}
    """

    def __init__(
        self,
        items: Iterable[tuple[Any, float]],
        *,
        threshold: float | None = None,
        absent: Callable[[float], float] | None = None,
    ) -> None:
        super().__init__(items)
        self.threshold = threshold
        """The noisy count from which a bin is published; None where all declared bins are."""
        self._absent = absent

    def top(self, k: int) -> dict[Any, float]:
        largest = sorted(self.items(), key=lambda item: -item[1])
        return dict(largest[: positive_int(k, "k")])

    def absent_below(self, level: float = 0.95) -> float:
        """An unpublished bin has fewer records than this, with probability ``level`` for one bin and round."""
        check_level(level)
        if self._absent is None:
            raise InputError("expected a histogram with a threshold: all declared bins are published")
        if level <= 0.5:
            raise InputError(f"expected a level above 0.5, got {level!r}", place="level")
        return self._absent(level)
