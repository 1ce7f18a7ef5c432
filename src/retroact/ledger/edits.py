"""Sorted arrays with a few entries taken out and a few put in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from retroact.ledger.keys import Integers

# an array is written anew slice by slice if there is at most one edit for so many entries
_FEW = 256


def edited(old: NDArray[Any], gone: Integers, at: Integers, new: NDArray[Any]) -> NDArray[Any]:
    """`old` without the positions `gone`, and with `new` in front of the positions `at`, which are sorted.

    >>> edited(np.array([1, 3, 4, 7]), np.array([2]), np.array([1, 4]), np.array([2, 9])).tolist()
    [1, 2, 3, 7, 9]
    """
    if not len(gone) and not len(at):
        return old
    out = np.empty((len(old) - len(gone) + len(new), *old.shape[1:]), dtype=old.dtype)
    write_edited(old, gone, at, new, out)
    return out


def write_edited(old: NDArray[Any], gone: Integers, at: Integers, new: NDArray[Any], out: NDArray[Any]) -> None:
    """Write `old` without the positions `gone`, and with `new` in front of the positions `at` and at the end."""
    if _FEW * (len(gone) + len(at)) < len(old):
        np.concatenate(_pieces(old, gone, at, new), out=out)
        return
    kept = np.ones(len(old), dtype=np.bool_)
    kept[gone] = False
    old = old[kept]
    inner = out[: len(old) + len(at)]
    if len(at):
        places = at - np.searchsorted(gone, at) + np.arange(len(at))
        free = np.ones(len(inner), dtype=np.bool_)
        free[places] = False
        inner[free] = old
        inner[places] = new[: len(at)]
    else:
        inner[:] = old
    out[len(inner) :] = new[len(at) :]


def _pieces(old: NDArray[Any], gone: Integers, at: Integers, new: NDArray[Any]) -> list[NDArray[Any]]:
    """The same as slices: cheaper than masks as long as there are few."""
    pieces: list[NDArray[Any]] = []
    start = 0
    # at one position, what is inserted comes first
    edits = [(position, 0, k) for k, position in enumerate(at.tolist())]
    edits += [(position, 1, 0) for position in gone.tolist()]
    for position, removes, k in sorted(edits):
        pieces.append(old[start:position])
        if not removes:
            pieces.append(new[k : k + 1])
        start = position + removes
    pieces += [old[start:], new[len(at) :]]
    return pieces
