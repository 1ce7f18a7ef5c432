"""Equal records of a batch, once and with their number: a small file can hold a hundred million of them.

A batch is folded only where a glance at some of its records finds few different ones, so others pay hardly anything.
What the ledger makes of it is the same either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retroact.ledger.sorted_keys import Integers
from retroact.schema import Rows

# Smaller batches are kept as they are; larger ones are folded if among so many records so few are different.
_SMALLEST, _LOOKED_AT, _FEW = 4096, 64, 16

Subjects = Sequence[str | None] | str | None
Batch = tuple[Rows, Integers, Subjects, Integers | None]
"""Records, stamps, subjects, and how many there are of each; one of each where it is None."""


def folded(rows: Rows, stamps: Integers, subjects: Subjects) -> Batch:
    """
    >>> from retroact.schema import Integer, Schema
    >>> rows, _ = Schema({"n": Integer(0, 9)}).encode({"n": [7, 8] * 5000})
    >>> folded(rows, np.ones(10_000, np.int64), None)[3]
    array([5000, 5000])
    """
    whole: Batch = rows, stamps, subjects, None
    if rows.count < _SMALLEST:
        return whole
    columns: list[NDArray[Any]] = [stamps, *rows.missing.values()]
    for column in rows.columns.values():
        columns += [column] if column.ndim == 1 else list(column.T)
    if not (subjects is None or isinstance(subjects, str)):
        columns.append(np.array(subjects, dtype=object))
    some = np.linspace(0, rows.count - 1, _LOOKED_AT).astype(np.int64)
    if len({*zip(*(column[some].tolist() for column in columns), strict=True)}) > _FEW:
        return whole
    codes = np.zeros(rows.count, dtype=np.int64)
    for column in columns:
        own = _codes(column)
        # Codes stay below the number of records, so their product stays below 2^62 for up to 2^31 of them.
        codes = np.unique(codes * (int(own.max()) + 1) + own, return_inverse=True)[1]
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    owners = subjects if subjects is None or isinstance(subjects, str) else [subjects[row] for row in first.tolist()]
    return rows.take(first), stamps[first], owners, counts.astype(np.int64)


def _codes(column: NDArray[Any]) -> Integers:
    """Equal numbers for equal values."""
    if column.dtype != object:
        return np.unique(column, return_inverse=True)[1].astype(np.int64)
    known: dict[Any, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in column.tolist()], dtype=np.int64)
