"""Records by key: one or more fields make a key, which names the cell of its noise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..arrays import I64, U64
from ..coins import Coins
from ..coins.coins import name_bytes
from ..errors import InputError
from ..schema import Boolean, Bytes, Category, Field, Rows, Schema, Text, Vector, field_of
from .bound import Bound, Totals
from .by_round import Pick
from .grant import Grant
from .statistic import Statistic
from .tally import Labelled, Labels, Tally, distinct

# In bytes (UTF-8 for texts), all fields of a key together.
LONGEST_KEY = 4096


class Keys:
    """The fields that make a key.

    >>> from retroact.schema import Integer
    >>> keys = Keys(["country", "age"], Schema({"country": Text(), "age": Integer(0, 120)}))
    >>> keys.decode((np.array(["DE"], dtype=object), np.array([31])))
    [('DE', 31)]
    """

    def __init__(self, names: Sequence[str], schema: Schema) -> None:
        self.names = tuple(names)
        self._fields = [field_of(schema, name) for name in names]
        for name, field in zip(names, self._fields, strict=True):
            if isinstance(field, Vector):
                raise InputError(f"expected a field with one value, got a vector ({name!r})", place="field")

    @property
    def declared(self) -> bool:
        """Whether the schema lists all possible keys."""
        return all(isinstance(field, Category | Boolean) for field in self._fields)

    @property
    def count(self) -> int:
        """How many keys the schema lists."""
        return prod(field.upper + 1 for field in self._fields)

    def all(self) -> list[tuple[Any, ...]]:
        """Every declared key, encoded."""
        return list(product(*(range(field.upper + 1) for field in self._fields)))

    def encode(self, bin: Any, place: str) -> tuple[Any, ...]:
        """A key as users write it."""
        parts = (bin,) if len(self.names) == 1 else bin
        if not isinstance(parts, list | tuple) or len(parts) != len(self.names):
            raise InputError(f"expected {len(self.names)} values ({', '.join(self.names)}), got {bin!r}", place=place)
        return tuple(field.encode(part, place) for field, part in zip(self._fields, parts, strict=True))

    def decode(self, labels: Labels) -> list[Any]:
        """Keys as they are published: values, or tuples of them."""
        columns = []
        for field, column in zip(self._fields, labels, strict=True):
            if isinstance(field, Text):
                columns.append(column.tolist())
                continue
            values, where = distinct(column)
            decoded = np.empty(len(values), dtype=object)
            decoded[:] = [field.decode(value) for value in values.tolist()]
            columns.append(decoded[where].tolist())
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def cells(self, labels: Labels, coins: Coins) -> tuple[U64, ...]:
        """The cell of each key, as two words."""
        names = (name_bytes(*parts) for parts in zip(*(column.tolist() for column in labels), strict=True))
        cells = coins.cells(names)
        return cells[:, 0].copy(), cells[:, 1].copy()

    def labels(self, rows: Rows) -> Labels:
        """The key of each record."""
        return tuple(rows.columns[name] for name in self.names)

    def columns(self, keys: Sequence[tuple[Any, ...]]) -> Labels:
        """Encoded keys, as labels."""
        labels = []
        for column in zip(*keys, strict=True):
            values = np.empty(len(column), dtype=object if isinstance(column[0], str | bytes) else np.int64)
            values[:] = column
            labels.append(values)
        return tuple(labels)

    def tally(self, totals: Labelled, coins: Coins) -> Tally:
        """Totals by cell, with their keys as labels."""
        return Tally.of(self.cells(totals.labels, coins), totals.amounts, totals.labels)

    def refuse(self, rows: Rows) -> None:
        """Refuses texts that are too long to be keys."""
        sizes = np.zeros(rows.count, dtype=np.int64)
        for name, field in zip(self.names, self._fields, strict=True):
            if field.interned:
                column = rows.columns[name].tolist()
                sizes += np.fromiter(map(len, column), dtype=np.int64, count=len(column))
        # A character has at most four bytes, which settles most keys.
        for row in np.flatnonzero(sizes > LONGEST_KEY // 4).tolist():
            size = sum(_bytes(f, rows.columns[name][row]) for name, f in zip(self.names, self._fields, strict=True))
            if size > LONGEST_KEY:
                raise InputError(
                    f"expected a bin of at most {LONGEST_KEY:,} bytes, got {size:,}", place=self.names[0], row=row + 1
                )


class KeyedBound(Bound):
    """Totals by key, each key with the cell of its noise."""

    refuses = True

    def __init__(self, statistic: Statistic, grant: Grant, keys: Keys, **options: Any) -> None:
        super().__init__(statistic, grant, **options)
        self.keys = keys

    def _refuse(self, rows: Rows) -> None:
        self.keys.refuse(rows)

    def _gather(self, rows: Rows, weights: I64) -> Labelled:
        return Labelled.of(self.keys.labels(rows), self._amounts(rows, weights))

    def _gather_by(self, rows: Rows, weights: I64, group: I64, count: int) -> Pick:
        return Labelled.of((group, *self.keys.labels(rows)), self._amounts(rows, weights)).each(count)

    def _amounts(self, rows: Rows, weights: I64) -> I64:
        """What each record adds to its key."""
        return weights[:, None]

    def named(self, totals: Totals, coins: Coins) -> Tally:
        return self.keys.tally(totals, coins)


def _bytes(field: Field, value: Any) -> int:
    """The length of an encoded value; numbers are short."""
    if isinstance(field, Bytes):
        return len(value)
    return len(value.encode()) if field.interned else 0
