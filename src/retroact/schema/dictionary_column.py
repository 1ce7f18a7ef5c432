"""A dictionary column: few words stand for many values, and each word is encoded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Coded(Sequence[Any]):
    """Value k is ``words[codes[k]]``.

    >>> column = Coded(["DE", "FR", None], np.array([0, 0, 1, 2]))
    >>> list(column), column[2], len(column)
    (['DE', 'DE', 'FR', None], 'FR', 4)
    """

    def __init__(self, words: Sequence[Any], codes: NDArray[np.integer[Any]]) -> None:
        self.words = words
        self.codes = codes

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Coded(self.words, self.codes[index])
        return self.words[int(self.codes[index])]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values())

    def values(self) -> list[Any]:
        return [self.words[code] for code in self.codes.tolist()]

    def used(self) -> Coded:
        """The same column without unused words, which may be anything."""
        present = np.bincount(self.codes, minlength=len(self.words)) > 0
        if present.all():
            return self
        places = np.cumsum(present) - 1
        return Coded([self.words[place] for place in np.flatnonzero(present).tolist()], places[self.codes])
