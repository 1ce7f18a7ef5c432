"""Which of the declared groups a record falls in: every combination of the categories of one or more fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import I64
from ..schema import Boolean, Category, Schema, field_of


class DeclaredGroups:
    """A record falls in exactly one group, by its own values and public choices. Without fields there is one group.

    >>> groups = DeclaredGroups(["country", "member"], Schema({"country": Category(["DE", "FR"]), "member": Boolean()}))
    >>> groups.names
    [('DE', False), ('DE', True), ('FR', False), ('FR', True)]
    >>> groups.codes({"country": np.array([1, 0]), "member": np.array([0, 1])}).tolist()
    [2, 1]
    """

    def __init__(self, by: Sequence[str], schema: Schema) -> None:
        self.by = tuple(by)
        fields = [field_of(schema, name, Category, Boolean, place="by") for name in by]
        self._lists: list[Sequence[Any]] = [f.values if isinstance(f, Category) else (False, True) for f in fields]

    @property
    def names(self) -> list[Any]:
        """Groups as they are published: values, or tuples of them."""
        return [group[0] if len(group) == 1 else group for group in product(*self._lists)]

    def __len__(self) -> int:
        return prod(map(len, self._lists))

    def codes(self, columns: Mapping[str, npt.NDArray[Any]]) -> I64:
        """The number of the group of each record; there are fewer groups than coordinates of a layout."""
        codes: I64 = np.zeros(len(columns[self.by[0]]), dtype=np.int64)
        for name, values in zip(self.by, self._lists, strict=True):
            codes = codes * len(values) + columns[name]
        return codes
