"""The types of arrays that are named in signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
AnyArray = NDArray[Any]
Integers = NDArray[np.int64] | NDArray[np.object_]
"""Exact integers: of 64 bits, or Python's own where those do not reach."""
Words = tuple[U64, ...]
"""Keys of several words each, a column for each word."""
