"""Attacks on two worlds that are given as arrays: runs by rounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from retroact.audit.distinguish import Attack, attack
from retroact.privacy import Guarantee, PureDP
from retroact.testing.features import Features


def features_of(values: npt.ArrayLike) -> Features:
    """Runs by rounds of one number each."""
    table = np.asarray(values, dtype=np.float64)
    count, nothing = table.shape[1], np.zeros((len(table), 0), dtype=np.int64)
    rounds = tuple(range(1, count + 1))
    return Features(table, ("answer",) * count, rounds, (table % 1 != 0).any(axis=0), (), nothing)


def apart(zero: npt.ArrayLike, one: npt.ArrayLike, *, delta: float = 0.0, **options: Any) -> Attack:
    """The attack on runs of either world, for a claim of this delta."""
    sides = [np.asarray(side) for side in (zero, one)]
    runs = np.concatenate(sides)
    views = features_of(runs[:, None] if runs.ndim == 1 else runs)
    worlds = np.repeat([False, True], [len(side) for side in sides])
    return attack(views, worlds, Guarantee(PureDP(math.inf), math.inf, delta), **options)
