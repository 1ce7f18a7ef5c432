"""Equal records of a batch, once and with their number: a small file can hold a hundred million of them.

A batch is folded only where a glance at some of its records finds few different ones, so others pay hardly anything.
What the ledger makes of it is the same either way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retroact.arrays import I64
from retroact.ledger.operations import Stamped

# Smaller batches are kept as they are; larger ones are folded if among so many records so few are different.
_SMALLEST, _LOOKED_AT, _FEW = 4096, 64, 16


def folded(batch: Stamped) -> Stamped:
    """
    >>> from retroact.schema import Integer, Schema
    >>> rows, _ = Schema({"n": Integer(0, 9)}).encode({"n": [7, 8] * 5000})
    >>> folded(Stamped.of(rows, 1)).copies
    array([5000, 5000])
    """
    rows, subjects = batch.rows, batch.subjects
    if rows.count < _SMALLEST or batch.copies is not None:
        return batch
    columns: list[NDArray[Any]] = [batch.stamps, *rows.missing.values()]
    for column in rows.columns.values():
        columns += [column] if column.ndim == 1 else list(column.T)
    if not (subjects is None or isinstance(subjects, str)):
        columns.append(np.array(subjects, dtype=object))
    some = np.linspace(0, rows.count - 1, _LOOKED_AT).astype(np.int64)
    if len({*zip(*(column[some].tolist() for column in columns), strict=True)}) > _FEW:
        return batch
    codes = np.zeros(rows.count, dtype=np.int64)
    for column in columns:
        own = _codes(column)
        # Codes stay below the number of records, so their product stays below 2^62 for up to 2^31 of them.
        codes = np.unique(codes * (int(own.max()) + 1) + own, return_inverse=True)[1]
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    return replace(batch.take(first), numbers=None, copies=counts.astype(np.int64))


def _codes(column: NDArray[Any]) -> I64:
    """Equal numbers for equal values."""
    if column.dtype != object:
        return np.unique(column, return_inverse=True)[1].astype(np.int64)
    known: dict[Any, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in column.tolist()], dtype=np.int64)
